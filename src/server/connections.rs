//! Who is served: so many connections that they do the main job no harm, and the newest rather than the oldest.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::{Sources, answer};
use crate::rate_limit::RepeatFilter;

/// Connections at a time, at most.
const MAX_CONNECTIONS: u64 = 32;
/// At most this part of the files that the process may have open are connections; the others are for the main job.
const FILES_PER_CONNECTION: u64 = 8;
/// Connections that wait in the kernel to be accepted, where it allows so many. Whoever finds no room there tries again
/// only after a second, which is too late for a probe.
const QUEUE: u32 = 1024;
/// From a connection's start to its end: it serves one request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// For the head of the request, which a client that is not up to mischief sends at once.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1);
/// Smallest that hyper allows, in bytes, and plenty for a GET.
const MAX_HEAD: usize = 8192;
/// Between tries to listen.
const LISTEN_RETRY: Duration = Duration::from_secs(5);
/// Before the next try to accept where that failed, as it does without a file descriptor to spare.
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// Serves for ever. A port in use is told and tried again: the main job does not depend on it.
pub async fn serve(address: SocketAddr, sources: Sources) {
    let listener = listen(address).await;
    let mut connections = Connections::default();
    let mut failure = RepeatFilter::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connections.serve(stream, &sources).await,
            // About that connection alone.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if failure.is_news(Instant::now(), &error.to_string()) {
                    warn!(%error, "failed to accept a connection; trying again");
                }
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn listen(address: SocketAddr) -> TcpListener {
    let mut failure = RepeatFilter::default();
    loop {
        match bind(address).and_then(|listener| Ok((listener.local_addr()?, listener))) {
            Ok((address, listener)) => {
                info!(%address, "listening");
                return listener;
            }
            Err(error) if failure.is_news(Instant::now(), &error.to_string()) => {
                warn!(%address, %error, "failed to listen; trying again");
            }
            Err(_) => {}
        }
        sleep(LISTEN_RETRY).await;
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // What is left of the connections of the agent before this one does not hold the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

/// The connections that are served.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// Of the tasks, the oldest first.
    handles: VecDeque<AbortHandle>,
}

impl Connections {
    /// Serves one more. Where there are enough already, the oldest ends for it: whoever means well has been answered
    /// long before, and a probe or a person gets through however many slow clients there are.
    async fn serve(&mut self, stream: TcpStream, sources: &Sources) {
        self.handles.retain(|handle| !handle.is_finished());
        let most = most();
        while self.handles.len() >= most {
            if let Some(oldest) = self.handles.pop_front() {
                oldest.abort();
            }
        }
        // Its end is waited for, so that there are never more.
        while self.tasks.len() >= most {
            let _ = self.tasks.join_next().await;
        }
        let serving = timeout(CONNECTION_TIMEOUT, connection(stream, sources.clone()));
        let handle = self.tasks.spawn(async {
            let _ = serving.await;
        });
        self.handles.push_back(handle);
    }
}

fn most() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = (files / FILES_PER_CONNECTION).clamp(1, MAX_CONNECTIONS);
    usize::try_from(most).unwrap_or(1)
}

async fn connection(stream: TcpStream, sources: Sources) {
    let over_loopback = is_loopback(stream.local_addr());
    let service = service_fn(move |request| {
        let sources = sources.clone();
        async move { Ok::<_, Infallible>(answer(&request, over_loopback, &sources).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        // So that there is no idle connection to limit.
        .keep_alive(false)
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection broke");
    }
}

fn is_loopback(address: io::Result<SocketAddr>) -> bool {
    address.is_ok_and(|address| address.ip().to_canonical().is_loopback())
}
