//! ServiceAccounts: untaint's own, those of other programs that contain untaint, and exempt ones.

use std::str::FromStr;

use crate::syntax::{DNS_LABEL, DNS_SUBDOMAIN};

/// The Namespace and the name of untaint's own ServiceAccount, and the name of its objects.
pub const OWN: &str = "untaint";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    /// A DNS label.
    pub namespace: String,
    /// A DNS subdomain.
    pub name: String,
}

impl Account {
    /// The name of the objects for this account, valid for every kind of object. Different accounts have different
    /// names, so several forms can be in one cluster.
    pub fn objects(&self) -> String {
        self.named(OWN)
    }

    /// The name of a further object of the same kind, for `purpose`.
    pub fn objects_for(&self, purpose: &str) -> String {
        self.named(&format!("{OWN}-{purpose}"))
    }

    /// The account is last, because its name may have any ending: the objects of `a-events` are not the Events objects
    /// of `a`.
    fn named(&self, what: &str) -> String {
        if self.is_own() {
            return what.into();
        }
        let Self { namespace, name } = self;
        // A namespace has no dot.
        format!("{what}.{namespace}.{name}")
    }

    /// Whether it is the default account of the DaemonSet.
    pub(super) fn is_own(&self) -> bool {
        self.namespace == OWN && self.name == OWN
    }

    /// The user name: `MakeUsername` in k8s.io/apiserver/pkg/authentication/serviceaccount.
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
        let namespace = DNS_LABEL.parse(namespace);
        let name = DNS_SUBDOMAIN.parse(name);
        Ok(Self {
            namespace: namespace.map_err(|error| format!("the NAMESPACE {error}"))?,
            name: name.map_err(|error| format!("the NAME {error}"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_of_different_accounts_have_different_names() {
        let accounts = [
            "untaint:untaint",
            "a:b",
            "a:b-events",
            "untaint:untaint-events",
            "a:b.c",
            "a:untaint",
        ];
        let accounts = accounts.map(|account| account.parse::<Account>().unwrap());
        let all = |account: &Account| [account.objects(), account.objects_for("events")];
        let names: std::collections::BTreeSet<_> = accounts.iter().flat_map(all).collect();
        assert_eq!(names.len(), 2 * accounts.len(), "{names:?}");
        assert_eq!(all(&accounts[0]), ["untaint", "untaint-events"]);
        assert_eq!(all(&accounts[1]), ["untaint.a.b", "untaint-events.a.b"]);
    }
}
