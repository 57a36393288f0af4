//! Whom untaint acts as.

use std::str::FromStr;

use crate::config;

/// The Namespace and the name of untaint's own ServiceAccount, and of all that is made for it.
pub const OWN: &str = "untaint";

/// A ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
        if self.is_own() {
            return OWN.into();
        }
        let Self { namespace, name } = self;
        // A namespace has no dot.
        format!("{OWN}.{namespace}.{name}")
    }

    /// Whether it is what the DaemonSet has unless told otherwise.
    pub(super) fn is_own(&self) -> bool {
        self.namespace == OWN && self.name == OWN
    }

    /// Its user name: `MakeUsername` in k8s.io/apiserver/pkg/authentication/serviceaccount.
    #[must_use]
    pub fn user(&self) -> String {
        let Self { namespace, name } = self;
        format!("system:serviceaccount:{namespace}:{name}")
    }
}

/// `NAMESPACE:NAME`.
impl FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = text
            .split_once(':')
            .ok_or("must be NAMESPACE:NAME, such as monitoring:node-exporter")?;
        let namespace = config::parse_namespace(namespace);
        let name = config::parse_service_account(name);
        Ok(Self {
            namespace: namespace.map_err(|error| format!("the NAMESPACE {error}"))?,
            name: name.map_err(|error| format!("the NAME {error}"))?,
        })
    }
}
