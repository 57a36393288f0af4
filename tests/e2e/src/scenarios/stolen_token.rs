use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use crate::agent::{self, closed_gates, rule};
use crate::by_hand::{Network, configuration, key};
use crate::eventually::eventually_async;
use crate::habitat::{Habitat, RUN};
use crate::node::{NAME, Node};

const OTHER: &str = "other";
const RULE: &str = "network";
const FOREIGN: &str = "example.com/foreign:NoSchedule";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = habitat.timeline.clone();
    let network = Network::new().await?;
    let rule_of_network = network.rule(RULE, Duration::ZERO);
    habitat
        .install(&configuration(&[rule_of_network]), &[])
        .await?;
    let own = format!("{}:NoSchedule", key(RULE));
    // The order of the taints is known, because the scenario removes them by their index.
    habitat.cluster.create_node(OTHER, &[&own, FOREIGN]).await?;
    let mut node = habitat.node(&[&own, FOREIGN])?;
    node.up().await?;
    agent::status("the gates of the agent are closed", |status| {
        closed_gates(rule(status, RULE)).contains(&"agent")
    })
    .await?;

    let token = token(habitat, &node).await?;
    timeline.say("the token of untaint's pod is copied");
    let directory = format!("{RUN}/thief");
    fs::create_dir(&directory)?;
    let kubeconfig = habitat.cluster.kubeconfig(directory.as_ref(), &token)?;
    let thief = testkit::cluster::client(&kubeconfig).await?;
    let remove = |key: &str, index: usize| {
        json!([
            {"op": "test", "path": format!("/spec/taints/{index}/key"), "value": key},
            {"op": "remove", "path": format!("/spec/taints/{index}")},
        ])
    };
    let label = json!([{"op": "add", "path": "/metadata/labels/thief", "value": "was-here"}]);
    let cordon = json!([{"op": "add", "path": "/spec/unschedulable", "value": true}]);
    let foreign = FOREIGN.split(':').next().context("a key")?;
    for (what, node, patch) in [
        (
            "the rule's taint of another Node",
            OTHER,
            remove(&key(RULE), 0),
        ),
        ("a foreign taint of another Node", OTHER, remove(foreign, 1)),
        ("a foreign taint of its own Node", NAME, remove(foreign, 1)),
        ("a label of its own Node", NAME, label),
        ("cordoning its own Node", NAME, cordon),
    ] {
        let answer = send(&thief, node, &patch).await;
        timeline.say(&format!("{what}: {answer:?}"));
        habitat.expect(
            &format!("with the token, {what} is refused by the policy"),
            matches!(answer, Err((403 | 422, message)) if message.contains("ValidatingAdmissionPolicy")),
        );
    }
    let answer = send(&thief, NAME, &remove(&key(RULE), 0)).await;
    habitat.expect(
        "with the token, the rule's taint of its own Node can be removed",
        answer.is_ok(),
    );
    timeline
        .wait("the taint is gone", |world| {
            world.lacks_taint(NAME, &key(RULE))
        })
        .await?;
    let has_all = timeline.until("the other Node", |world| {
        (world.has_taint(OTHER, &key(RULE)) && world.has_taint(OTHER, foreign)).then_some(())
    });
    habitat
        .comes_true("the other Node has all its taints", has_all)
        .await?;

    let pods = ["delete", "pods", "--all", "--namespace=untaint"];
    habitat.cluster.kubectl(&pods).await?;
    let refused = async || {
        let answer = send(&thief, NAME, &json!([])).await;
        answer.is_err_and(|(code, _)| code == 401).then_some(())
    };
    let ends = eventually_async("the token is refused", refused);
    habitat
        .comes_true("the token ends with its pod", ends)
        .await?;
    Ok(())
}

/// The token that the kubelet has given to the pod of untaint.
async fn token(habitat: &Habitat, node: &Node) -> Result<String> {
    let uid = |pod: &Value| {
        let is_here = pod["spec"]["nodeName"] == NAME;
        let uid = pod["metadata"]["uid"].as_str().filter(|_| is_here);
        uid.map(str::to_owned)
    };
    let uid = habitat.timeline.until("the pod of untaint", |world| {
        world.pods_like("untaint/").find_map(|pod| uid(pod))
    });
    let volumes = format!("/var/lib/kubelet/pods/{}/volumes", uid.await?);
    let volumes = node.path(&volumes)?.join("kubernetes.io~projected");
    let volume = fs::read_dir(volumes)?.next().context("a volume")??;
    Ok(fs::read_to_string(volume.path().join("token"))?)
}

/// Sends a JSON Patch. An error is the code and the message of the API server.
async fn send(client: &Client, node: &str, patch: &Value) -> Result<(), (u16, String)> {
    let request = Request::patch(format!("/api/v1/nodes/{node}"))
        .header("Content-Type", "application/json-patch+json")
        .body(patch.to_string().into_bytes())
        .expect("a request");
    match client.request_text(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err((status.code, status.message.clone())),
        Err(error) => Err((0, error.to_string())),
    }
}
