//! The record of a request.

use std::time::Instant;

use http::request::Parts;
use http::{Method, Version, header};

use super::route::Verb;

/// A request to the stand-in.
#[derive(Debug, Clone)]
pub struct Request {
    pub verb: Verb,
    /// The method as it was sent.
    pub method: Method,
    /// The path with the query.
    pub uri: String,
    /// The header.
    pub content_type: Option<String>,
    /// The header.
    pub user_agent: Option<String>,
    /// The body as text.
    pub body: String,
    /// The number of the connection, from 0.
    pub connection: usize,
    /// The version of HTTP.
    pub version: Version,
    /// When the whole request had arrived.
    pub at: Instant,
    /// `None` until the request is answered.
    pub status: Option<u16>,
}

impl Request {
    pub(super) fn new(parts: &Parts, body: &[u8], verb: Verb, connection: usize) -> Self {
        let header = |name| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
        let uri = parts.uri.path_and_query();
        Self {
            verb,
            method: parts.method.clone(),
            uri: uri.map_or_else(String::new, ToString::to_string),
            content_type: header(header::CONTENT_TYPE),
            user_agent: header(header::USER_AGENT),
            body: String::from_utf8_lossy(body).into_owned(),
            connection,
            version: parts.version,
            at: Instant::now(),
            status: None,
        }
    }
}
