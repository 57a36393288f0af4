//! Connections of the network probes: straight to the target, never through a proxy.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::disk::{UNFINISHED, fault, one_line};
use super::lock::ProbeLock;
use crate::bind_mount::deleted;
use crate::config::Endpoint;
use crate::text::{io_message, printable_path, unbracketed};

/// TCP, a unix socket, or TLS over either.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to `endpoint`. The error names it.
pub(super) async fn connect(
    endpoint: &Endpoint,
    lock: &ProbeLock,
) -> Result<Box<dyn Stream>, String> {
    match endpoint {
        Endpoint::Tcp { host, port } => Ok(Box::new(tcp(host, *port, lock).await?)),
        Endpoint::Unix { path } => Ok(Box::new(unix(path, lock).await?)),
    }
}

/// `endpoint` as reasons name it.
pub(super) fn name(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port } => authority(host, *port),
        Endpoint::Unix { path } => format!("unix socket {}", printable_path(path)),
    }
}

/// `host:port`, with brackets around an IPv6 address.
fn authority(host: &str, port: u16) -> String {
    let host = unbracketed(host);
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// The host of a request to `endpoint`.
pub(super) fn requested_host(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port } => authority(host, *port),
        Endpoint::Unix { .. } => "localhost".into(),
    }
}

/// Connects to the first address of `host` that accepts.
async fn tcp(host: &str, port: u16, lock: &ProbeLock) -> Result<TcpStream, String> {
    let connected = async {
        let mut first_error = None;
        for address in addresses(unbracketed(host), port, lock).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                // The first address is the one that was most likely meant.
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| io::Error::other("the name has no address")))
    };
    let connected = connected.await;
    connected.map_err(|error| format!("{}: {}", authority(host, port), io_message(&error)))
}

/// On another thread: the kernel resolves the path while it connects, and that hangs where a file system hangs.
async fn unix(path: &Path, lock: &ProbeLock) -> Result<UnixStream, String> {
    let socket = path.to_owned();
    let connected = lock.run_blocking(path.as_os_str(), move |_guard| {
        unix_stream(&socket).map_err(|error| refusal(&socket, &error))
    });
    let connected = match connected.await {
        Some(Ok(stream)) => UnixStream::from_std(stream).map_err(|error| io_message(&error)),
        Some(Err(why)) => Err(why),
        None => Err(UNFINISHED.into()),
    };
    connected.map_err(|why| one_line(&format!("unix socket {}: {why}", path.display())))
}

/// The kernel also refuses a connection to what is not a socket.
fn refusal(path: &Path, error: &io::Error) -> String {
    let is_other = || fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket());
    match (error.kind(), deleted(path)) {
        (io::ErrorKind::WouldBlock, _) => {
            "its queue of new connections is full: the server does not accept them".into()
        }
        (_, Some(why)) => format!("{}; the socket {why}", io_message(error)),
        (io::ErrorKind::ConnectionRefused, None) if is_other() => "it is not a socket".into(),
        (io::ErrorKind::ConnectionRefused, None) => format!(
            "{}: no process listens on this socket; the process that created it may have ended",
            io_message(error)
        ),
        _ if error.raw_os_error() == Some(Errno::PROTOTYPE.raw_os_error()) => {
            "it is not a stream socket".into()
        }
        _ => fault(path, error),
    }
}

/// Does not wait for a server whose queue is full, and so holds its thread for no longer than the path takes.
fn unix_stream(path: &Path) -> io::Result<StdUnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

async fn addresses(host: &str, port: u16, lock: &ProbeLock) -> io::Result<Vec<SocketAddr>> {
    // Without the resolver: an empty root has no /etc/hosts. With that file, the resolver returns only 127.0.0.1 on a
    // machine without IPv6.
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![
            (Ipv4Addr::LOCALHOST, port).into(),
            (Ipv6Addr::LOCALHOST, port).into(),
        ]);
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    lookup(host, port, lock).await
}

/// Asks the system's resolver, on another thread because it blocks. Nothing interrupts it: while DNS is silent, it
/// outlives the probe.
async fn lookup(host: &str, port: u16, lock: &ProbeLock) -> io::Result<Vec<SocketAddr>> {
    let name = host.to_owned();
    let answer = lock.run_blocking(host.as_ref(), move |_guard| {
        Ok((name.as_str(), port).to_socket_addrs()?.collect())
    });
    answer.await.unwrap_or_else(|| {
        let unfinished = "DNS has not answered the previous look-up of this name";
        Err(io::Error::other(unfinished))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use rustix::fs::{Mode, OFlags};
    use rustix::process::{Uid, geteuid};
    use rustix::thread::set_thread_res_uid;
    use tokio::net::{TcpListener, UnixSocket};

    use super::*;
    use crate::gate::probe::testing::refuse;

    async fn listener(address: &str) -> (TcpListener, u16) {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    async fn tcp(host: &str, port: u16) -> Result<TcpStream, String> {
        super::tcp(host, port, &ProbeLock::default()).await
    }

    #[tokio::test]
    async fn there_is_no_other_look_up_while_the_last_one_has_no_answer() {
        let lock = ProbeLock::default();
        let unanswered = lock.acquire().await.unwrap();
        let error = super::tcp("name.invalid", 1, &lock).await.unwrap_err();
        assert!(
            error.ends_with("DNS has not answered the previous look-up of this name"),
            "{error}"
        );
        drop(unanswered);
        let error = super::tcp("name.invalid", 1, &lock).await.unwrap_err();
        assert!(
            !error.ends_with("DNS has not answered the previous look-up of this name"),
            "{error}"
        );
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
            lookup("127.0.0.1", 1, &ProbeLock::default()).await.unwrap(),
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
    async fn a_unix_socket_may_be_absent_or_abandoned_or_full() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sock");
        let endpoint = Endpoint::Unix { path: path.clone() };
        let lock = ProbeLock::default();
        let error = async || connect(&endpoint, &lock).await.err().unwrap();
        let named = |cause| format!("unix socket {}: {cause}", path.display());

        assert_eq!(error().await, named("does not exist"));
        // Bound but not listening looks like the file that a dead server left.
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let abandoned = "connection refused: no process listens on this socket; the process that created it may have ended";
        assert_eq!(error().await, named(abandoned));

        let _listener = socket.listen(0).unwrap();
        let _queued = connect(&endpoint, &lock).await.unwrap();
        let full = "its queue of new connections is full: the server does not accept them";
        assert_eq!(error().await, named(full));
    }

    /// As uid 65532 against the socket of root, or as the user of the tests against mode 0.
    #[test]
    fn a_socket_without_the_permission_has_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o0)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if geteuid().is_root() {
                    // Of this thread only, and its capabilities go with it.
                    let uid = Uid::from_raw(65532);
                    set_thread_res_uid(uid, uid, uid).unwrap();
                }
                let expected = format!(
                    "permission denied for uid {}: run untaint as the owner of the file, usually uid 0 without capabilities; with \
                     SELinux, run it in a domain that may use the file",
                    geteuid().as_raw()
                );
                assert_eq!(refusal(&path, &unix_stream(&path).unwrap_err()), expected);
            });
        });
    }

    /// `/proc/self/fd` pins an inode as a mount does. The server has started again, with another socket.
    #[tokio::test]
    async fn a_deleted_unix_socket_that_a_mount_still_shows_has_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("x.sock");
        let first = std::os::unix::net::UnixListener::bind(&real).unwrap();
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let pinned = rustix::fs::open(&real, flags, Mode::empty()).unwrap();
        let path: PathBuf = format!("/proc/self/fd/{}", pinned.as_raw_fd()).into();
        let endpoint = Endpoint::Unix { path: path.clone() };
        let lock = ProbeLock::default();
        connect(&endpoint, &lock).await.unwrap();
        drop(first);
        fs::remove_file(&real).unwrap();
        let _second = std::os::unix::net::UnixListener::bind(&real).unwrap();
        let reason = connect(&endpoint, &lock).await.err().unwrap();
        let expected = format!(
            "unix socket {}: connection refused; the socket was deleted on the host, but a mount still shows the deleted one: \
             delete the pod, and its DaemonSet creates it again; to prevent this, mount the parent directory /proc/self/fd instead",
            path.display()
        );
        assert_eq!(reason, expected);
    }

    #[tokio::test]
    async fn there_is_no_other_connection_to_a_unix_socket_while_the_last_one_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let endpoint = Endpoint::Unix { path };
        let lock = ProbeLock::default();
        let hung = lock.acquire().await.unwrap();
        let error = connect(&endpoint, &lock).await.err().unwrap();
        assert!(error.ends_with("does not answer"), "{error}");
        drop(hung);
        connect(&endpoint, &lock).await.unwrap();
    }
}
