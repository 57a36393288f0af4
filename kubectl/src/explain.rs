//! What keeps pods off a node. Pure.

mod agent;

use k8s_openapi::api::core::v1::Taint;
use serde::Serialize;
use serde_json::Value;
use untaint::config::Rule;
use untaint::taint::{owner_of, written};

use crate::cluster::{Agent, Cluster};
use crate::karpenter::{self, Factor};
use crate::{kubelet, owners};

/// All that is known of a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explanation {
    pub(crate) node: String,
    /// The most important reason, the same for all nodes in the same trouble. `None` if ordinary pods can run there.
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_ready: Option<NotReady>,
    pub(crate) taints: Vec<TaintExplained>,
    /// What Karpenter waits for, if the node is one of its own and not initialized.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) karpenter: Vec<Factor>,
}

/// Why the kubelet says that it is not ready.
#[derive(Debug, Serialize)]
pub(crate) struct NotReady {
    /// The kubelet does not report.
    #[serde(skip)]
    is_unknown: bool,
    /// The message of the condition.
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) meaning: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<&'static str>,
}

/// A taint of the node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaintExplained {
    /// `KEY[=VALUE]:EFFECT`.
    pub(crate) taint: String,
    pub(crate) removed_by: String,
    /// What that waits for, and what else is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) why: Vec<String>,
    pub(crate) next: String,
    /// Whether it is of a rule of untaint.
    pub(crate) is_of_rule: bool,
    /// For [`Explanation::reason`].
    #[serde(skip)]
    reason: String,
}

/// An explanation for each Node, in their order.
pub(crate) fn all(cluster: &Cluster) -> Vec<Explanation> {
    let nodes = cluster.nodes.iter();
    nodes.map(|node| explain(cluster, node)).collect()
}

fn explain(cluster: &Cluster, node: &Value) -> Explanation {
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let agents: Vec<&Agent> = cluster
        .agents
        .iter()
        .filter(|agent| agent.node() == name)
        .collect();
    let claim = karpenter::claim(&cluster.claims, node);
    let taints = taints(node).into_iter();
    let taints: Vec<_> = taints
        .map(|taint| explain_taint(cluster, node, &agents, claim, &taint))
        .collect();
    let [ready, reason, message] = condition(node, "Ready");
    let not_ready = (ready != "True").then(|| {
        let message = match (message.is_empty(), reason.is_empty()) {
            (false, _) => message,
            (true, false) => reason,
            (true, true) => "the Node has no condition Ready yet".to_owned(),
        };
        let known = kubelet::meaning(&message);
        NotReady {
            is_unknown: ready == "Unknown",
            meaning: known.map(|(meaning, _)| meaning),
            next: known.map(|(_, next)| next),
            message,
        }
    });
    let factors = claim.map(|claim| karpenter::factors(claim, node));
    // The last one is that Karpenter has initialized the node. Later, the others do not matter.
    let karpenter = factors.filter(|factors| factors.last().is_some_and(|last| !last.met));
    Explanation {
        node: name.to_owned(),
        reason: main_reason(&taints, not_ready.as_ref()),
        not_ready,
        taints,
        karpenter: karpenter.unwrap_or_default(),
    }
}

/// If the kubelet does not report, nothing else about the node is known. Otherwise, a rule's taint comes first: untaint
/// removes it when the rest works. Then the reason of the kubelet, from which other taints follow.
fn main_reason(taints: &[TaintExplained], not_ready: Option<&NotReady>) -> Option<String> {
    let of_kubelet = not_ready.map(|not_ready| {
        let reason = not_ready.meaning;
        reason
            .unwrap_or("the kubelet does not report Ready")
            .to_owned()
    });
    if not_ready.is_some_and(|not_ready| not_ready.is_unknown) {
        return of_kubelet;
    }
    // A taint of the effect PreferNoSchedule keeps no pod away.
    let barriers = || {
        let taints = taints.iter();
        taints.filter(|taint| !taint.taint.ends_with(":PreferNoSchedule"))
    };
    let of_rule = barriers().find(|taint| taint.is_of_rule);
    let of_rule = of_rule.map(|taint| taint.reason.clone());
    let of_others = || Some(barriers().next()?.reason.clone());
    of_rule.or(of_kubelet).or_else(of_others)
}

fn explain_taint(
    cluster: &Cluster,
    node: &Value,
    agents: &[&Agent],
    claim: Option<&Value>,
    taint: &Taint,
) -> TaintExplained {
    let mut explained = match rule_for(cluster, agents, node, taint) {
        Some(rule) => agent::explain(cluster, node, agents, rule, taint),
        None => of_others(cluster, taint),
    };
    if let Some(claim) = claim
        && (explained.is_of_rule || owners::of(&taint.key).is_none())
        && karpenter::is_under_taints(claim, &taint.key)
    {
        let pool = claim["metadata"]["labels"]["karpenter.sh/nodepool"].as_str();
        explained.why.push(format!(
            "the NodePool {} lists this taint under taints: Karpenter takes it for permanent, and launches no node for pods that do not tolerate it",
            pool.unwrap_or("of the node"),
        ));
        if explained.is_of_rule {
            explained.next = format!(
                "move the taint to startupTaints of the NodePool; {}",
                explained.next
            );
        }
    }
    explained
}

/// The rule that removes this taint from this Node: of an agent on the node or, if none has one, of any configuration.
fn rule_for<'c>(
    cluster: &'c Cluster,
    agents: &[&'c Agent],
    node: &Value,
    taint: &Taint,
) -> Option<&'c Rule> {
    let on_node = agents
        .iter()
        .filter_map(|agent| agent.configuration.as_ref());
    let configurations = on_node.chain(&cluster.configurations);
    let mut rules = configurations.flat_map(|configuration| &configuration.rules);
    rules.find(|rule| {
        let labels = &node["metadata"]["labels"];
        let mut wanted = rule.node_selector.iter();
        rule.taints().any(|of_rule| of_rule.matches(taint))
            && wanted.all(|(key, value)| labels[key.as_str()] == **value)
    })
}

/// A taint that no rule removes from this Node.
fn of_others(cluster: &Cluster, taint: &Taint) -> TaintExplained {
    let configurations = cluster.configurations.iter();
    let mut rules = configurations.flat_map(|configuration| &configuration.rules);
    let other_nodes = rules.find(|rule| rule.taints().any(|of_rule| of_rule.matches(taint)));
    let (removed_by, next) = match (other_nodes, owners::of(&taint.key)) {
        (Some(rule), _) => (
            format!(
                "nobody on this node: nodeSelector of the rule {} does not select it",
                rule.name
            ),
            "correct the labels of the Node, or nodeSelector of the rule".to_owned(),
        ),
        (None, Some(remover)) => (
            [remover.who, remover.when].join(if remover.when.is_empty() { "" } else { ", " }),
            remover.next.to_owned(),
        ),
        (None, None) => match owner_of(&taint.key) {
            Some(owner) => (owner.name.to_owned(), "see that program".to_owned()),
            None if cluster.hides_rules() => (
                "unknown: the rules of untaint could not be read".to_owned(),
                "see what could not be read, at the end".to_owned(),
            ),
            None => (
                "nobody that is known: no rule of untaint names it".to_owned(),
                "if it is permanent, nothing; if it is a start-up taint, write a rule for it"
                    .to_owned(),
            ),
        },
    };
    TaintExplained {
        taint: written(taint),
        reason: format!("{}: removed by {removed_by}", taint.key),
        removed_by,
        why: Vec::new(),
        next,
        is_of_rule: false,
    }
}

/// The taints of a Node.
pub(crate) fn taints(node: &Value) -> Vec<Taint> {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints
        .map(|taint| {
            let text = |field: &str| taint[field].as_str().map(str::to_owned);
            Taint {
                key: text("key").unwrap_or_default(),
                value: text("value"),
                effect: text("effect").unwrap_or_default(),
                time_added: None,
            }
        })
        .collect()
}

/// The status, reason and message of a condition, or empty texts.
pub(crate) fn condition(object: &Value, kind: &str) -> [String; 3] {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|list| list.iter().find(|one| one["type"] == kind));
    ["status", "reason", "message"].map(|field| {
        let text = found.and_then(|condition| condition[field].as_str());
        text.unwrap_or_default().to_owned()
    })
}
