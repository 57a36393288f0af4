//! What a gate can ask, as validated values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

/// What a gate asks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Check {
    /// The CNI configuration that the container runtime will load.
    CniConfig(CniConfig),
    /// An HTTP answer.
    HttpGet(HttpGet),
    /// A TCP port that accepts.
    TcpSocket(TcpSocket),
    /// `grpc.health.v1.Health/Check`.
    Grpc(Grpc),
    /// A program that exits with 0.
    Exec(Exec),
    /// A file that exists.
    File(FileCheck),
}

/// Expectations of the CNI configuration directory.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CniConfig {
    /// Default `/etc/cni/net.d`.
    pub dir: PathBuf,
    /// The network's `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Plugin types that must be in the chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<String>,
    /// Each plugin's program must exist and be executable in one of these. Empty: not checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bin_dirs: Vec<PathBuf>,
    /// Must be the file that the runtime picks.
    pub first: bool,
    /// Must have been written since this boot.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Endpoint {
    /// TCP. `host` is `127.0.0.1` by default, not a pod's address: the agent shares the node's network.
    Tcp {
        /// A name or an address, IPv6 without brackets.
        host: String,
        /// 1 to 65535.
        port: u16,
    },
    /// A unix socket, given as `unixSocket`.
    Unix {
        /// Absolute path.
        #[serde(rename = "unixSocket")]
        path: PathBuf,
    },
}

/// An HTTP GET and what its answer must be. The names are those of core/v1 `HTTPGetAction`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpGet {
    /// Where to connect.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// Default `HTTP`.
    pub scheme: Scheme,
    /// Path and query; default `/`.
    pub path: String,
    /// Sent as given; `Host` sets the request's host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http_headers: Vec<HttpHeader>,
    /// What the answer must be.
    pub expect: Expect,
}

/// `HTTP` or `HTTPS`, as in core/v1; HTTPS does not verify the certificate, like the kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Scheme {
    /// Plain text.
    Http,
    /// TLS, unverified.
    Https,
}

/// One request header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HttpHeader {
    /// A header field name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Conditions on an HTTP answer; all must hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Expect {
    /// Accepted status codes; default 200-299.
    pub status: Vec<StatusRange>,
    /// RFC 6901 JSON pointers into the body, and the value each must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub json: BTreeMap<String, serde_json::Value>,
    /// Text that the body must contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
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
    /// At least 100.
    pub first: u16,
    /// At most 599.
    pub last: u16,
}

impl StatusRange {
    /// Whether `code` is one of these.
    #[must_use]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TcpSocket {
    /// Default `127.0.0.1`.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
}

/// `grpc.health.v1.Health/Check`, plaintext; only `SERVING` opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grpc {
    /// Where to connect.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// The service to ask for; empty: the server as a whole.
    pub service: String,
}

/// A program, run without a shell; exit code 0 opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exec {
    /// Program and arguments; the program is an absolute path.
    pub command: Vec<String>,
}

/// A file, directory or socket that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileCheck {
    /// Absolute path. A symbolic link counts as what it points to.
    pub path: PathBuf,
    /// Must have been modified since this boot.
    pub newer_than_boot: bool,
}
