use schemars::JsonSchema;
use serde::Serialize;

use super::{Endpoint, ProbeHandler};
use crate::config::read::Cursor;

/// A connection that is accepted, then closed. Nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TcpSocket {
    /// Where to connect.
    #[serde(flatten)]
    pub endpoint: Endpoint,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ProbeHandler> {
    cursor.mapping("tcpSocket", |fields| {
        let endpoint = Endpoint::read(fields);
        Some(ProbeHandler::TcpSocket(TcpSocket { endpoint }))
    })
}
