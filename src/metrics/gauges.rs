//! Gauges of the current state, from the status snapshot.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::family;
use crate::gate::State;
use crate::rule::Decision;
use crate::status::{PolicyStatus, Status};

const GATE_STATES: [State; 3] = [State::Open, State::Closed, State::Unknown];
const NO_LABELS: [(&str, &str); 0] = [];

/// A state has a series for each of its words. One of them is 1, as in kube-state-metrics.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, status: &Status) -> fmt::Result {
    let node = [("node", status.node.name.as_str())];
    family(
        encoder,
        "untaint_node_info",
        "The name of the Node, as a label.",
        [(node, ConstGauge::new(1_u32))],
    )?;
    let configuration = &status.configuration;
    let results = [
        ("success", configuration.reloads),
        ("failure", configuration.failed_reloads),
    ];
    family(
        encoder,
        "untaint_config_reloads",
        "Changes of the configuration file: success if the new configuration became active, failure if it was invalid.",
        results.map(|(result, count)| ([("result", result)], ConstCounter::new(count))),
    )?;
    // Prometheus has metrics of these two names for its own configuration.
    flags(
        encoder,
        "untaint_config_last_reload_successful",
        "1 if the active configuration is the one in the file, 0 if the file is invalid.",
        [(NO_LABELS, !configuration.failing)],
    )?;
    let loaded = ConstGauge::new(configuration.loaded.as_second());
    family(
        encoder,
        "untaint_config_last_reload_success_timestamp_seconds",
        "When the active configuration was loaded, in seconds since 1970.",
        [(NO_LABELS, loaded)],
    )?;
    flags(
        encoder,
        "untaint_api_watching",
        "Whether the watch of the Node works.",
        [(NO_LABELS, status.api.watching)],
    )?;
    flags(
        encoder,
        "untaint_policy_state",
        "Whether an admission policy restricts the account: 1 for the current state, 0 for the others.",
        PolicyStatus::WORDS.map(|state| ([("state", state)], state == status.policy.state)),
    )?;
    let rules = || {
        let rules = status.rules.iter();
        rules.map(|rule| (rule, ("rule", rule.name.as_str())))
    };
    flags(
        encoder,
        "untaint_rule_state",
        "Whether the rule is in this state.",
        rules().flat_map(|(rule, label)| {
            Decision::WORDS.map(|state| ([label, ("state", state)], state == rule.decision))
        }),
    )?;
    flags(
        encoder,
        "untaint_rule_overdue",
        "Whether the taint has been there for longer than the rule's deadline.",
        rules().map(|(rule, label)| ([label], rule.overdue)),
    )?;
    flags(
        encoder,
        "untaint_rule_denied",
        "Whether the API server refuses to let untaint remove the taint or put it back, or every try has failed for 10 s.",
        rules().map(|(rule, label)| ([label], rule.denied.is_some())),
    )?;
    let gates = rules().flat_map(|(rule, label)| {
        let gates = rule.gates.iter();
        gates.map(move |gate| (gate, [label, ("gate", gate.name.as_str())]))
    });
    flags(
        encoder,
        "untaint_gate_state",
        "Whether the gate is in this state.",
        gates.flat_map(|(gate, [rule, name])| {
            GATE_STATES.map(|state| {
                let labels = [rule, name, ("state", state.as_str())];
                (labels, state == gate.state)
            })
        }),
    )
}

/// A family of which each series is 1 if its condition holds, and 0 otherwise.
fn flags<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (L, bool)>,
) -> fmt::Result {
    let gauge = |(labels, holds)| (labels, ConstGauge::new(u32::from(holds)));
    family(encoder, name, help, series.into_iter().map(gauge))
}
