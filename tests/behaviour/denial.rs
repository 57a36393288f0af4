//! A server that refuses the removal.

mod lasting;
mod webhooks;

use jiff::{SignedDuration, Timestamp};
use tempfile::NamedTempFile;
use testkit::DEADLINE;
use testkit::api::{Answer, Verb};
use testkit::cluster::AuditEntry;
use tokio::time::timeout;

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT};

pub(crate) const REFUSED: &str = "the server refused the removal";
const FAILED: &str = "a request failed; trying again";

/// Adds an admission policy that refuses the removal of the taint with this key. Returns the file of the policy.
pub(crate) async fn keep_taint(scene: &OnCluster, key: &str) -> NamedTempFile {
    let name = scene.name;
    let policy = format!(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: keeps-taint-of-{name}}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}}]
  matchConditions: [{{name: node, expression: object.metadata.name == '{name}'}}]
  validations:
  - expression: has(object.spec.taints) && object.spec.taints.exists(t, t.key == '{key}')
    message: the taint {key} must stay
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: keeps-taint-of-{name}}}
spec: {{policyName: keeps-taint-of-{name}, validationActions: [Deny]}}
"
    );
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), policy).unwrap();
    let path = file.path().to_str().unwrap();
    scene.cluster.kubectl(&["apply", "-f", path]).await.unwrap();
    // A policy takes effect some time after it is created.
    let all = scene.taints().await;
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let in_force = async {
        while scene.cluster.set_taints(name, &[]).await.is_ok() {
            scene.cluster.set_taints(name, &all).await.unwrap();
        }
    };
    timeout(DEADLINE, in_force).await.unwrap();
    file
}

#[tokio::test]
async fn a_removal_that_a_policy_denies_is_told_once_with_its_message_and_succeeds_once_it_is_allowed()
 {
    let Some(scene) =
        OnCluster::with("denied", &["denied:NoSchedule", TAINT], Gates::open().await).await
    else {
        return;
    };
    scene.gates.configure("- {name: denied, taint: {key: denied}, gates: []}\n- {name: allowed, taint: {key: example.com/not-ready}, gates: []}\n");
    let policy = keep_taint(&scene, "denied").await;
    let agent = scene.agent(&["--listen", "127.0.0.1:0"]);
    let refused = agent.wait_for_message(REFUSED).await.unwrap();
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("the taint denied must stay"),
        "{refused}"
    );
    assert_eq!(refused["level"], "WARN");
    scene.wait_for_taints(&["denied:NoSchedule"]).await;
    let status = agent.status().await.unwrap();
    assert!(
        status["rules"][0]["denied"]
            .as_str()
            .unwrap()
            .contains("the taint denied must stay"),
        "{status:#}"
    );
    scene
        .cluster
        .kubectl(&["delete", "-f", policy.path().to_str().unwrap()])
        .await
        .unwrap();
    scene.wait_for_taints(&[]).await;
    agent
        .wait_for_log(|line| line["message"] == "removed the taint" && line["key"] == "denied")
        .await
        .unwrap();
    assert_eq!(agent.count(REFUSED), 1);
    let lines = agent
        .logs()
        .iter()
        .filter(|line| line["level"] != "DEBUG" && line["message"] == FAILED)
        .count();
    assert_eq!(lines, 0, "a denial is logged by its own line alone");
    let status = agent.status().await.unwrap();
    assert_eq!(
        status["rules"][0]["denied"],
        serde_json::Value::Null,
        "{status:#}"
    );
    assert_eq!(status["rules"][0]["decision"], "absent");
}

#[tokio::test]
async fn a_missing_permission_is_told_once_and_the_removal_succeeds_once_it_is_granted() {
    let scene = OnStandIn::with(&[TAINT, FOREIGN], Gates::open().await).await;
    let message = "nodes \"node\" is forbidden: User \"u\" cannot patch resource \"nodes\"";
    scene.server.respond_next(
        Verb::Patch,
        2,
        Answer::denied(403, "Forbidden", "node", message),
    );
    let agent = scene.agent(&[]);
    let refused = agent.wait_for_message(REFUSED).await.unwrap();
    assert!(
        refused["error"].as_str().unwrap().contains("cannot patch"),
        "{refused}"
    );
    scene.wait_for_taints(&[FOREIGN]).await;
    assert_eq!(agent.count(REFUSED), 1);
    let read_between = [
        Verb::Watch,
        Verb::Patch,
        Verb::Get,
        Verb::Patch,
        Verb::Get,
        Verb::Patch,
    ];
    assert_eq!(scene.verbs(), read_between);
}

#[tokio::test]
async fn a_kubelets_credentials_are_refused_and_untaint_says_what_to_use_instead() {
    let Some(scene) = OnCluster::with("kubelet", &[TAINT], Gates::open().await).await else {
        return;
    };
    let directory = scene.gates.dir.path();
    let kubeconfig = scene.cluster.kubelet_kubeconfig(directory, scene.name);
    let listen = ["--listen", "127.0.0.1:0"];
    let agent = scene.gates.agent(scene.name, &kubeconfig.unwrap(), &listen);
    let refused = agent.wait_for_message(REFUSED).await.unwrap();
    let expected = "403: nodes \"kubelet\" is forbidden: node \"kubelet\" is not allowed to modify taints: Kubernetes \
                    does not allow this for the credentials of a kubelet; use those of a ServiceAccount";
    assert_eq!(refused["error"], expected);
    let status = agent.status().await.unwrap();
    assert_eq!(status["rules"][0]["denied"], expected, "{status:#}");

    agent.wait_for_count(FAILED, 3).await.unwrap();
    let is_try = |entry: &AuditEntry| entry.user == "system:node:kubelet" && entry.verb == "patch";
    let tries = scene.cluster.requests(is_try).await.unwrap();
    let at = |nth: usize| tries[nth].received.parse::<Timestamp>().unwrap();
    assert!(at(1).duration_since(at(0)) >= SignedDuration::from_secs(1));
    assert!(at(2).duration_since(at(1)) >= SignedDuration::from_secs(2));
    assert_eq!(agent.count(REFUSED), 1);
    assert_eq!(scene.taints().await, [TAINT]);
}

#[tokio::test]
async fn when_a_patch_of_several_taints_is_denied_each_is_tried_alone() {
    let scene = OnStandIn::with(&["one:NoSchedule", "two:NoSchedule"], Gates::open().await).await;
    scene.gates.configure("- {name: one, taint: {key: one}, gates: []}\n- {name: two, taint: {key: two}, gates: []}\n");
    scene.server.respond_next(
        Verb::Patch,
        1,
        Answer::denied(422, "Invalid", "node", "not both"),
    );
    let _agent = scene.agent(&[]);
    scene.wait_for_taints(&[]).await;
    let removals = |body: &str| body.matches(r#""op":"remove""#).count();
    let patches: Vec<_> = scene
        .all(Verb::Patch)
        .iter()
        .map(|request| removals(&request.body))
        .collect();
    assert_eq!(patches, [2, 1, 1]);
}
