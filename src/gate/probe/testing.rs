//! Small servers for the tests of the network probes. They end with the test's runtime.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::runtime::Handle;

use super::connect::Stream;

/// How long a test waits for what must happen.
const DEADLINE: Duration = Duration::from_secs(10);

/// The result of `future`, which must end soon. `Send`, because a check must be spawnable.
pub(in crate::gate) async fn soon<T>(future: impl Future<Output = T> + Send) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("must not take that long")
}

/// A listener on a free port of the IPv4 loopback.
pub(in crate::gate) async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A port that refuses connections for as long as the socket lives.
///
/// Closing a listener would not do: other tests could get its port, and a program that they start has a copy of the
/// listener for a moment.
pub(in crate::gate) fn refuse() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// Serves each connection with `serve`; returns the port.
pub(in crate::gate) async fn serve<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

/// Answers each request over TCP with what `reply` makes of its head, then closes; returns the port.
pub(in crate::gate) async fn http(reply: impl Fn(&str) -> String + Clone + Send + 'static) -> u16 {
    serve(move |stream| answer(stream, reply.clone())).await
}

/// The same on a unix socket.
pub(in crate::gate) fn http_unix(
    path: &Path,
    reply: impl Fn(&str) -> String + Clone + Send + 'static,
) {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, reply.clone()));
        }
    });
}

/// Answers one request.
pub(in crate::gate) async fn answer(mut stream: impl Stream, reply: impl Fn(&str) -> String) {
    let head = read_head(&mut stream).await;
    // The client may have seen enough before the end.
    let _ = stream.write_all(reply(&head).as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Reads a request up to the blank line.
pub(in crate::gate) async fn read_head(stream: &mut impl Stream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            break;
        };
        head.push(byte);
    }
    String::from_utf8(head).unwrap()
}

/// Runs `check` until `client_was_seen`, drops it as a time-out does, and waits for the connection to be closed.
pub(in crate::gate) async fn dropping_closes<S: Stream, T: std::fmt::Debug + Send>(
    check: impl Future<Output = T> + Send,
    client_was_seen: impl Future<Output = S> + Send,
) {
    let mut stream = soon(async {
        tokio::select! {
            outcome = check => panic!("did not wait: {outcome:?}"),
            stream = client_was_seen => stream,
        }
    })
    .await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks, 0, "something was spawned and lives");
    // A reset is as good as an end.
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
}
