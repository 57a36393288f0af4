//! Gauges of the current state, from the status snapshot.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::family;
use crate::gate::State;
use crate::rule::Decision;
use crate::status::{PolicyStatus, RuleStatus, Status};

const GATE_STATES: [State; 3] = [State::Open, State::Closed, State::Unknown];

/// A state has a series for each of its words. One of them is 1, as in kube-state-metrics.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, status: &Status) -> fmt::Result {
    let no_labels: [(&str, &str); 0] = [];
    let configuration = &status.configuration;
    let results = [
        ("success", configuration.reloads),
        ("failure", configuration.failed_reloads),
    ];
    family(
        encoder,
        "untaint_config_reloads",
        "Changes of the configuration file, by whether the new configuration became active.",
        results.map(|(result, count)| ([("result", result)], ConstCounter::new(count))),
    )?;
    // Prometheus has metrics of these two names for its own configuration.
    family(
        encoder,
        "untaint_config_last_reload_successful",
        "Whether the current configuration file is the active one.",
        [(no_labels, is(!configuration.failing))],
    )?;
    let loaded = ConstGauge::new(configuration.loaded.as_second());
    family(
        encoder,
        "untaint_config_last_reload_success_timestamp_seconds",
        "When the active configuration was loaded, in seconds since 1970.",
        [(no_labels, loaded)],
    )?;
    family(
        encoder,
        "untaint_api_watching",
        "Whether the watch of the Node is up.",
        [(no_labels, is(status.api.watching))],
    )?;
    let policy =
        PolicyStatus::WORDS.map(|state| ([("state", state)], is(state == status.policy.state)));
    family(
        encoder,
        "untaint_policy_state",
        "Whether an admission policy holds the account, as far as the agent knows.",
        policy,
    )?;
    let rules = &status.rules;
    let of_rules = rules.iter().flat_map(|rule| {
        let series = |state| {
            let labels = [("rule", rule.name.as_str()), ("state", state)];
            (labels, is(state == rule.decision))
        };
        Decision::WORDS.into_iter().map(series)
    });
    family(
        encoder,
        "untaint_rule_state",
        "Whether the rule is in this state.",
        of_rules,
    )?;
    each_rule(
        encoder,
        "untaint_rule_overdue",
        "Whether the taint has been there for longer than the rule's deadline.",
        rules,
        |rule| rule.overdue,
    )?;
    each_rule(
        encoder,
        "untaint_rule_denied",
        "Whether the server refuses a change of the taint.",
        rules,
        |rule| rule.denied.is_some(),
    )?;
    let gates = rules
        .iter()
        .flat_map(|rule| rule.gates.iter().map(move |gate| (rule, gate)));
    let of_gates = gates.flat_map(|(rule, gate)| {
        let series = move |state: State| {
            let labels = [
                ("rule", rule.name.as_str()),
                ("gate", gate.name.as_str()),
                ("state", state.as_str()),
            ];
            (labels, is(state == gate.state))
        };
        GATE_STATES.into_iter().map(series)
    });
    family(
        encoder,
        "untaint_gate_state",
        "Whether the gate is in this state.",
        of_gates,
    )
}

fn each_rule(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rules: &[RuleStatus],
    holds: fn(&RuleStatus) -> bool,
) -> fmt::Result {
    let series = rules
        .iter()
        .map(|rule| ([("rule", rule.name.as_str())], is(holds(rule))));
    family(encoder, name, help, series)
}

fn is(condition: bool) -> ConstGauge<u32> {
    ConstGauge::new(condition.into())
}
