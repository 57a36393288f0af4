use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::gate::probe::testing::{answer, serve};

fn https(host: &str, port: u16) -> HttpGet {
    HttpGet {
        endpoint: Endpoint::Tcp {
            host: host.into(),
            port,
        },
        scheme: Scheme::Https,
        ..spec(port)
    }
}

#[tokio::test]
async fn https_takes_any_certificate() {
    let certified = rcgen::generate_simple_self_signed(["other.example".into()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (seen, mut names) = unbounded_channel();
    let port = serve(move |stream| {
        let (acceptor, seen) = (acceptor.clone(), seen.clone());
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let name = stream.get_ref().1.server_name().map(str::to_owned);
            seen.send(name).unwrap();
            answer(stream, |_| OK.into()).await;
        }
    })
    .await;

    for (host, name) in [("127.0.0.1", None), ("localhost", Some("localhost".into()))] {
        assert_eq!(soon(check(&https(host, port))).await, open("200 OK"));
        assert_eq!(names.recv().await.unwrap(), name);
    }
    // Plain HTTP on a TLS port.
    assert!(!soon(check(&spec(port))).await.is_open());
}

#[tokio::test]
async fn https_on_a_plain_port_closes_with_a_reason() {
    let port = serve(async |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let outcome = soon(check(&https("127.0.0.1", port))).await;
    let expected = format!("127.0.0.1:{port}: TLS handshake failed: ");
    assert!(outcome.message().starts_with(&expected), "{outcome:?}");
    assert!(!outcome.is_open());
}
