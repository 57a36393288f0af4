//! The limits for a single client.

use testkit::DEADLINE;
use testkit::agent::Agent;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::LISTEN;
use crate::scene::{Gates, OnStandIn, PROGRAM, TAINT};

/// Everything that the agent sends until it closes the connection, even if the client continues to send.
async fn exchange(address: &str, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The agent may close the connection before the end.
    let _ = stream.write_all(sent).await;
    let mut answer = Vec::new();
    // This is shorter than the time for which the agent keeps a connection that has an answer.
    let read = timeout(DEADLINE / 8, stream.read_to_end(&mut answer));
    let _ = read.await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_client_gets_one_answer_to_a_short_question_and_no_more() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    let listening = agent.wait_for_message("listening").await.unwrap();
    let address = listening["address"].as_str().unwrap();

    let get = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
    let answer = exchange(address, get.repeat(3).as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");

    for (sent, expected) in [
        (format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(9000)), "4"),
        (
            format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(9000)),
            "431 ",
        ),
        (
            format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(200)),
            "431 ",
        ),
        ("\u{16}\u{3}\u{1} a handshake of TLS \r\n\r\n".into(), "4"),
    ] {
        let answer = exchange(address, sent.as_bytes()).await;
        let head = format!("HTTP/1.1 {expected}");
        assert!(answer.starts_with(&head), "{sent:.40}: {answer}");
    }
    // The rest never comes, or belongs to another protocol.
    for sent in [
        "",
        "G",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n",
    ] {
        let answer = exchange(address, sent.as_bytes()).await;
        assert!(!answer.contains("200"), "{sent}: {answer}");
    }
}

#[tokio::test]
async fn nothing_can_be_sent_to_it() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    let listening = agent.wait_for_message("listening").await.unwrap();
    let address = listening["address"].as_str().unwrap();
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        for path in ["/healthz", "/statusz", "/metrics", "/nothing"] {
            // The agent does not wait for the body, which is larger than any memory.
            let head = "Host: localhost\r\nContent-Length: 1000000000000\r\n\r\n";
            let request = format!("{method} {path} HTTP/1.1\r\n{head}");
            let answer = exchange(address, request.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 405 "), "{method}: {answer}");
            assert!(
                answer.contains("allow: GET, HEAD\r\n"),
                "{method}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn unless_it_is_told_otherwise_it_listens_on_loopback_alone() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let kubeconfig = scene.kubeconfig.to_str().unwrap();
    let arguments = [
        "run",
        "--taint",
        "example.com/a",
        "--node-name",
        "node",
        "--kubeconfig",
    ];
    let agent = Agent::start(PROGRAM, &[&arguments[..], &[kubeconfig]].concat(), &[]).unwrap();
    // Another program may use the port.
    let line = agent.wait_for_log(|line| line["address"].is_string()).await;
    assert_eq!(line.unwrap()["address"], "127.0.0.1:9468");
}
