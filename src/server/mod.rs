//! Serves `/healthz`, `/readyz`, `/statusz` and `/metrics` from the status snapshot.

mod accept;
mod connections;
mod host;
mod page;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

pub use self::connections::serve;
use crate::agent::Ping;
use crate::metrics::{self, Metrics};
use crate::status::Status;

/// The agent's loop must answer within this time.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

type Response = http::Response<Full<Bytes>>;

#[derive(Clone)]
pub struct Sources {
    /// `None` until the agent's loop has run once.
    pub status: watch::Receiver<Option<Status>>,
    pub metrics: Arc<Metrics>,
    /// To the agent's loop.
    pub pings: mpsc::Sender<Ping>,
}

/// `over_loopback`: the request reached the server at a loopback address.
async fn answer(request: &Request<Incoming>, over_loopback: bool, sources: &Sources) -> Response {
    if over_loopback && !host::is_own(request.uri(), request.headers()) {
        return text(
            StatusCode::MISDIRECTED_REQUEST,
            "on the loopback address, the header Host must be localhost or an IP address\n",
        );
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/healthz" => healthz(sources).await,
        "/readyz" => readyz(sources),
        "/statusz" => statusz(request, sources),
        "/metrics" => respond_written(metrics::CONTENT_TYPE, sources.metrics.page()),
        _ => text(
            StatusCode::NOT_FOUND,
            "not found; try /healthz, /readyz, /statusz or /metrics\n",
        ),
    }
}

/// Healthy if the agent's loop answers a ping.
async fn healthz(sources: &Sources) -> Response {
    let (ping, answer) = oneshot::channel();
    let alive = async {
        sources.pings.send(ping).await.ok()?;
        answer.await.ok()
    };
    match timeout(PING_TIMEOUT, alive).await {
        Ok(Some(())) => text(StatusCode::OK, "ok\n"),
        _ => unavailable("the agent's loop does not answer\n"),
    }
}

/// Ready if the Node was seen once and the configuration file is active. A later outage of the API server does not make the
/// pod unready.
fn readyz(sources: &Sources) -> Response {
    let status = sources.status.borrow();
    let mut reasons = Vec::new();
    if !status.as_ref().is_some_and(|status| status.node.seen) {
        reasons.push("untaint has not seen its Node yet\n".to_owned());
    }
    if let Some(status) = status.as_ref()
        && status.configuration.failing
        && let Some(failure) = &status.configuration.last_failure
    {
        let problems = &failure.message;
        reasons.push(format!(
            "the configuration file is invalid; untaint continues with the active configuration:\n{problems}\n"
        ));
    }
    if reasons.is_empty() {
        text(StatusCode::OK, "ok\n")
    } else {
        unavailable(&reasons.concat())
    }
}

/// A page for browsers, JSON for all others.
fn statusz(request: &Request<Incoming>, sources: &Sources) -> Response {
    let status = sources.status.borrow().clone();
    let mut response = if accept::prefers_html(request.headers()) {
        let reloads = request.uri().query() == Some(page::RELOAD);
        html(page::render(status.as_ref(), Timestamp::now(), reloads))
    } else {
        respond_written("application/json", serde_json::to_vec_pretty(&status))
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}

fn html(page: String) -> Response {
    let mut response = respond(StatusCode::OK, "text/html; charset=utf-8", page);
    let headers = response.headers_mut();
    let policy = HeaderValue::from_static(page::POLICY);
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}

fn text(code: StatusCode, body: &str) -> Response {
    respond(code, "text/plain; charset=utf-8", body.to_owned())
}

fn unavailable(reason: &str) -> Response {
    text(StatusCode::SERVICE_UNAVAILABLE, reason)
}

/// A body that was written, or why it could not be.
fn respond_written(
    content_type: &'static str,
    body: Result<impl Into<Bytes>, impl Display>,
) -> Response {
    match body {
        Ok(body) => respond(StatusCode::OK, content_type, body),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn respond(code: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Every answer describes the moment.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
