//! What a gate can ask, as validated values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::syntax::{
    ABSOLUTE_PATH, ARGUMENT, HEADER_NAME, HEADER_VALUE, HOST, JSON_POINTER, NETWORK_NAME,
    PLUGIN_TYPE, REQUEST_PATH, SEARCHED_TEXT, SOCKET_PATH,
};
use crate::syntax::{Each, Form};

/// What a gate asks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProbeHandler {
    /// The CNI configuration that the container runtime will load.
    CniConfig(CniConfig),
    /// An HTTP answer.
    HttpGet(HttpGet),
    /// A TCP port that accepts connections.
    TcpSocket(TcpSocket),
    /// The gRPC health service, `grpc.health.v1.Health/Check`.
    Grpc(Grpc),
    /// A program that exits with 0.
    Exec(Exec),
    /// A file that exists.
    File(FileCheck),
}

/// Expectations of the CNI configuration directory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default)]
pub struct CniConfig {
    /// The directory, as untaint sees it.
    #[schemars(transform = Form(&ABSOLUTE_PATH))]
    pub dir: PathBuf,
    /// The network's `name`; any if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", transform = Form(&NETWORK_NAME))]
    pub network: Option<String>,
    /// Plugin types that must all be in the chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = Each(&PLUGIN_TYPE))]
    pub plugins: Vec<String>,
    /// Each plugin's program must be in one of these, and executable; not checked if left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = Each(&ABSOLUTE_PATH))]
    pub bin_dirs: Vec<PathBuf>,
    /// Must be the file that the runtime picks.
    pub first: bool,
    /// Must have been written since the machine booted.
    pub newer_than_boot: bool,
}

impl Default for CniConfig {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("/etc/cni/net.d"),
            network: None,
            plugins: Vec::new(),
            bin_dirs: Vec::new(),
            first: false,
            newer_than_boot: false,
        }
    }
}

/// Where a network probe connects to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Endpoint {
    /// TCP.
    Tcp {
        /// By default the node itself, whose network untaint shares, and not a pod's address as in Kubernetes.
        #[schemars(default = "default_host", transform = Form(&HOST))]
        host: String,
        /// A port of that host.
        #[schemars(range(min = 1))]
        port: u16,
    },
    /// A socket in the file system.
    Unix {
        /// A unix socket, in place of `host` and `port`.
        #[serde(rename = "unixSocket")]
        #[schemars(transform = Form(&SOCKET_PATH))]
        path: PathBuf,
    },
}

/// Where probes connect to unless told otherwise.
pub(super) fn default_host() -> String {
    "127.0.0.1".into()
}

/// An HTTP GET and what its answer must be. The names are those of core/v1 `HTTPGetAction`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpGet {
    /// Where to connect.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// With or without TLS. Certificates are not verified, as with the kubelet.
    #[schemars(default)]
    pub scheme: Scheme,
    /// What is asked for, with or without a query.
    #[schemars(default = "default_path", transform = Form(&REQUEST_PATH))]
    pub path: String,
    /// Request headers, sent as given. `Host` sets the request's host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub http_headers: Vec<HttpHeader>,
    /// What the answer must be.
    #[schemars(default)]
    pub expect: Expect,
}

/// What is asked for unless told otherwise.
pub(super) fn default_path() -> String {
    "/".into()
}

/// `HTTP` or `HTTPS`, as in core/v1; HTTPS does not verify the certificate, like the kubelet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Scheme {
    /// Plain text.
    #[default]
    Http,
    /// TLS.
    Https,
}

/// One request header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HttpHeader {
    /// May stand more than once.
    #[schemars(transform = Form(&HEADER_NAME))]
    pub name: String,
    /// May be empty.
    #[schemars(transform = Form(&HEADER_VALUE))]
    pub value: String,
}

/// Conditions on an HTTP answer; all must hold.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default)]
pub struct Expect {
    /// Status codes such as `204`, or ranges such as `200-299`, from 100 to 599.
    #[schemars(length(min = 1))]
    pub status: Vec<StatusRange>,
    /// JSON pointers (RFC 6901) into the body, and the value that each must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = json_pointers)]
    pub json: BTreeMap<String, serde_json::Value>,
    /// Text that the body must contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("pattern" = SEARCHED_TEXT.pattern))]
    pub text: Option<String>,
}

impl JsonSchema for StatusRange {
    fn schema_name() -> Cow<'static, str> {
        "StatusRange".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": Self::LEAST,
            "maximum": Self::MOST,
            "pattern": "^[1-5][0-9][0-9]-[1-5][0-9][0-9]$",
        })
    }
}

fn json_pointers(schema: &mut Schema) {
    schema.insert("propertyNames".into(), JSON_POINTER.schema().into());
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: vec![StatusRange {
                first: 200,
                last: 299,
            }],
            json: BTreeMap::new(),
            text: None,
        }
    }
}

/// Status codes from `first` to `last`, both included; written `204` or `200-299`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    /// At least [`StatusRange::LEAST`].
    pub first: u16,
    /// At most [`StatusRange::MOST`].
    pub last: u16,
}

impl StatusRange {
    /// The first status code that there can be.
    pub const LEAST: u16 = 100;
    /// The last one.
    pub const MOST: u16 = 599;

    /// Whether `code` is one of these.
    pub fn contains(self, code: u16) -> bool {
        (self.first..=self.last).contains(&code)
    }
}

impl std::fmt::Display for StatusRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Serialize for StatusRange {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last {
            serializer.serialize_u16(self.first)
        } else {
            serializer.collect_str(self)
        }
    }
}

/// A TCP connection that is accepted, then closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TcpSocket {
    /// As for `httpGet`.
    #[schemars(default = "default_host", transform = Form(&HOST))]
    pub host: String,
    /// A port of that host.
    #[schemars(range(min = 1))]
    pub port: u16,
}

/// `grpc.health.v1.Health/Check`, plaintext; only `SERVING` opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Grpc {
    /// Where to connect.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// The service to ask for; `""` is the server as a whole.
    #[schemars(default)]
    pub service: String,
}

/// A program, run without a shell; exit code 0 opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Exec {
    /// The program's absolute path, then its arguments.
    #[schemars(length(min = 1), transform = Each(&ARGUMENT), extend("prefixItems" = [ABSOLUTE_PATH.schema()]))]
    pub command: Vec<String>,
}

/// A file, directory or socket that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileCheck {
    /// A file, directory or socket. A symbolic link counts as what it points to.
    #[schemars(transform = Form(&ABSOLUTE_PATH))]
    pub path: PathBuf,
    /// Must have been modified since the machine booted.
    #[schemars(default)]
    pub newer_than_boot: bool,
}
