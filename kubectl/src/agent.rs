//! The agent on a node, asked through the API server.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::timeout;

/// Where the agent listens, unless `--listen` says otherwise.
const PORT: u16 = 9468;
const PATIENCE: Duration = Duration::from_secs(5);

/// Its `/statusz`. The agent listens on the loopback address of its node, which only port-forward reaches. That needs the
/// permission to `create` and `get` `pods/portforward`.
pub(crate) async fn status(client: &Client, namespace: &str, pod: &str) -> Result<Value> {
    let asked = timeout(PATIENCE, ask(client, namespace, pod)).await;
    asked.context("no answer in 5 s")?
}

async fn ask(client: &Client, namespace: &str, pod: &str) -> Result<Value> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut forwarder = pods.portforward(pod, &[PORT]).await?;
    let stream = forwarder.take_stream(PORT).context("no stream")?;
    let stream = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    // It ends with the sender.
    tokio::spawn(connection);
    let request = Request::get("/statusz")
        .header("Host", "localhost")
        .header("Accept", "application/json")
        .body(Empty::<Bytes>::new())?;
    let answer = sender.send_request(request).await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    let body = answer.into_body().collect().await?.to_bytes();
    Ok(serde_json::from_slice(&body)?)
}
