//! What is secret, in every place where the agent is given it, is in nothing that it tells: logs of every level, pages,
//! Events, conditions, refusals.

use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::agent::Agent;
use testkit::api::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::LISTEN;
use crate::scene::{Gates, OnStandIn, PROGRAM, TAINT};

/// Stands for whatever is secret.
const SECRET: &str = "hunter2";

/// A server that sends the same to everyone, whatever it is.
struct Says {
    port: u16,
    heard: watch::Receiver<String>,
    _task: JoinSet<()>,
}

impl Says {
    async fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, heard) = watch::channel(String::new());
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                sender.send_replace(request);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let _task = task;
        Self { port, heard, _task }
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
    let rubbish = Says::start("hunter3\r\n\r\n").await;
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
    let lines: String = gates
        .iter()
        .map(|(name, gate)| format!("  - {{name: {name}, {gate}}}\n"))
        .collect();
    let rule = format!(
        "- name: a\n  taint: {{key: example.com/not-ready}}\n  deadline: {{after: 1s}}\n  \
         publishCondition: {{type: example.com/Ready}}\n  gates:\n{lines}"
    );
    scene.gates.configure(&format!("{rule}events: true\n"));
    std::fs::write(scene.gates.dir.path().join("token"), SECRET).unwrap();
    let [config, kubeconfig] = [&scene.gates.config(), &scene.kubeconfig];
    let arguments = [
        "--log-level",
        "trace",
        "run",
        "--config",
        config.to_str().unwrap(),
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--node-name",
        "node",
    ];
    let arguments = [&arguments[..], &LISTEN].concat();
    let agent = Agent::start(PROGRAM, &arguments, &[("TOKEN", SECRET)]).unwrap();
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

    // It stays, and what is wrong is told.
    scene
        .gates
        .configure(&rule.replace("Bearer hunter2", r#""hunter2\n""#));
    let bad = "the configuration is bad; the active one stays";
    agent.wait_for_message(bad).await.unwrap();

    let mut all = format!("{:#?}", agent.logs());
    for path in ["/statusz", "/readyz", "/metrics", "/healthz", "/hunter3"] {
        all += &agent.get(path).await.unwrap().1;
    }
    all += &agent
        .ask("GET /statusz", &["Accept: text/html"])
        .await
        .unwrap()
        .1;
    for request in scene.server.requests() {
        all += &format!("{request:?}");
    }
    assert!(all.contains("httpHeaders[0].value"), "{all}");
    assert!(all.contains("https://…@sso.example/?…"), "{all}");
    assert!(all.contains("/bin/echo …: not found"), "{all}");
    let last = |line: &Value| line["gate"] == "environment" && line["state"] == "closed";
    let reason = agent.wait_for_log(last).await.unwrap()["reason"].to_string();
    assert!(reason.ends_with(&format!(" {}\"", inherited())), "{reason}");
    assert!(!all.contains(SECRET), "{}", around(&all));
}

/// The file descriptors of a program that anyone starts from here: nothing of the agent's may be among them.
fn inherited() -> String {
    let mut shell = Command::new("/bin/sh");
    let shell = shell
        .args(["-c", "echo $(ls /proc/self/fd)"])
        .stdin(Stdio::null());
    let output = shell.output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Each is refused, and the rest of the message says where and why.
#[test]
fn nothing_secret_is_told_by_a_refusal() {
    let directory = tempfile::TempDir::new().unwrap();
    let config = directory.path().join("config.yaml");
    let gate = |gate: &str| {
        format!(
            "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n- name: a\n  \
             taint: {{key: example.com/a}}\n  gates:\n  - {{name: g, {gate}}}\n"
        )
    };
    let header = |header: &str| gate(&format!("httpGet: {{port: 1, httpHeaders: {header}}}"));
    let value = |value: &str| header(&format!("[{{name: Authorization, value: {value}}}]"));
    for text in [
        value(r#""hunter2\n""#),
        value(r#""hunter2"#),
        value("[hunter2]"),
        value("{hunter2: hunter2}"),
        value("!hunter2 a"),
        value("!!int hunter2"),
        value("*hunter2 "),
        value("'hunter2'hunter2"),
        value("hunter2: hunter2"),
        header("hunter2"),
        header("[hunter2]"),
        header("['Authorization: hunter2']"),
        header("[{'Authorization: hunter2'}]"),
        header("[{name: 'Authorization: hunter2', value: a}]"),
        header("{Authorization: hunter2}"),
        gate("exec: /bin/x hunter2"),
        gate("exec: [/bin/x, hunter2]"),
        gate("exec: {command: /bin/x hunter2}"),
        gate("exec: {command: [x hunter2]}"),
        gate("exec: {command: [/x, {hunter2: hunter2}]}"),
        gate(r#"exec: {command: [/x, "hunter2\0"]}"#),
        gate("exec: {command: [/x], args: [hunter2]}"),
        gate("httpGet: 'http://user:hunter2@host/?a=hunter2'"),
        gate("httpGet: {port: 1, path: 'healthz?token=hunter2'}"),
        gate("httpGet: {port: 1, path: '/a b?token=hunter2'}"),
        gate("httpGet: {port: 1, host: 'http://user:hunter2@host'}"),
        gate("tcpSocket: 'http://user:hunter2@host'"),
        // What is no configuration at all, and was named by mistake or through a link.
        "hunter2".into(),
        "root:*:hunter2:0\ndaemon:*:hunter2:0\n".into(),
        "TOKEN=hunter2\n".into(),
        "{\"password\": \"hunter2\"}".into(),
        "- hunter2".into(),
        "PATH=/\0TOKEN=hunter2\0".into(),
    ] {
        std::fs::write(&config, &text).unwrap();
        is_refused(&["config", "validate", config.to_str().unwrap()], &text);
    }
    // A number cannot have the marker in it.
    std::fs::write(&config, value("1e99999")).unwrap();
    let told = refusal(&["config", "validate", config.to_str().unwrap()]);
    assert!(!told.contains("99999"), "{told}");

    for arguments in [
        &["wait", "--http-get", "http://user:hunter2@host/?a=hunter2"][..],
        &["wait", "--http-get", "ftp://host/?token=hunter2"],
        &["wait", "http://user:hunter2@host/?a=hunter2"],
    ] {
        is_refused(arguments, "arguments");
    }
    let kubeconfig = directory.path().join("kubeconfig");
    let whole = |server: &str, user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: {server}}}}}]\nusers: {user}\n"
        )
    };
    let here = "'https://127.0.0.1:1'";
    let user = |user: &str| whole(here, &format!("[{{name: u, user: {user}}}]"));
    for text in [
        whole("'https://user:hunter2@127.0.0.1:1'", "[]"),
        whole("'https://127.0.0.1:1/?token=hunter2'", "[]"),
        whole("'ftp://user:hunter2@host'", "[]"),
        whole(here, "hunter2"),
        whole(here, "[hunter2]"),
        whole(here, "{hunter2: hunter2}"),
        user("hunter2"),
        user("{token: [hunter2]}"),
        user("{token: \"hunter2\\n\"}"),
        user("{token: \"hunter2}"),
        user("{token: *hunter2}"),
        user("{username: a, password: \"hunter2\\n\"}"),
        user("{client-certificate-data: hunter2!, client-key-data: hunter2!}"),
        user("{exec: {command: hunter2, apiVersion: v1}}"),
        "hunter2".into(),
    ] {
        std::fs::write(&kubeconfig, &text).unwrap();
        let kubeconfig = kubeconfig.to_str().unwrap();
        let arguments = [
            "run",
            "--taint",
            "example.com/a",
            "--kubeconfig",
            kubeconfig,
        ];
        is_refused(&[&arguments[..], &["--node-name", "node"]].concat(), &text);
    }
}

fn is_refused(arguments: &[&str], what: &str) {
    let told = refusal(arguments);
    assert!(!told.contains(SECRET), "{what}: {told}");
}

/// What it prints to the one and the other, which must be something.
fn refusal(arguments: &[&str]) -> String {
    let mut program = Command::new(PROGRAM);
    let output = program.args(arguments).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8(told).unwrap();
    assert!(told.len() > 10 && !told.contains("panicked"), "{told}");
    told
}

/// Where the secret is.
fn around(text: &str) -> String {
    let lines = text.lines().filter(|line| line.contains(SECRET));
    lines.collect::<Vec<_>>().join("\n")
}
