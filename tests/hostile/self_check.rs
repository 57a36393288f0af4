//! The agent says whether a policy holds its account.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::DEADLINE;
use testkit::agent::Agent;
use testkit::taints;
use tokio::time::timeout;
use untaint::manifests::{Form, Part};

use crate::installation::{Installation, Options};
use crate::request::{MERGE, Request};
use crate::work;

const HELD: &str = "an admission policy restricts this account";
const NOT_HELD: &str = "no admission policy restricts this account: its token can change every Node as its roles allow";
/// The gate of its rule does not open: nothing is removed.
const TAINTS: [&str; 2] = [
    "foreign.example/one:NoSchedule",
    "example.com/storage:NoSchedule",
];

async fn agent(installation: &Installation, node: &str, more: &[&str]) -> Agent {
    let namespace = &installation.manifests.account.namespace;
    let token = installation
        .cluster
        .token_for_node(namespace, "agent", node);
    let listen = ["--listen", "127.0.0.1:0"];
    let more = [&listen, more].concat();
    work::agent(installation, node, &token.await.unwrap(), &more)
}

/// Returns once `/statusz` says so of the policy, and checks that `/metrics` does.
async fn says(agent: &Agent, state: &str) -> Value {
    let said = async {
        loop {
            let policy = agent.status().await.unwrap()["policy"].take();
            if policy["state"] == state {
                return policy;
            }
        }
    };
    let policy = timeout(DEADLINE, said).await.unwrap();
    let (_, metrics) = agent.get("/metrics").await.unwrap();
    for word in ["held", "not-held", "unknown", "unchecked"] {
        let value = u8::from(word == state);
        let series = format!("untaint_policy_state{{state=\"{word}\"}} {value}");
        assert!(
            metrics.lines().any(|line| line == series),
            "{series} in {metrics}"
        );
    }
    policy
}

async fn dry_runs(installation: &Installation) -> usize {
    let user = installation.manifests.account.user();
    let of_agent = |entry: &testkit::cluster::AuditEntry| {
        entry.user == user
            && entry.uri.contains("dryRun=All")
            && entry.user_agent.starts_with("untaint/")
    };
    installation.cluster.requests(of_agent).await.unwrap().len()
}

/// An account that may patch Nodes, and that no policy knows.
async fn unheld(name: &str, form: Form) -> Option<Installation> {
    let options = Options {
        form,
        ..Options::default()
    };
    let installation = Installation::account(name, options).await?;
    installation.be_too_generous().await;
    Some(installation)
}

/// kustomize#5674, dra-driver-nvidia-gpu#1317 (D1).
#[tokio::test]
async fn in_every_form_an_agent_whose_account_is_held_says_so_after_one_dry_run() {
    for form in [
        Form::Daemonset,
        Form::Sidecar,
        Form::InitContainer,
        Form::PostStart,
    ] {
        let name = format!("held-{form:?}").to_lowercase();
        let options = Options {
            form,
            ..Options::default()
        };
        let Some(held) = Installation::new(&name, options).await else {
            return;
        };
        held.cluster.create_node(&name, &TAINTS).await.unwrap();
        let agent = agent(&held, &name, &[]).await;
        let line = agent.wait_for_message(HELD).await.unwrap();
        let by = line["by"].as_str().unwrap();
        assert!(by.starts_with("ValidatingAdmissionPolicy '"), "{line}");
        assert_eq!(says(&agent, "held").await["message"], by);
        assert_eq!(agent.count(NOT_HELD), 0);
        let (_, metrics) = agent.get("/metrics").await.unwrap();
        let asked = metrics
            .lines()
            .filter(|line| line.starts_with(r#"untaint_api_requests_total{verb="dry-run""#))
            .filter(|line| !line.contains("timeout") && !line.contains("error"));
        let refused = r#"untaint_api_requests_total{verb="dry-run",code="403"} 1"#;
        assert_eq!(asked.collect::<Vec<_>>(), [refused]);
        assert_eq!(dry_runs(&held).await, 1);
        let status = agent.status().await.unwrap();
        assert_eq!(status["api"].get("lastError"), None, "{status:#}");
        let node = held.cluster.node(&name).await.unwrap();
        assert_eq!(taints(&node)[..2], TAINTS);
        assert!(
            !taints(&node)
                .iter()
                .any(|taint| taint.contains("untaint.dev"))
        );
    }
}

#[tokio::test]
async fn an_agent_whose_account_no_policy_holds_says_so_at_once_and_warns_at_the_second_look() {
    // There are policies in the cluster: those of other accounts.
    let Some(renamed) = unheld("renamed", Form::Daemonset).await else {
        return;
    };
    renamed
        .cluster
        .create_node("renamed", &TAINTS)
        .await
        .unwrap();
    let agent = agent(&renamed, "renamed", &[]).await;
    let policy = says(&agent, "not-held").await;
    assert!(
        policy["message"]
            .as_str()
            .unwrap()
            .contains("docs/security.md"),
        "{policy}"
    );
    assert_eq!(
        agent.count(NOT_HELD),
        0,
        "a policy may have been applied just now"
    );
    let warned = agent.wait_for_message(NOT_HELD).await.unwrap();
    assert_eq!(
        (&warned["level"], &warned["remedy"]),
        (&"WARN".into(), &policy["message"])
    );
    assert_eq!(dry_runs(&renamed).await, 2);
    assert_eq!(agent.count(HELD), 0);
    let node = renamed.cluster.node("renamed").await.unwrap();
    assert!(
        !taints(&node)
            .iter()
            .any(|taint| taint.contains("untaint.dev"))
    );
}

#[tokio::test]
async fn a_policy_that_is_applied_later_is_noticed_and_one_that_was_applied_just_now_is_no_warning()
{
    let Some(late) = unheld("late", Form::Daemonset).await else {
        return;
    };
    late.cluster.create_node("late", &TAINTS).await.unwrap();
    let agent = agent(&late, "late", &[]).await;
    says(&agent, "not-held").await;
    let policies = late.manifests.render(&[Part::Rbac, Part::Policy]).unwrap();
    late.cluster.apply(&policies).await.unwrap();
    agent.wait_for_message(HELD).await.unwrap();
    says(&agent, "held").await;
    assert_eq!(agent.count(NOT_HELD), 0);
}

#[tokio::test]
async fn an_agent_that_runs_once_warns_before_it_ends_and_does_not_wait_for_it() {
    let Some(once) = unheld("unheld-once", Form::InitContainer).await else {
        return;
    };
    let taint = ["example.com/not-ready:NoExecute"];
    once.cluster
        .create_node("unheld-once", &taint)
        .await
        .unwrap();
    let mut once_agent = agent(&once, "unheld-once", &["--once"]).await;
    assert_eq!(once_agent.exit_code().await.unwrap(), 0);
    assert_eq!(once_agent.count(NOT_HELD), 1);
    let mut hurried = agent(&once, "unheld-once", &["--once", "--settle", "0s"]).await;
    let ended = hurried.ended(Duration::from_secs(20)).await.unwrap();
    assert_eq!(ended.code(), Some(0));
}

/// Then nothing keeps the account from the labels, say. It is not said not to be held either: that is not known.
#[tokio::test]
async fn an_account_that_only_a_policy_of_somebody_else_keeps_from_tainting_is_not_said_to_be_held()
{
    let Some(foreign) = unheld("foreign-policy", Form::Daemonset).await else {
        return;
    };
    let cluster = foreign.cluster;
    let policy = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: who-may-untaint}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: ['*'], resources: [nodes], operations: [UPDATE]}
  matchConditions:
  - name: user
    expression: request.userInfo.username == 'system:serviceaccount:foreign-policy:agent'
  validations:
  - expression: object.spec.?taints == oldObject.spec.?taints
    message: only administrators taint
    reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: who-may-untaint}
spec: {policyName: who-may-untaint, validationActions: [Deny]}
";
    cluster.apply(policy).await.unwrap();
    let node = "foreign-policy";
    cluster.create_node(node, &TAINTS).await.unwrap();
    let client = foreign.client_for(node).await;
    let uri = format!("/api/v1/nodes/{node}");
    let patch = |body| Request::patch("", &uri, MERGE, body).dry();
    let taints = patch(json!({"spec": {"taints": []}}));
    foreign.wait_until_refused(&client, &taints).await;
    let labels = patch(json!({"metadata": {"labels": {"x": "y"}}}));
    assert_eq!(labels.send(&client).await.code, 200);
    let agent = agent(&foreign, node, &[]).await;
    let refused = async {
        while !says(&agent, "unknown").await["message"]
            .as_str()
            .unwrap()
            .contains("denied request: only administrators taint")
        {}
    };
    timeout(DEADLINE, refused).await.unwrap();
    assert_eq!(agent.count(HELD) + agent.count(NOT_HELD), 0);
}

#[tokio::test]
async fn an_account_that_may_not_patch_nodes_is_not_said_to_be_held() {
    let options = Options::default();
    let Some(reader) = Installation::account("reader", options).await else {
        return;
    };
    let role = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: self-check-reader}
rules: [{apiGroups: [\"\"], resources: [nodes], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: self-check-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: self-check-reader}
subjects: [{kind: ServiceAccount, name: agent, namespace: reader}]
";
    reader.cluster.apply(role).await.unwrap();
    reader.cluster.create_node("reader", &TAINTS).await.unwrap();
    let agent = agent(&reader, "reader", &[]).await;
    let refused = async {
        while !says(&agent, "unknown").await["message"]
            .as_str()
            .unwrap()
            .contains(r#"cannot patch resource "nodes""#)
        {}
    };
    timeout(DEADLINE, refused).await.unwrap();
    assert_eq!(agent.count(HELD) + agent.count(NOT_HELD), 0);
}
