//! `untaint run`.

use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{error, info, warn};

use super::flags::one_rule;
use super::{Failure, deadline_in, finish_by, late, read_configuration};
use crate::agent::{self, Options};
use crate::api::{ApiServer, Source};
use crate::cli::{Exit, GateArgs, RunArgs};
use crate::config::{Configuration, is_standard_input};
use crate::events;
use crate::metrics::{Counters, Metrics};
use crate::reload::{self, Loaded, Reload};
use crate::server::{self, Sources};
use crate::status::{ConfigurationStatus, LeftTaintStatus, Status};
use crate::syntax::DNS_SUBDOMAIN;
use crate::taint::TaintMatcher;

/// How long the program waits at its end for the Event of the last removal.
const LAST_EVENTS: Duration = Duration::from_secs(1);

pub(super) async fn run(args: RunArgs) -> Result<Exit, Failure> {
    let deadline = deadline_in(args.timeout);
    let listen = args.listen();
    if !args.once && args.config.iter().any(|path| is_standard_input(path)) {
        return Err(Failure::Usage(
            "run reads its configuration again when it changes, and standard input cannot be read again: \
             name a file with --config, or use --once"
                .into(),
        ));
    }
    let loaded = load(&args.config, args.taint, args.gates, deadline).await?;
    let node_name = own_node(args.node_name.as_deref())?;
    let source = args
        .kubeconfig
        .map_or(Source::InCluster, Source::Kubeconfig);
    let api = ApiServer::new(source)
        .await
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let api = Arc::new(api);
    log_start(&loaded.status, &node_name, &api);
    if args.once && api.own_pod().is_none() {
        warn_of_unknown_pod(&loaded.configuration);
    }

    let (status, status_receiver) = watch::channel(None);
    let (pings, pinged) = mpsc::channel(1);
    let counters = Counters::default();
    let metrics = Metrics::new(api.traffic(), status_receiver.clone(), counters.clone());
    let sources = Sources {
        status: status_receiver.clone(),
        metrics: Arc::new(metrics),
        pings,
    };
    // A task of its own, so that clients cannot keep the main job waiting.
    let mut server = JoinSet::new();
    server.spawn(serve(listen, sources));
    let (sender, reloads) = mpsc::channel(1);
    // `--once` uses the configuration that it began with.
    let files = if args.once { Vec::new() } else { args.config };
    let following = follow(files, loaded.status.clone(), sender);
    let (events, publisher) = events::channel(Arc::clone(&api), node_name.clone());
    let mut publishing = pin!(publisher.run());
    let options = Options {
        node_name,
        once: args.once.then_some(args.settle),
        dry_run: args.dry_run,
        policy_check: !args.no_policy_check,
        counters,
        events: Some(events),
    };
    let work = agent::run(loaded, reloads, api, options, status, pinged);
    let result = tokio::select! {
        done = finish_by(deadline, work) => match done {
            Some(()) if args.once => Ok(end_of_once(status_receiver.borrow().as_ref())),
            None => {
                if let Some(status) = status_receiver.borrow().as_ref() {
                    late::log_status(status);
                }
                Ok(Exit::NotReady)
            }
            Some(()) => Err(anyhow!("the agent's loop ended").into()),
        },
        _ = server.join_next() => Err(anyhow!("the HTTP server ended").into()),
        () = following => Err(anyhow!("the watch of the configuration files ended").into()),
        () = &mut publishing => Err(anyhow!("the publisher of Events ended").into()),
    };
    let _ = timeout(LAST_EVENTS, publishing).await;
    result
}

async fn load(
    config: &[PathBuf],
    taint: Option<TaintMatcher>,
    gates: GateArgs,
    deadline: Option<Instant>,
) -> Result<Loaded, Failure> {
    match (config, taint) {
        ([], Some(taint)) => Ok(Loaded::without_file(one_rule(taint, gates))),
        ([_, ..], _) => read_configuration(config, deadline, Loaded::from_files).await,
        ([], None) => Err(Failure::Usage(
            "name a configuration with --config, or a taint with --taint".into(),
        )),
    }
}

/// Without an address, there is nothing to serve and no end.
async fn serve(address: Option<SocketAddr>, sources: Sources) {
    match address {
        Some(address) => server::serve(address, sources).await,
        None => pending().await,
    }
}

/// Without a file, there is nothing to follow and no end.
async fn follow(files: Vec<PathBuf>, status: ConfigurationStatus, reloads: mpsc::Sender<Reload>) {
    if files.is_empty() {
        return pending().await;
    }
    reload::follow(files, status, reloads).await;
}

/// The host's name is no substitute: it may differ from the Node's, and be that of another Node.
fn own_node(name: Option<&str>) -> Result<String, Failure> {
    const REMEDY: &str = "give --node-name or NODE_NAME; in a pod:\n  \
        env: [{name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]";
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(Failure::Usage(format!(
            "the name of the Node is unknown: {REMEDY}"
        )));
    };
    DNS_SUBDOMAIN
        .parse(name)
        .map_err(|error| Failure::Usage(format!("the name of the Node {error}: {REMEDY}")))
}

fn log_start(configuration: &ConfigurationStatus, node: &str, api: &ApiServer) {
    let ConfigurationStatus { source, sha256, .. } = configuration;
    let version = env!("CARGO_PKG_VERSION");
    info!(version, node, server = %api.url(), configuration = source, sha256, "started");
}

/// Warns of gates that would wait for the pod in which `--once` runs.
fn warn_of_unknown_pod(configuration: &Configuration) {
    for (rule, gate, pods) in configuration.gates_for_every_daemon_set() {
        let namespace = &pods.namespace;
        warn!(
            rule,
            gate,
            namespace,
            "cannot tell which pod is untaint's own, because the credentials name none; if that pod belongs to a DaemonSet in \
             this namespace, the gate waits for it, and it waits for untaint; in a pod, use the token that Kubernetes mounts there, \
             without --kubeconfig"
        );
    }
}

/// Logs which taints `--once` leaves on the Node.
fn end_of_once(status: Option<&Status>) -> Exit {
    let left = status.map_or(&[][..], |status| &status.left_taints);
    for LeftTaintStatus {
        taint,
        rule,
        message,
        ..
    } in left
    {
        error!(rule, taint, reason = message, "the taint stays");
    }
    if left.is_empty() {
        Exit::Done
    } else {
        Exit::Left
    }
}
