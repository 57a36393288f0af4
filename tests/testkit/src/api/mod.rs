//! A stand-in for the API server, in this process, with Nodes, `CSINode`s and the faults that a test asks for.
//!
//! The test `api_stand_in` compares its status codes and messages with those of the real API server. Unlike the real
//! server, it adds no taint to a new Node, keeps no managed fields, has no `nodes/status`, and accepts only JSON Patch.

mod contents;
mod handle;
mod object;
mod patch;
mod request;
mod route;
mod script;
mod serve;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod upstream;
mod watch;

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::net::TcpListener;
use tokio::sync::watch::Sender;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

pub use self::object::{CSI_NODES, NODES, Resource};
pub use self::request::Request;
pub use self::route::Verb;
use self::script::Script;
pub use self::script::{Answer, Reply};
use self::status::{Status, error_event};
pub use self::store::Revision;
use self::store::Store;
use self::upstream::Upstream;
use crate::DEADLINE;
use crate::cluster::Cluster;
use crate::kubeconfig::{self, Credentials};
use crate::tls::{self, Authority};

/// The token in the kubeconfig files of the stand-in.
pub const TOKEN: &str = "stand-in";

/// The features of the stand-in.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether it uses TLS. The default is true.
    pub tls: bool,
    /// Whether it offers HTTP/2, by ALPN or, without TLS, by prior knowledge. The default is true.
    pub http2: bool,
    /// Whether it accepts `sendInitialEvents`, as a server with the feature gate `WatchList` does. The default is true.
    pub streaming_lists: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tls: true,
            http2: true,
            streaming_lists: true,
        }
    }
}

/// The stand-in; ends when dropped.
pub struct ApiServer {
    address: SocketAddr,
    options: Options,
    authority: Mutex<Authority>,
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

/// Shared by the owner and its connections.
struct Shared {
    streaming_lists: bool,
    /// Whether `dryRun` has an effect.
    dry_runs: AtomicBool,
    http2: bool,
    /// `None` if the stand-in executes requests itself.
    upstream: Option<Upstream>,
    store: Sender<Store>,
    requests: Sender<Vec<Request>>,
    script: Mutex<Script>,
    /// `None` if it accepts every token.
    tokens: Mutex<Option<HashSet<String>>>,
    /// `None` without TLS.
    tls: Mutex<Option<TlsAcceptor>>,
    /// Counts the calls that reset all connections.
    resets: Sender<usize>,
}

impl ApiServer {
    /// Listens on a free port of 127.0.0.1.
    pub async fn start(options: Options) -> Result<Self> {
        Self::start_with(options, None).await
    }

    /// A man in the middle: a real server executes every request for which the test gives no answer. It has its own
    /// certificates and holds no objects.
    pub async fn before(cluster: &Cluster) -> Result<Self> {
        let upstream = Upstream::new(cluster).await?;
        Self::start_with(Options::default(), Some(upstream)).await
    }

    async fn start_with(options: Options, upstream: Option<Upstream>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let authority = Authority::new()?;
        let shared = Arc::new(Shared {
            streaming_lists: options.streaming_lists,
            dry_runs: AtomicBool::new(true),
            http2: options.http2,
            upstream,
            store: Sender::new(Store::new()),
            requests: Sender::new(Vec::new()),
            script: Mutex::default(),
            tokens: Mutex::default(),
            tls: Mutex::new(acceptor(&options, &authority, Duration::ZERO)?),
            resets: Sender::new(0),
        });
        let mut task = JoinSet::new();
        task.spawn(serve::accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            options,
            authority: Mutex::new(authority),
            shared,
            _task: task,
        })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Writes a kubeconfig file, `ca.crt` and `token` into `dir`, and returns the path of the kubeconfig file.
    pub fn kubeconfig(&self, dir: &Path) -> Result<PathBuf> {
        let scheme = if self.options.tls { "https" } else { "http" };
        let url = format!("{scheme}://{}", self.address);
        let authority = self.options.tls.then(|| self.authority());
        let credentials = Credentials::Token(TOKEN);
        kubeconfig::write(dir, &url, authority.as_deref(), &credentials)
    }

    /// The certificate of its authority, in PEM.
    #[must_use]
    pub fn authority(&self) -> String {
        self.authority.lock().unwrap().pem()
    }

    /// Changes the authority and the server certificate. Open connections stay open.
    pub fn rotate_certificates(&self) -> Result<()> {
        let authority = Authority::new()?;
        *self.shared.tls.lock().unwrap() = acceptor(&self.options, &authority, Duration::ZERO)?;
        *self.authority.lock().unwrap() = authority;
        Ok(())
    }

    /// Changes to a server certificate that becomes valid after `time`.
    pub fn take_certificate_valid_in(&self, time: Duration) -> Result<()> {
        let authority = self.authority.lock().unwrap();
        *self.shared.tls.lock().unwrap() = acceptor(&self.options, &authority, time)?;
        Ok(())
    }

    /// From now on, answers 401 to requests without one of these bearer tokens.
    pub fn accept_tokens(&self, tokens: &[&str]) {
        let tokens = tokens.iter().map(ToString::to_string).collect();
        *self.shared.tokens.lock().unwrap() = Some(tokens);
    }

    /// All requests so far, in the order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.borrow().clone()
    }

    /// Waits until `wanted` is true for the requests, and returns them; fails after [`DEADLINE`].
    pub async fn wait_for_requests(
        &self,
        mut wanted: impl FnMut(&[Request]) -> bool,
    ) -> Result<Vec<Request>> {
        let mut requests = self.shared.requests.subscribe();
        match timeout(DEADLINE, requests.wait_for(|all| wanted(all))).await {
            Ok(found) => Ok(found?.clone()),
            Err(_) => Err(anyhow!("requests so far: {:#?}", self.requests())),
        }
    }

    /// Sets the answer to the next `count` requests with this verb. Several answers for one verb are used in order.
    pub fn respond_next(&self, verb: Verb, count: usize, answer: Answer) {
        self.respond_next_to(verb, "", count, answer);
    }

    /// The same for requests whose path ends with `path`.
    pub fn respond_next_to(&self, verb: Verb, path: &str, count: usize, answer: Answer) {
        let mut script = self.shared.script.lock().unwrap();
        script.add(verb, path, count, answer);
    }

    /// Forgets the answers that were set and not used.
    pub fn respond_as_usual(&self) {
        self.shared.script.lock().unwrap().clear();
    }

    /// Executes requests with `dryRun` like others. No known server does that.
    pub fn ignore_dry_runs(&self) {
        self.shared.dry_runs.store(false, Ordering::Relaxed);
    }

    /// Ends every watch cleanly, as after `timeoutSeconds`.
    pub fn end_watches(&self) {
        self.write(|store| store.epoch += 1);
    }

    /// Ends every watch by an `ERROR` event with code 410, as when etcd has been compacted.
    pub fn expire_watches(&self) {
        self.write(|store| {
            store.farewell = Some(error_event(&Status::expired(1, 2)));
            store.epoch += 1;
        });
    }

    /// Holds events back from the watches, so that answers to other requests overtake them, or lets them go on.
    pub fn pause_watches(&self, paused: bool) {
        self.write(|store| store.paused = paused);
    }

    /// Sends a bookmark to every watch that allows it.
    pub fn send_bookmark(&self) {
        self.write(Store::bookmark);
    }

    /// Makes every resourceVersion up to now too old to start a watch from.
    pub fn forget_history(&self) {
        self.write(Store::forget);
    }

    /// Resets every connection that is open now.
    pub fn reset_connections(&self) {
        self.shared.resets.send_modify(|count| *count += 1);
    }

    fn write<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        self.shared.write(change)
    }
}

impl Shared {
    /// Changes the store and wakes who waits for it.
    fn write<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let mut outcome = None;
        self.store
            .send_modify(|store| outcome = Some(change(store)));
        outcome.expect("send_modify calls its closure")
    }
}

fn acceptor(
    options: &Options,
    authority: &Authority,
    valid_in: Duration,
) -> Result<Option<TlsAcceptor>> {
    if !options.tls {
        return Ok(None);
    }
    let certified = authority.server(&["127.0.0.1", "::1", "localhost"], valid_in)?;
    let protocols: &[&str] = if options.http2 {
        &["h2", "http/1.1"]
    } else {
        &["http/1.1"]
    };
    let config = tls::server_config(&certified, protocols)?;
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}
