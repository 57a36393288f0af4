//! What must be so at every step: what a patch may change, and how often is too often.

use std::time::Instant;

use serde_json::Value;
use untaint::config::Rule;
use untaint::node::patch::{Action, Change};

use crate::server::id;

/// Panics unless the patch has done to the Node what the change says, to taints of the `rules` alone.
pub(crate) fn check_effect(change: &Change, rules: &[Rule], before: &Value, after: &Value) {
    let taints = |node: &Value| {
        node["spec"]["taints"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let named = |taint: &Value| {
        let mut named = change.taints.iter();
        named.any(|named| (named.key.clone(), named.effect.clone()) == id(taint))
    };
    let (mine, others): (Vec<_>, Vec<_>) = taints(before).into_iter().partition(named);
    let (left, others_after): (Vec<_>, Vec<_>) = taints(after).into_iter().partition(named);
    let bytes = |taints: &[Value]| serde_json::to_string(taints).unwrap();
    assert_eq!(
        bytes(&others),
        bytes(&others_after),
        "a foreign taint: {change:?}"
    );
    let (gone, came) = match change.action {
        Action::Remove => (mine, left),
        Action::PutBack => (left, mine),
    };
    assert_eq!(
        (gone.len(), came.len()),
        (change.taints.len(), 0),
        "{change:?}"
    );
    for taint in gone {
        let taint = serde_json::from_value(taint).unwrap();
        let is_ours = rules.iter().any(|rule| rule.taint.matches(&taint));
        assert!(is_ours, "no rule is about {taint:?}: {change:?}");
    }
    let without_taints = |node: &Value| {
        let mut node = node.clone();
        node["spec"].as_object_mut().unwrap().remove("taints");
        node["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("resourceVersion");
        node
    };
    assert_eq!(without_taints(before), without_taints(after));
    assert_eq!(before["metadata"]["uid"], change.uid.as_str());
}

/// The requests since somebody else last did something that makes a new attempt sensible.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    since: Option<Instant>,
    patches: u32,
    reads: u32,
}

impl Traffic {
    pub(crate) fn others_act(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn patch(&mut self, now: Instant) {
        self.patches += 1;
        self.check(now);
    }

    pub(crate) fn read(&mut self, now: Instant) {
        self.reads += 1;
        self.check(now);
    }

    /// The waits double from 20 ms to 5 s, of which half is certain: 9 of them, and then one in 2.5 s. Those after a
    /// refusal double from 1 s to 1 min, for each of the four taints that rules can be about: 7, and then one a minute.
    fn check(&mut self, now: Instant) {
        let elapsed = now - *self.since.get_or_insert(now);
        let every = |millis| u32::try_from(elapsed.as_millis() / millis).unwrap();
        let retries = 10 + every(2_500);
        let denials = 4 * (7 + every(60_000));
        assert!(
            self.patches <= retries + denials && self.reads <= retries + self.patches,
            "too many requests in {elapsed:?}: {self:?}"
        );
    }
}
