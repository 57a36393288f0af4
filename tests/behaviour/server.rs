//! `/healthz`, `/readyz` and `/statusz`.

use std::net::TcpListener;

use testkit::kubeconfig::point_at;
use testkit::proxy::{FaultProxy, Mode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::scene::{Gates, OnStandIn, TAINT};

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

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
    agent.wait_for_message("saw the node").await.unwrap();
    assert_eq!(agent.get("/readyz").await.unwrap(), (200, "ok\n".into()));
    proxy.set(Mode::Refuse);
    proxy.reset_connections();
    let failed = "failed to watch the node; trying again";
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

#[tokio::test]
async fn only_get_and_head_of_known_paths_are_served() {
    let scene = OnStandIn::with(&[], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    assert_eq!(agent.get("/").await.unwrap().0, 404);
    let listening = agent.wait_for_message("listening").await.unwrap();
    for (request, expected) in [
        (
            "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "HTTP/1.1 405",
        ),
        (
            "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "HTTP/1.1 200",
        ),
        (
            format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(20_000)),
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
