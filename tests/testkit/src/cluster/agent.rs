//! The credentials of an agent on a node: a token of the `ServiceAccount` that is bound to its Node.

use std::path::{Path, PathBuf};

use anyhow::Result;
use http::Method;
use serde_json::json;

use super::Cluster;
use crate::kubeconfig::{self, Credentials};

/// Namespace and name of the agent's `ServiceAccount`.
const NAMESPACE: &str = "untaint";
const SERVICE_ACCOUNT: &str = "untaint";
/// The roles of the agent. The policy next to this file is for one configuration, and the tests have many.
const RBAC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rbac/rbac.yaml");

impl Cluster {
    /// Writes a kubeconfig file with the rights of the agent on this Node into `dir`, with `ca.crt` and `token` next to
    /// it. Returns its path. The Node must exist.
    pub async fn agent_kubeconfig(&self, dir: &Path, node: &str) -> Result<PathBuf> {
        self.agents_allowed
            .get_or_try_init(|| self.allow_agents())
            .await?;
        let token = self
            .token_for_node(NAMESPACE, SERVICE_ACCOUNT, node)
            .await?;
        self.kubeconfig(dir, &token)
    }

    /// Writes a kubeconfig file with this token, with `ca.crt` and `token` next to it, and returns its path.
    pub fn kubeconfig(&self, dir: &Path, token: &str) -> Result<PathBuf> {
        self.kubeconfig_of(dir, &Credentials::Token(token))
    }

    /// Writes a kubeconfig file with the credentials of this Node's kubelet into `dir`, with its files next to it.
    /// Returns its path.
    pub fn kubelet_kubeconfig(&self, dir: &Path, node: &str) -> Result<PathBuf> {
        let authority = self.control_plane.authority();
        let kubelet = authority.client(&format!("system:node:{node}"), "system:nodes")?;
        let (certificate, key) = (kubelet.cert.pem(), kubelet.signing_key.serialize_pem());
        self.kubeconfig_of(dir, &Credentials::Certificate(&certificate, &key))
    }

    fn kubeconfig_of(&self, dir: &Path, credentials: &Credentials<'_>) -> Result<PathBuf> {
        let authority = self.control_plane.authority().pem();
        let server = format!("https://{}", self.address());
        kubeconfig::write(dir, &server, Some(&authority), credentials)
    }

    /// Also creates the namespace and the `ServiceAccount`, because the manifests of the workload, which have them, are
    /// not applied here.
    async fn allow_agents(&self) -> Result<()> {
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        let account = json!({"metadata": {"name": SERVICE_ACCOUNT}});
        let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
        for (uri, object) in [("/api/v1/namespaces", namespace), (&accounts, account)] {
            self.request(Method::POST, uri, "application/json", Some(&object))
                .await?;
        }
        self.kubectl(&["apply", "--filename", RBAC]).await?;
        Ok(())
    }
}
