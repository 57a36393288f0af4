//! A health endpoint whose status a test or the demo sets.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use http::{Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::DEADLINE;

/// Answers every request with one status; ends when dropped.
pub struct HealthEndpoint {
    address: SocketAddr,
    state: watch::Sender<State>,
    _task: JoinSet<()>,
}

#[derive(Clone, Copy)]
struct State {
    status: StatusCode,
    requests: usize,
}

impl HealthEndpoint {
    /// Listens on a free port of 127.0.0.1.
    pub async fn start(status: u16) -> Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), status).await
    }

    /// Listens on a free port of this address alone.
    pub async fn start_at(address: IpAddr, status: u16) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let address = listener.local_addr()?;
        let state = watch::Sender::new(State {
            status: StatusCode::from_u16(status)?,
            requests: 0,
        });
        let mut task = JoinSet::new();
        task.spawn(serve(listener, state.clone()));
        Ok(Self {
            address,
            state,
            _task: task,
        })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Answers with `status` from now on.
    pub fn set(&self, status: u16) {
        let status = StatusCode::from_u16(status).expect("a status code");
        self.state.send_modify(|state| state.status = status);
    }

    /// The number of requests so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.state.borrow().requests
    }

    /// Waits for `more` requests after this call; fails after [`DEADLINE`].
    pub async fn wait_for_requests(&self, more: usize) -> Result<()> {
        let wanted = self.requests() + more;
        let mut state = self.state.subscribe();
        timeout(DEADLINE, state.wait_for(|state| state.requests >= wanted))
            .await
            .with_context(|| format!("{} requests instead of {wanted}", self.requests()))??;
        Ok(())
    }
}

async fn serve(listener: TcpListener, state: watch::Sender<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        connections.spawn(async move {
            let answer = service_fn(move |_| {
                state.send_modify(|state| state.requests += 1);
                let mut response = Response::new(Empty::<Bytes>::new());
                *response.status_mut() = state.borrow().status;
                async move { Ok::<_, Infallible>(response) }
            });
            // A probe may close the connection early.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}
