//! Connections: accepted, with TLS or without, served and reset.

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

/// Between the connection and the library.
const BUFFER: usize = 64 << 10;

/// What a request knows of the connection it came by.
pub(super) struct Connection {
    pub(super) id: usize,
    /// Resets the connection.
    pub(super) reset: Notify,
    go_away: Sender<Option<u32>>,
}

impl Connection {
    /// Ends the connection with a GOAWAY: no stream after `last` was looked at.
    pub(super) fn go_away(&self, last: u32) {
        self.go_away.send_replace(Some(last));
    }
}

/// The stream before every stream, and the one after.
pub(super) const NONE: u32 = 0;
pub(super) const ALL: u32 = u32::MAX >> 1;

/// Serves until it is dropped, and all its connections with it.
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
        // A connection's end is the client's to notice.
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

/// Makes the close that follows a reset (RST) instead of an orderly end.
fn reset(socket: &Socket) -> Result<()> {
    Ok(socket.set_linger(Some(Duration::ZERO))?)
}

/// The library has the connection at second hand, so that it can end with a frame that is none of its own.
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
    // Eight bytes of type GOAWAY for the whole connection: the last stream, and that there is no error.
    let head = [0, 0, 8, 7, 0, 0, 0, 0, 0];
    let frame = [&head[..], &last.to_be_bytes(), &[0; 4]].concat();
    io.write_all(&frame).await?;
    Ok(io.shutdown().await?)
}
