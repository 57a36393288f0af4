use schemars::JsonSchema;
use serde::Serialize;

use super::ProbeHandler;
use super::endpoint::{default_host, read_tcp};
use crate::config::read::Cursor;
use crate::syntax::{Form, HOST};

/// A TCP connection that is accepted, then closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TcpSocket {
    /// The host to connect to. The default is the node itself, as for `httpGet`.
    #[schemars(default = "default_host", transform = Form(&HOST))]
    pub host: String,
    /// A port of that host.
    #[schemars(range(min = 1))]
    pub port: u16,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ProbeHandler> {
    cursor.mapping("tcpSocket", |fields| {
        let (host, port) = read_tcp(fields, "is missing");
        Some(ProbeHandler::TcpSocket(TcpSocket { host, port }))
    })
}
