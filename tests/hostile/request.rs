//! One request, and who refused it.

use std::fmt;

use http::{HeaderValue, Method, Request as HttpRequest, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

pub(crate) const JSON: &str = "application/json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// What is asked of the API server.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn new(
        name: impl Into<String>,
        method: Method,
        uri: impl Into<String>,
        body: Value,
    ) -> Self {
        Self {
            name: name.into(),
            method,
            uri: uri.into(),
            content_type: JSON,
            headers: Vec::new(),
            body,
        }
    }

    pub(crate) fn patch(
        name: impl Into<String>,
        uri: impl Into<String>,
        content_type: &'static str,
        body: Value,
    ) -> Self {
        let request = Self::new(name, Method::PATCH, uri, body);
        Self {
            content_type,
            ..request
        }
    }

    /// Nothing comes of it, whoever lets it through.
    pub(crate) fn dry(mut self) -> Self {
        let sign = if self.uri.contains('?') { '&' } else { '?' };
        self.uri = format!("{}{sign}dryRun=All", self.uri);
        self
    }

    /// A connection that breaks is no answer, so the request is sent again: at most twice, for a server that breaks every one.
    pub(crate) async fn send(&self, client: &Client) -> Answer {
        let mut broken = 0;
        let answer = loop {
            match client.send(self.to_http()).await {
                Err(error @ kube::Error::Service(_)) if broken < 2 => {
                    broken += 1;
                    println!("{}: sent again: {error}", self.name);
                }
                answer => break answer.unwrap(),
            }
        };
        let code = answer.status().as_u16();
        let warnings = answer.headers().get_all(header::WARNING).iter();
        let warnings = warnings.map(text_of_warning).collect();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body =
            serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)));
        Answer {
            code,
            body,
            warnings,
        }
    }

    fn to_http(&self) -> HttpRequest<Body> {
        let mut request = HttpRequest::builder()
            .method(self.method.clone())
            .uri(&self.uri)
            .header(header::CONTENT_TYPE, self.content_type);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let body = match &self.body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        request.body(Body::from(body)).unwrap()
    }
}

/// `299 - "text"`.
fn text_of_warning(header: &HeaderValue) -> String {
    let text = header.to_str().unwrap();
    let text = text.strip_prefix("299 - \"").unwrap();
    let text = text.strip_suffix('"').unwrap();
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// What the API server says.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

/// Who let it through, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// It was done.
    Nobody,
    /// The account has no such right.
    Rbac,
    /// The account has, and a policy forbids it.
    Policy,
    /// The API server takes no such request of anybody.
    Server,
}

impl Answer {
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// A policy refuses it in these words, or that of a neighbour: the server passes on the words of one.
    pub(crate) fn says(&self, message: &str) -> bool {
        self.message().contains(message) || self.message().contains("ValidatingAdmissionPolicy 'b-")
    }

    /// Of what others have written, the server lets nobody apply another value without force.
    pub(crate) fn is_conflict_of(&self, request: &Request) -> bool {
        let is_forced = request.uri.contains("force=true");
        self.code == 409 && request.content_type == APPLY && !is_forced
    }

    pub(crate) fn refused_by(&self) -> By {
        let message = self.message();
        match self.code {
            200..300 => By::Nobody,
            403 if message.contains(": ValidatingAdmissionPolicy '") => By::Policy,
            403 if message.contains(" is forbidden: User \"") => By::Rbac,
            _ => By::Server,
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Nobody => "-",
            Self::Rbac => "RBAC",
            Self::Policy => "policy",
            Self::Server => "server",
        })
    }
}
