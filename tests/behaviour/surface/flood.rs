//! Very many clients that are very slow.

use std::net::SocketAddr;

use testkit::DEADLINE;
use testkit::agent::Agent;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{LISTEN, dawdle};
use crate::scene::{Gates, OnCluster, TAINT};

/// The number of connections in total.
const CONNECTIONS: usize = 10_000;
/// The number of connections of each kind of client at a time. Together they fit into the kernel's queue of connections
/// that were not accepted. If the queue were full, each connection would wait for a second.
const AT_ONCE: usize = 250;
/// The path with the longest answer.
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// The limit for the additional memory, in KiB. It is 300 bytes for each connection, less than a connection that is
/// kept.
const LIMIT: usize = 3 * 1024;

#[tokio::test]
async fn ten_thousand_slow_clients_cost_no_memory_and_hold_up_neither_the_removal_nor_a_probe() {
    let gates = Gates::closed().await;
    let Some(scene) = OnCluster::with("flooded", &[TAINT], gates).await else {
        return;
    };
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    // These requests allocate the memory that is needed only once.
    for path in ["/healthz", "/statusz", "/metrics"] {
        assert_eq!(agent.get(path).await.unwrap().0, 200);
    }
    let before = agent.resident().unwrap();
    let listening = agent.wait_for_message("listening").await.unwrap();
    let address = listening["address"].as_str().unwrap().parse().unwrap();
    let made = watch::Sender::new(0);
    let mut clients = JoinSet::new();
    for kind in [Kind::Silent, Kind::Slow, Kind::Deaf] {
        clients.spawn(flood(kind, address, made.clone()));
    }
    let mut highest = before;
    for tenth in 1..=10 {
        let enough = |made: &usize| *made >= CONNECTIONS * tenth / 10;
        let mut made = made.subscribe();
        let enough = timeout(DEADLINE, made.wait_for(enough));
        drop(enough.await.unwrap());
        highest = highest.max(answers(&agent).await);
        if tenth == 5 {
            scene.gates.open_both();
            scene.wait_for_taints(&[]).await;
        }
    }
    clients.shutdown().await;
    let after = answers(&agent).await;
    let line = format!("resident: {before} KiB before, {highest} during, {after} after");
    eprintln!("{line}");
    assert!(highest.max(after) <= before + LIMIT, "{line}");
}

/// Fails unless a probe and a browser get an answer. Returns the resident memory.
async fn answers(agent: &Agent) -> usize {
    assert_eq!(agent.get("/healthz").await.unwrap(), (200, "ok\n".into()));
    assert_eq!(agent.status().await.unwrap()["node"]["seen"], true);
    agent.resident().unwrap()
}

#[derive(Clone, Copy)]
enum Kind {
    /// Sends nothing.
    Silent,
    /// Sends an endless head, one byte at a time.
    Slow,
    /// Sends a request and reads no answer.
    Deaf,
}

/// Opens connections without end, [`AT_ONCE`] at a time. When the agent closes one, this opens another.
async fn flood(kind: Kind, address: SocketAddr, made: watch::Sender<usize>) {
    let mut open = JoinSet::new();
    loop {
        let socket = TcpSocket::new_v4().unwrap();
        // With a small buffer, the agent can send only a small part of its answer.
        socket.set_recv_buffer_size(1).unwrap();
        let stream = socket.connect(address).await.unwrap();
        made.send_modify(|made| *made += 1);
        open.spawn(client(kind, stream));
        while open.len() >= AT_ONCE {
            open.join_next().await;
        }
    }
}

/// Ends when the agent closes the connection.
async fn client(kind: Kind, mut stream: TcpStream) {
    match kind {
        Kind::Silent => {
            let _ = stream.read(&mut [0]).await;
        }
        Kind::Slow => dawdle(stream).await,
        Kind::Deaf => {
            let _ = stream.write_all(REQUEST).await;
            dawdle(stream).await;
        }
    }
}
