//! Kubeconfig files that lead the agent to a server of this crate.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// The credentials of the user.
pub(crate) enum Credentials<'a> {
    /// A bearer token.
    Token(&'a str),
    /// A client certificate and its key, both PEM.
    Certificate(&'a str, &'a str),
}

/// Writes `kubeconfig` into `dir`, and the files to which it refers: `ca.crt` and either `token` or `client.crt` and
/// `client.key`. To rotate one of them, a test overwrites it.
pub(crate) fn write(
    dir: &Path,
    server: &str,
    authority: Option<&str>,
    credentials: &Credentials<'_>,
) -> Result<PathBuf> {
    let put = |name: &str, content: &str| -> Result<PathBuf> {
        let path = dir.join(name);
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    };
    let mut cluster = json!({"server": server});
    if let Some(authority) = authority {
        cluster["certificate-authority"] = json!(put("ca.crt", authority)?);
    }
    let user = match credentials {
        Credentials::Token(token) => json!({"tokenFile": put("token", token)?}),
        Credentials::Certificate(certificate, key) => json!({
            "client-certificate": put("client.crt", certificate)?,
            "client-key": put("client.key", key)?,
        }),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testkit", "cluster": cluster}],
        "users": [{"name": "testkit", "user": user}],
        "contexts": [{"name": "testkit", "context": {"cluster": "testkit", "user": "testkit"}}],
        "current-context": "testkit",
    });
    // JSON is YAML.
    put("kubeconfig", &config.to_string())
}

/// Changes the server of a kubeconfig file to `address`, for example that of a
/// [`FaultProxy`](crate::proxy::FaultProxy).
pub fn point_at(kubeconfig: &Path, address: SocketAddr) -> Result<()> {
    let mut config: Value = serde_json::from_slice(&fs::read(kubeconfig)?)?;
    let server = &mut config["clusters"][0]["cluster"]["server"];
    let scheme = server
        .as_str()
        .and_then(|server| server.split_once("://"))
        .context("a server with a scheme")?
        .0;
    *server = json!(format!("{scheme}://{address}"));
    fs::write(kubeconfig, config.to_string())?;
    Ok(())
}
