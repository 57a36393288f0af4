//! Reads where the API server is, and the credentials for it, from files and the environment.

use std::env;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Uri};
use kube::Config;
use kube::config::{AuthInfo, Kubeconfig};
use secrecy::ExposeSecret;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use crate::api::connect::ConnectionSettings;
use crate::small_file;
use crate::text::{printable, sha256};

/// Where a pod has the files of its ServiceAccount.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const OUTSIDE: &str =
    "outside a pod with a ServiceAccount token, name a kubeconfig with --kubeconfig";

/// Where the API server and the credentials for it are found.
#[derive(Debug, Clone)]
pub enum Source {
    /// The pod's ServiceAccount, with `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`.
    InCluster,
    /// The current context of this file.
    Kubeconfig(PathBuf),
}

/// The contents of the files of a source.
pub(super) struct Content {
    pub(super) settings: ConnectionSettings,
    /// The `Authorization` header of each request.
    pub(super) authorization: Option<HeaderValue>,
}

/// The texts of all files read, one after the other.
#[derive(Default)]
struct Texts(String);

impl Texts {
    fn read(&mut self, path: &Path) -> Result<String, String> {
        let text = read_text(path)?;
        self.0 += &text;
        // A separator: no text contains NUL.
        self.0.push('\0');
        Ok(text)
    }
}

/// Reads the files of `source`, on the thread of the caller.
pub(super) fn read(source: &Source) -> Result<Content, String> {
    match source {
        Source::InCluster => in_cluster().map_err(|error| {
            if Path::new(ACCOUNT).exists() {
                return error;
            }
            format!("{error}; {OUTSIDE}")
        }),
        Source::Kubeconfig(path) => {
            from_file(path).map_err(|error| format!("{}: {error}", path.display()))
        }
    }
}

fn in_cluster() -> Result<Content, String> {
    let variable = |name| env::var(name).map_err(|_| format!("{name} is not set"));
    let host = variable("KUBERNETES_SERVICE_HOST")?;
    let port = variable("KUBERNETES_SERVICE_PORT")?;
    let brackets = host.parse::<Ipv6Addr>().is_ok();
    let host = if brackets { format!("[{host}]") } else { host };
    let url = format!("https://{host}:{port}");
    let url = url.parse().map_err(|_| {
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not a host and a port".to_owned()
    })?;
    let mut config = Config::new(url);
    let mut texts = Texts::default();
    let account = Path::new(ACCOUNT);
    config.root_cert = Some(authority(&mut texts, &account.join("ca.crt"))?);
    let authorization = bearer(&account.join("token"))?;
    Ok(Content {
        settings: settings(config, &texts)?,
        authorization: Some(authorization),
    })
}

fn from_file(path: &Path) -> Result<Content, String> {
    let mut texts = Texts::default();
    // kube reads without a limit, and panics at UTF-16 of an odd length.
    let text = small_file::read_text(path)?;
    texts.0 += &text;
    let text = text.trim_start_matches('\u{feff}');
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| first_line(&error))?;
    refuse(&kubeconfig)?;
    // Files that a kubeconfig names are relative to its directory.
    let beside = |file: String| path.parent().unwrap_or(path).join(file);
    let authority_file = take_authority(&mut kubeconfig).map(beside);
    let mut config = Config::try_from(kubeconfig).map_err(|error| first_line(&error))?;
    check_url(&config.cluster_url)?;
    if let Some(file) = authority_file {
        config.root_cert = Some(authority(&mut texts, &file)?);
    }
    let user = &mut config.auth_info;
    let mut encoded = |file| {
        let text = texts.read(&beside(file))?;
        Ok::<_, String>(BASE64_STANDARD.encode(text))
    };
    if let Some(file) = user.client_certificate.take()
        && user.client_certificate_data.is_none()
    {
        user.client_certificate_data = Some(encoded(file)?);
    }
    if let Some(file) = user.client_key.take()
        && user.client_key_data.is_none()
    {
        user.client_key_data = Some(encoded(file)?.into());
    }
    let token_file = user.token_file.take().map(beside);
    let authorization = match authorization(user)? {
        None => token_file.map(|file| bearer(&file)).transpose()?,
        known => known,
    };
    Ok(Content {
        settings: settings(config, &texts)?,
        authorization,
    })
}

/// Takes out the file of the current cluster's certificate authority, so that kube does not read it. Returns it unless the
/// kubeconfig contains the certificates themselves.
fn take_authority(kubeconfig: &mut Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_ref()?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|named| named.name == *current)?;
    let context = context.context.as_ref()?;
    let mut clusters = kubeconfig.clusters.iter_mut();
    let cluster = clusters.find(|named| named.name == context.cluster)?;
    let cluster = cluster.cluster.as_mut()?;
    let file = cluster.certificate_authority.take();
    file.filter(|_| cluster.certificate_authority_data.is_none())
}

/// Refuses fields that would be ignored, and plugins: kube runs these on the caller's thread, and they may hang or flood it.
fn refuse(kubeconfig: &Kubeconfig) -> Result<(), String> {
    // `Config::proxy_url` would include HTTPS_PROXY of the environment, which is for traffic that leaves the cluster.
    let mut clusters = kubeconfig.clusters.iter().flat_map(|named| &named.cluster);
    if clusters.any(|cluster| cluster.proxy_url.is_some()) {
        return Err("proxy-url is not supported".into());
    }
    let users = kubeconfig.auth_infos.iter();
    for user in users.flat_map(|named| &named.auth_info) {
        if user.exec.is_some() || user.auth_provider.is_some() {
            return Err("exec and auth-provider are not supported; give a token, a tokenFile or a certificate".into());
        }
        let secrets = [&user.token, &user.password].into_iter().flatten();
        let words = secrets.map(ExposeSecret::expose_secret);
        let mut words = words.chain(user.username.as_deref());
        if words.any(|word| word.contains(|c: char| c.is_control())) {
            return Err(
                "a token, user name or password has a control character, such as a line break"
                    .into(),
            );
        }
    }
    Ok(())
}

fn check_url(url: &Uri) -> Result<(), String> {
    let authority = url.authority();
    let user = authority.filter(|authority| authority.as_str().contains('@'));
    if user.is_some() || url.query().is_some() {
        return Err("a server with a user or a query in its URL is not supported".into());
    }
    match url.scheme_str() {
        Some("http" | "https") => Ok(()),
        _ => Err(format!("server {url} is not an http or https URL")),
    }
}

/// The header from the user's own fields, in kube's order of precedence. A token file comes after them.
fn authorization(user: &AuthInfo) -> Result<Option<HeaderValue>, String> {
    let value = if let (Some(name), Some(password)) = (&user.username, &user.password) {
        let both = format!("{name}:{}", password.expose_secret());
        format!("Basic {}", BASE64_STANDARD.encode(both))
    } else if let Some(token) = &user.token {
        format!("Bearer {}", token.expose_secret())
    } else {
        return Ok(None);
    };
    header(&value)
        .map(Some)
        .ok_or_else(|| "the token has a character that is not allowed in a header".to_owned())
}

fn bearer(file: &Path) -> Result<HeaderValue, String> {
    let text = read_text(file)?;
    let token = text.trim();
    let name = file.display();
    if token.is_empty() {
        return Err(format!("{name} is empty, but should contain a token"));
    }
    let not_one = || {
        format!(
            "{name} contains something besides a token: a line break, or another character that is not allowed in a header"
        )
    };
    header(&format!("Bearer {token}")).ok_or_else(not_one)
}

fn header(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn authority(texts: &mut Texts, file: &Path) -> Result<Vec<Vec<u8>>, String> {
    let text = texts.read(file)?;
    let certificates = CertificateDer::pem_slice_iter(text.as_bytes());
    let certificates: Result<Vec<_>, _> = certificates
        .map(|certificate| certificate.map(|certificate| certificate.to_vec()))
        .collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!(
            "{} contains no valid PEM certificate",
            file.display()
        )),
    }
}

fn settings(config: Config, texts: &Texts) -> Result<ConnectionSettings, String> {
    ConnectionSettings::new(config, sha256(&texts.0)).map_err(|error| first_line(&error))
}

/// The error begins with the file's name.
fn read_text(path: &Path) -> Result<String, String> {
    small_file::read_text(path).map_err(|error| format!("{} {error}", path.display()))
}

/// Later lines quote the file and may contain secrets.
fn first_line(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    printable(text.lines().next().unwrap_or_default(), 300)
}
