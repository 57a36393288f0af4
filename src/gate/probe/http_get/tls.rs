//! TLS that accepts any certificate, as the kubelet's probes do: a certificate proves nothing more about a port on the own
//! node.

use std::sync::{Arc, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use crate::gate::probe::connect::Stream;
use crate::text::{excerpt, io_message};

/// Speaks TLS over `stream`. The handshake asks for `name` if that is a DNS name.
pub(super) async fn handshake(
    stream: Box<dyn Stream>,
    name: &str,
) -> Result<Box<dyn Stream>, String> {
    let server = ServerName::try_from(name.to_owned())
        .map_err(|_| format!("TLS cannot ask for the name {}", excerpt(name)))?;
    let config = config().map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(config)
        .connect(server, stream)
        .await
        .map_err(|error| format!("TLS handshake failed: {}", io_message(&error)))?;
    Ok(Box::new(stream))
}

/// Shared by all probes. Has its own provider, because the process may have installed none.
fn config() -> Result<Arc<ClientConfig>, Error> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, Error>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let provider = ring::default_provider();
            let verifier = AcceptAny(provider.signature_verification_algorithms);
            let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
                .with_safe_default_protocol_versions()?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(Arc::new(config))
        })
        .clone()
}

/// Accepts any certificate, but only from a peer that has its key.
#[derive(Debug)]
struct AcceptAny(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
