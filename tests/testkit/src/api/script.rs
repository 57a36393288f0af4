//! Answers that a test sets, which replace the usual answers.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::object::Id;
use super::route::Verb;
use super::status::{Status, error_event};

/// The answer to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This reply; the request is not executed.
    Reply(Reply),
    /// No answer; the request is not executed.
    Hang,
    /// The head of a good answer and these events, one in each line, and no end; the request is not executed.
    Stall(Vec<Value>),
    /// The connection is reset; the request is not executed.
    Reset,
    /// The connection ends with a GOAWAY which says that the request was not processed; the request is not executed.
    GoAway,
    /// The request is executed, and gets no answer.
    ApplyAndHang,
    /// The request is executed, and the connection is reset.
    ApplyAndReset,
    /// The request is executed, and the connection ends with a GOAWAY which says that the request may have been
    /// processed.
    ApplyAndGoAway,
}

/// A reply of the test.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Headers in addition to `Content-Type`.
    pub headers: HeaderMap,
    /// Sent as JSON. A string is the text itself, as of a page.
    pub body: Value,
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self::Reply(status.into())
    }
}

impl From<Status> for Reply {
    fn from(Status { code, body }: Status) -> Self {
        Self {
            status: code,
            headers: HeaderMap::new(),
            body,
        }
    }
}

impl Answer {
    /// A failure with a `Status` without details, such as 500, 503 and 429.
    #[must_use]
    pub fn failure(code: u16, reason: &str, message: &str) -> Self {
        Status::new(code, reason, message).into()
    }

    /// 409 for a stale resourceVersion.
    #[must_use]
    pub fn conflict(node: &str) -> Self {
        Status::conflict(&Id::node(node)).into()
    }

    /// The answer of an admission policy: 422 with `Invalid` by default, or 403 with `Forbidden` if the policy sets
    /// that.
    #[must_use]
    pub fn denied(code: u16, reason: &str, node: &str, message: &str) -> Self {
        Status::denied(code, reason, &Id::node(node), message).into()
    }

    /// What a proxy or a login page sends instead of the API server.
    #[must_use]
    pub fn page(status: u16, headers: &[(&'static str, &'static str)], text: &str) -> Self {
        let header = |(name, value): &(&'static str, &'static str)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        };
        Self::Reply(Reply {
            status,
            headers: headers.iter().map(header).collect(),
            body: text.into(),
        })
    }

    /// 404 for a Node that does not exist.
    #[must_use]
    pub fn not_found(node: &str) -> Self {
        Status::not_found(&Id::node(node)).into()
    }

    /// 410 for a resourceVersion that is too old.
    #[must_use]
    pub fn expired() -> Self {
        Status::expired(1, 2).into()
    }

    /// 410 as the first event of a watch that the server has accepted.
    #[must_use]
    pub fn expired_event() -> Self {
        let body = error_event(&Status::expired(1, 2));
        Status { code: 200, body }.into()
    }

    /// 429 with `Retry-After`.
    #[must_use]
    pub fn too_many_requests(retry_after_seconds: u16) -> Self {
        let message = "too many requests, please try again later";
        let mut reply = Reply::from(Status::new(429, "TooManyRequests", message));
        let name = HeaderName::from_static("retry-after");
        reply
            .headers
            .insert(name, HeaderValue::from(retry_after_seconds));
        Self::Reply(reply)
    }
}

/// The answers to the next requests, in order.
#[derive(Debug, Default)]
pub(super) struct Script(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    verb: Verb,
    /// The end of the path of the request; empty for any path.
    path: String,
    left: usize,
    answer: Answer,
}

impl Script {
    pub(super) fn add(&mut self, verb: Verb, path: &str, count: usize, answer: Answer) {
        self.0.push(Entry {
            verb,
            path: path.to_owned(),
            left: count,
            answer,
        });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The answer that was set for the next request with this verb to this path.
    pub(super) fn next(&mut self, verb: Verb, path: &str) -> Option<Answer> {
        self.0.retain(|entry| entry.left > 0);
        let is_it = |entry: &&mut Entry| entry.verb == verb && path.ends_with(&entry.path);
        let entry = self.0.iter_mut().find(is_it)?;
        entry.left -= 1;
        Some(entry.answer.clone())
    }
}
