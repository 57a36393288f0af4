//! Whom untaint acts as.

/// The Namespace and the name of untaint's own ServiceAccount, and of all that is made for it.
pub const OWN: &str = "untaint";

/// A ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// A DNS label.
    pub namespace: String,
    /// A DNS subdomain.
    pub name: String,
}

impl Account {
    /// The name of what is made for this account. No two accounts share one, so that several forms can stand side by
    /// side in a cluster; a valid one for every kind of object.
    #[must_use]
    pub fn objects(&self) -> String {
        let Self { namespace, name } = self;
        if namespace == OWN && name == OWN {
            return OWN.into();
        }
        // A namespace has no dot.
        format!("{OWN}.{namespace}.{name}")
    }

    /// Its user name: `MakeUsername` in k8s.io/apiserver/pkg/authentication/serviceaccount.
    #[must_use]
    pub fn user(&self) -> String {
        let Self { namespace, name } = self;
        format!("system:serviceaccount:{namespace}:{name}")
    }
}
