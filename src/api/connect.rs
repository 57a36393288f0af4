//! The client: kube's configuration and layers on a connector of our own.
//!
//! kube's default connector leaves Nagle's algorithm on, which costs a PATCH 40 ms (its head and body are two
//! segments, and the second waits for a delayed ACK), and speaks HTTP/1.1 only. Its retry layer is left out.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use secrecy::ExposeSecret;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;
use tower::{BoxError, ServiceBuilder, service_fn};

use super::name::resolve;
use super::{ApiError, Source};
use crate::text::printable;
use crate::text_file;

/// For a kubeconfig, a token and certificates, which are small files.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A half-open connection is noticed after an interval and a time-out.
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for HTTP/1.1, which has no PING: idle time, then probes, then the end.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 2;
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(25);

/// Reads the credentials and builds a client that has no connection yet, for the server at this URL. On another thread, since what is read may lie on
/// a file system that hangs; later, kube reads a token file again about once a minute, on the thread of the request.
pub(super) async fn client(
    source: &Source,
    reading: &Arc<Mutex<()>>,
) -> Result<(Client, Uri), ApiError> {
    let (source, runtime, reading) = (source.clone(), Handle::current(), Arc::clone(reading));
    let read = async {
        let held = reading.lock_owned().await;
        let read = spawn_blocking(move || {
            let _held = held;
            // A client starts tasks of its own.
            let _guard = runtime.enter();
            let config = runtime.block_on(read(&source))?;
            let url = config.cluster_url.clone();
            let client = build(config).map_err(|error| first_line(&error))?;
            Ok((client, url))
        });
        read.await.unwrap_or_else(|error| Err(first_line(&error)))
    };
    let too_long = |_| Err("reading them takes too long".into());
    timeout(READ_TIMEOUT, read)
        .await
        .unwrap_or_else(too_long)
        .map_err(ApiError::Credentials)
}

async fn read(source: &Source) -> Result<Config, String> {
    let path = match source {
        Source::InCluster => {
            return Config::incluster().map_err(|error| {
                format!("{error}; outside a pod with a ServiceAccount token, name a kubeconfig with --kubeconfig")
            });
        }
        Source::Kubeconfig(path) => path,
    };
    from_file(path)
        .await
        .map_err(|error| format!("{}: {error}", path.display()))
}

async fn from_file(path: &Path) -> Result<Config, String> {
    // kube reads without a limit, and panics at UTF-16 of an odd length.
    text_file::read(path)?;
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| first_line(&error))?;
    refuse(&kubeconfig)?;
    for file in files(&kubeconfig) {
        text_file::read(Path::new(file)).map_err(|error| format!("{file} {error}"))?;
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| first_line(&error))?;
    let url = &config.cluster_url;
    let user = url
        .authority()
        .filter(|authority| authority.as_str().contains('@'));
    if user.is_some() || url.query().is_some() {
        return Err("a server with a user or a query in its URL is not supported".into());
    }
    match url.scheme_str() {
        Some("http" | "https") => Ok(config),
        _ => Err(format!("server {url} is not an http or https URL")),
    }
}

/// What kube will read for the current context, without a limit, and some of it on the thread of a request.
fn files(kubeconfig: &Kubeconfig) -> impl Iterator<Item = &String> {
    let current = kubeconfig.current_context.as_ref();
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|context| Some(&context.name) == current);
    let context = context.and_then(|named| named.context.as_ref());
    let cluster = context.and_then(|context| {
        let mut clusters = kubeconfig.clusters.iter();
        let named = clusters.find(|named| named.name == context.cluster)?;
        named.cluster.as_ref()
    });
    let user = context.and_then(|context| {
        let mut users = kubeconfig.auth_infos.iter();
        let named = users.find(|named| Some(&named.name) == context.user.as_ref())?;
        named.auth_info.as_ref()
    });
    let authority = cluster.map(|cluster| &cluster.certificate_authority);
    let own = user.map(|user| [&user.client_certificate, &user.client_key, &user.token_file]);
    authority
        .into_iter()
        .chain(own.into_iter().flatten())
        .flatten()
}

/// What would be ignored, or would harm: a plugin may hang or flood, and kube runs it on the spot.
fn refuse(kubeconfig: &Kubeconfig) -> Result<(), String> {
    // Not `Config::proxy_url`, which the environment sets too: HTTPS_PROXY is for the world outside the cluster.
    let mut clusters = kubeconfig.clusters.iter().flat_map(|named| &named.cluster);
    if clusters.any(|cluster| cluster.proxy_url.is_some()) {
        return Err("proxy-url is not supported".into());
    }
    for user in kubeconfig
        .auth_infos
        .iter()
        .flat_map(|named| &named.auth_info)
    {
        if user.exec.is_some() || user.auth_provider.is_some() {
            return Err("exec and auth-provider are not supported; give a token, a tokenFile or a certificate".into());
        }
        let secrets = [&user.token, &user.password].into_iter().flatten();
        let words = secrets
            .map(ExposeSecret::expose_secret)
            .chain(user.username.as_deref());
        if words
            .into_iter()
            .any(|word| word.contains(|c: char| c.is_control()))
        {
            return Err(
                "a token, user name or password has a control character, such as a line break"
                    .into(),
            );
        }
    }
    Ok(())
}

/// Later lines quote the file, secrets and all.
fn first_line(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    printable(text.lines().next().unwrap_or_default(), 300)
}

fn build(mut config: Config) -> kube::Result<Client> {
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(crate::USER_AGENT)));
    let mut http = HttpConnector::new_with_resolver(service_fn(resolve));
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
    let connector = https.enable_http1().enable_http2().wrap_connector(http);

    let transport = legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        // By default a connection that no request was started on for 90 s is not used again, even with a watch on it;
        // a removal would begin with a handshake. PINGs and keep-alive tell whether it still works.
        .pool_idle_timeout(None)
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(transport);
    Ok(Client::new(service, config.default_namespace))
}
