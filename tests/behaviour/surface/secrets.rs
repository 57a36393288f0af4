//! No secret that the agent gets, in any place, is in its logs of any level, pages, Events, conditions or error
//! messages.

mod refusals;

use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::agent::{Agent, run_on};
use testkit::api::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{LISTEN, SECRET};
use crate::scene::{Gates, OnStandIn, PROGRAM, TAINT};

/// A server that sends the same bytes to every client.
struct Says {
    port: u16,
    heard: watch::Receiver<String>,
    _server: JoinSet<()>,
}

impl Says {
    async fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, heard) = watch::channel(String::new());
        let mut server = JoinSet::new();
        server.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                sender.send_replace(request);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self {
            port,
            heard,
            _server: server,
        }
    }
}

#[tokio::test]
async fn nothing_secret_is_told_by_an_agent_at_work_whatever_becomes_of_its_gates() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let unavailable = Says::start("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n").await;
    let elsewhere = Says::start(
        "HTTP/1.1 302 Go\r\nLocation: https://u:hunter2@sso.example/?to=hunter2\r\n\r\n",
    )
    .await;
    let rubbish = Says::start("hunter2\r\n\r\n").await;
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = refused.local_addr().unwrap().port();
    drop(refused);
    let asks = "path: '/healthz?token=hunter2', httpHeaders: [{name: Authorization, value: Bearer hunter2}]";
    let environment = "echo $(env) $(ls /proc/self/fd); exit 1";
    let gates = [
        (
            "unavailable",
            format!("httpGet: {{port: {}, {asks}}}", unavailable.port),
        ),
        (
            "elsewhere",
            format!("httpGet: {{port: {}, {asks}}}", elsewhere.port),
        ),
        (
            "rubbish",
            format!("httpGet: {{port: {}, {asks}}}", rubbish.port),
        ),
        (
            "plain",
            format!("httpGet: {{port: {}, scheme: HTTPS, {asks}}}", rubbish.port),
        ),
        ("nobody", format!("httpGet: {{port: {nobody}, {asks}}}")),
        (
            "socket",
            format!("httpGet: {{unixSocket: /does/not/exist, {asks}}}"),
        ),
        (
            "content",
            "file: {path: /proc/self/status, contains: hunter2}".into(),
        ),
        (
            "fails",
            "exec: {command: [/bin/sh, -c, exit 1, hunter2]}".into(),
        ),
        (
            "missing",
            "exec: {command: [/does/not/exist, hunter2]}".into(),
        ),
        ("whole", "exec: {command: [/bin/echo hunter2]}".into()),
        (
            "hangs",
            "timeoutSeconds: 0.2, exec: {command: [/bin/sh, -c, sleep 1000, hunter2]}".into(),
        ),
        (
            "environment",
            format!("exec: {{command: [/bin/sh, -c, '{environment}']}}"),
        ),
    ];
    let lines = gates
        .each_ref()
        .map(|(name, gate)| format!("  - {{name: {name}, {gate}}}\n"));
    let lines = lines.concat();
    let rule = format!(
        "- name: a\n  taint: {{key: example.com/not-ready}}\n  deadline: {{after: 1s}}\n  \
         publishCondition: {{type: example.com/Ready}}\n  gates:\n{lines}"
    );
    scene.gates.configure(&format!("{rule}events: true\n"));
    std::fs::write(scene.gates.dir.path().join("token"), SECRET).unwrap();
    let agent = talkative_agent(&scene);
    for (gate, _) in &gates {
        let is_told = |line: &Value| line["gate"] == *gate && line["state"] == "closed";
        agent.wait_for_log(is_told).await.unwrap();
    }
    let late = "the taint has been there for too long";
    agent.wait_for_message(late).await.unwrap();
    let heard = unavailable.heard.borrow().clone();
    assert!(heard.contains("/healthz?token=hunter2") && heard.contains("Bearer hunter2"));
    let has_told = |requests: &[Request]| {
        ["DeadlineExceeded", "example.com/Ready"]
            .iter()
            .all(|kind| requests.iter().any(|request| request.body.contains(kind)))
    };
    scene.server.wait_for_requests(has_told).await.unwrap();

    // The active configuration stays, and the problem is logged.
    scene
        .gates
        .configure(&rule.replace("Bearer hunter2", r#""hunter2\n""#));
    let bad = "the configuration file is invalid; continuing with the active configuration";
    agent.wait_for_message(bad).await.unwrap();

    let all = all_that_is_told(&agent, &scene).await;
    assert!(all.contains("httpHeaders[0].value"), "{all}");
    assert!(all.contains("https://…@sso.example/?…"), "{all}");
    assert!(all.contains("/bin/echo …: not found"), "{all}");
    let last = |line: &Value| line["gate"] == "environment" && line["state"] == "closed";
    let reason = agent.wait_for_log(last).await.unwrap()["reason"].to_string();
    assert!(reason.ends_with(&format!(" {}\"", inherited())), "{reason}");
    assert!(!all.contains(SECRET), "{}", around(&all));
}

fn talkative_agent(scene: &OnStandIn) -> Agent {
    let config = scene.gates.config();
    let run = run_on("node", &config, &scene.kubeconfig);
    let arguments = [&run[..], &["--log-level", "trace"], &LISTEN].concat();
    Agent::start(PROGRAM, &arguments, &[("TOKEN", SECRET)]).unwrap()
}

/// Logs, pages, and the requests to the API server.
async fn all_that_is_told(agent: &Agent, scene: &OnStandIn) -> String {
    let mut all = format!("{:#?} {:#?}", agent.logs(), scene.server.requests());
    for path in ["/statusz", "/readyz", "/metrics", "/healthz", "/hunter3"] {
        for accept in ["Accept: text/html", "Accept: */*"] {
            let answer = agent.ask(&format!("GET {path}"), &[accept]).await.unwrap();
            all += &answer.1;
        }
    }
    all
}

/// The file descriptors of a program that a test starts. A program of the agent must not have more.
fn inherited() -> String {
    let mut shell = Command::new("/bin/sh");
    let shell = shell
        .args(["-c", "echo $(ls /proc/self/fd)"])
        .stdin(Stdio::null());
    let output = shell.output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The lines with the secret.
fn around(text: &str) -> String {
    let lines = text.lines().filter(|line| line.contains(SECRET));
    lines.collect::<Vec<_>>().join("\n")
}
