use std::convert::Infallible;

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioExecutor;
use tokio::net::UnixListener;
use tonic::codegen::Service;
use tonic_health::ServingStatus as Reported;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::health_reporter;

use super::*;
use crate::gate::Outcome;
use crate::gate::probe::testing::{dropping_closes, http, listen, refuse, serve, soon};

type Reply = Response<BoxBody<Bytes, Infallible>>;

async fn check(spec: &Grpc) -> Outcome {
    Box::pin(super::check(spec, &ProbeLock::default()))
        .await
        .into()
}

fn spec(port: u16, service: &str) -> Grpc {
    Grpc {
        endpoint: Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port,
        },
        service: service.into(),
    }
}

fn open() -> Outcome {
    Outcome::Open("SERVING".into())
}

fn closed(port: u16, why: &str) -> Outcome {
    Outcome::Closed(format!("127.0.0.1:{port}: {why}"))
}

/// Serves one connection with tonic's health service.
async fn health(stream: impl Stream + 'static, service: HealthServer<impl Health>) {
    let serve = service_fn(move |request| service.clone().call(request));
    let _ = server::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), serve)
        .await;
}

/// The port of an HTTP/2 server that answers everything with `reply`.
async fn http2(reply: fn() -> Reply) -> u16 {
    serve(move |stream| async move {
        let serve =
            service_fn(move |_: Request<Incoming>| async move { Ok::<_, Infallible>(reply()) });
        let _ = server::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), serve)
            .await;
    })
    .await
}

fn body(data: &'static [u8]) -> Full<Bytes> {
    Full::new(Bytes::from_static(data))
}

/// A gRPC answer with this status and no message.
fn only_status(code: &'static str) -> Reply {
    Response::builder()
        .header("content-type", "application/grpc")
        .header("grpc-status", code)
        .header("grpc-message", "what%0Ahappened")
        .body(body(b"").boxed())
        .unwrap()
}

/// A gRPC answer with a message and status 0.
fn message(data: &'static [u8]) -> Reply {
    let trailers = HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-status"),
        HeaderValue::from_static("0"),
    )]);
    Response::builder()
        .header("content-type", "application/grpc")
        .body(
            body(data)
                .with_trailers(async { Some(Ok(trailers)) })
                .boxed(),
        )
        .unwrap()
}

#[tokio::test]
async fn only_serving_opens() {
    let (reporter, service) = health_reporter();
    reporter
        .set_service_status("starting", Reported::NotServing)
        .await;
    reporter
        .set_service_status("unsure", Reported::Unknown)
        .await;
    let port = serve(move |stream| health(stream, service.clone())).await;

    assert_eq!(soon(check(&spec(port, ""))).await, open());
    for (name, why) in [
        ("starting", "NOT_SERVING"),
        ("unsure", "UNKNOWN"),
        ("none", "the server knows no service \"none\" (NOT_FOUND)"),
    ] {
        assert_eq!(soon(check(&spec(port, name))).await, closed(port, why));
    }
    reporter
        .set_service_status("starting", Reported::Serving)
        .await;
    assert_eq!(soon(check(&spec(port, "starting"))).await, open());
}

#[tokio::test]
async fn a_status_that_the_check_should_not_give_does_not_open() {
    let unknown_service = http2(|| message(&[0, 0, 0, 0, 2, 8, 3])).await;
    let from_the_future = http2(|| message(&[0, 0, 0, 0, 2, 8, 99])).await;
    let no_field = http2(|| message(&[0, 0, 0, 0, 0])).await;
    for (port, why) in [
        (unknown_service, "SERVICE_UNKNOWN"),
        (from_the_future, "UNKNOWN"),
        (no_field, "UNKNOWN"),
    ] {
        assert_eq!(soon(check(&spec(port, ""))).await, closed(port, why));
    }
}

#[tokio::test]
async fn an_error_of_the_server_closes_with_its_words() {
    let no_health_service = http2(|| only_status("12")).await;
    let unavailable = http2(|| only_status("14")).await;
    for (port, why) in [
        (
            no_health_service,
            "the server has no grpc.health.v1.Health service (UNIMPLEMENTED)",
        ),
        (unavailable, "Unavailable: what\\nhappened"),
    ] {
        assert_eq!(soon(check(&spec(port, ""))).await, closed(port, why));
    }
}

#[tokio::test]
async fn a_unix_socket_may_be_absent_or_serve() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ipamd.sock");
    let spec = Grpc {
        endpoint: Endpoint::Unix { path: path.clone() },
        service: String::new(),
    };
    assert_eq!(
        check(&spec).await,
        Outcome::Closed(format!("unix socket {}: does not exist", path.display()))
    );
    let listener = UnixListener::bind(&path).unwrap();
    let serve = async {
        let (stream, _) = listener.accept().await.unwrap();
        health(stream, health_reporter().1).await;
    };
    // The server ends when the client closes its connection.
    let (outcome, ()) = soon(async { tokio::join!(check(&spec), serve) }).await;
    assert_eq!(outcome, open());
}

#[tokio::test]
async fn a_peer_that_does_not_speak_grpc_closes_with_a_reason() {
    let (_refusing, refused) = refuse();
    let empty = http(|_| String::new()).await;
    let http1 = http(|_| "HTTP/1.1 400 Bad Request\r\n\r\n".into()).await;
    let page = http2(|| Response::new(body(b"<html>").boxed())).await;
    let huge = http2(|| message(&[0, 0xff, 0xff, 0xff, 0xff])).await;
    let corrupt = http2(|| message(&[0, 0, 0, 0, 2, 0xff, 0xff])).await;
    for (port, why) in [
        (refused, "connection refused"),
        (empty, "no gRPC answer: "),
        (http1, "no gRPC answer: "),
        (
            page,
            "no gRPC answer: HTTP status 200 OK, without the content type application/grpc",
        ),
        (huge, "OutOfRange: "),
        (corrupt, "Internal: failed to decode"),
    ] {
        let outcome = soon(check(&spec(port, ""))).await;
        let expected = format!("127.0.0.1:{port}: {why}");
        assert!(outcome.message().starts_with(&expected), "{outcome:?}");
        assert_eq!(outcome.state().as_str(), "closed");
    }
}

#[tokio::test]
async fn a_silent_peer_holds_the_check_only_until_it_is_dropped() {
    let (listener, port) = listen().await;
    let spec = spec(port, "");
    dropping_closes(check(&spec), async { listener.accept().await.unwrap().0 }).await;
}
