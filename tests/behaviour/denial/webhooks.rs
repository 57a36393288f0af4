//! Webhooks that deny the removal with any code, or fail.

use serde_json::{Value, json};
use testkit::cluster::AuditEntry;
use testkit::webhook::{Verdict, Webhook};
use tokio::task::JoinSet;

use super::REFUSED;
use crate::events::{ON, allow, wait_for_event};
use crate::scene::{FOREIGN, Gates, OnCluster, TAINT};

const KEY: &str = "example.com/not-ready";
const DEADLINE_PASSED: &str = "the taint has been there for too long";
const TEXT: &str = "ask the storage team first";

async fn scene(name: &'static str, verdict: Verdict, rule: &str) -> Option<(OnCluster, Webhook)> {
    let taints = [TAINT, FOREIGN];
    let scene = OnCluster::with(name, &taints, Gates::open().await).await?;
    allow(&scene).await;
    let rules = format!("- {{name: w, taint: {{key: {KEY}}}, gates: []{rule}}}\n{ON}");
    scene.gates.configure(&rules);
    let webhook = Webhook::start(verdict).await.unwrap();
    let registered = webhook.register(scene.cluster, name, KEY, &taints);
    registered.await.unwrap();
    Some((scene, webhook))
}

/// The webhook decides about the change. So its code says nothing about a conflict, about credentials or about the health
/// of the server (apiserver `admission/plugin/webhook/errors/statuserror.go` passes on any code from 400 on).
#[tokio::test]
async fn a_webhook_that_denies_with_any_code_is_told_with_its_message_and_asked_ever_more_rarely() {
    let cases = [
        ("webhook-400", 400),
        ("webhook-401", 401),
        ("webhook-404", 404),
        ("webhook-408", 408),
        ("webhook-409", 409),
        ("webhook-422", 422),
        ("webhook-429", 429),
        ("webhook-500", 500),
        ("webhook-503", 503),
    ];
    let mut runs = JoinSet::new();
    for (name, code) in cases {
        runs.spawn(async move {
            let status = json!({"code": code, "message": TEXT});
            let Some((scene, _webhook)) = scene(name, Verdict::Deny(status), "").await else {
                return;
            };
            let agent = scene.agent(&["--listen", "127.0.0.1:0"]);
            let refused = agent.wait_for_message(REFUSED).await.unwrap();
            let expected = format!(
                "{code}: admission webhook \"{name}.example.com\" denied the request: {TEXT}"
            );
            assert_eq!(refused["error"], expected);
            assert_eq!(refused["level"], "WARN");
            let status = agent.status().await.unwrap();
            assert_eq!(status["rules"][0]["denied"], expected, "{status:#}");
            wait_for_event(scene.cluster, name, "RemovalDenied", 1).await;
            agent
                .wait_for_count("a request failed; trying again", 3)
                .await
                .unwrap();
            let is_patch = |entry: &AuditEntry| {
                entry.node.as_deref() == Some(name)
                    && entry.verb == "patch"
                    && entry.code == Some(code)
            };
            let tries = scene.cluster.requests(is_patch).await.unwrap();
            let at = |nth: usize| tries[nth].received.parse::<jiff::Timestamp>().unwrap();
            let waits = [at(1).duration_since(at(0)), at(2).duration_since(at(1))];
            assert!(
                waits[0].as_secs_f64() >= 1.0 && waits[1].as_secs_f64() >= 2.0,
                "{waits:?}"
            );
            assert_eq!(agent.count(REFUSED), 1);
            assert_eq!(scene.taints().await, [TAINT, FOREIGN]);
        });
    }
    runs.join_all().await;
}

#[tokio::test]
async fn a_webhook_that_fails_is_named_wherever_the_removal_that_waits_for_it_is_told() {
    let verdict = Verdict::Fail(500, "out of memory");
    let deadline = ", deadline: {after: 3s}";
    let Some((scene, _webhook)) = scene("webhook-fails", verdict, deadline).await else {
        return;
    };
    let agent = scene.agent(&["--listen", "127.0.0.1:0"]);
    let expected =
        "500: Internal error occurred: failed calling webhook \"webhook-fails.example.com\"";
    let names_it = |text: &Value| text.as_str().is_some_and(|text| text.contains(expected));
    let late = agent.wait_for_message(DEADLINE_PASSED).await.unwrap();
    assert!(names_it(&late["waits_for"]), "{late}");
    let lasting = "the removal fails again and again";
    let told = agent.wait_for_message(lasting).await.unwrap();
    assert!(names_it(&told["error"]), "{told}");
    assert_eq!(told["level"], "WARN");
    let status = agent.status().await.unwrap();
    assert!(names_it(&status["rules"][0]["denied"]), "{status:#}");
    wait_for_event(scene.cluster, scene.name, "RemovalDenied", 1).await;
    assert_eq!(agent.count(lasting), 1);
}
