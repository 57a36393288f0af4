use std::io::ErrorKind;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

/// A server that sends everything back, and a proxy in front of it.
async fn echo() -> (FaultProxy, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let (mut from, mut to) = stream.split();
                drop(tokio::io::copy(&mut from, &mut to).await);
            });
        }
    });
    (FaultProxy::start(address).await.unwrap(), server)
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

async fn exchange(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len()];
    timeout(DEADLINE, stream.read_exact(&mut answer)).await??;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn bytes_and_their_end_pass_and_connections_are_counted() {
    let (proxy, _server) = echo().await;
    let mut one = connect(&proxy).await;
    assert_eq!(exchange(&mut one, "hello").await.unwrap(), "hello");
    one.shutdown().await.unwrap();
    assert_eq!(one.read(&mut [0; 8]).await.unwrap(), 0);
    let _two = connect(&proxy).await;
    proxy.wait_for_connections(2).await.unwrap();
}

#[tokio::test]
async fn refusing_resets_new_connections_and_spares_open_ones() {
    let (proxy, _server) = echo().await;
    let mut open = connect(&proxy).await;
    exchange(&mut open, "a").await.unwrap();
    proxy.set(Mode::Refuse);
    let mut new = connect(&proxy).await;
    assert!(exchange(&mut new, "b").await.is_err());
    assert_eq!(exchange(&mut open, "c").await.unwrap(), "c");
}

#[tokio::test]
async fn a_black_hole_swallows_open_and_new_connections_until_the_mode_changes() {
    let (proxy, _server) = echo().await;
    let mut open = connect(&proxy).await;
    exchange(&mut open, "a").await.unwrap();
    proxy.set(Mode::BlackHole);
    let mut new = connect(&proxy).await;
    for stream in [&mut open, &mut new] {
        stream.write_all(b"b").await.unwrap();
        let silence = timeout(Duration::from_millis(50), stream.read(&mut [0; 8])).await;
        assert!(silence.is_err());
    }
    proxy.set(Mode::Pass);
    for stream in [&mut open, &mut new] {
        assert_eq!(exchange(stream, "c").await.unwrap(), "b");
    }
}

#[tokio::test]
async fn what_is_swallowed_in_one_direction_arrives_in_the_other() {
    let (proxy, _server) = echo().await;
    let mut stream = connect(&proxy).await;
    exchange(&mut stream, "a").await.unwrap();
    for direction in [Direction::ToServer, Direction::ToClient] {
        proxy.set(Mode::Swallow(direction));
        stream.write_all(b"b").await.unwrap();
        let silence = timeout(Duration::from_millis(50), stream.read(&mut [0; 8])).await;
        assert!(silence.is_err(), "{direction:?}");
        proxy.set(Mode::Pass);
        assert_eq!(exchange(&mut stream, "c").await.unwrap(), "b");
        let mut last = [0; 1];
        timeout(DEADLINE, stream.read_exact(&mut last))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&last, b"c");
    }

    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let proxy = FaultProxy::start(server.local_addr().unwrap())
        .await
        .unwrap();
    proxy.set(Mode::Swallow(Direction::ToClient));
    connect(&proxy).await.write_all(b"d").await.unwrap();
    let mut arrived = timeout(DEADLINE, server.accept()).await.unwrap().unwrap().0;
    let mut got = String::new();
    timeout(DEADLINE, arrived.read_to_string(&mut got))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(got, "d");
}

#[tokio::test]
async fn bytes_trickle_until_the_mode_changes() {
    let (proxy, _server) = echo().await;
    let mut stream = connect(&proxy).await;
    proxy.set(Mode::Throttle(100));
    let start = Instant::now();
    exchange(&mut stream, &"a".repeat(30)).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(200));
    proxy.set(Mode::Throttle(1));
    stream.write_all(b"bb").await.unwrap();
    let mut got = [0; 2];
    timeout(DEADLINE, stream.read_exact(&mut got[..1]))
        .await
        .unwrap()
        .unwrap();
    proxy.set(Mode::Pass);
    timeout(DEADLINE, stream.read_exact(&mut got[1..]))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&got, b"bb");
}

#[tokio::test]
async fn a_reset_ends_every_open_connection_with_an_error() {
    let (proxy, _server) = echo().await;
    let mut open = connect(&proxy).await;
    exchange(&mut open, "a").await.unwrap();
    proxy.reset_connections();
    let error = timeout(DEADLINE, open.read(&mut [0; 8])).await.unwrap();
    assert_eq!(error.unwrap_err().kind(), ErrorKind::ConnectionReset);
    exchange(&mut connect(&proxy).await, "b").await.unwrap();
}

#[tokio::test]
async fn a_delay_applies_to_each_direction() {
    let (proxy, _server) = echo().await;
    let mut stream = connect(&proxy).await;
    proxy.set(Mode::Delay(Duration::from_millis(30)));
    let start = Instant::now();
    exchange(&mut stream, "a").await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(60));
}

#[tokio::test]
async fn a_cut_lets_exactly_so_many_bytes_through_after_it_was_set() {
    let (proxy, _server) = echo().await;
    let mut stream = connect(&proxy).await;
    exchange(&mut stream, "before").await.unwrap();
    proxy.set(Mode::Cut(Direction::ToClient, 3));
    stream.write_all(b"abcdef").await.unwrap();
    let mut got = String::new();
    let end = timeout(DEADLINE, stream.read_to_string(&mut got)).await;
    end.unwrap().unwrap();
    assert_eq!(got, "abc");
}

#[tokio::test]
async fn a_cut_towards_the_server_lets_exactly_so_many_bytes_through() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let proxy = FaultProxy::start(server.local_addr().unwrap()).await;
    let proxy = proxy.unwrap();
    proxy.set(Mode::Cut(Direction::ToServer, 3));
    connect(&proxy).await.write_all(b"abcdef").await.unwrap();
    let (mut arrived, _) = server.accept().await.unwrap();
    let mut got = String::new();
    let end = timeout(DEADLINE, arrived.read_to_string(&mut got)).await;
    end.unwrap().unwrap();
    assert_eq!(got, "abc");
}
