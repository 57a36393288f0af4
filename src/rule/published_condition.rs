//! The condition of the Node that shows the state of a rule's gates. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::gate::State;
use crate::node::view::NodeView;
use crate::text::printable;

/// Longest message, in characters.
const MAX_MESSAGE: usize = 1000;

/// Not ready yet, with every gate open.
const STABILIZING: &str = "GatesStabilizing";

/// The condition to write.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedCondition {
    /// The condition's type.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
    /// The Node may keep its `True` instead: it got that after a whole `stableFor`, and it has been true since.
    keeps_true: bool,
}

impl PublishedCondition {
    /// `gates`: the state of a rule's gates together. `stable`: all have been open for `stableFor`. `waits_for`: the gates
    /// that are not open, with their reasons.
    pub fn new(kind: &str, gates: State, stable: bool, waits_for: &str) -> Self {
        let (status, reason, message) = match gates {
            State::Open if stable => ("True", "GatesOpen", "every gate is open"),
            State::Open => (
                "False",
                STABILIZING,
                "every gate is open, but not for stableFor yet",
            ),
            State::Closed => ("False", "GatesClosed", waits_for),
            State::Unknown => ("Unknown", "GatesUnknown", waits_for),
        };
        Self {
            kind: kind.to_owned(),
            status,
            reason,
            message: printable(message, MAX_MESSAGE),
            keeps_true: reason == STABILIZING,
        }
    }

    /// `lapsed`: a `True` that the Node may have has become untrue since.
    #[must_use]
    pub fn after(self, lapsed: bool) -> Self {
        Self {
            keeps_true: self.keeps_true && !lapsed,
            ..self
        }
    }

    /// Whether the condition on `node` has the same status and reason, and another message.
    pub fn differs_in_message_only(&self, node: &NodeView) -> bool {
        let known = self.known(node);
        known.is_some_and(|known| self.has_state_of(known) && !self.has_message_of(known))
    }

    fn has_state_of(&self, known: &NodeCondition) -> bool {
        known.status == self.status && known.reason.as_deref() == Some(self.reason)
    }

    fn has_message_of(&self, known: &NodeCondition) -> bool {
        known.message.as_deref() == Some(&self.message)
    }

    fn known<'n>(&self, node: &'n NodeView) -> Option<&'n NodeCondition> {
        let mut conditions = node.conditions.iter();
        conditions.find(|known| known.type_ == self.kind)
    }

    /// The body of the strategic merge patch of `nodes/status` that writes the condition; `None` if `node` has it.
    ///
    /// The API server merges conditions by their type (`patchMergeKey` of `NodeStatus`), so the patch touches no other
    /// condition. As in the API, the time of the transition moves with the status only, and that of the heartbeat with
    /// every write. Unlike the kubelet, untaint writes only changes: the heartbeat does not show that the agent is alive.
    /// `stale`: the Node's condition is from before this boot. Then it is no evidence, and is written again in any case.
    pub fn patch(&self, node: &NodeView, stale: bool, now: Timestamp) -> Option<Value> {
        let known = self.known(node);
        let is_current = |known: &NodeCondition| {
            let keeps_true = self.keeps_true && known.status == "True";
            keeps_true || self.has_state_of(known) && self.has_message_of(known)
        };
        if !stale && known.is_some_and(is_current) {
            return None;
        }
        let same_status = known.filter(|known| known.status == self.status);
        let since = same_status.and_then(|known| known.last_transition_time.clone());
        let condition = NodeCondition {
            type_: self.kind.clone(),
            status: self.status.to_owned(),
            reason: Some(self.reason.to_owned()),
            message: Some(self.message.clone()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: since.or(Some(Time(now))),
        };
        Some(json!({
            "metadata": {"uid": node.metadata.uid},
            "status": {"conditions": [condition]},
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "readiness.k8s.io/NetworkReady";

    fn node(conditions: &Value) -> NodeView {
        let metadata = json!({"name": "node", "uid": "u", "resourceVersion": "1"});
        serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}}))
            .unwrap()
    }

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_state_of_the_gates_gives_status_and_reason() {
        for (gates, stable, expected) in [
            (
                State::Open,
                true,
                ("True", "GatesOpen", "every gate is open"),
            ),
            (
                State::Open,
                false,
                (
                    "False",
                    STABILIZING,
                    "every gate is open, but not for stableFor yet",
                ),
            ),
            (
                State::Closed,
                false,
                ("False", "GatesClosed", "agent: refused"),
            ),
            (
                State::Unknown,
                false,
                ("Unknown", "GatesUnknown", "agent: refused"),
            ),
        ] {
            let condition = PublishedCondition::new(KIND, gates, stable, "agent: refused");
            assert_eq!(
                (
                    condition.status,
                    condition.reason,
                    condition.message.as_str()
                ),
                expected
            );
        }
    }

    #[test]
    fn the_patch_has_the_one_condition_and_the_node_it_is_about() {
        let condition = PublishedCondition::new(KIND, State::Open, true, "");
        let ready = json!([{"type": "Ready", "status": "True"}]);
        assert_eq!(
            condition.patch(&node(&ready), false, now()),
            Some(json!({
                "metadata": {"uid": "u"},
                "status": {"conditions": [{
                    "type": KIND,
                    "status": "True",
                    "reason": "GatesOpen",
                    "message": "every gate is open",
                    "lastHeartbeatTime": "2026-01-01T12:00:00Z",
                    "lastTransitionTime": "2026-01-01T12:00:00Z",
                }]},
            }))
        );
    }

    #[test]
    fn a_condition_that_the_node_already_has_is_not_written_again() {
        let condition = PublishedCondition::new(KIND, State::Closed, false, "agent: refused");
        let mut known = condition.patch(&node(&json!([])), false, now()).unwrap();
        let conditions = known["status"]["conditions"].take();
        let later = "2026-02-01T12:00:00Z".parse().unwrap();
        assert_eq!(condition.patch(&node(&conditions), false, later), None);
    }

    #[test]
    fn a_condition_from_before_the_boot_is_written_again_and_does_not_keep_its_true() {
        let open = PublishedCondition::new(KIND, State::Open, true, "");
        let stabilizing = PublishedCondition::new(KIND, State::Open, false, "");
        let known = open.patch(&node(&json!([])), false, now()).unwrap();
        let node = node(&known["status"]["conditions"]);
        let later = "2026-02-01T12:00:00Z".parse().unwrap();
        assert_eq!(stabilizing.patch(&node, false, later), None);
        for (condition, status, since) in [
            (open, "True", "2026-01-01T12:00:00Z"),
            (stabilizing, "False", "2026-02-01T12:00:00Z"),
        ] {
            let patch = condition.patch(&node, true, later).unwrap();
            let written = &patch["status"]["conditions"][0];
            assert_eq!(written["status"], status);
            assert_eq!(written["lastTransitionTime"], since);
            assert_eq!(written["lastHeartbeatTime"], "2026-02-01T12:00:00Z");
        }
    }

    #[test]
    fn a_change_of_the_message_alone_is_recognized() {
        let known = json!([{"type": KIND, "status": "False", "reason": "GatesClosed", "message": "agent: 1"}]);
        for (gates, message, expected) in [
            (State::Closed, "agent: 2", true),
            (State::Closed, "agent: 1", false),
            (State::Unknown, "agent: 2", false),
        ] {
            let condition = PublishedCondition::new(KIND, gates, false, message);
            assert_eq!(
                condition.differs_in_message_only(&node(&known)),
                expected,
                "{gates:?} {message}"
            );
        }
        let condition = PublishedCondition::new(KIND, State::Closed, false, "agent: 2");
        assert!(!condition.differs_in_message_only(&node(&json!([]))));
    }

    #[test]
    fn the_time_of_the_transition_moves_with_the_status_alone() {
        let before = json!([{"type": KIND, "status": "False", "reason": "GatesClosed", "message": "old", "lastTransitionTime": "2025-01-01T00:00:00Z"}]);
        for (gates, expected) in [
            (State::Closed, "2025-01-01T00:00:00Z"),
            (State::Unknown, "2026-01-01T12:00:00Z"),
        ] {
            let condition = PublishedCondition::new(KIND, gates, false, "new");
            let patch = condition.patch(&node(&before), false, now()).unwrap();
            let written = &patch["status"]["conditions"][0];
            assert_eq!(written["lastTransitionTime"], expected);
            assert_eq!(written["lastHeartbeatTime"], "2026-01-01T12:00:00Z");
        }
    }

    #[test]
    fn a_message_is_bounded_and_has_nothing_invisible() {
        let condition = PublishedCondition::new(KIND, State::Closed, false, &"a\n".repeat(10_000));
        assert!(condition.message.starts_with("a\\na\\n"));
        assert_eq!(condition.message.chars().count(), MAX_MESSAGE + 1);
    }
}
