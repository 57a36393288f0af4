//! What an agent on a node has: a token of the `ServiceAccount` that is bound to its Node.

use std::path::{Path, PathBuf};

use anyhow::Result;
use http::Method;
use serde_json::json;

use super::Cluster;
use crate::kubeconfig::{self, Credentials};

/// Namespace and name of the agent's `ServiceAccount`.
const NAMESPACE: &str = "untaint";
const SERVICE_ACCOUNT: &str = "untaint";
/// What the agent may do.
const RBAC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rbac");

impl Cluster {
    /// Writes a kubeconfig file with the rights of the agent on this Node, which must exist, into `dir`, with `ca.crt`
    /// and `token` beside it, and returns its path.
    pub async fn agent_kubeconfig(&self, dir: &Path, node: &str) -> Result<PathBuf> {
        self.agents_allowed
            .get_or_try_init(|| self.allow_agents())
            .await?;
        let token = self
            .token_for_node(NAMESPACE, SERVICE_ACCOUNT, node)
            .await?;
        self.kubeconfig(dir, &token)
    }

    /// Writes a kubeconfig file for the holder of this token, with `ca.crt` and `token` beside it, and returns its path.
    pub fn kubeconfig(&self, dir: &Path, token: &str) -> Result<PathBuf> {
        kubeconfig::write(
            dir,
            &format!("https://{}", self.address()),
            Some(&self.control_plane.authority()?),
            &Credentials::Token(token),
        )
    }

    /// The manifests of `rbac/` may hold the namespace and the `ServiceAccount`, or leave them to the workload's.
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
