//! Very many clients, and very slow ones.

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

/// Connections in all.
const CONNECTIONS: usize = 10_000;
/// How many of them each kind of client has at a time. All together they fit into the kernel's queue of those that
/// have not been accepted, which otherwise has each wait for a second.
const AT_ONCE: usize = 250;
/// What has the longest answer.
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// How much more memory they may cost in all, in KiB: 300 bytes each, less than any of them would if it were kept.
const LIMIT: usize = 3 * 1024;

#[tokio::test]
async fn ten_thousand_slow_clients_cost_no_memory_and_hold_up_neither_the_removal_nor_a_probe() {
    let gates = Gates::closed().await;
    let Some(scene) = OnCluster::with("flooded", &[TAINT], gates).await else {
        return;
    };
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    // What is allocated and paged in once is not the clients' doing.
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
    let told = format!("resident: {before} KiB before, {highest} during, {after} after");
    eprintln!("{told}");
    assert!(highest.max(after) <= before + LIMIT, "{told}");
}

/// Fails unless a probe and a person are answered; gives the resident memory.
async fn answers(agent: &Agent) -> usize {
    assert_eq!(agent.get("/healthz").await.unwrap(), (200, "ok\n".into()));
    assert_eq!(agent.status().await.unwrap()["node"]["seen"], true);
    agent.resident().unwrap()
}

#[derive(Clone, Copy)]
enum Kind {
    /// Sends nothing.
    Silent,
    /// Sends a head without end, a byte at a time.
    Slow,
    /// Sends a request and reads no answer.
    Deaf,
}

/// Opens connections for ever, [`AT_ONCE`] at a time: another one as soon as the agent has had enough of one.
async fn flood(kind: Kind, address: SocketAddr, made: watch::Sender<usize>) {
    let mut open = JoinSet::new();
    loop {
        let socket = TcpSocket::new_v4().unwrap();
        // So that little of an answer leaves the agent.
        socket.set_recv_buffer_size(1).unwrap();
        let stream = socket.connect(address).await.unwrap();
        made.send_modify(|made| *made += 1);
        open.spawn(client(kind, stream));
        while open.len() >= AT_ONCE {
            open.join_next().await;
        }
    }
}

/// Ends when the agent has ended the connection.
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
