//! `httpGet`: an HTTP answer.
//!
//! It works as in the kubelet (pkg/probe/http/http.go, request.go), with four differences: by default only a status of
//! 200-299 opens the gate, a redirect that is not followed closes it, the body can matter, and ten redirects are
//! followed, not nine.

mod expect;
mod json;
mod target;
mod tls;

use std::error::Error;
use std::io;

use http::header::{ACCEPT, CONNECTION, Entry, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use self::expect::Body;
pub use self::target::Target;
use super::connect::{self, Stream, connect};
use super::drive::while_driving;
use super::lock::ProbeLock;
use crate::config::{Expect, HttpGet, Scheme};
use crate::text::{excerpt, http_status, io_message, without_secrets};

const MAX_REDIRECTS: usize = 10;
/// Bytes that hyper buffers, and so the limit of the status line and the headers together.
const READ_BUFFER: usize = 64 * 1024;

/// Sends a GET, follows redirects within the host, and compares the final answer with what is expected. Each request has
/// a connection of its own.
pub async fn check(spec: &HttpGet, lock: &ProbeLock) -> Result<String, String> {
    let mut target = Target::new(spec)?;
    for _ in 0..=MAX_REDIRECTS {
        let stream = connect(&target.endpoint, lock).await?;
        match exchange(spec, &target, stream).await? {
            Answer::Accepted(seen) => return Ok(seen),
            Answer::Redirect(next) => target = next,
        }
    }
    Err(format!("stopped after {MAX_REDIRECTS} redirects"))
}

/// What a server answers.
#[derive(Debug)]
pub enum Answer {
    /// As expected, with the status.
    Accepted(String),
    Redirect(Target),
}

/// Sends one request over `stream`, which leads to the endpoint of `target`.
pub async fn exchange(
    spec: &HttpGet,
    target: &Target,
    stream: Box<dyn Stream>,
) -> Result<Answer, String> {
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = target.path.clone().into();
    *request.headers_mut() = headers(spec, target)?;

    let named = |why| format!("{}: {why}", connect::name(&target.endpoint));
    let failed = |error| named(describe(&error));
    let stream = match target.scheme {
        Scheme::Http => stream,
        Scheme::Https => tls::handshake(stream, target.tls_name())
            .await
            .map_err(named)?,
    };
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(READ_BUFFER)
        // Names have no case, but this is how people and the kubelet write them.
        .title_case_headers(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    while_driving(connection, async {
        let response = sender.send_request(request).await.map_err(failed)?;
        judge(&spec.expect, target, response)
            .await
            .map_err(|why| named(format!("GET {}: {why}", excerpt(target.path.path()))))
    })
    .await
}

async fn judge(
    expect: &Expect,
    target: &Target,
    response: Response<Incoming>,
) -> Result<Answer, String> {
    let status = response.status();
    if let Some(location) = response.headers().get(LOCATION)
        && is_redirect(status)
        && !expect::names(expect, status)
    {
        let status = http_status(status);
        let unreadable = |_| format!("{status}, but its Location is not valid text");
        let location = location.to_str().map_err(unreadable)?;
        let refused = |why| {
            let location = excerpt(&without_secrets(location));
            format!("{status}: untaint does not follow the redirect to {location}: {why}")
        };
        return Ok(Answer::Redirect(target.follow(location).map_err(refused)?));
    }
    expect::status(expect, status)?;
    // Even if nothing is expected of the body: an answer that ends early does not count, as in the kubelet.
    let body = read(response.into_body(), expect::body_limit(expect)).await?;
    expect::body(expect, &body)?;
    Ok(Answer::Accepted(http_status(status)))
}

/// The statuses that Go's client, and so the kubelet, follows for a GET (net/http `redirectBehavior`).
fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The body up to `limit` bytes.
async fn read(mut incoming: Incoming, limit: usize) -> Result<Body, String> {
    let mut body = Body::default();
    while !body.truncated
        && let Some(frame) = incoming.frame().await
    {
        let frame = frame.map_err(|error| format!("the body: {}", describe(&error)))?;
        if let Some(data) = frame.data_ref() {
            body.add(data, limit);
        }
    }
    Ok(body)
}

/// The configured headers and those that every request has.
fn headers(spec: &HttpGet, target: &Target) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for header in &spec.http_headers {
        let invalid = || format!("header {} is not valid in a request", excerpt(&header.name));
        let name = HeaderName::try_from(&header.name).map_err(|_| invalid())?;
        let value = HeaderValue::from_bytes(header.value.as_bytes()).map_err(|_| invalid())?;
        headers.append(name, value);
    }
    for (name, default) in [(USER_AGENT, crate::USER_AGENT), (ACCEPT, "*/*")] {
        match headers.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(HeaderValue::from_static(default));
            }
            // As with the kubelet, an empty value leaves the header out.
            Entry::Occupied(entry) if entry.get().is_empty() => {
                entry.remove();
            }
            Entry::Occupied(_) => {}
        }
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(HOST, target.host_header()?);
    Ok(headers)
}

/// What went wrong, without the words of hyper.
fn describe(error: &hyper::Error) -> String {
    let io_error = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>());
    let ended = io_error.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    if ended || error.is_incomplete_message() {
        return "the connection was closed before the answer was complete".into();
    }
    if error.is_parse_too_large() {
        return "the header of the answer is too large".into();
    }
    if error.is_parse() {
        return "the answer is not HTTP/1".into();
    }
    io_error.map_or_else(|| error.to_string(), io_message)
}

#[cfg(test)]
mod tests;
