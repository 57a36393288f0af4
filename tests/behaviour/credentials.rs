//! Tokens and certificates that are rotated while the agent runs.

mod hanging;

use testkit::api::{TOKEN, Verb};

use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn, TAINT};

#[tokio::test]
async fn a_rotated_token_is_read_again_at_once() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    scene.server.accept_tokens(&[TOKEN]);
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the Node").await.unwrap();
    std::fs::write(scene.gates.dir.path().join("token"), "rotated").unwrap();
    scene.server.accept_tokens(&["rotated"]);
    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
    let codes: Vec<_> = scene
        .all(Verb::Patch)
        .iter()
        .map(|request| request.status)
        .collect();
    assert_eq!(codes, [Some(401), Some(200)]);
    assert_eq!(
        scene.count(Verb::Get),
        0,
        "a 401 says that nothing happened"
    );
}

#[tokio::test]
async fn a_rotated_certificate_authority_is_read_again_at_once() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let agent = scene.agent(&[]);
    agent.wait_for_message("saw the Node").await.unwrap();
    scene.server.rotate_certificates().unwrap();
    std::fs::write(
        scene.gates.dir.path().join("ca.crt"),
        scene.server.authority(),
    )
    .unwrap();
    scene.server.reset_connections();
    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
    agent.wait_for_message("removed the taint").await.unwrap();
    // With the old authority, every request fails once.
    let is_of_certificate = |line: &serde_json::Value| {
        let error = line["error"].as_str();
        error.is_some_and(|error| error.contains("certificate"))
    };
    let logs = agent.logs();
    assert!(!logs.iter().any(is_of_certificate), "{logs:#?}");
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_and_no_reason_to_end() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    scene.server.rotate_certificates().unwrap();
    let agent = scene.agent(&[]);
    let failed = agent
        .wait_for_message("failed to watch the Node; trying again")
        .await
        .unwrap();
    assert!(
        failed["error"].as_str().unwrap().contains("certificate"),
        "{failed}"
    );
    std::fs::write(
        scene.gates.dir.path().join("ca.crt"),
        scene.server.authority(),
    )
    .unwrap();
    scene.wait_for_taints(&[]).await;
}

/// Both clients use the same cryptography provider. Otherwise the second one would panic. The gate asks the API server
/// over HTTPS, without credentials.
#[tokio::test]
async fn a_gate_over_https_and_the_api_server_are_spoken_to_by_one_process() {
    let gates = Gates::open().await;
    let Some(scene) = OnCluster::with("https", &[TAINT, FOREIGN], gates).await else {
        return;
    };
    let port = scene.cluster.address().port();
    let gate = format!("{{name: server, httpGet: {{port: {port}, scheme: HTTPS, path: /readyz}}}}");
    scene.gates.configure(&format!(
        "- name: https\n  taint: {{key: example.com/not-ready}}\n  gates: [{gate}]\n"
    ));
    let agent = scene.agent(&[]);
    scene.wait_for_taints(&[FOREIGN]).await;
    let is_open = |line: &serde_json::Value| line["gate"] == "server" && line["state"] == "open";
    agent.wait_for_log(is_open).await.unwrap();
}
