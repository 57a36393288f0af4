//! Connections of the network probes: straight to the target, never through a proxy.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::spawn_blocking;

use crate::config::Endpoint;
use crate::text::plain;

/// TCP, a unix socket, or TLS over either.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to `endpoint`. The error names it.
pub(super) async fn connect(endpoint: &Endpoint) -> Result<Box<dyn Stream>, String> {
    match endpoint {
        Endpoint::Tcp { host, port } => Ok(Box::new(tcp(host, *port).await?)),
        Endpoint::Unix { path } => Ok(Box::new(unix(path).await?)),
    }
}

/// `endpoint` as reasons name it.
pub(super) fn name(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port } => authority(host, *port),
        Endpoint::Unix { path } => format!("unix socket {}", path.display()),
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub(super) fn authority(host: &str, port: u16) -> String {
    let host = unbracketed(host);
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// An IPv6 address without its brackets, any other host as it is.
pub(super) fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

/// Connects to the first address of `host` that accepts.
pub(super) async fn tcp(host: &str, port: u16) -> Result<TcpStream, String> {
    let failed = |error: &io::Error| format!("{}: {}", authority(host, port), plain(error));
    let addresses = addresses(unbracketed(host), port)
        .await
        .map_err(|error| failed(&error))?;
    let mut first_error = None;
    for address in addresses {
        match tcp_address(address).await {
            Ok(stream) => return Ok(stream),
            // The first address is the one that was most likely meant.
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(failed(&first_error.unwrap_or_else(|| {
        io::Error::other("the name has no address")
    })))
}

async fn tcp_address(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn unix(path: &Path) -> Result<UnixStream, String> {
    UnixStream::connect(path)
        .await
        .map_err(|error| format!("unix socket {}: {}", path.display(), plain(&error)))
}

async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    // Needs no resolver: in an empty root there is no /etc/hosts, and on a machine without IPv6 a resolver that
    // has one gives only 127.0.0.1.
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![
            (Ipv4Addr::LOCALHOST, port).into(),
            (Ipv6Addr::LOCALHOST, port).into(),
        ]);
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    lookup(host.to_owned(), port).await
}

/// Asks the system's resolver, on another thread because it blocks.
///
/// It cannot be interrupted: while DNS is silent it outlives the probe that asked. A few threads a name is all it may
/// hold, so that a probe every few hundred milliseconds cannot pile them up, nor one name hold up another.
async fn lookup(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    let Some(under_way) = UnderWay::begin(&host) else {
        return Err(io::Error::other(
            "the last look-ups of the name have no answer yet",
        ));
    };
    spawn_blocking(move || {
        let _under_way = under_way;
        Ok((host.as_str(), port).to_socket_addrs()?.collect())
    })
    .await?
}

/// Look-ups of one name at a time: of several probes, or left over from those that have given up.
const LOOKUPS: usize = 4;

/// A look-up of a name.
struct UnderWay(String);

impl UnderWay {
    fn counts() -> MutexGuard<'static, BTreeMap<String, usize>> {
        static COUNTS: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());
        COUNTS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(host: &str) -> Option<Self> {
        let mut counts = Self::counts();
        let count = counts.entry(host.to_owned()).or_default();
        (*count < LOOKUPS).then(|| {
            *count += 1;
            Self(host.to_owned())
        })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = Self::counts();
        match counts.get_mut(&self.0) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = counts.remove(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, UnixSocket};

    use super::*;
    use crate::gate::testing::refuse;

    async fn listener(address: &str) -> (TcpListener, u16) {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    fn a_name_whose_lookups_hang_holds_up_itself_alone() {
        let mut under_way: Vec<_> = (0..LOOKUPS)
            .map(|_| UnderWay::begin("hangs.example").unwrap())
            .collect();
        assert!(UnderWay::begin("hangs.example").is_none());
        assert!(UnderWay::begin("other.example").is_some());
        under_way.pop();
        assert!(UnderWay::begin("hangs.example").is_some());
    }

    #[tokio::test]
    async fn localhost_is_both_loopback_addresses() {
        for address in ["127.0.0.1", "::1"] {
            let (_listener, port) = listener(address).await;
            let stream = tcp("LocalHost", port).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap().ip().to_string(), address);
            assert!(stream.nodelay().unwrap());
        }
    }

    #[tokio::test]
    async fn an_ipv6_address_may_have_brackets() {
        let (_listener, port) = listener("::1").await;
        for host in ["::1", "[::1]"] {
            tcp(host, port).await.unwrap();
            assert_eq!(authority(host, 80), "[::1]:80");
        }
    }

    #[tokio::test]
    async fn another_name_goes_through_the_resolver() {
        assert_eq!(
            lookup("127.0.0.1".into(), 1).await.unwrap(),
            [(Ipv4Addr::LOCALHOST, 1).into()]
        );
        let error = tcp("name.invalid", 1).await.unwrap_err();
        assert!(error.starts_with("name.invalid:1: "), "{error}");
    }

    #[tokio::test]
    async fn a_refusal_names_the_target_and_the_cause() {
        let (_refusing, port) = refuse();
        for host in ["127.0.0.1", "localhost"] {
            let error = tcp(host, port).await.unwrap_err();
            assert_eq!(error, format!("{host}:{port}: connection refused"));
        }
    }

    #[tokio::test]
    async fn a_unix_socket_may_be_absent_or_abandoned() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sock");
        let endpoint = Endpoint::Unix { path: path.clone() };
        let error = async || connect(&endpoint).await.err().unwrap();
        let named = |cause| format!("unix socket {}: {cause}", path.display());

        assert_eq!(error().await, named("no such file or directory"));
        // Bound but not listening looks like the file that a dead server left.
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        assert_eq!(error().await, named("connection refused"));
    }
}
