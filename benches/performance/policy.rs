//! The cost of the admission policy: the same PATCH by an account that the policy holds and by one that it does not hold,
//! in turn.

use anyhow::Result;
use http::{Request, Version};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::DEADLINE;
use testkit::agent::{manifests, write_configuration};
use testkit::cluster::{self, Cluster};
use tokio::time::timeout;

use crate::TAINT;
use crate::connection::Connection;
use crate::samples::Samples;
use crate::table::{Row, Target};

const NAME: &str = "agent";
/// More rules than a configuration usually has.
const MANY: usize = 500;

/// One row for a policy with one rule, and one for a policy with [`MANY`] rules.
pub(crate) async fn measure(cluster: &Cluster, program: &str, rounds: u32) -> Result<[Row; 2]> {
    let directories = [TempDir::new()?, TempDir::new()?, TempDir::new()?];
    let [free, held, held_by_many] = &directories;
    cluster.create_node("free", &[]).await?;
    cluster.agent_kubeconfig(free.path(), "free").await?;
    install(cluster, program, "held", 1, held).await?;
    install(cluster, program, "held-by-many", MANY, held_by_many).await?;

    let open = |directory| Connection::open(cluster.address(), directory, Version::HTTP_11);
    let mut subjects = [
        ("free", open(free.path()).await?, Samples::default()),
        ("held", open(held.path()).await?, Samples::default()),
        (
            "held-by-many",
            open(held_by_many.path()).await?,
            Samples::default(),
        ),
    ];
    for _ in 0..rounds {
        for (node, connection, samples) in &mut subjects {
            let node = cluster.set_taints(node, &[TAINT]).await?;
            samples.push(connection.untaint(&node).await?.1);
        }
    }
    let [(_, _, free), (_, _, held), (_, _, held_by_many)] = subjects;
    let row = |what: &str, held: &Samples| {
        let row = Row::new(
            &format!("one PATCH under the admission policy{what}, × without it"),
            format!("{held}, without {free}"),
        );
        let ratio = held.median() / free.median();
        row.ratio(ratio).target(Target::at_most(ratio, 1.5, "×"))
    };
    Ok([
        row("", &held),
        row(&format!(" with {MANY} rules"), &held_by_many),
    ])
}

/// The last rule is for the taint of every Node here.
fn rules(count: usize) -> String {
    let others = (1..count).map(|nth| {
        format!(
            "- name: r{nth}\n  taint: {{key: example.com/{nth}, value: x, effect: NoSchedule}}\n  \
             nodeSelector: {{pool: large}}\n  gates: [{{name: g, file: {{path: /nonexistent}}}}]\n  \
             retaint: {{after: 30s}}\n  publishCondition: {{type: example.com/{nth}}}\n"
        )
    });
    let others: String = others.collect();
    format!("{others}- {{name: bench, taint: {{key: example.com/not-ready}}, gates: []}}\n")
}

/// Creates a Node and an account that a policy with so many rules holds, and writes the credentials of an agent on this
/// Node into the directory. Returns when the policy is in force.
async fn install(
    cluster: &Cluster,
    program: &str,
    name: &str,
    count: usize,
    directory: &TempDir,
) -> Result<()> {
    cluster.create_node(name, &[]).await?;
    let config = directory.path().join("config.yaml");
    write_configuration(&config, &rules(count))?;
    let account = ["--namespace", name, "--service-account", NAME];
    let written = async |part| {
        let arguments = [&["--only", part][..], &account].concat();
        manifests(program, &config, &arguments).await
    };
    let accounts = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {NAME}, namespace: {name}}}\n"
    );
    cluster.apply(&accounts).await?;
    cluster.apply(&written("rbac").await?).await?;
    // The policy is applied after the roles are in force, so that a refusal comes from the policy.
    let user = format!("system:serviceaccount:{name}:{NAME}");
    let can = ["auth", "can-i", "patch", "nodes", "--as", &user];
    timeout(DEADLINE, async {
        while cluster.kubectl(&can).await.is_err() {}
    })
    .await?;
    cluster.apply(&written("policy").await?).await?;
    let token = cluster.token_for_node(name, NAME, name).await?;
    let kubeconfig = cluster.kubeconfig(directory.path(), &token)?;
    let client = cluster::client(&kubeconfig).await?;
    timeout(DEADLINE, async {
        while labels(&client, name).await.is_ok() {}
    })
    .await?;
    Ok(())
}

/// A request that only the policy refuses.
async fn labels(client: &kube::Client, node: &str) -> Result<Value> {
    let patch = json!({"metadata": {"labels": {"x": "y"}}});
    let request = Request::patch(format!("/api/v1/nodes/{node}?dryRun=All"))
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())?;
    Ok(client.request(request).await?)
}
