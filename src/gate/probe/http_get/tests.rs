//! The gate against servers on sockets.

mod redirects;
mod tls;
mod trouble;

use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::config::{Endpoint, HttpHeader, StatusRange};
use crate::gate::Outcome;
use crate::gate::probe::testing::{http, http_unix, soon};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

async fn check(spec: &HttpGet) -> Outcome {
    Box::pin(super::check(spec, &ProbeLock::default()))
        .await
        .into()
}

fn spec(port: u16) -> HttpGet {
    HttpGet {
        endpoint: Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port,
        },
        scheme: Scheme::Http,
        path: "/healthz".into(),
        http_headers: Vec::new(),
        expect: Expect::default(),
    }
}

fn with_headers(port: u16, headers: &[(&str, &str)]) -> HttpGet {
    HttpGet {
        http_headers: headers
            .iter()
            .map(|(name, value)| HttpHeader {
                name: (*name).into(),
                value: (*value).into(),
            })
            .collect(),
        ..spec(port)
    }
}

fn with_status(port: u16, first: u16, last: u16) -> HttpGet {
    let mut spec = spec(port);
    spec.expect.status = vec![StatusRange { first, last }];
    spec
}

fn with_text(port: u16, text: &str) -> HttpGet {
    let mut spec = spec(port);
    spec.expect.text = Some(text.into());
    spec
}

/// The outcome with a server that always answers `reply`.
async fn outcome(reply: &'static str) -> Outcome {
    let port = http(move |_| reply.into()).await;
    soon(check(&spec(port))).await
}

fn open(seen: &str) -> Outcome {
    Outcome::Open(seen.into())
}

fn closed(port: u16, why: &str) -> Outcome {
    Outcome::Closed(format!("127.0.0.1:{port}: {why}"))
}

/// The port of a server, and the head of the request that `spec` sends to it.
async fn request(spec: HttpGet) -> (u16, String) {
    let (seen, mut heads) = unbounded_channel();
    let port = http(move |head| {
        seen.send(head.to_owned()).unwrap();
        OK.into()
    })
    .await;
    let Endpoint::Tcp { host, .. } = spec.endpoint.clone() else {
        panic!("tests over TCP only");
    };
    let spec = HttpGet {
        endpoint: Endpoint::Tcp { host, port },
        ..spec
    };
    assert_eq!(soon(check(&spec)).await, open("200 OK"));
    (port, heads.try_recv().unwrap())
}

#[tokio::test]
async fn the_request_is_plain_and_asks_for_no_keep_alive_and_no_compression() {
    let mut spec = spec(0);
    spec.path = "/healthz?brief=true".into();
    let (port, head) = request(spec).await;
    let mut lines: Vec<_> = head.trim_end().split("\r\n").collect();
    lines[1..].sort_unstable();
    assert_eq!(
        lines,
        [
            "GET /healthz?brief=true HTTP/1.1",
            "Accept: */*",
            "Connection: close",
            &format!("Host: 127.0.0.1:{port}"),
            &format!("User-Agent: untaint/{}", env!("CARGO_PKG_VERSION")),
        ]
    );
}

/// Conditions and Events show reasons to every client that may read Nodes.
#[tokio::test]
async fn a_reason_does_not_show_the_query() {
    let port = http(|_| "HTTP/1.1 503 Service Unavailable\r\n\r\n".into()).await;
    let mut spec = spec(port);
    spec.path = "/healthz?token=secret".into();
    let why = "GET /healthz: 503 Service Unavailable, expected 200-299";
    assert_eq!(soon(check(&spec)).await, closed(port, why));
}

#[tokio::test]
async fn configured_headers_are_sent_as_given_and_replace_the_default_ones() {
    let (_, head) = request(with_headers(
        0,
        &[
            ("host", "cilium.example"),
            ("user-agent", "me"),
            ("Accept", ""),
            ("X-Twice", "1"),
            ("X-Twice", "two words, ö"),
        ],
    ))
    .await;
    let mut lines: Vec<_> = head.trim_end().split("\r\n").skip(1).collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "Connection: close",
            "Host: cilium.example",
            "User-Agent: me",
            "X-Twice: 1",
            "X-Twice: two words, ö",
        ]
    );
}

#[tokio::test]
async fn an_answer_may_depend_on_a_header() {
    let port = http(|head| {
        let local = head.contains("\r\nRequire-K8s-Connectivity: false\r\n");
        if local { OK } else { UNAVAILABLE }.into()
    })
    .await;
    let local = with_headers(port, &[("require-k8s-connectivity", "false")]);
    assert_eq!(check(&local).await, open("200 OK"));
    assert!(!check(&spec(port)).await.is_open());
}

#[tokio::test]
async fn what_cannot_be_sent_closes_the_gate() {
    let port = http(|_| OK.into()).await;
    for (name, value) in [("a b", "c"), ("a", "b\nc"), ("host", "b\nc")] {
        let outcome = check(&with_headers(port, &[(name, value)])).await;
        assert!(
            outcome.message().ends_with("is not valid in a request"),
            "{outcome:?}"
        );
    }
    for path in ["", "healthz", "/a b", "*"] {
        let spec = HttpGet {
            path: path.into(),
            ..spec(1)
        };
        let reason = format!("path {path} cannot be sent");
        assert_eq!(check(&spec).await, Outcome::Closed(reason));
    }
}

#[tokio::test]
async fn only_an_expected_status_opens() {
    let port = http(|_| UNAVAILABLE.into()).await;
    assert_eq!(
        check(&spec(port)).await,
        closed(
            port,
            "GET /healthz: 503 Service Unavailable, expected 200-299"
        )
    );
    assert_eq!(
        check(&with_status(port, 500, 503)).await,
        open("503 Service Unavailable")
    );
    assert_eq!(
        outcome("HTTP/1.0 204 x\r\n\r\n").await,
        open("204 No Content")
    );
}

#[tokio::test]
async fn what_is_expected_of_the_body_must_hold_too() {
    let port = http(|_| {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"state\"\r\n6\r\n:\"Ok\"}\r\n0\r\n\r\n".into()
    })
    .await;
    let with_state = |state: &str| {
        let mut spec = spec(port);
        spec.expect.json = [("/state".into(), state.into())].into();
        spec
    };
    assert_eq!(check(&with_state("Ok")).await, open("200 OK"));
    assert_eq!(
        check(&with_state("Bad")).await,
        closed(port, r#"GET /healthz: /state is "Ok", expected "Bad""#)
    );
    assert_eq!(check(&with_text(port, r#"":"Ok"#)).await, open("200 OK"));
    assert_eq!(
        check(&with_text(port, "ready")).await,
        closed(port, "GET /healthz: the body does not contain \"ready\"")
    );
}

#[tokio::test]
async fn a_unix_socket_is_asked_as_localhost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api.sock");
    let spec = HttpGet {
        endpoint: Endpoint::Unix { path: path.clone() },
        ..spec(0)
    };
    assert_eq!(
        check(&spec).await,
        Outcome::Closed(format!("unix socket {}: does not exist", path.display()))
    );
    http_unix(&path, |head| {
        let expected =
            head.starts_with("GET /healthz ") && head.contains("\r\nHost: localhost\r\n");
        if expected { OK } else { UNAVAILABLE }.into()
    });
    assert_eq!(soon(check(&spec)).await, open("200 OK"));
}

#[tokio::test]
async fn no_proxy_is_used_whatever_the_environment_says() {
    // The environment of a running process must not be changed, so one of these tests runs in a process that has it.
    let test = "the_request_is_plain_and_asks_for_no_keep_alive_and_no_compression";
    let (_listener, silent) = crate::gate::probe::testing::listen().await;
    let proxy = format!("http://127.0.0.1:{silent}");
    let output = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("gate::probe::http_get::tests::{test}")])
        .envs(["http_proxy", "HTTP_PROXY", "ALL_PROXY"].map(|name| (name, &proxy)))
        .env_remove("NO_PROXY")
        .kill_on_drop(true)
        .output();
    let output = soon(output).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
