//! ServiceAccounts: untaint's own, those of other programs that contain untaint, and exempt ones.

use std::str::FromStr;

use crate::syntax::{DNS_LABEL, DNS_SUBDOMAIN};
use crate::text::sha256;

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

    /// The value of a label, which has at most 63 characters, that differs between accounts.
    pub(super) fn label(&self) -> String {
        shortened(self.objects(), 63)
    }

    /// The account is last, because its name may have any ending: the objects of `a-events` are not the Events objects
    /// of `a`.
    fn named(&self, what: &str) -> String {
        if self.is_own() {
            return what.into();
        }
        let Self { namespace, name } = self;
        // A namespace has no dot. A name of 253 characters is the longest, and a ConfigMap's has a hash at its end.
        shortened(format!("{what}.{namespace}.{name}"), 240)
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

/// `name`, or its beginning and a hash if it is longer than `longest`.
fn shortened(name: String, longest: usize) -> String {
    if name.len() <= longest {
        return name;
    }
    let hash = &sha256(&name)[..10];
    let start = &name[..longest - hash.len() - 1];
    // The part before a hyphen must end with a letter or a digit.
    format!("{}-{hash}", start.trim_end_matches(['.', '-']))
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
    fn names_and_labels_of_different_accounts_differ_and_are_valid_however_long_the_accounts_are() {
        let names = ["untaint:untaint", "untaint:b", "a:b", "a:b.c"].map(str::to_owned);
        // Dots and hyphens at every place where a name could be cut.
        let long =
            [".", "-", "b-.c"].map(|part| format!("a{}.b", part.repeat(60)).replace("..", ".a"));
        let long = long.map(|name| format!("{}:{}", "n".repeat(63), name.replace("-.", "x.")));
        let full = ["b", "c"].map(|end| format!("{}:{}.{end}", "n".repeat(63), "a".repeat(251)));
        let accounts = names.iter().chain(&long).chain(&full);
        let accounts = accounts.map(|account| account.parse::<Account>().unwrap());
        let accounts: Vec<_> = accounts.collect();
        let all = accounts.iter().flat_map(|account| {
            crate::syntax::LABEL_VALUE.parse(&account.label()).unwrap();
            let names = [
                account.objects(),
                account.objects_for("tolerations-templates"),
            ];
            for name in &names {
                DNS_SUBDOMAIN.parse(&format!("{name}-0123456789")).unwrap();
            }
            names
                .into_iter()
                .chain([format!("label {}", account.label())])
        });
        let all: std::collections::BTreeSet<_> = all.collect();
        assert_eq!(all.len(), 3 * accounts.len(), "{all:?}");
    }

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
