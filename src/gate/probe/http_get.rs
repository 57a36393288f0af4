//! `httpGet`: an HTTP answer.
//!
//! Meant to be what users know from the kubelet (pkg/probe/http/http.go, request.go), except that by default only a
//! status of 200-299 will do, that a redirect which is not followed closes the gate, and that the body can matter.

mod expect;
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
use self::target::Target;
use super::Outcome;
use super::busy::Busy;
use super::connect::{self, Stream, connect};
use super::drive::while_driving;
use crate::config::{Endpoint, Expect, HttpGet, Scheme};
use crate::text::{excerpt, plain, without_secrets};

/// Redirects followed before giving up.
const MAX_REDIRECTS: usize = 10;
/// Most bytes read from the connection ahead of use; so also the most that status line and header may have.
const READ_BUFFER: usize = 64 * 1024;

/// Sends a GET, follows redirects within the host, and compares the final answer with what is expected.
///
/// One connection a request. The body is not waited for unless something is expected of it.
pub async fn check(spec: &HttpGet, busy: &Busy) -> Outcome {
    check_over(spec, busy, connect).await
}

/// The same over what `connect` gives for each endpoint; its error names the endpoint.
pub async fn check_over<C>(spec: &HttpGet, busy: &Busy, connect: C) -> Outcome
where
    C: AsyncFn(&Endpoint, &Busy) -> Result<Box<dyn Stream>, String>,
{
    // On the heap while it runs: it is large, and whoever calls this from time to time should not be.
    Box::pin(get(spec, busy, connect)).await.into()
}

async fn get<C>(spec: &HttpGet, busy: &Busy, connect: C) -> Result<String, String>
where
    C: AsyncFn(&Endpoint, &Busy) -> Result<Box<dyn Stream>, String>,
{
    let headers = headers(spec)?;
    let mut target = Target::new(spec)?;
    for _ in 0..=MAX_REDIRECTS {
        let stream = secured(&target, connect(&target.endpoint, busy).await?).await?;
        match exchange(&target, stream, headers.clone(), &spec.expect).await? {
            Answer::Accepted(seen) => return Ok(seen),
            Answer::Redirect { status, location } => {
                target = target.follow(&location).map_err(|why| {
                    let location = excerpt(&without_secrets(&location));
                    format!("{status} to {location} is not followed: {why}")
                })?;
            }
        }
    }
    Err(format!("stopped after {MAX_REDIRECTS} redirects"))
}

enum Answer {
    /// As expected; what was seen.
    Accepted(String),
    Redirect {
        status: StatusCode,
        location: String,
    },
}

async fn exchange(
    target: &Target,
    stream: Box<dyn Stream>,
    mut headers: HeaderMap,
    expect: &Expect,
) -> Result<Answer, String> {
    headers.insert(HOST, target.host_header()?);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = target.path.clone().into();
    *request.headers_mut() = headers;

    let named = |why| format!("{}: {why}", connect::name(&target.endpoint));
    let failed = |error| named(describe(&error));
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(READ_BUFFER)
        // Names have no case, but this is how people and the kubelet write them.
        .title_case_headers(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    while_driving(connection, async {
        let response = sender.send_request(request).await.map_err(failed)?;
        judge(expect, response)
            .await
            .map_err(|why| named(format!("GET {}: {why}", excerpt(target.path.path()))))
    })
    .await
}

async fn secured(target: &Target, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, String> {
    match target.scheme {
        Scheme::Http => Ok(stream),
        Scheme::Https => tls::handshake(stream, target.tls_name())
            .await
            .map_err(|why| format!("{}: {why}", connect::name(&target.endpoint))),
    }
}

async fn judge(expect: &Expect, response: Response<Incoming>) -> Result<Answer, String> {
    let status = response.status();
    if let Some(location) = response.headers().get(LOCATION)
        && is_redirect(status)
        && !expect::names(expect, status)
    {
        let location = location
            .to_str()
            .map_err(|_| format!("{status} with an unreadable Location"))?
            .to_owned();
        return Ok(Answer::Redirect { status, location });
    }
    expect::status(expect, status)?;
    // Always: an answer that breaks off is no answer, as for the kubelet.
    let body = read(response.into_body(), expect::body_limit(expect)).await?;
    expect::body(expect, &body)?;
    Ok(Answer::Accepted(status.to_string()))
}

/// The statuses that Go's client, and so the kubelet, follows for a GET (net/http `redirectBehavior`).
fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The body up to `limit` bytes.
async fn read(mut incoming: Incoming, limit: usize) -> Result<Body, String> {
    let mut body = Body::new(limit);
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| format!("the body: {}", describe(&error)))?;
        if let Some(data) = frame.data_ref()
            && body.take(data).is_break()
        {
            break;
        }
    }
    Ok(body)
}

/// The configured headers and those that every request has, but for the final `Host`.
fn headers(spec: &HttpGet) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for header in &spec.http_headers {
        let invalid = || format!("header {} cannot be sent", excerpt(&header.name));
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
    Ok(headers)
}

/// What went wrong, in the words of someone who knows HTTP but not hyper.
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
    io_error.map_or_else(|| error.to_string(), plain)
}

#[cfg(test)]
mod tests;
