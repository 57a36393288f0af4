//! A proxy that makes network faults. It works on bytes, so TLS passes through.

mod relay;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use tokio::sync::watch::Sender;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::DEADLINE;

/// What the proxy does with the traffic of new and open connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Passes everything on.
    Pass,
    /// Resets new connections at once. Open connections continue.
    Refuse,
    /// Accepts connections, and passes nothing on until the mode changes. What was sent before then arrives, as after a
    /// network partition.
    BlackHole,
    /// The same in one direction. The bytes in the other direction arrive.
    Swallow(Direction),
    /// Passes everything on after this time.
    Delay(Duration),
    /// Passes on so many bytes a second in each direction.
    Throttle(u32),
    /// Closes a connection after so many bytes in this direction, counted from when the mode was set or from the start
    /// of the connection.
    Cut(Direction, usize),
}

impl Mode {
    /// Whether no bytes arrive in this direction.
    fn swallows(self, direction: Direction) -> bool {
        self == Self::BlackHole || self == Self::Swallow(direction)
    }
}

/// The direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

/// A proxy in front of one server. It ends, and closes its connections, when it is dropped.
pub struct FaultProxy {
    address: SocketAddr,
    state: Sender<State>,
    bytes_to_clients: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// Shared by the owner and its connections.
#[derive(Debug, Clone, Copy)]
struct State {
    mode: Mode,
    /// Counts the calls that set a mode, each of which starts the count of bytes again.
    settings: usize,
    /// Counts the calls that reset all connections.
    resets: usize,
    /// The number of connections so far, including refused ones.
    connections: usize,
}

impl FaultProxy {
    /// Listens on a free port of 127.0.0.1.
    pub async fn start(upstream: SocketAddr) -> Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), upstream).await
    }

    /// Listens on a free port of this address.
    pub async fn start_at(address: IpAddr, upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let address = listener.local_addr()?;
        let state = Sender::new(State {
            mode: Mode::Pass,
            settings: 0,
            resets: 0,
            connections: 0,
        });
        let bytes_to_clients = Arc::default();
        let mut task = JoinSet::new();
        let bytes = Arc::clone(&bytes_to_clients);
        task.spawn(accept(listener, upstream, state.clone(), bytes));
        Ok(Self {
            address,
            state,
            bytes_to_clients,
            _task: task,
        })
    }

    /// Where clients connect; see [`point_at`](crate::kubeconfig::point_at).
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, mode: Mode) {
        self.state.send_modify(|state| {
            state.mode = mode;
            state.settings += 1;
        });
    }

    /// Resets every connection that is open now (RST, to both sides).
    pub fn reset_connections(&self) {
        self.state.send_modify(|state| state.resets += 1);
    }

    /// The number of connections so far, including refused ones.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state.borrow().connections
    }

    /// The number of bytes that the clients have received so far, with TLS.
    #[must_use]
    pub fn bytes_to_clients(&self) -> usize {
        self.bytes_to_clients.load(Ordering::Relaxed)
    }

    /// Waits until there have been so many connections; fails after [`DEADLINE`].
    pub async fn wait_for_connections(&self, count: usize) -> Result<()> {
        let mut state = self.state.subscribe();
        timeout(DEADLINE, state.wait_for(|state| state.connections >= count))
            .await
            .with_context(|| format!("{} connections, not {count}", self.connections()))??;
        Ok(())
    }
}

async fn accept(
    listener: TcpListener,
    upstream: SocketAddr,
    state: Sender<State>,
    bytes_to_clients: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        state.send_modify(|state| state.connections += 1);
        let (state, bytes) = (state.subscribe(), Arc::clone(&bytes_to_clients));
        // The client sees how a connection ends.
        connections.spawn(async move { drop(relay::relay(client, upstream, state, &bytes).await) });
    }
}
