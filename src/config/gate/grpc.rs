use schemars::JsonSchema;
use serde::Serialize;

use super::{Endpoint, ProbeHandler};
use crate::config::read::Cursor;

/// `grpc.health.v1.Health/Check` without TLS. Only `SERVING` opens the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Grpc {
    /// Where to connect.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// The service to ask for; `""` is the server as a whole.
    #[schemars(default)]
    pub service: String,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ProbeHandler> {
    cursor.mapping("grpc", |fields| {
        Some(ProbeHandler::Grpc(Grpc {
            endpoint: Endpoint::read(fields),
            service: fields.or("service", "", Cursor::string).to_owned(),
        }))
    })
}
