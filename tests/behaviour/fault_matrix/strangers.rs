//! Answers that do not come from an API server, such as those of a login page, and connections to something else.

use std::time::Duration;

use serde_json::Value;
use testkit::api::{Answer, Options, Verb};
use testkit::kubeconfig::point_at;
use testkit::proxy::{FaultProxy, Mode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::WATCH_FAILED;
use crate::scene::{FOREIGN, Gates, OnStandIn, TAINT};

const PAGE: &str = "<!DOCTYPE html>\n<html>\n<head><meta charset=utf-8><title>Sign in\nto Example</title></head><body><form>\u{1b}[31m</form></body></html>";

fn html(status: u16) -> Answer {
    Answer::page(
        status,
        &[("content-type", "text/html; charset=utf-8")],
        PAGE,
    )
}

fn redirect() -> Answer {
    let location = "https://login.example.com/oauth2?token=secret";
    Answer::page(
        302,
        &[("location", location), ("content-type", "text/html")],
        "<a>Found</a>",
    )
}

fn plain() -> Answer {
    Answer::page(
        200,
        &[("content-type", "text/plain")],
        "Service is starting up\n",
    )
}

#[tokio::test]
async fn an_answer_that_is_not_of_an_api_server_is_named() {
    let page = [
        "200",
        "text/html",
        "Sign in to Example",
        "a proxy or a load balancer",
    ];
    let moved = [
        "302",
        "https://login.example.com/oauth2?…",
        "a proxy or a load balancer",
        "302",
    ];
    let empty = ["204", "a proxy or a load balancer", "no text", "204"];
    let text = [
        "200",
        "text/plain",
        "Service is starting up",
        "a proxy or a load balancer",
    ];
    let answers = [
        (html as fn(u16) -> Answer, page),
        (|_| redirect(), moved),
        (|_| Answer::page(204, &[], ""), empty),
        (|_| plain(), text),
    ];
    for verb in [Verb::Watch, Verb::List, Verb::Get, Verb::Patch] {
        let mut runs = Vec::new();
        for (answer, expected) in answers {
            runs.push(async move {
                let options = Options {
                    streaming_lists: verb != Verb::List,
                    ..Options::default()
                };
                let scene =
                    OnStandIn::with_options(options, &[TAINT, FOREIGN], Gates::open().await).await;
                if verb == Verb::Get {
                    scene
                        .server
                        .respond_next(Verb::Patch, 1, Answer::conflict("node"));
                }
                scene.server.respond_next(verb, 1000, answer(200));
                let agent = scene.agent(&[]);
                let names_it = |line: &Value| {
                    let error = line["error"].as_str().unwrap_or_default();
                    line["level"] != "DEBUG" && expected.iter().all(|part| error.contains(part))
                };
                let line = agent.wait_for_log(names_it).await.unwrap();
                assert!(!line.to_string().contains("secret"), "{line}");
                assert!(!line.to_string().contains("u001b["), "{line}");
                scene.server.respond_as_usual();
                scene.wait_for_taints(&[FOREIGN]).await;
            });
        }
        futures_util::future::join_all(runs).await;
    }
}

/// What a connection ends with, in words of untaint and of the operating system.
#[tokio::test]
async fn a_connection_to_something_else_is_told_without_the_words_of_libraries() {
    let greets = |greeting: &'static [u8], waits: bool| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                if waits {
                    let _ = stream.read(&mut [0; 4096]).await;
                }
                let _ = stream.write_all(greeting).await;
                let _ = stream.shutdown().await;
            }
        });
        address
    };
    let cases = [
        greets(b"SSH-2.0-OpenSSH_9.6\r\n", false).await,
        greets(b"", true).await,
        greets(b"HTTP/1.1 400 Bad Request\r\n\r\n", true).await,
    ];
    for tls in [true, false] {
        for address in cases {
            let options = Options {
                tls,
                ..Options::default()
            };
            let scene = OnStandIn::with_options(options, &[TAINT], Gates::open().await).await;
            point_at(&scene.kubeconfig, address).unwrap();
            let agent = scene.agent(&[]);
            let failed = agent.wait_for_message(WATCH_FAILED).await.unwrap();
            assert_plain(&failed["error"]);
        }
    }
    for (answer, http2) in [
        (Answer::Reset, false),
        (Answer::Reset, true),
        (Answer::GoAway, true),
        (Answer::ApplyAndGoAway, true),
    ] {
        let options = Options {
            http2,
            ..Options::default()
        };
        let scene = OnStandIn::with_options(options, &[TAINT], Gates::open().await).await;
        scene.server.respond_next(Verb::Watch, 1, answer);
        let agent = scene.agent(&[]);
        let failed = agent.wait_for_message(WATCH_FAILED).await.unwrap();
        assert_plain(&failed["error"]);
    }
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let proxy = FaultProxy::start(scene.server.address()).await.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    for mode in [Mode::Refuse, Mode::BlackHole] {
        proxy.set(mode);
        let agent = scene.agent(&[]);
        let failed = agent.wait_for_message(WATCH_FAILED).await.unwrap();
        assert_plain(&failed["error"]);
    }
}

fn assert_plain(error: &Value) {
    let error = error.as_str().unwrap();
    for word in [
        "ServiceError",
        "tcp connect error",
        "eof",
        "unexpected message",
        "not a result",
        "client error",
        "docs.rs",
        "http2",
        "hyper",
        "SendRequest",
        "os error",
    ] {
        assert!(!error.contains(word), "{word} in {error}");
    }
}

/// Its text has the time of the try.
#[tokio::test]
async fn a_certificate_that_is_not_valid_yet_is_warned_of_once_a_minute() {
    let scene = OnStandIn::with(&[TAINT], Gates::open().await).await;
    let hour = Duration::from_hours(1);
    scene.server.take_certificate_valid_in(hour).unwrap();
    let proxy = FaultProxy::start(scene.server.address()).await.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    let agent = scene.agent(&[]);
    proxy.wait_for_connections(5).await.unwrap();
    let errors: Vec<_> = agent
        .logs()
        .into_iter()
        .filter(|line| line["message"] == WATCH_FAILED && line["level"] == "WARN")
        .collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
}
