//! The client: kube's layers on a connector of our own.
//!
//! kube's default connector leaves Nagle's algorithm on, which costs a PATCH 40 ms (its head and body are two
//! segments, and the second waits for a delayed ACK), and speaks HTTP/1.1 only. Its retry layer is left out.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt;
use kube::{Client, Config};
use tokio_rustls::rustls::pki_types::ServerName;
use tower::{BoxError, ServiceBuilder};

use super::credentials::Settings;
use super::name::{Resolver, resolver};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A half-open connection is noticed after an interval and a time-out.
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for HTTP/1.1, which has no PING: idle time, then probes, then the end.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 2;
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(25);

/// Makes connections.
pub(super) type Connector = HttpsConnector<HttpConnector<Resolver>>;

/// The connector for the server of `config`. Where that names no certificate authority, it reads the machine's.
pub(super) fn connector(config: &Config) -> kube::Result<Connector> {
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
    let https = match config.tls_server_name.clone() {
        Some(name) => {
            let name =
                ServerName::try_from(name).map_err(|error| kube::Error::Service(error.into()))?;
            https.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => https,
    };
    Ok(https.enable_http1().enable_http2().wrap_connector(http))
}

/// A client that has no connection yet. Reads nothing. To be called on the runtime: a client starts a task of its own.
pub(super) fn client(settings: &Settings) -> Client {
    let transport = legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        // By default a connection that no request was started on for 90 s is not used again, even with a watch on it;
        // a removal would begin with a handshake. PINGs and keep-alive tell whether it still works.
        .pool_idle_timeout(None)
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(settings.connector.clone());
    let service = ServiceBuilder::new()
        .layer(settings.base_uri.clone())
        .layer(settings.headers.clone())
        .map_err(BoxError::from)
        .service(transport);
    // Every request names its namespace itself.
    Client::new(service, "default")
}
