//! An admission webhook that a real API server asks.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Response;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::cluster::Cluster;
use crate::tls::{self, Authority};

/// How the webhook answers.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// It denies every request with this `status`.
    Deny(Value),
    /// It fails with this HTTP status and text.
    Fail(u16, &'static str),
}

/// Answers every request in the same way; ends when dropped.
pub struct Webhook {
    address: SocketAddr,
    authority: Authority,
    _task: JoinSet<()>,
}

impl Webhook {
    /// Listens on a free port of 127.0.0.1, with TLS.
    pub async fn start(verdict: Verdict) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let authority = Authority::new()?;
        let certified = authority.server(&["127.0.0.1"], Duration::ZERO)?;
        let config = tls::server_config(&certified, &["http/1.1"])?;
        let mut task = JoinSet::new();
        task.spawn(serve(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            verdict,
        ));
        Ok(Self {
            address,
            authority,
            _task: task,
        })
    }

    /// Has the server ask it about every update that leaves this Node without the taint with this key. Returns when the
    /// server does. The Node must have `taints`.
    pub async fn register(
        &self,
        cluster: &Cluster,
        node: &str,
        key: &str,
        taints: &[&str],
    ) -> Result<()> {
        let removes = format!(
            "object.metadata.name == '{node}' && !(has(object.spec.taints) && object.spec.taints.exists(t, t.key == '{key}'))"
        );
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": format!("webhook-of-{node}")},
            "webhooks": [{
                "name": format!("{node}.example.com"),
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {
                    "url": format!("https://{}/", self.address),
                    "caBundle": STANDARD.encode(self.authority.pem()),
                },
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}],
                "matchConditions": [{"name": "removes", "expression": removes}],
            }],
        });
        cluster.apply(&webhook.to_string()).await?;
        // A webhook takes effect some time after it is created.
        while cluster.set_taints(node, &[]).await.is_ok() {
            cluster.set_taints(node, taints).await?;
        }
        Ok(())
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, verdict: Verdict) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, verdict) = (tls.clone(), verdict.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(|request| answer(request, &verdict));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // The server notices the end of its connection.
            drop(connection.await);
        });
    }
}

async fn answer(
    request: http::Request<Incoming>,
    verdict: &Verdict,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await;
    let review: Value = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body.to_bytes()).ok())
        .unwrap_or_default();
    let (code, body) = match verdict {
        Verdict::Deny(status) => {
            let uid = &review["request"]["uid"];
            let response = json!({"uid": uid, "allowed": false, "status": status});
            let review = json!({
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": response,
            });
            (200, review.to_string())
        }
        Verdict::Fail(code, text) => (*code, (*text).to_owned()),
    };
    let response = Response::builder()
        .status(code)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::from(body));
    Ok(response.expect("a status code"))
}
