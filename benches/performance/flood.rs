//! Removals while another account floods the API server: the agents of an account with the FlowSchema of the manifests and
//! those of an account without it, in turn.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tempfile::TempDir;
use testkit::agent::{Agent, manifests, run_on, write_configuration};
use testkit::cluster::{self, Cluster};
use testkit::{CONFLIST, DEADLINE};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::TAINT;
use crate::node_watch::NodeWatch;
use crate::samples::Samples;
use crate::table::Row;

/// Few requests at once, so that few requests are a flood.
pub(crate) const FLAGS: [&str; 2] = [
    "--max-requests-inflight=12",
    "--max-mutating-requests-inflight=12",
];
/// The requests of the flood that are under way at once. Fewer than the queues of one flow hold, so none is refused.
const FLOOD: usize = 64;
const ACCOUNT: &str = "agent";

/// The ratio of the time without the FlowSchema to the time with it. `cluster` was started with [`FLAGS`].
pub(crate) async fn measure(cluster: &Cluster, program: &str, rounds: u32) -> Result<Row> {
    let watch = NodeWatch::start(cluster).await?;
    for (namespace, option) in [("flow", Some("--flow-schema")), ("no-flow", None)] {
        install(cluster, program, namespace, option).await?;
    }
    let _flood = flood(cluster).await?;
    let mut with = Samples::default();
    let mut without = Samples::default();
    for round in 0..rounds {
        for (namespace, samples) in [("flow", &mut with), ("no-flow", &mut without)] {
            let node = format!("{namespace}-{round}");
            samples.push(removal(cluster, program, &watch, namespace, &node).await?);
        }
    }
    let measure = "conflist appears → taint gone, while another account floods the server: without the FlowSchema, × with it";
    let ratio = without.median() / with.median();
    Ok(Row::new(measure, format!("{without}, with {with}")).ratio(ratio))
}

/// An account of agents with its roles. There is no policy, so it does not matter which taints the roles name.
async fn install(
    cluster: &Cluster,
    program: &str,
    namespace: &str,
    option: Option<&str>,
) -> Result<()> {
    let directory = TempDir::new()?;
    let config = directory.path().join("config.yaml");
    configure(directory.path(), &config)?;
    let account = account(namespace, ACCOUNT);
    cluster.apply(&account).await?;
    let arguments = [
        "--only=rbac",
        "--namespace",
        namespace,
        "--service-account",
        ACCOUNT,
    ];
    let arguments: Vec<_> = arguments.into_iter().chain(option).collect();
    cluster
        .apply(&manifests(program, &config, &arguments).await?)
        .await?;
    if option.is_none() {
        return Ok(());
    }
    // The FlowSchema takes effect some time after it is created.
    let name = format!("flowschema/untaint.{namespace}.{ACCOUNT}");
    let arguments = ["get", &name, "--output=jsonpath={.metadata.uid}"];
    let uid = cluster.kubectl(&arguments).await?;
    let token = cluster.token(namespace, ACCOUNT).await?;
    let client = cluster::client(&cluster.kubeconfig(directory.path(), &token)?).await?;
    timeout(DEADLINE, async {
        loop {
            let request = Request::get("/api/v1/nodes/none").body(Body::empty())?;
            let answer = client.send(request).await?;
            let matched = answer.headers().get("x-kubernetes-pf-flowschema-uid");
            if matched.is_some_and(|matched| matched.as_bytes() == uid.as_bytes()) {
                return anyhow::Ok(());
            }
        }
    })
    .await?
}

fn account(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n---\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
    )
}

/// One rule with a gate that opens when the CNI configuration is there.
fn configure(directory: &Path, config: &Path) -> Result<()> {
    let net_d = directory.join("net.d");
    let rule = format!(
        "- name: bench\n  taint: {{key: example.com/not-ready}}\n  gates:\n  - {{name: conflist, cniConfig: {{dir: {}}}}}\n",
        net_d.display()
    );
    write_configuration(config, &rule)
}

/// Starts an agent on a new Node, and returns the time from its gate's opening to its taint's end.
async fn removal(
    cluster: &Cluster,
    program: &str,
    watch: &NodeWatch,
    namespace: &str,
    node: &str,
) -> Result<Duration> {
    cluster.create_node(node, &[TAINT]).await?;
    let directory = TempDir::new()?;
    let path = directory.path();
    let token = cluster.token_for_node(namespace, ACCOUNT, node).await?;
    let kubeconfig = cluster.kubeconfig(path, &token)?;
    let config = path.join("config.yaml");
    configure(path, &config)?;
    let net_d = path.join("net.d");
    fs::create_dir(&net_d)?;
    let unfinished = net_d.join("10-demo.conflist.tmp");
    fs::write(&unfinished, CONFLIST)?;
    let arguments = [
        &run_on(node, &config, &kubeconfig)[..],
        &["--listen", "off"],
    ]
    .concat();
    let agent = Agent::start(program, &arguments, &[])?;
    agent
        .wait_for_count("the gate's state or reason changed", 1)
        .await?;
    let opened = Instant::now();
    fs::rename(&unfinished, net_d.join("10-demo.conflist"))?;
    Ok(watch.untainted(node).await? - opened)
}

/// What keeps the flood going. It ends when it is dropped.
struct Flood {
    _requests: JoinSet<()>,
    _webhook: TcpListener,
}

/// Each request waits for a webhook that never answers, so it holds its place at its priority level for a second, and the
/// server has almost nothing to do. Returns when requests wait in a queue.
async fn flood(cluster: &Cluster) -> Result<Flood> {
    let webhook = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    cluster.apply(&account("flood", "flood")).await?;
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "flood"},
        "webhooks": [{
            "name": "flood.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 1,
            "clientConfig": {"url": format!("https://{}/", webhook.local_addr()?)},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "flood"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        }],
    });
    cluster.apply(&object.to_string()).await?;
    let in_namespace = ["--namespace=flood", "create"];
    let role = ["role", "flood", "--verb=create", "--resource=configmaps"];
    let binding = [
        "rolebinding",
        "flood",
        "--role=flood",
        "--serviceaccount=flood:flood",
    ];
    cluster
        .kubectl(&[&in_namespace[..], &role].concat())
        .await?;
    cluster
        .kubectl(&[&in_namespace[..], &binding].concat())
        .await?;
    let directory = TempDir::new()?;
    let token = cluster.token("flood", "flood").await?;
    let client = cluster::client(&cluster.kubeconfig(directory.path(), &token)?).await?;
    // The role and the webhook take effect some time after they are created.
    timeout(DEADLINE, async {
        while ask(&client).await? != StatusCode::INTERNAL_SERVER_ERROR {}
        anyhow::Ok(())
    })
    .await??;
    let mut requests = JoinSet::new();
    for _ in 0..FLOOD {
        requests.spawn(keep_asking(client.clone()));
    }
    let admin = cluster.client().await?;
    timeout(DEADLINE, async {
        while !is_queued(&admin).await? {}
        anyhow::Ok(())
    })
    .await??;
    Ok(Flood {
        _requests: requests,
        _webhook: webhook,
    })
}

/// The answer is an internal error if the webhook was asked.
async fn ask(client: &Client) -> Result<StatusCode> {
    let object = json!({"metadata": {"name": "flood"}});
    let request = Request::post("/api/v1/namespaces/flood/configmaps?dryRun=All")
        .header("content-type", "application/json")
        .body(Body::from(object.to_string().into_bytes()))?;
    Ok(client.send(request).await?.status())
}

async fn keep_asking(client: Client) {
    while ask(&client).await.is_ok() {}
}

/// Whether more requests than there are free places wait at the level of all ServiceAccounts.
async fn is_queued(admin: &Client) -> Result<bool> {
    let metrics = Request::get("/metrics").body(Vec::new())?;
    let metrics = admin.request_text(metrics).await?;
    let line = metrics.lines().find(|line| {
        line.starts_with("apiserver_flowcontrol_current_inqueue_requests{")
            && line.contains("flow_schema=\"service-accounts\"")
    });
    let Some(line) = line else {
        return Ok(false);
    };
    let (_, count) = line.rsplit_once(' ').context("a number")?;
    Ok(count.parse::<f64>()? > 0.0)
}
