//! The taints of rules: what untaint waits for, or why no agent is there to remove them.

use k8s_openapi::api::core::v1::Taint;
use serde_json::Value;
use untaint::config::Rule;
use untaint::taint::written;

use super::{TaintExplained, condition};
use crate::cluster::{Agent, Cluster};

/// What is known of the agent, from the best source to the worst.
struct Finding {
    why: Vec<String>,
    /// For the group of nodes.
    reason: String,
    next: String,
}

pub(super) fn explain(
    cluster: &Cluster,
    node: &Value,
    agents: &[&Agent],
    rule: &Rule,
    taint: &Taint,
) -> TaintExplained {
    let has_rule = |agent: &&&Agent| {
        let configuration = agent.configuration.as_ref();
        configuration.is_some_and(|it| it.rules.iter().any(|one| one.is_same(rule)))
    };
    let agent = agents.iter().find(has_rule).copied();
    let finding = match agent {
        None => missing(cluster, node, rule),
        Some(agent) => trouble_of_pod(agent)
            .or_else(|| by_status(agent, rule))
            .unwrap_or_else(|| by_traces(cluster, node, agent, rule)),
    };
    let place = agent.map_or(String::new(), |agent| format!(" (pod {})", agent.name()));
    TaintExplained {
        taint: written(taint),
        removed_by: format!("untaint, rule {}{place}", rule.name),
        why: finding.why,
        next: finding.next,
        is_of_rule: true,
        reason: finding.reason,
    }
}

/// No agent on the node has this rule: another node has one, or a DaemonSet.
fn missing(cluster: &Cluster, node: &Value, rule: &Rule) -> Finding {
    let name = &node["metadata"]["name"];
    let name = name.as_str().unwrap_or_default();
    let labels = &node["metadata"]["labels"];
    let selects = |daemon_set: &&Value| {
        let selector = daemon_set["spec"]["template"]["spec"]["nodeSelector"].as_object();
        let mut selector = selector.into_iter().flatten();
        selector.all(|(key, value)| labels[key.as_str()] == *value)
    };
    let (why, next) = if cluster.daemon_sets.is_empty()
        || cluster.daemon_sets.iter().any(|one| selects(&one))
    {
        (
            if cluster.hides_rules() {
                "no pod of untaint with this rule can be seen on the node".to_owned()
            } else {
                "no pod of untaint with this rule runs on the node".to_owned()
            },
            "see the Events of the DaemonSet of untaint, with kubectl describe: a quota, a policy or a taint can keep its pod away".to_owned(),
        )
    } else {
        (
            "the DaemonSet of untaint does not select the node".to_owned(),
            format!("compare nodeSelector of the DaemonSet with the labels of the Node {name}"),
        )
    };
    Finding {
        reason: format!("rule {}: {why}", rule.name),
        why: vec![why],
        next,
    }
}

/// Why the container of untaint does not run.
fn trouble_of_pod(agent: &Agent) -> Option<Finding> {
    let status = &agent.pod["status"];
    let lists = ["initContainerStatuses", "containerStatuses"];
    let mut containers = lists
        .iter()
        .flat_map(|list| status[*list].as_array().into_iter().flatten());
    // With the form post-start, untaint runs in a container of another name.
    let has_container = |list: &str| {
        let containers = agent.pod["spec"][list].as_array();
        containers.is_some_and(|list| list.iter().any(|container| container["name"] == "untaint"))
    };
    if !has_container("containers") && !has_container("initContainers") {
        return None;
    }
    let container = containers.find(|container| container["name"] == "untaint");
    let state = container.map(|container| &container["state"]);
    let is_done = |state: &Value| state["terminated"]["exitCode"] == 0;
    if state.is_some_and(|state| state.get("running").is_some() || is_done(state)) {
        return None;
    }
    let part = |kind: &str| state.and_then(|state| state[kind]["reason"].as_str());
    let reason = part("waiting").or(part("terminated"));
    let reason = reason.or(status["reason"].as_str());
    let phase = status["phase"].as_str().unwrap_or("Unknown");
    let reason = reason.unwrap_or(phase);
    let next = match reason {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" => {
            "see whether the node can pull the image: its name, and the credentials for the registry".to_owned()
        }
        "CreateContainerConfigError" => "see whether the ConfigMap of the pod exists".to_owned(),
        "CrashLoopBackOff" | "Error" => format!("read the log: kubectl logs --previous {}", in_kubectl(agent)),
        _ => format!("see the Events of the pod: kubectl describe pod {}", in_kubectl(agent)),
    };
    let reason = format!("the container of untaint does not run: {reason}");
    Some(Finding {
        why: vec![reason.clone()],
        reason,
        next,
    })
}

fn in_kubectl(agent: &Agent) -> String {
    let name = agent.name();
    let (namespace, pod) = name.split_once('/').unwrap_or_default();
    format!("--namespace {namespace} {pod}")
}

/// By `/statusz` of the agent, which has the state of each gate.
fn by_status(agent: &Agent, rule: &Rule) -> Option<Finding> {
    let status = agent.status.as_ref()?;
    let rules = status["rules"].as_array()?;
    let found = rules.iter().find(|one| one["name"] == *rule.name)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    let gates = found["gates"].as_array().into_iter().flatten();
    let closed = gates.filter(|gate| gate["state"] != "open");
    let closed: Vec<[&str; 3]> = closed
        .map(|gate| {
            ["name", "state", "message"].map(|field| gate[field].as_str().unwrap_or_default())
        })
        .collect();
    let mut why = vec![text("meaning").to_owned()];
    why.extend(
        closed
            .iter()
            .map(|[name, state, message]| format!("gate {name} is {state}: {message}")),
    );
    let mut next = match text("decision") {
        "waiting" => "see why these gates are not open",
        "stabilizing" => "wait; if it stays, a gate flaps: read the log of the pod",
        "held" => "wait for Karpenter to register the node",
        "limited" => "find the program that puts the taint back",
        "no-node" => "see whether the agent reaches the API server: read the log of the pod",
        _ => "wait some seconds, and look again",
    };
    let mut reason = match closed.first() {
        Some([name, ..]) => format!("rule {} waits for the gate {name}", rule.name),
        None => format!("rule {}: {}", rule.name, text("meaning")),
    };
    for field in ["denied", "writeFailure"] {
        if let Some(message) = found[field].as_str() {
            why.push(format!("the removal fails: {message}"));
            reason = format!("rule {}: the removal fails", rule.name);
            next = "read the message; if the roles or the policy are older than the configuration, apply the manifests again";
        }
    }
    if found["dryRun"] == true {
        why.push("the rule has dryRun: untaint writes nothing".to_owned());
        reason = format!("rule {} has dryRun", rule.name);
        next = "delete dryRun, or remove the taint with kubectl taint";
    }
    Some(Finding {
        why,
        reason,
        next: next.to_owned(),
    })
}

/// By what the agent has written into the cluster: the condition of the rule, or an Event.
fn by_traces(cluster: &Cluster, node: &Value, agent: &Agent, rule: &Rule) -> Finding {
    let mut why = Vec::new();
    if let Some(published) = &rule.publish_condition {
        let [status, reason, message] = condition(node, &published.kind);
        if !status.is_empty() {
            why.push(format!(
                "the condition {} is {status}: {reason}: {message}",
                published.kind
            ));
        }
    }
    let about = format!("(rule {})", rule.name);
    let events = cluster.events.iter().filter(|event| {
        event["involvedObject"]["uid"] == node["metadata"]["uid"]
            && event["message"]
                .as_str()
                .is_some_and(|note| note.contains(&about))
    });
    let newest = events.max_by_key(|event| event["eventTime"].as_str());
    if let Some(event) = newest {
        why.push(format!(
            "the Event {}: {}",
            event["reason"].as_str().unwrap_or_default(),
            event["message"].as_str().unwrap_or_default()
        ));
    }
    if rule.dry_run {
        why.push("the rule has dryRun: untaint writes nothing".to_owned());
    }
    let reason = if rule.dry_run {
        format!("rule {} has dryRun", rule.name)
    } else {
        format!("rule {} waits", rule.name)
    };
    let next = if why.is_empty() {
        format!(
            "read the log of the agent: kubectl logs {} --container untaint",
            in_kubectl(agent)
        )
    } else {
        "see why the gates are not open, or why the removal is refused".to_owned()
    };
    Finding { why, reason, next }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use untaint::config;

    use super::*;

    /// The finding for a rule of which `/statusz` says this.
    fn found(rule: &Value) -> (Vec<String>, String, String) {
        let text = "apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules: [{name: a, taint: {key: example.com/a}, gates: []}]";
        let configuration = config::parse(text).unwrap();
        let agent = Agent {
            pod: Value::Null,
            configuration: None,
            status: Some(json!({"rules": [rule]})),
        };
        let Finding { why, reason, next } = by_status(&agent, &configuration.rules[0]).unwrap();
        (why, reason, next)
    }

    #[test]
    fn the_gates_that_are_not_open_are_the_reason_unless_the_removal_fails_or_is_not_wanted() {
        let mut rule = json!({
            "name": "a", "decision": "waiting", "meaning": "waiting for its gates", "dryRun": false,
            "gates": [
                {"name": "x", "state": "open", "message": "fine"},
                {"name": "y", "state": "closed", "message": "503"},
                {"name": "z", "state": "unknown", "message": "no answer"},
            ],
        });
        let (why, reason, _) = found(&rule);
        assert_eq!(reason, "rule a waits for the gate y");
        assert_eq!(
            why[1..],
            ["gate y is closed: 503", "gate z is unknown: no answer"]
        );

        rule["gates"] = json!([]);
        rule["decision"] = "held".into();
        rule["meaning"] = "holding".into();
        let (_, reason, next) = found(&rule);
        assert_eq!(
            (reason.as_str(), next.as_str()),
            ("rule a: holding", "wait for Karpenter to register the node")
        );

        rule["denied"] = "forbidden by a webhook".into();
        let (why, reason, _) = found(&rule);
        assert_eq!(reason, "rule a: the removal fails");
        assert_eq!(why[1], "the removal fails: forbidden by a webhook");

        rule["dryRun"] = true.into();
        assert_eq!(found(&rule).1, "rule a has dryRun");
    }
}
