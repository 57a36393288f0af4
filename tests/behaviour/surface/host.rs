//! Foreign names that lead to the server.

use std::net::{IpAddr, UdpSocket};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::LISTEN;
use crate::scene::{Gates, OnStandIn, TAINT};

/// Otherwise a page in a browser on the node, with a name that leads to 127.0.0.1, could read everything.
#[tokio::test]
async fn a_name_of_others_that_leads_to_loopback_is_told_nothing() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    let listening = agent.wait_for_message("listening").await.unwrap();
    let address = listening["address"].as_str().unwrap();
    for path in ["/healthz", "/readyz", "/statusz", "/metrics", "/"] {
        for host in [
            "evil.example",
            "evil.example:9468",
            "localhost.evil.example",
        ] {
            let answer = by_name(address, path, host).await;
            assert!(answer.starts_with("HTTP/1.1 421 "), "{host}: {answer}");
            assert!(!answer.contains("node"), "{host}: {answer}");
        }
        for host in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1",
            "[::1]:9468",
            "10.0.0.7:8443",
        ] {
            let answer = by_name(address, path, host).await;
            let expected = if path == "/" { "404" } else { "200" };
            let head = format!("HTTP/1.1 {expected} ");
            assert!(answer.starts_with(&head), "{host}: {answer}");
        }
    }
}

#[tokio::test]
async fn who_listens_for_the_network_is_asked_by_whatever_name_it_has_there() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    // With the second address, a loopback client has the address ::ffff:127.0.0.1.
    for all in ["0.0.0.0:0", "[::]:0"] {
        let agent = scene.agent(&["--listen", all]);
        agent.wait_for_message("saw the taint").await.unwrap();
        let listening = agent.wait_for_message("listening").await.unwrap();
        let address = listening["address"].as_str().unwrap();
        let (_, port) = address.rsplit_once(':').unwrap();
        let loopback = format!("127.0.0.1:{port}");
        let answer = by_name(&loopback, "/healthz", "node.example").await;
        assert!(answer.starts_with("HTTP/1.1 421 "), "{all}: {answer}");
        // A machine without a network has only loopback.
        if let Some(own) = own_address() {
            let answer = by_name(&format!("{own}:{port}"), "/healthz", "node.example").await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{all}: {answer}");
        }
    }
}

/// The address of this machine on the network. This sends nothing.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The answer of the server at `address` to a request with this `Host`.
async fn by_name(address: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
