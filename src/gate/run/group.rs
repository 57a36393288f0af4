//! The outcome of a gate from the outcomes of its checks. Pure.

use crate::config::{Check, Gate, GateKind};
use crate::gate::{Outcome, State};

/// A group is open if a member is open, else unknown if a member is unknown, else closed.
pub(super) fn outcome(gate: &Gate, outcomes: &[Outcome]) -> Outcome {
    if let (GateKind::Single(_), [outcome]) = (&gate.kind, outcomes) {
        return outcome.clone();
    }
    let messages = |wanted: fn(&Outcome) -> bool| {
        let members = gate.checks().iter().zip(outcomes);
        let wanted = members.filter(|(_, outcome)| wanted(outcome));
        let messages =
            wanted.map(|(member, outcome)| format!("{}: {}", member.name(), outcome.message()));
        messages.collect::<Vec<_>>().join("; ")
    };
    if outcomes.iter().any(Outcome::is_open) {
        Outcome::Open(messages(Outcome::is_open))
    } else if outcomes.iter().any(Outcome::is_unknown) {
        Outcome::Unknown(messages(|_| true))
    } else {
        Outcome::Closed(messages(|_| true))
    }
}

/// Whether the gate would be open if each unknown observation were open. A closed observation waits for the
/// node, not for the API server.
pub(super) fn is_open_but_for_api(gate: &Gate, outcomes: &[Outcome]) -> bool {
    let mut members = gate.checks().iter().zip(outcomes);
    members.any(|(member, outcome)| match outcome.state() {
        State::Open => true,
        State::Unknown => matches!(member, Check::Observation(_)),
        State::Closed => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn gate(gate: &str) -> Gate {
        let text = format!(
            "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n\
             - {{name: r, taint: {{key: t}}, gates: [{gate}]}}"
        );
        config::parse(&text)
            .unwrap()
            .rules
            .remove(0)
            .gates
            .remove(0)
    }

    #[test]
    fn a_gate_waits_for_the_api_server_alone_where_that_can_open_it_and_nothing_is_known_against_it()
     {
        const LOCAL: &str = "{name: l, file: {path: /l}}";
        const READY: &str = "{name: n, nodeCondition: {type: Ready}}";
        let open = || Outcome::Open(String::new());
        let closed = || Outcome::Closed(String::new());
        let unknown = || Outcome::Unknown(String::new());
        let of_api = [
            READY,
            "{name: c, csiDriver: {name: d}}",
            "{name: a, allocatable: {resource: r/r}}",
            "{name: p, pods: {namespace: n, matchLabels: {a: b}}}",
        ];
        for spec in of_api {
            for (outcome, expected) in [
                (open(), true),
                (unknown(), true),
                (Outcome::Unevaluated, true),
                (closed(), false),
            ] {
                let open = is_open_but_for_api(&gate(spec), std::slice::from_ref(&outcome));
                assert_eq!(open, expected, "{spec} {outcome:?}");
            }
        }
        for (outcome, expected) in [
            (open(), true),
            (unknown(), false),
            (Outcome::Unevaluated, false),
            (closed(), false),
        ] {
            let open = is_open_but_for_api(&gate(LOCAL), std::slice::from_ref(&outcome));
            assert_eq!(open, expected, "{outcome:?}");
        }
        let group = gate(&format!("{{name: g, anyOf: [{LOCAL}, {READY}]}}"));
        for (local, ready, expected) in [
            (open(), closed(), true),
            (open(), unknown(), true),
            (closed(), open(), true),
            (closed(), unknown(), true),
            (Outcome::Unevaluated, unknown(), true),
            (closed(), closed(), false),
            (unknown(), closed(), false),
        ] {
            let outcomes = [local, ready];
            let open = is_open_but_for_api(&group, &outcomes);
            assert_eq!(open, expected, "{outcomes:?}");
        }
    }
}
