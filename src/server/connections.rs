//! Accepts connections. Their number is limited, so that they do not harm the main job. The newest come first.

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

const MAX_CONNECTIONS: u64 = 32;
/// One of so many open files may be a connection. The others are for the main job.
const FILES_PER_CONNECTION: u64 = 8;
/// Connections that wait in the kernel to be accepted, if it allows so many. A client that finds no room there tries again
/// after a second, which is too late for a probe.
const QUEUE: u32 = 1024;
/// For the whole connection, which serves one request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// For the head of the request, which a well-behaved client sends at once.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1);
/// In bytes. This is the smallest limit of hyper, and enough for a GET.
const MAX_HEAD: usize = 8192;
const LISTEN_RETRY: Duration = Duration::from_secs(5);
/// Accepting fails while the process has no free file descriptor.
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// Serves without end. If the port is in use, logs that and tries again: the main job does not depend on the server.
pub async fn serve(address: SocketAddr, sources: Sources) {
    let listener = listen(address).await;
    let mut connections = Connections::default();
    let mut failure = RepeatFilter::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connections.serve(stream, &sources).await,
            // Only that connection failed.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if failure.should_log(Instant::now(), &error.to_string()) {
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
            Err(error) if failure.should_log(Instant::now(), &error.to_string()) => {
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
    // Connections of the previous agent do not keep the port in use.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// The oldest first.
    handles: VecDeque<AbortHandle>,
}

impl Connections {
    /// Serves one more connection. At the limit, the oldest one ends for it: a well-behaved client was answered long before,
    /// and slow clients cannot keep out a probe or a person.
    async fn serve(&mut self, stream: TcpStream, sources: &Sources) {
        self.handles.retain(|handle| !handle.is_finished());
        let limit = limit();
        while self.handles.len() >= limit {
            if let Some(oldest) = self.handles.pop_front() {
                oldest.abort();
            }
        }
        // An aborted task still holds its connection until it ends.
        while self.tasks.len() >= limit {
            let _ = self.tasks.join_next().await;
        }
        let serving = timeout(CONNECTION_TIMEOUT, connection(stream, sources.clone()));
        let handle = self.tasks.spawn(async {
            let _ = serving.await;
        });
        self.handles.push_back(handle);
    }
}

fn limit() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let limit = (files / FILES_PER_CONNECTION).clamp(1, MAX_CONNECTIONS);
    usize::try_from(limit).unwrap_or(1)
}

async fn connection(stream: TcpStream, sources: Sources) {
    let address = stream.local_addr();
    let over_loopback = address.is_ok_and(|address| address.ip().to_canonical().is_loopback());
    let service = service_fn(move |request| {
        let sources = sources.clone();
        async move { Ok::<_, Infallible>(answer(&request, over_loopback, &sources).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        // There are no idle connections to limit.
        .keep_alive(false)
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection broke");
    }
}
