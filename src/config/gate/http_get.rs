mod expect;
mod url;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Endpoint, ProbeHandler};
use crate::config::read::Cursor;
use crate::syntax::{Form, HEADER_NAME, HEADER_VALUE, REQUEST_PATH};

pub use expect::{Expect, StatusRange};

/// An HTTP GET and what its answer must be. The names are those of core/v1 `HTTPGetAction`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpGet {
    /// Where to connect.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// With or without TLS. Like the kubelet, untaint does not verify certificates.
    #[schemars(default)]
    pub scheme: Scheme,
    /// The path of the request, with or without a query.
    #[schemars(default = "default_path", transform = Form(&REQUEST_PATH))]
    pub path: String,
    /// Headers of the request, which untaint sends unchanged. `Host` sets the request's host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub http_headers: Vec<HttpHeader>,
    /// What the answer must be.
    #[schemars(default)]
    pub expect: Expect,
}

fn default_path() -> String {
    "/".into()
}

/// As in core/v1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Scheme {
    /// Plain text.
    #[default]
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    pub(crate) fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// One request header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HttpHeader {
    /// Several headers may have the same name.
    #[schemars(transform = Form(&HEADER_NAME))]
    pub name: String,
    /// The value of the header; may be empty.
    #[schemars(transform = Form(&HEADER_VALUE))]
    pub value: String,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ProbeHandler> {
    const SCHEMES: [(&str, Scheme); 2] = [("HTTP", Scheme::Http), ("HTTPS", Scheme::Https)];
    cursor.mapping("httpGet", |fields| {
        Some(ProbeHandler::HttpGet(HttpGet {
            endpoint: Endpoint::read(fields),
            scheme: fields.or("scheme", Scheme::Http, |scheme| scheme.word(&SCHEMES)),
            path: fields.or("path", default_path(), |path| path.text(&REQUEST_PATH)),
            http_headers: fields.or("httpHeaders", Vec::new(), |headers| {
                headers.secret().list(header)
            }),
            expect: fields.or("expect", Expect::default(), Expect::read),
        }))
    })
}

fn header(cursor: &Cursor<'_>) -> Option<HttpHeader> {
    cursor.mapping("a header", |fields| {
        Some(HttpHeader {
            name: fields.required("name", |name| name.text(&HEADER_NAME)),
            value: fields.required("value", |value| value.text(&HEADER_VALUE)),
        })
    })
}
