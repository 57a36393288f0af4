//! Servers that are absent, broken, slow or endless.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::*;
use crate::gate::probe::testing::{dropping_closes, listen, read_head, refuse, serve};

/// Accepts one connection, reads the request and sends `beginning` of an answer.
async fn begin(listener: &TcpListener, beginning: &str) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    read_head(&mut stream).await;
    stream.write_all(beginning.as_bytes()).await.unwrap();
    stream
}

/// The port of a server that sends `beginning` and then `again` until the client goes.
async fn endless(beginning: &'static str, again: &'static str) -> u16 {
    serve(async move |mut stream| {
        read_head(&mut stream).await;
        let _ = stream.write_all(beginning.as_bytes()).await;
        while stream.write_all(again.as_bytes()).await.is_ok() {}
    })
    .await
}

#[tokio::test]
async fn a_refused_connection_or_an_empty_or_foreign_answer_closes_with_a_short_reason() {
    let (_refusing, port) = refuse();
    assert_eq!(check(&spec(port)).await, closed(port, "connection refused"));

    for (reply, reason) in [
        (
            "",
            "the connection was closed before the answer was complete",
        ),
        (
            "HTTP/1.1 2",
            "the connection was closed before the answer was complete",
        ),
        ("SSH-2.0-OpenSSH\r\n", "the answer is not HTTP/1"),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "the answer is not HTTP/1",
        ),
        ("\u{0}\u{1}\u{2}", "the answer is not HTTP/1"),
        ("HTTP/1.1 999999 x\r\n\r\n", "the answer is not HTTP/1"),
    ] {
        let port = http(move |_| reply.into()).await;
        assert_eq!(
            soon(check(&spec(port))).await,
            closed(port, reason),
            "{reply}"
        );
    }
}

#[tokio::test]
async fn a_large_or_endless_header_is_cut_off() {
    let endless = endless("HTTP/1.1 200 OK\r\nX: ", "xxxxxxxxxxxxxxxx").await;
    let large = http(|_| {
        let value = "x".repeat(4 * READ_BUFFER);
        format!("HTTP/1.1 200 OK\r\nX: {value}\r\n\r\n")
    })
    .await;
    for port in [endless, large] {
        assert_eq!(
            soon(check(&spec(port))).await,
            closed(port, "the header of the answer is too large")
        );
    }
}

#[tokio::test]
async fn where_nothing_is_expected_of_the_body_its_beginning_is_enough() {
    let port = endless("HTTP/1.1 200 OK\r\n\r\n", "xxxxxxxxxxxxxxxx").await;
    assert_eq!(soon(check(&spec(port))).await, open("200 OK"));
}

#[tokio::test]
async fn where_nothing_is_expected_of_the_body_it_must_arrive_all_the_same() {
    let (listener, port) = listen().await;
    let spec = spec(port);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow";
    dropping_closes(check(&spec), begin(&listener, answer)).await;
}

#[tokio::test]
async fn an_endless_body_is_cut_off_where_it_matters() {
    let port = endless("HTTP/1.1 200 OK\r\n\r\n", "xxxxxxxxxxxxxxxx").await;
    let outcome = soon(check(&with_text(port, "ready"))).await;
    let reason = "GET /healthz: the first 1048576 bytes of the body do not contain \"ready\"";
    assert_eq!(outcome, closed(port, reason));
}

#[tokio::test]
async fn a_body_that_ends_early_closes() {
    let port = http(|_| "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nready".into()).await;
    let reason = "GET /healthz: the body: the connection was closed before the answer was complete";
    for spec in [with_text(port, "ready"), spec(port)] {
        assert_eq!(soon(check(&spec)).await, closed(port, reason));
    }
}

#[tokio::test]
async fn a_server_that_stops_in_the_middle_holds_the_check_only_until_it_is_dropped() {
    for beginning in [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow",
    ] {
        let (listener, port) = listen().await;
        let spec = with_text(port, "ready");
        dropping_closes(check(&spec), begin(&listener, beginning)).await;
    }
}

#[tokio::test]
async fn a_silent_tls_port_holds_the_check_only_until_it_is_dropped() {
    let (listener, port) = listen().await;
    let spec = HttpGet {
        scheme: Scheme::Https,
        ..spec(port)
    };
    dropping_closes(check(&spec), async { listener.accept().await.unwrap().0 }).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_of_a_byte_a_second_ends_with_the_time_out() {
    let port = serve(async |mut stream| {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(b"x").await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    let outcome = timeout(Duration::from_mins(1), check(&with_text(port, "ready"))).await;
    assert!(outcome.is_err(), "{outcome:?}");
}
