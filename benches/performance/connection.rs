//! One connection to the API server without any client library around it. It is the base of all comparisons.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// An open connection, with the credentials for its requests.
pub(crate) struct Connection {
    sender: Sender,
    address: SocketAddr,
    token: String,
    _driver: JoinSet<()>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    /// Opens a connection. `credentials` is a directory with `ca.crt` and `token`.
    pub(crate) async fn open(
        address: SocketAddr,
        credentials: &Path,
        version: Version,
    ) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(credentials.join("ca.crt"))?)?;
        let mut tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        if version == Version::HTTP_2 {
            tls.alpn_protocols = vec![b"h2".to_vec()];
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(address.ip().into());
        let stream = TokioIo::new(
            TlsConnector::from(Arc::new(tls))
                .connect(name, stream)
                .await?,
        );

        let mut driver = JoinSet::new();
        let sender = if version == Version::HTTP_2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            driver.spawn(async { drop(connection.await) });
            Sender::Http2(sender)
        } else {
            let (sender, connection) = http1::handshake(stream).await?;
            driver.spawn(async { drop(connection.await) });
            Sender::Http1(sender)
        };
        Ok(Self {
            sender,
            address,
            token: fs::read_to_string(credentials.join("token"))?,
            _driver: driver,
        })
    }

    /// Removes the first taint of `node`, with the patch that the agent sends. Returns when it was sent, and the time
    /// until the last byte of the answer.
    pub(crate) async fn untaint(&mut self, node: &Value) -> Result<(Instant, Duration)> {
        let (metadata, taint) = (&node["metadata"], &node["spec"]["taints"][0]);
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
            {"op": "test", "path": "/spec/taints/0/key", "value": taint["key"]},
            {"op": "test", "path": "/spec/taints/0/effect", "value": taint["effect"]},
            {"op": "remove", "path": "/spec/taints/0"},
        ]);
        let name = metadata["name"].as_str().unwrap_or_default();
        let uri = format!("/api/v1/nodes/{name}?fieldManager=untaint");
        let request = Request::patch(match self.sender {
            Sender::Http1(_) => uri,
            Sender::Http2(_) => format!("https://{}{uri}", self.address),
        })
        .header(HOST, self.address.to_string())
        .header(AUTHORIZATION, format!("Bearer {}", self.token))
        .header(CONTENT_TYPE, "application/json-patch+json")
        .body(Full::from(patch.to_string()))?;

        let sent = Instant::now();
        let answer = match &mut self.sender {
            Sender::Http1(sender) => sender.send_request(request).await?,
            Sender::Http2(sender) => sender.send_request(request).await?,
        };
        let status = answer.status();
        answer.into_body().collect().await?;
        let took = sent.elapsed();
        ensure!(status.is_success(), "{status}");
        Ok((sent, took))
    }
}
