//! Connections: accepted, with TLS or without, served and reset.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use socket2::Socket;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Shared, handle};

/// What a request knows of the connection it came by.
pub(super) struct Connection {
    pub(super) id: usize,
    /// Resets the connection.
    pub(super) reset: Notify,
}

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

async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    connection: Arc<Connection>,
    shared: Arc<Shared>,
) -> Result<()> {
    let builder = Builder::new(TokioExecutor::new());
    let builder = if shared.http2 {
        builder
    } else {
        builder.http1_only()
    };
    let service = service_fn(move |request| {
        let (connection, shared) = (Arc::clone(&connection), Arc::clone(&shared));
        async move { handle::answer(request, &connection, &shared).await }
    });
    builder
        .serve_connection(TokioIo::new(io), service)
        .await
        .map_err(anyhow::Error::from_boxed)
}
