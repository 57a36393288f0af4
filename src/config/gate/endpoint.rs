use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::read::Fields;
use crate::syntax::{Form, HOST, SOCKET_PATH};

/// Where a network probe connects to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Endpoint {
    /// A TCP port.
    Tcp {
        /// The host to connect to. The default is the node itself, not the address of a pod as in Kubernetes.
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

fn default_host() -> String {
    "127.0.0.1".into()
}

impl Endpoint {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        if let Some(socket) = fields.find("unixSocket") {
            let others = ["host", "port"].map(|name| fields.find(name));
            for other in others.iter().flatten() {
                other.report_key("cannot be used together with unixSocket");
            }
            let path = socket.text(&SOCKET_PATH).unwrap_or_default().into();
            return Self::Unix { path };
        }
        let host = fields.or("host", default_host(), |host| host.text(&HOST));
        let port = fields.demand("port", "is missing; give port or unixSocket");
        let port = port.and_then(|port| port.whole_number(&(1..=u16::MAX.into())));
        let port = port.and_then(|port| u16::try_from(port).ok());
        let port = port.unwrap_or_default();
        Self::Tcp { host, port }
    }
}
