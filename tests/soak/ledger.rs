//! The record that a writer has of its own taints.

use std::collections::BTreeMap;

use serde_json::Value;

/// A Node has at most one taint with a key and an effect.
pub(crate) type Identity = (String, &'static str);

/// The taints that only this writer adds, changes and removes, as the server has acknowledged them.
pub(crate) struct Ledger(pub(crate) BTreeMap<Identity, Option<Value>>);

/// The differences between a Node and the ledger.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) lost: usize,
    pub(crate) resurrected: usize,
    pub(crate) changed: usize,
}

impl Differences {
    pub(crate) fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.resurrected += other.resurrected;
        self.changed += other.changed;
    }
}

impl Ledger {
    /// A ledger of taints that the Node does not have yet.
    pub(crate) fn of(identities: Vec<Identity>) -> Self {
        Self(identities.into_iter().map(|one| (one, None)).collect())
    }

    /// Compares the ledger with a Node that was read after the latest acknowledged write. Then the ledger has the
    /// taints of this Node.
    pub(crate) fn compare(&mut self, taints: &[Value]) -> Differences {
        let mut differences = Differences::default();
        for (identity, known) in &mut self.0 {
            let found = find(taints, identity).map(|index| taints[index].clone());
            match (&known, &found) {
                (Some(_), None) => differences.lost += 1,
                (None, Some(_)) => differences.resurrected += 1,
                (Some(known), Some(found)) if known != found => differences.changed += 1,
                _ => continue,
            }
            *known = found;
        }
        differences
    }

    /// Copies the taints of a Node, because it is not known whether the latest write took effect.
    pub(crate) fn adopt(&mut self, taints: &[Value]) {
        self.compare(taints);
    }
}

/// The index of a taint in a list.
pub(crate) fn find(taints: &[Value], (key, effect): &Identity) -> Option<usize> {
    let is_it = |taint: &Value| taint["key"] == key.as_str() && taint["effect"] == *effect;
    taints.iter().position(is_it)
}

/// The taints of a Node, as JSON.
pub(crate) fn taints(node: &Value) -> Vec<Value> {
    let taints = node["spec"]["taints"].as_array();
    taints.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_difference_is_found_and_counted_once() {
        let identity = |key: &str| (key.to_owned(), "NoSchedule");
        let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
        let keys = ["kept", "lost", "changed", "resurrected", "absent"];
        let mut ledger = Ledger::of(keys.map(identity).to_vec());
        for key in ["kept", "lost", "changed"] {
            ledger.0.insert(identity(key), Some(taint(key)));
        }
        let mut changed = taint("changed");
        changed["value"] = "x".into();
        let mut other = taint("absent");
        other["effect"] = "NoExecute".into();
        let now = [changed, taint("resurrected"), other, taint("kept")];
        let Differences {
            lost,
            resurrected,
            changed,
        } = ledger.compare(&now);
        assert_eq!((lost, resurrected, changed), (1, 1, 1));
        let again = ledger.compare(&now);
        assert_eq!((again.lost, again.resurrected, again.changed), (0, 0, 0));
    }
}
