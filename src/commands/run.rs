//! `untaint run`.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{error, info};

use super::{Failure, by, deadline, load, one_rule};
use crate::agent::{self, Options};
use crate::api::{ApiServer, Source};
use crate::cli::{Exit, RunArgs};
use crate::events;
use crate::gate::State;
use crate::metrics::{Counters, Metrics};
use crate::reload::{self, Loaded};
use crate::server::{self, Sources};
use crate::status::{ConfigurationStatus, RuleStatus, Status};
use crate::syntax::DNS_SUBDOMAIN;

/// How long the end waits for the Event of the last removal.
const LAST_EVENTS: Duration = Duration::from_secs(1);

pub(super) async fn run(args: RunArgs) -> Result<Exit, Failure> {
    let listen = args.listen();
    let RunArgs {
        config,
        taint,
        gates,
        node_name,
        kubeconfig,
        listen: _,
        once,
        settle,
        timeout: limit,
        dry_run,
        no_policy_check,
    } = args;
    let deadline = deadline(limit);
    let (loaded, file) = match (config, taint) {
        (Some(path), _) => {
            let loaded = load(&path, deadline, Loaded::from_file).await?;
            // What ends by itself does so by the configuration that it began with.
            (loaded, (!once).then_some(path))
        }
        (None, Some(taint)) => (Loaded::without_file(one_rule(taint, gates)), None),
        (None, None) => {
            return Err(Failure::Usage(
                "name a configuration with --config, or a taint with --taint".into(),
            ));
        }
    };
    let node_name = own_node(node_name.as_deref())?;
    let source = kubeconfig.map_or(Source::InCluster, Source::Kubeconfig);
    let api = ApiServer::new(source)
        .await
        .map_err(|error| Failure::Usage(error.to_string()))?;
    introduce(&loaded.status, &node_name, &api);
    let api = Arc::new(api);

    let (status, status_receiver) = watch::channel(None);
    let (pings, pinged) = mpsc::channel(1);
    let counters = Counters::default();
    let metrics = Metrics::new(api.traffic(), status_receiver.clone(), counters.clone());
    let sources = Sources {
        status: status_receiver.clone(),
        metrics: Arc::new(metrics),
        pings,
    };
    // A task of its own: however many clients there are, the main job has its turn.
    let mut server = JoinSet::new();
    if let Some(address) = listen {
        server.spawn(server::serve(address, sources));
    }
    let (sender, reloads) = mpsc::channel(1);
    let configuration = loaded.status.clone();
    let following = async {
        match file {
            Some(path) => reload::follow(path, configuration, sender).await,
            None => std::future::pending().await,
        }
    };
    let (events, publisher) = events::channel(Arc::clone(&api), node_name.clone());
    let mut publishing = pin!(publisher.run());
    let options = Options {
        node_name,
        once: once.then_some(settle),
        dry_run,
        policy_check: !no_policy_check,
        counters,
        events: Some(events),
    };
    let work = agent::run(loaded, reloads, api, options, status, pinged);
    let result = tokio::select! {
        done = by(deadline, work) => Ok(match (once, done) {
            (true, Some(())) => Exit::Done,
            (true, None) => {
                tell_what_is_left(status_receiver.borrow().as_ref());
                Exit::NotReady
            }
            (false, _) => return Err(anyhow!("the agent's loop ended").into()),
        }),
        Some(_) = server.join_next() => Err(anyhow!("the HTTP server ended").into()),
        () = following => Err(anyhow!("the configuration file is not followed any more").into()),
        () = &mut publishing => Err(anyhow!("the publisher of Events ended").into()),
    };
    let _ = timeout(LAST_EVENTS, publishing).await;
    result
}

/// The host's name is not taken in its place: it need not be the Node's, and the taints of another Node are at stake.
fn own_node(name: Option<&str>) -> Result<String, Failure> {
    const REMEDY: &str = "give --node-name or NODE_NAME; in a pod:\n  \
        env: [{name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]";
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(Failure::Usage(format!(
            "the name of the own Node is not known: {REMEDY}"
        )));
    };
    DNS_SUBDOMAIN
        .parse(name)
        .map_err(|error| Failure::Usage(format!("the name of the own Node {error}: {REMEDY}")))
}

fn introduce(configuration: &ConfigurationStatus, node: &str, api: &ApiServer) {
    let ConfigurationStatus { source, sha256, .. } = configuration;
    let version = env!("CARGO_PKG_VERSION");
    info!(version, node, server = %api.url(), configuration = source, sha256, "started");
}

/// Why it was not in time.
fn tell_what_is_left(status: Option<&Status>) {
    let Some(status) = status else { return };
    if let Some(incident) = status
        .api
        .last_error
        .as_ref()
        .filter(|_| !status.api.watching)
    {
        error!(
            error = incident.message,
            "not in time: the API server does not answer"
        );
    }
    if status.rules.iter().all(|rule| rule.done) {
        error!(
            "not in time: the taints are gone, but Karpenter has not registered the node, or the last look failed"
        );
    }
    for rule in status.rules.iter().filter(|rule| !rule.done) {
        let RuleStatus {
            name,
            decision,
            denied,
            ..
        } = rule;
        error!(rule = name, decision, denied, "not in time");
        for gate in rule.gates.iter().filter(|gate| gate.state != State::Open) {
            error!(
                rule = name,
                gate = gate.name,
                state = gate.state.as_str(),
                reason = gate.message,
                "not in time"
            );
        }
    }
}
