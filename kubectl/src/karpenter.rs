//! Why Karpenter counts a node as initialized, or does not: `Initialization.Reconcile` in
//! pkg/controllers/nodeclaim/lifecycle/initialization.go of sigs.k8s.io/karpenter.

use serde::Serialize;
use serde_json::Value;

use crate::explain::{condition, taints};

/// One thing that Karpenter waits for.
#[derive(Debug, Serialize, PartialEq)]
pub(crate) struct Factor {
    pub(crate) what: &'static str,
    pub(crate) met: bool,
    /// Why it is not met.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) detail: String,
}

/// Taints that Karpenter expects to go: `KnownEphemeralTaints` in pkg/scheduling/taints.go.
const EPHEMERAL: [&str; 5] = [
    "node.kubernetes.io/not-ready:NoSchedule",
    "node.kubernetes.io/not-ready:NoExecute",
    "node.kubernetes.io/unreachable:NoSchedule",
    "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
    "karpenter.sh/unregistered:NoExecute",
];

/// The NodeClaim of a Node.
pub(crate) fn claim<'c>(claims: &'c [Value], node: &Value) -> Option<&'c Value> {
    let id = node["spec"]["providerID"].as_str();
    claims.iter().find(|claim| {
        let status = &claim["status"];
        status["nodeName"] == node["metadata"]["name"]
            || id.is_some_and(|id| status["providerID"] == id)
    })
}

/// In Karpenter's order. DRA drivers are left out: only Karpenter's own condition names them.
pub(crate) fn factors(claim: &Value, node: &Value) -> Vec<Factor> {
    let factor = |what, detail: Option<String>| Factor {
        what,
        met: detail.is_none(),
        detail: detail.unwrap_or_default(),
    };
    let waiting = |kind: &str| {
        let [status, reason, message] = condition(claim, kind);
        (status != "True").then(|| join(&reason, &message))
    };
    let on_node: Vec<String> = taints(node).iter().map(untaint::taint::written).collect();
    let still = |taints: Vec<String>| {
        (!taints.is_empty()).then(|| format!("still there: {}", taints.join(", ")))
    };
    // `MatchTaint` in k8s.io/api/core/v1 compares key and effect.
    let startup = claim["spec"]["startupTaints"]
        .as_array()
        .into_iter()
        .flatten();
    let startup: Vec<&Value> = startup.collect();
    let of_startup = taints(node).into_iter().filter(|taint| {
        let is_it = |one: &&Value| one["key"] == taint.key && one["effect"] == taint.effect;
        startup.iter().any(is_it)
    });
    let of_startup = of_startup.map(|taint| untaint::taint::written(&taint));
    let ephemeral = on_node.iter().filter(|taint| {
        EPHEMERAL.contains(&taint.as_str()) || taint.starts_with("readiness.k8s.io/")
    });
    let requests = claim["spec"]["resources"]["requests"].as_object();
    let allocatable = &node["status"]["allocatable"];
    let is_zero = |quantity: &Value| matches!(quantity.as_str(), None | Some("0"));
    let unregistered = requests
        .into_iter()
        .flatten()
        .filter(|(name, quantity)| !is_zero(quantity) && is_zero(&allocatable[name.as_str()]));
    let unregistered: Vec<_> = unregistered.map(|(name, _)| name.clone()).collect();
    let [ready, reason, message] = condition(node, "Ready");
    vec![
        factor("the NodeClaim is registered", waiting("Registered")),
        factor(
            "the Node is Ready",
            (ready != "True").then(|| join(&reason, &message)),
        ),
        factor("no start-up taint is left", still(of_startup.collect())),
        factor(
            "no temporary taint of Kubernetes is left",
            still(ephemeral.cloned().collect()),
        ),
        factor(
            "the requested resources are there",
            (!unregistered.is_empty())
                .then(|| format!("the Node has no allocatable {}", unregistered.join(", "))),
        ),
        factor("Karpenter has initialized the node", waiting("Initialized")),
    ]
}

fn join(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", "") => "not yet".to_owned(),
        (text, "") | ("", text) => text.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// The mistake of listing a start-up taint under `taints`, where Karpenter takes it for permanent.
pub(crate) fn is_under_taints(claim: &Value, key: &str) -> bool {
    let has = |field: &str| {
        let taints = claim["spec"][field].as_array();
        taints.is_some_and(|taints| taints.iter().any(|taint| taint["key"] == key))
    };
    has("taints") && !has("startupTaints")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_factor_is_judged_by_itself() {
        let claim = json!({
            "spec": {
                "startupTaints": [{"key": "example.com/a", "effect": "NoSchedule"}],
                "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}},
            },
            "status": {"conditions": [
                {"type": "Registered", "status": "True"},
                {"type": "Initialized", "status": "Unknown", "reason": "StartupTaintsExist", "message": "one"},
            ]},
        });
        let node = json!({
            "spec": {"taints": [
                {"key": "example.com/a", "value": "x", "effect": "NoSchedule"},
                {"key": "example.com/a", "effect": "NoExecute"},
                {"key": "readiness.k8s.io/b", "effect": "NoSchedule"},
            ]},
            "status": {
                "allocatable": {"cpu": "2", "nvidia.com/gpu": "0"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        let found = factors(&claim, &node);
        let details: Vec<&str> = found.iter().map(|factor| factor.detail.as_str()).collect();
        assert_eq!(
            details,
            [
                "",
                "",
                "still there: example.com/a=x:NoSchedule",
                "still there: readiness.k8s.io/b:NoSchedule",
                "the Node has no allocatable nvidia.com/gpu",
                "StartupTaintsExist: one",
            ]
        );
    }
}
