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
use crate::table::{Row, Target};

const NAME: &str = "agent";
/// As many rules as nobody has.
const MANY: usize = 500;

/// With one rule, and with as many as nobody has.
pub(crate) async fn measure(cluster: &Cluster, rounds: u32) -> Result<[Row; 2]> {
    let directories = [TempDir::new()?, TempDir::new()?, TempDir::new()?];
    let [free, held, held_by_many] = &directories;
    cluster.create_node("free", &[]).await?;
    cluster.agent_kubeconfig(free.path(), "free").await?;
    install(cluster, "held", 1, held).await?;
    install(cluster, "held-by-many", MANY, held_by_many).await?;

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

/// The last is for the taint of every Node here.
fn configuration(rules: usize) -> String {
    let others = (1..rules).map(|nth| {
        format!(
            "- name: r{nth}\n  taint: {{key: example.com/{nth}, value: x, effect: NoSchedule}}\n  \
             nodeSelector: {{pool: large}}\n  gates: [{{name: g, file: {{path: /nonexistent}}}}]\n  \
             retaint: {{after: 30s}}\n  publishCondition: {{type: example.com/{nth}}}\n"
        )
    });
    let others: String = others.collect();
    format!(
        "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n{others}\
         - {{name: bench, taint: {{key: example.com/not-ready}}, gates: []}}\n"
    )
}

/// An account that is held to so many rules, and a Node of the same name, with the credentials of an agent there in the
/// directory. Returns when the policy is in force.
async fn install(cluster: &Cluster, name: &str, rules: usize, directory: &TempDir) -> Result<()> {
    cluster.create_node(name, &[]).await?;
    let text = configuration(rules);
    let manifests = Manifests {
        configuration: config::parse(&text)?,
        text,
        form: Form::Daemonset,
        account: Account {
            namespace: name.into(),
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
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {NAME}, namespace: {name}}}\n"
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
    cluster.apply(&manifests.render(&[Part::Policy])?).await?;
    let token = cluster.token_for_node(name, NAME, name).await?;
    let kubeconfig = cluster.kubeconfig(directory.path(), &token)?;
    let client = cluster::client(&kubeconfig).await?;
    timeout(DEADLINE, async {
        while labels(&client, name).await.is_ok() {}
    })
    .await?;
    Ok(())
}

/// What only the policy refuses.
async fn labels(client: &kube::Client, node: &str) -> Result<Value> {
    let patch = json!({"metadata": {"labels": {"x": "y"}}});
    let request = Request::patch(format!("/api/v1/nodes/{node}?dryRun=All"))
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())?;
    Ok(client.request(request).await?)
}
