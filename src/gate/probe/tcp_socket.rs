//! `tcpSocket`: a port or a unix socket that accepts a connection.

use super::connect::{connect, name};
use super::lock::ProbeLock;
use crate::config::TcpSocket;

/// Connects and closes, as the kubelet does (pkg/probe/tcp/tcp.go). The server reads the end of the stream.
pub(super) async fn check(spec: &TcpSocket, lock: &ProbeLock) -> Result<String, String> {
    connect(&spec.endpoint, lock).await?;
    Ok(format!("{} accepts connections", name(&spec.endpoint)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener as StdUnixListener;
    use std::path::Path;

    use tokio::io::AsyncReadExt;
    use tokio::net::{UnixDatagram, UnixListener};

    use super::*;
    use crate::config::Endpoint;
    use crate::gate::probe::testing::{listen, refuse, soon};

    async fn tcp(port: u16) -> Result<String, String> {
        let host = "127.0.0.1".into();
        let endpoint = Endpoint::Tcp { host, port };
        check(&TcpSocket { endpoint }, &ProbeLock::default()).await
    }

    async fn unix(path: &Path) -> Result<String, String> {
        let endpoint = Endpoint::Unix { path: path.into() };
        check(&TcpSocket { endpoint }, &ProbeLock::default()).await
    }

    #[tokio::test]
    async fn it_opens_when_the_port_accepts_and_the_connection_is_closed_at_once() {
        let (listener, port) = listen().await;
        let expected = format!("127.0.0.1:{port} accepts connections");
        assert_eq!(tcp(port).await, Ok(expected));
        let (mut accepted, _) = listener.accept().await.unwrap();
        assert_eq!(accepted.read(&mut [0]).await.unwrap(), 0);

        let (_refusing, port) = refuse();
        let expected = format!("127.0.0.1:{port}: connection refused");
        assert_eq!(tcp(port).await, Err(expected));
    }

    #[tokio::test]
    async fn it_opens_when_a_unix_socket_accepts_and_the_connection_is_closed_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("csi.sock");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("csi.sock", &link).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        for path in [&path, &link] {
            let expected = format!("unix socket {} accepts connections", path.display());
            assert_eq!(unix(path).await, Ok(expected));
            let (mut accepted, _) = soon(listener.accept()).await.unwrap();
            assert_eq!(soon(accepted.read(&mut [0])).await.unwrap(), 0);
        }
    }

    /// secrets-store-csi-provider-aws#454, rke2#4146 (D14).
    #[tokio::test]
    async fn what_nobody_listens_on_is_closed_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        drop(StdUnixListener::bind(at("left-over")).unwrap());
        let _datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
        fs::write(at("file"), "").unwrap();
        fs::create_dir(at("directory")).unwrap();
        for (link, target) in [("broken", "moved\n\u{1b}[31m"), ("link", "left-over")] {
            std::os::unix::fs::symlink(target, at(link)).unwrap();
        }
        let nobody = "connection refused: no process listens on this socket; the process that created it may have ended";
        for (name, reason) in [
            ("missing", "does not exist"),
            (
                "broken",
                "broken symbolic link to moved\\n\\u{1b}[31m; inside a container, its target must be mounted too",
            ),
            ("link", nobody),
            ("left-over", nobody),
            ("datagrams", "it is not a stream socket"),
            ("file", "it is not a socket"),
            ("directory", "it is not a socket"),
        ] {
            let path = at(name);
            let expected = format!("unix socket {}: {reason}", path.display());
            assert_eq!(unix(&path).await, Err(expected));
        }
        // The next process removes the file first.
        fs::remove_file(at("left-over")).unwrap();
        let _listener = StdUnixListener::bind(at("left-over")).unwrap();
        unix(&at("left-over")).await.unwrap();
    }

    #[tokio::test]
    async fn the_path_of_a_socket_is_shown_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a\n\u{1b}[31mb");
        let shown = format!("unix socket {}/a\\n\\u{{1b}}[31mb", dir.path().display());
        assert_eq!(unix(&path).await, Err(format!("{shown}: does not exist")));
        let _listener = StdUnixListener::bind(&path).unwrap();
        assert_eq!(
            unix(&path).await,
            Ok(format!("{shown} accepts connections"))
        );
    }
}
