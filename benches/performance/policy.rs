//! What the admission policy costs: the same PATCH by an account that it holds and by one that it does not, in turn.

use anyhow::Result;
use http::{Request, Version};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::DEADLINE;
use testkit::cluster::{self, Cluster};
use tokio::time::timeout;
use untaint::config;
use untaint::manifests::{Account, Form, Manifests, Part, Tenants};

use crate::TAINT;
use crate::connection::Connection;
use crate::samples::Samples;
use crate::table::Row;

const NAMESPACE: &str = "held";
const NAME: &str = "agent";
const CONFIGURATION: &str = "apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- {name: bench, taint: {key: example.com/not-ready}, gates: []}
";

pub(crate) async fn measure(cluster: &Cluster, rounds: u32) -> Result<Row> {
    let [free, held] = [TempDir::new()?, TempDir::new()?];
    cluster.create_node("free", &[]).await?;
    cluster.create_node("held", &[]).await?;
    cluster.agent_kubeconfig(free.path(), "free").await?;
    install(cluster).await?;
    let token = cluster.token_for_node(NAMESPACE, NAME, "held").await?;
    let kubeconfig = cluster.kubeconfig(held.path(), &token)?;
    let client = cluster::client(&kubeconfig).await?;
    timeout(DEADLINE, async { while labels(&client).await.is_ok() {} }).await?;

    let open = |directory| Connection::open(cluster.address(), directory, Version::HTTP_11);
    let mut subjects = [
        ("free", open(free.path()).await?, Samples::default()),
        ("held", open(held.path()).await?, Samples::default()),
    ];
    for _ in 0..rounds {
        for (node, connection, samples) in &mut subjects {
            let node = cluster.set_taints(node, &[TAINT]).await?;
            samples.push(connection.untaint(&node).await?.1);
        }
    }
    let [(_, _, free), (_, _, held)] = subjects;
    let result = format!("{held}, without {free}");
    let row = Row::new("one PATCH under the admission policy, × without it", result);
    Ok(row.ratio(held.median() / free.median()))
}

async fn install(cluster: &Cluster) -> Result<()> {
    let manifests = Manifests {
        text: CONFIGURATION.into(),
        configuration: config::parse(CONFIGURATION)?,
        form: Form::Daemonset,
        account: Account {
            namespace: NAMESPACE.into(),
            name: NAME.into(),
        },
        image: "untaint".into(),
        exact_tolerations: false,
        selinux_type: None,
        check_node_uid: false,
        strict_policy: false,
        tenants: Tenants::default(),
    };
    let accounts = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n---\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {NAME}, namespace: {NAMESPACE}}}\n"
    );
    cluster.apply(&accounts).await?;
    let rights = manifests.render(&[Part::Rbac])?;
    cluster.apply(&rights).await?;
    // The roles take effect before the policy does, which is how that is seen.
    let can = [
        "auth",
        "can-i",
        "patch",
        "nodes",
        "--as",
        &manifests.account.user(),
    ];
    timeout(DEADLINE, async {
        while cluster.kubectl(&can).await.is_err() {}
    })
    .await?;
    cluster.apply(&manifests.render(&[Part::Policy])?).await
}

/// What only the policy refuses.
async fn labels(client: &kube::Client) -> Result<Value> {
    let patch = json!({"metadata": {"labels": {"x": "y"}}});
    let request = Request::patch("/api/v1/nodes/held?dryRun=All")
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())?;
    Ok(client.request(request).await?)
}
