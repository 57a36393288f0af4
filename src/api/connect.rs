//! The client: kube's layers on a connector of our own.
//!
//! kube's default connector speaks HTTP/1.1 only and leaves Nagle's algorithm on. That costs a PATCH 40 ms: its head and
//! its body are two segments, and the second waits for a delayed ACK. kube's retry layer is left out.

use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt;
use kube::client::middleware::{BaseUriLayer, ExtraHeadersLayer};
use kube::{Client, Config};
use tokio_rustls::rustls::pki_types::ServerName;
use tower::{BoxError, ServiceBuilder};

use super::resolver::{Resolver, resolver};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A half-open HTTP/2 connection is noticed after both.
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// HTTP/1.1 has no PING; TCP's keep-alive takes its place.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 2;
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(25);

/// Everything that a connection needs. Using it reads no file.
pub(super) struct ConnectionSettings {
    pub(super) url: Uri,
    base_uri: BaseUriLayer,
    headers: ExtraHeadersLayer,
    connector: HttpsConnector<HttpConnector<Resolver>>,
    /// The hash of the text of all files that these settings come from.
    pub(super) sha256: String,
}

impl ConnectionSettings {
    pub(super) fn new(mut config: Config, sha256: String) -> kube::Result<Self> {
        let user_agent = HeaderValue::from_static(crate::USER_AGENT);
        config.headers.push((http::header::USER_AGENT, user_agent));
        Ok(Self {
            base_uri: config.base_uri_layer(),
            headers: config.extra_headers_layer()?,
            connector: connector(&config)?,
            url: config.cluster_url,
            sha256,
        })
    }

    /// A client that has no connection yet. Call it on the runtime, because a client starts a task.
    pub(super) fn client(&self) -> Client {
        let transport = legacy::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            // By default, the pool drops a connection on which no request has started for 90 s, even with a watch on it.
            // A removal would then begin with a handshake. PINGs and keep-alive show whether the connection still works.
            .pool_idle_timeout(None)
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            .build(self.connector.clone());
        let service = ServiceBuilder::new()
            .layer(self.base_uri.clone())
            .layer(self.headers.clone())
            .map_err(BoxError::from)
            .service(transport);
        // Every request names its own namespace.
        Client::new(service, "default")
    }
}

/// Reads the machine's certificate authorities if `config` names none.
fn connector(config: &Config) -> kube::Result<HttpsConnector<HttpConnector<Resolver>>> {
    let mut http = HttpConnector::new_with_resolver(resolver());
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    http.set_keepalive(Some(KEEPALIVE_IDLE));
    http.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    http.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    http.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));

    let https = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    let https = match config.tls_server_name.clone().map(ServerName::try_from) {
        Some(name) => {
            let name = name.map_err(|error| kube::Error::Service(error.into()))?;
            https.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => https,
    };
    Ok(https.enable_http1().enable_http2().wrap_connector(http))
}
