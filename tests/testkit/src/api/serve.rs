//! Accepts connections with and without TLS, serves them and resets them.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use socket2::Socket;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::sync::watch::Sender;
use tokio::task::JoinSet;

use super::{Shared, handle};

/// The size of the buffer between the connection and the library.
const BUFFER: usize = 64 << 10;

/// The connection of a request.
pub(super) struct Connection {
    pub(super) id: usize,
    /// Resets the connection.
    pub(super) reset: Notify,
    go_away: Sender<Option<u32>>,
}

impl Connection {
    /// Ends the connection with a GOAWAY which says that no stream after `last` was processed.
    pub(super) fn go_away(&self, last: u32) {
        self.go_away.send_replace(Some(last));
    }
}

/// The `last` of [`Connection::go_away`] if no stream was processed, and if every stream may have been processed.
pub(super) const NONE: u32 = 0;
pub(super) const ALL: u32 = u32::MAX >> 1;

/// Serves until it is dropped, which also ends all connections.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    for id in 0.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let connection = Connection {
            id,
            reset: Notify::new(),
            go_away: Sender::default(),
        };
        // The client notices the end of its connection.
        let serve = connect(stream, Arc::new(connection), Arc::clone(&shared));
        connections.spawn(async { drop(serve.await) });
    }
}

async fn connect(
    stream: TcpStream,
    connection: Arc<Connection>,
    shared: Arc<Shared>,
) -> Result<()> {
    stream.set_nodelay(true)?;
    let socket = Socket::from(stream.as_fd().try_clone_to_owned()?);
    let mut resets = shared.resets.subscribe();
    let tls = shared.tls.lock().unwrap().clone();
    let serve = {
        let connection = Arc::clone(&connection);
        async {
            match tls {
                Some(tls) => serve(tls.accept(stream).await?, connection, shared).await,
                None => serve(stream, connection, shared).await,
            }
        }
    };
    tokio::select! {
        served = serve => served,
        () = connection.reset.notified() => reset(&socket),
        _ = resets.changed() => reset(&socket),
    }
}

/// Makes the next close a reset (RST).
fn reset(socket: &Socket) -> Result<()> {
    Ok(socket.set_linger(Some(Duration::ZERO))?)
}

/// Relays the connection to the library, so that it can end with a frame that the library did not send.
async fn serve(
    mut io: impl AsyncRead + AsyncWrite + Unpin,
    connection: Arc<Connection>,
    shared: Arc<Shared>,
) -> Result<()> {
    let builder = Builder::new(TokioExecutor::new());
    let builder = if shared.http2 {
        builder
    } else {
        builder.http1_only()
    };
    let mut go_away = connection.go_away.subscribe();
    let service = service_fn(move |request| {
        let (connection, shared) = (Arc::clone(&connection), Arc::clone(&shared));
        async move { handle::answer(request, &connection, &shared).await }
    });
    let (near, mut far) = tokio::io::duplex(BUFFER);
    let served = async {
        let served = builder.serve_connection(TokioIo::new(near), service);
        served.await.map_err(anyhow::Error::from_boxed)
    };
    let carried = async { Ok(copy_bidirectional(&mut io, &mut far).await?) };
    let last = tokio::select! {
        ended = async { tokio::try_join!(served, carried) } => return ended.map(drop),
        last = go_away.wait_for(Option::is_some) => last?.unwrap_or_default(),
    };
    // A GOAWAY frame with eight bytes: the last stream, and the code for no error.
    let head = [0, 0, 8, 7, 0, 0, 0, 0, 0];
    let frame = [&head[..], &last.to_be_bytes(), &[0; 4]].concat();
    io.write_all(&frame).await?;
    Ok(io.shutdown().await?)
}
