//! `tcpSocket`: a port that accepts a connection.

use super::connect;
use super::lock::ProbeLock;
use crate::config::TcpSocket;

/// Connects and closes, as the kubelet does (pkg/probe/tcp/tcp.go).
pub(super) async fn check(spec: &TcpSocket, lock: &ProbeLock) -> Result<String, String> {
    connect::tcp(&spec.host, spec.port, lock).await?;
    let target = connect::authority(&spec.host, spec.port);
    Ok(format!("{target} accepts connections"))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::gate::probe::testing::{listen, refuse};

    #[tokio::test]
    async fn it_opens_when_the_port_accepts_and_the_connection_is_closed_at_once() {
        let (listener, port) = listen().await;
        let spec = TcpSocket {
            host: "127.0.0.1".into(),
            port,
        };
        assert_eq!(
            check(&spec, &ProbeLock::default()).await,
            Ok(format!("127.0.0.1:{port} accepts connections"))
        );
        let (mut accepted, _) = listener.accept().await.unwrap();
        assert_eq!(accepted.read(&mut [0]).await.unwrap(), 0);

        let (_refusing, port) = refuse();
        assert_eq!(
            check(&TcpSocket { port, ..spec }, &ProbeLock::default()).await,
            Err(format!("127.0.0.1:{port}: connection refused"))
        );
    }
}
