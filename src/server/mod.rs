//! `/healthz`, `/readyz`, `/statusz` and `/metrics`, read from the one status snapshot.

mod accept;
mod connections;
mod host;
mod page;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

pub use self::connections::serve;
use crate::agent::Ping;
use crate::metrics::{self, Metrics};
use crate::status::Status;

/// How long the agent's loop may take to answer.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// What the answers are read from.
#[derive(Clone)]
pub struct Sources {
    /// `None` until the agent's loop has run once.
    pub status: watch::Receiver<Option<Status>>,
    /// For scrapers.
    pub metrics: Arc<Metrics>,
    /// To the agent's loop.
    pub pings: mpsc::Sender<Ping>,
}

/// `over_loopback`: the request reached the server at a loopback address.
async fn answer(
    request: &Request<Incoming>,
    over_loopback: bool,
    sources: &Sources,
) -> Response<Full<Bytes>> {
    if over_loopback && !host::is_own(request.uri(), request.headers()) {
        return text(
            StatusCode::MISDIRECTED_REQUEST,
            "over loopback, Host must be localhost or an IP address\n",
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
        "/metrics" => metrics(sources),
        _ => text(
            StatusCode::NOT_FOUND,
            "not found; try /healthz, /readyz, /statusz or /metrics\n",
        ),
    }
}

/// Asks the loop itself: a constant would be healthy for ever.
async fn healthz(sources: &Sources) -> Response<Full<Bytes>> {
    let (ping, answer) = oneshot::channel();
    let alive = async {
        sources.pings.send(ping).await.ok()?;
        answer.await.ok()
    };
    match timeout(PING_TIMEOUT, alive).await {
        Ok(Some(())) => text(StatusCode::OK, "ok\n"),
        _ => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "the agent's loop does not answer\n",
        ),
    }
}

/// The Node has been seen once, and the configuration is what the file says. An API server that is away later is no
/// reason to make the pod unready.
fn readyz(sources: &Sources) -> Response<Full<Bytes>> {
    let status = sources.status.borrow();
    let mut reasons = Vec::new();
    if !status.as_ref().is_some_and(|status| status.node.seen) {
        reasons.push("the node has not been seen yet\n".to_owned());
    }
    let configuration = status.as_ref().map(|status| &status.configuration);
    let failing = configuration.filter(|configuration| configuration.failing);
    if let Some(failure) = failing.and_then(|failing| failing.last_failure.as_ref()) {
        let problems = &failure.message;
        reasons.push(format!(
            "the configuration is bad; the active one stays:\n{problems}\n"
        ));
    }
    if reasons.is_empty() {
        text(StatusCode::OK, "ok\n")
    } else {
        text(StatusCode::SERVICE_UNAVAILABLE, &reasons.concat())
    }
}

/// JSON for programs, a page for browsers.
fn statusz(request: &Request<Incoming>, sources: &Sources) -> Response<Full<Bytes>> {
    let status = sources.status.borrow().clone();
    let mut response = if accept::prefers_html(request.headers()) {
        let reloads = request.uri().query() == Some(page::RELOAD);
        html(page::render(status.as_ref(), Timestamp::now(), reloads))
    } else {
        json(status.as_ref())
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}

fn json(status: Option<&Status>) -> Response<Full<Bytes>> {
    match serde_json::to_vec_pretty(&status) {
        Ok(body) => respond(StatusCode::OK, "application/json", body.into()),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn metrics(sources: &Sources) -> Response<Full<Bytes>> {
    match sources.metrics.page() {
        Ok(page) => respond(StatusCode::OK, metrics::CONTENT_TYPE, page.into()),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn html(page: String) -> Response<Full<Bytes>> {
    let mut response = respond(StatusCode::OK, "text/html; charset=utf-8", page.into());
    let headers = response.headers_mut();
    let policy = HeaderValue::from_static(page::POLICY);
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}

fn text(code: StatusCode, body: &str) -> Response<Full<Bytes>> {
    respond(
        code,
        "text/plain; charset=utf-8",
        Bytes::copy_from_slice(body.as_bytes()),
    )
}

fn respond(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Every answer is about now.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
