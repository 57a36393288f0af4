//! A unix socket outlives the process that created it.

use std::env;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use testkit::agent::{Agent, write_configuration};
use tokio::process::{Child, Command};

use crate::scene::PROGRAM;

/// The path of the socket, for the process that [`a_process_that_serves_a_socket`] is.
const SOCKET: &str = "UNTAINT_TEST_SOCKET";

/// Not a test of its own: the process that the test below starts and kills.
#[test]
fn a_process_that_serves_a_socket() {
    let Some(path) = env::var_os(SOCKET) else {
        return;
    };
    // As servers do: the file can be that of a process that has ended.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(path).unwrap();
    for stream in listener.incoming() {
        // It speaks first, and neither HTTP nor gRPC.
        let _ = stream.unwrap().write_all(b"hello\n");
    }
}

fn serve(path: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "sockets::a_process_that_serves_a_socket"])
        .env(SOCKET, path)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// secrets-store-csi-provider-aws#454, rke2#4146 (D14).
#[tokio::test]
async fn the_socket_of_a_process_that_was_killed_keeps_file_open_and_closes_tcp_socket() {
    let dir = tempfile::tempdir().unwrap();
    let [socket, config] = ["csi.sock", "config.yaml"].map(|name| dir.path().join(name));
    let shown = socket.display();
    let rule = format!(
        "- name: r\n  taint: {{key: example.com/t}}\n  gates:\n\
         \x20 - {{name: file, file: {{path: {shown}}}}}\n\
         \x20 - {{name: socket, tcpSocket: {{unixSocket: {shown}}}, periodSeconds: 0.05}}\n\
         \x20 - {{name: last, file: {{path: {}}}}}\n",
        dir.path().join("last").display()
    );
    write_configuration(&config, &rule).unwrap();
    let arguments = ["wait", "--config", config.to_str().unwrap()];
    let mut agent = Agent::start(PROGRAM, &arguments, &[]).unwrap();
    let count = |gate: &str, state: &str, reason: &str| {
        let is_it = |line: &&Value| {
            let said = line["reason"].as_str().unwrap_or_default();
            line["gate"] == gate && line["state"] == state && said.ends_with(reason)
        };
        agent.logs().iter().filter(is_it).count()
    };
    let said = async |state: &str, reason: &str, times: usize| {
        let is_it = |_: &Value| count("socket", state, reason) >= times;
        agent.wait_for_log(is_it).await.unwrap();
    };
    said("closed", "does not exist", 1).await;
    for times in 1..=2 {
        let mut server = serve(&socket);
        said("open", "accepts connections", times).await;
        server.kill().await.unwrap();
        let reason = "connection refused: no process listens on this socket; the process that created it may have ended";
        said("closed", reason, times).await;
        assert!(socket.exists());
    }
    // The second server has removed the file before it created its own.
    assert!(count("file", "open", "exists") >= 1);
    assert!(!agent.has_ended().unwrap());
}
