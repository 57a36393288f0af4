//! Certificates for tests.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "testkit authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
        ];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self(issuer))
    }

    /// The certificate of the authority.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a server with these names and addresses, which becomes valid after `valid_in`.
    pub(crate) fn server(
        &self,
        names: &[&str],
        valid_in: Duration,
    ) -> Result<CertifiedKey<KeyPair>> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names)?;
        params.not_before = (SystemTime::now() + valid_in).into();
        params
            .distinguished_name
            .push(DnType::CommonName, "testkit server");
        self.issue(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate for a Kubernetes user (common name) in one group (organisation).
    pub(crate) fn client(&self, user: &str, group: &str) -> Result<CertifiedKey<KeyPair>> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
        self.issue(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(
        &self,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<CertifiedKey<KeyPair>> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let signing_key = KeyPair::generate()?;
        let cert = params.signed_by(&signing_key, &self.0)?;
        Ok(CertifiedKey { cert, signing_key })
    }
}

/// The TLS settings of a server. `protocols` are for ALPN, in the order of preference.
pub(crate) fn server_config(
    certified: &CertifiedKey<KeyPair>,
    protocols: &[&str],
) -> Result<ServerConfig> {
    let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)?;
    config.alpn_protocols = protocols.iter().map(|name| (*name).into()).collect();
    Ok(config)
}
