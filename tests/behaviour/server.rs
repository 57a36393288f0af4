//! `/healthz`, `/readyz` and `/statusz`.

mod last_error;

use std::net::TcpListener;

use serde_json::Value;
use testkit::health::HealthEndpoint;
use testkit::kubeconfig::point_at;
use testkit::proxy::{FaultProxy, Mode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::denial::{REFUSED, keep_taint};
use crate::scene::{Gates, OnCluster, OnStandIn, TAINT, beginning};

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];
/// The `Accept` header of a browser.
const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test]
async fn it_is_ready_once_the_node_has_been_seen_and_stays_so_while_the_api_server_is_away() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let proxy = FaultProxy::start(scene.server.address()).await.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    proxy.set(Mode::Refuse);
    let agent = scene.agent(&LISTEN);
    assert_eq!(agent.get("/readyz").await.unwrap().0, 503);
    assert_eq!(
        agent.get("/healthz").await.unwrap(),
        (200, "ok\n".into()),
        "waiting is healthy"
    );
    proxy.set(Mode::Pass);
    agent.wait_for_message("saw the Node").await.unwrap();
    assert_eq!(agent.get("/readyz").await.unwrap(), (200, "ok\n".into()));
    proxy.set(Mode::Refuse);
    proxy.reset_connections();
    let failed = "failed to watch the Node; trying again";
    agent.wait_for_count(failed, 2).await.unwrap();
    assert_eq!(agent.get("/readyz").await.unwrap().0, 200);
    let status = agent.status().await.unwrap();
    assert_eq!(status["api"]["watching"], false);
    assert!(
        status["api"]["lastError"]["message"].is_string(),
        "{status:#}"
    );
}

#[tokio::test]
async fn a_port_in_use_is_told_and_does_not_stop_the_main_job() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let address = taken.local_addr().unwrap().to_string();
    let agent = scene.agent(&["--listen", &address]);
    agent
        .wait_for_message("failed to listen; trying again")
        .await
        .unwrap();
    scene.wait_for_taints(&[]).await;
    drop(taken);
    agent.wait_for_message("listening").await.unwrap();
    assert_eq!(agent.get("/healthz").await.unwrap().0, 200);
}

/// The rest of its connections does not prevent the next agent from listening.
#[tokio::test]
async fn an_agent_that_is_started_again_listens_at_once() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let mut first = scene.agent(&LISTEN);
    assert_eq!(first.get("/healthz").await.unwrap().0, 200);
    let listening = first.wait_for_message("listening").await.unwrap();
    first.signal("TERM").await.unwrap();
    assert_eq!(first.exit_code().await.unwrap(), 0);
    let second = scene.agent(&["--listen", listening["address"].as_str().unwrap()]);
    second.wait_for_message("listening").await.unwrap();
    assert_eq!(second.count("failed to listen; trying again"), 0);
}

#[tokio::test]
async fn only_get_and_head_of_known_paths_are_served() {
    let scene = OnStandIn::with(&[], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    assert_eq!(agent.get("/").await.unwrap().0, 404);
    let listening = agent.wait_for_message("listening").await.unwrap();
    for (request, expected) in [
        (
            "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "HTTP/1.1 405",
        ),
        (
            "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
            "HTTP/1.1 200",
        ),
        (
            format!(
                "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "a".repeat(20_000)
            ),
            "HTTP/1.1 4",
        ),
        ("nonsense\r\n\r\n".to_owned(), "HTTP/1.1 400"),
    ] {
        let mut stream = TcpStream::connect(listening["address"].as_str().unwrap())
            .await
            .unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with(expected), "{request:.40}: {answer}");
        assert!(
            !request.starts_with("HEAD") || answer.ends_with("\r\n\r\n"),
            "a HEAD has no body"
        );
    }
}

#[tokio::test]
async fn a_browser_is_shown_a_page_and_a_program_gets_json_from_the_same_place() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    for (lines, kind) in [
        (&[][..], "application/json"),
        (&["Accept: */*"], "application/json"),
        (&[BROWSER], "text/html; charset=utf-8"),
    ] {
        let (head, body) = agent.ask("GET /statusz", lines).await.unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let is_page = kind.starts_with("text/html");
        assert_eq!(body.starts_with("<!DOCTYPE html>"), is_page, "{body}");
        assert_eq!(body.starts_with("{\n"), !is_page, "{body}");
        for (line, expected) in [
            (format!("content-type: {kind}"), true),
            (format!("content-length: {}", body.len()), true),
            ("vary: Accept".into(), true),
            ("cache-control: no-store".into(), true),
            ("x-content-type-options: nosniff".into(), true),
            ("x-frame-options: DENY".into(), is_page),
        ] {
            assert_eq!(has_line(&head, &line), expected, "{line}: {head}");
        }
        let policy = "content-security-policy: default-src 'none'; style-src 'sha256-";
        assert_eq!(head.contains(policy), is_page, "{head}");

        let (only_head, nothing) = agent.ask("HEAD /statusz", lines).await.unwrap();
        assert_eq!(nothing, "");
        assert!(has_line(&only_head, &format!("content-type: {kind}")));
    }
    let reload = r#"<meta http-equiv="refresh""#;
    for (path, reloads) in [("/statusz", false), ("/statusz?reload", true)] {
        let page = agent
            .ask(&format!("GET {path}"), &[BROWSER])
            .await
            .unwrap()
            .1;
        assert_eq!(page.contains(reload), reloads, "{page}");
    }
}

#[tokio::test]
async fn the_page_and_run_once_agree_on_when_a_dry_run_is_done() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let agent = scene.agent(&[&LISTEN[..], &["--dry-run"]].concat());
    let would = "would remove the taint (dry run)";
    agent.wait_for_message(would).await.unwrap();
    let (_, page) = agent.ask("GET /statusz", &[BROWSER]).await.unwrap();
    assert!(page.contains("1 of 1 rules done."), "{page}");
    let mut once = scene.agent(&["--dry-run", "--once", "--settle", "0s"]);
    assert_eq!(once.exit_code().await.unwrap(), 0);
}

fn has_line(head: &str, line: &str) -> bool {
    head.lines().any(|found| found == line)
}

/// Writes the page to a file in the target directory, for `make screenshot`.
#[tokio::test]
async fn the_page_tells_a_person_what_became_of_each_rule_and_why() {
    const TAINTS: [&str; 3] = [
        "node.cilium.io/agent-not-ready:NoExecute",
        "ebs.csi.aws.com/agent-not-ready:NoExecute",
        "example.com/gpu-not-ready:NoSchedule",
    ];
    let Some(scene) = OnCluster::with("worker-1", &TAINTS, Gates::closed().await).await else {
        return;
    };
    let closed = HealthEndpoint::start(503).await.unwrap();
    let (open, closed) = (scene.gates.health.port(), closed.port());
    scene.gates.configure(&format!(
        "- name: cilium
  taint: {{key: node.cilium.io/agent-not-ready}}
  gates:
  - {{name: agent, httpGet: {{port: {open}, path: /healthz}}}}
- name: storage
  taint: {{key: ebs.csi.aws.com/agent-not-ready}}
  gates:
  - {{name: plugin, httpGet: {{port: {closed}, path: /healthz}}}}
  - {{name: pod, pods: {{namespace: storage, matchLabels: {{app: csi-node}}}}}}
  - {{name: mount, exec: {{command: [/bin/sh, -c, 'echo \"volume <none> is not mounted\"; exit 1']}}}}
  deadline: {{after: 1s}}
- name: gpu
  taint: {{key: example.com/gpu-not-ready}}
  gates:
  - {{name: device-plugin, httpGet: {{port: {open}, path: /healthz}}}}
"
    ));
    let _policy = keep_taint(&scene, "example.com/gpu-not-ready").await;
    let agent = scene.agent(&LISTEN);
    for gate in ["agent", "device-plugin"] {
        let is_closed = |line: &Value| line["gate"] == gate && line["state"] == "closed";
        agent.wait_for_log(is_closed).await.unwrap();
    }
    scene.gates.health.set(200);
    let late = "the taint has been there for too long";
    for message in ["removed the taint", REFUSED, late] {
        agent.wait_for_message(message).await.unwrap();
    }
    let verb = beginning().await;
    for (gate, words) in [
        ("plugin", "503"),
        ("pod", &format!("cannot {verb} resource")),
        ("mount", "<none>"),
    ] {
        let says = |line: &Value| {
            line["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains(words))
        };
        agent
            .wait_for_log(|line| line["gate"] == gate && says(line))
            .await
            .unwrap();
    }
    let (_, page) = agent.ask("GET /statusz", &[BROWSER]).await.unwrap();
    let saved = concat!(env!("CARGO_TARGET_TMPDIR"), "/statusz.html");
    std::fs::write(saved, &page).unwrap();
    let done = r#"<span class="mark good">absent</span>"#;
    let waiting = r#"<span class="mark pending">waiting</span>"#;
    let ready = r#"<span class="mark pending">ready</span>"#;
    let alarm = |word: &str| format!(r#"<span class="mark alarm">{word}</span>"#);
    for words in [
        "<title>worker-1 · untaint</title>",
        "1 of 3 rules done.",
        "gate &quot;agent&quot; was the last to open",
        "seen, resourceVersion ",
        r#"<span class="mark good">watching</span>"#,
        &format!(r#"<h2 id="rule-0">cilium {done}</h2>"#),
        &format!(
            r#"<h2 id="rule-1">storage {waiting} {}</h2>"#,
            alarm("overdue")
        ),
        &format!(r#"<h2 id="rule-2">gpu {ready} {}</h2>"#, alarm("denied")),
        "waiting: some gate is not open — since ",
        "none since this process started",
        "503 Service Unavailable",
        &format!("cannot {verb} resource &quot;pods&quot;"),
        "volume &lt;none&gt; is not mounted",
        "the taint example.com/gpu-not-ready must stay",
    ] {
        assert!(page.contains(words), "{words} in {page}");
    }
}
