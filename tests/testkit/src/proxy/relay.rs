//! One connection through the proxy.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;
use tokio::time::{sleep, timeout};

use super::{Direction, Mode, State};

/// Ends with the connection. Counts the bytes to the client.
pub(super) async fn relay(
    mut client: TcpStream,
    upstream: SocketAddr,
    mut state: Receiver<State>,
    bytes_to_client: &AtomicUsize,
) -> io::Result<()> {
    let unread = AtomicUsize::default();
    let State { mode, resets, .. } = *state.borrow_and_update();
    if mode == Mode::Refuse {
        return client.set_zero_linger();
    }
    let mut reset = state.clone();
    let mut reset = std::pin::pin!(reset.wait_for(|state| state.resets > resets));

    // The server must not notice a black hole, either.
    tokio::select! {
        _ = state.wait_for(|state| !state.mode.swallows(Direction::ToServer)) => {}
        _ = &mut reset => return client.set_zero_linger(),
    }
    let mut server = TcpStream::connect(upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;

    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        ended = async {
            tokio::try_join!(
                pump(from_client, to_server, Direction::ToServer, state.clone(), &unread),
                pump(from_server, to_client, Direction::ToClient, state.clone(), bytes_to_client),
            )
        } => ended.map(drop),
        _ = &mut reset => {
            client.set_zero_linger()?;
            server.set_zero_linger()
        }
    }
}

/// Passes on bytes and their end. An error ends the whole connection.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    direction: Direction,
    mut state: Receiver<State>,
    bytes: &AtomicUsize,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    let mut settings = state.borrow().settings;
    let mut handed_on = 0;
    loop {
        let read = from.read(&mut buffer).await?;
        // The proxy lives longer than its connections, so this cannot fail while it is needed.
        let passing = state.wait_for(|state| !state.mode.swallows(direction));
        let current = *passing.await.map_err(io::Error::other)?;
        if current.settings != settings {
            settings = current.settings;
            handed_on = 0;
        }
        if let Mode::Delay(delay) = current.mode {
            sleep(delay).await;
        }
        if read == 0 {
            return to.shutdown().await;
        }
        let allowed = match current.mode {
            Mode::Cut(of, limit) if of == direction => read.min(limit.saturating_sub(handed_on)),
            _ => read,
        };
        let mut rest = &buffer[..allowed];
        if let Mode::Throttle(rate) = current.mode {
            rest = trickle(rest, &mut to, rate, &mut state).await?;
        }
        to.write_all(rest).await?;
        handed_on += allowed;
        bytes.fetch_add(allowed, Ordering::Relaxed);
        if matches!(current.mode, Mode::Cut(of, limit) if of == direction && handed_on == limit) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
    }
}

/// Passes on so many bytes a second until the mode is set again, and returns the rest.
async fn trickle<'b>(
    mut bytes: &'b [u8],
    to: &mut (impl AsyncWrite + Unpin),
    rate: u32,
    state: &mut Receiver<State>,
) -> io::Result<&'b [u8]> {
    let settings = state.borrow().settings;
    // Ten times a second, or a byte at a time.
    let piece = rate.div_ceil(10);
    let pause = Duration::from_secs(1) * piece / rate;
    while !bytes.is_empty() {
        let (now, later) = bytes.split_at(bytes.len().min(piece as usize));
        to.write_all(now).await?;
        bytes = later;
        let set = state.wait_for(|state| state.settings != settings);
        if timeout(pause, set).await.is_ok() {
            break;
        }
    }
    Ok(bytes)
}
