//! `untaint run`.

use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::{mpsc, watch};
use tracing::{error, info};

use super::{Failure, in_time, one_rule};
use crate::agent::{self, Options};
use crate::api::{ApiServer, Source};
use crate::cli::{Exit, RunArgs};
use crate::config::{self, Configuration};
use crate::metrics::{Counters, Metrics};
use crate::server::{self, Sources};
use crate::status::{RuleStatus, Status};

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
    } = args;
    let mut configuration = match (config, taint) {
        (Some(path), _) => {
            config::load(&path).map_err(|error| Failure::Usage(error.to_string()))?
        }
        (None, Some(taint)) => one_rule(taint, gates),
        (None, None) => {
            return Err(Failure::Usage(
                "name a configuration with --config, or a taint with --taint".into(),
            ));
        }
    };
    let node_name = own_node(node_name.as_deref())?;
    for rule in &mut configuration.rules {
        rule.dry_run |= dry_run;
        if once {
            // Nobody would be there to remove it again.
            rule.retaint = None;
        }
    }
    let source = kubeconfig.map_or(Source::InCluster, Source::Kubeconfig);
    let api = ApiServer::new(source)
        .await
        .map_err(|error| Failure::Usage(error.to_string()))?;
    introduce(&configuration, &node_name, &api);
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
    let server = async {
        match listen {
            Some(address) => server::serve(address, sources).await,
            None => std::future::pending().await,
        }
    };
    let options = Options {
        node_name,
        once: once.then_some(settle),
    };
    let work = agent::run(configuration, api, options, status, counters, pinged);
    tokio::select! {
        done = in_time(limit, work) => Ok(match (once, done) {
            (true, true) => Exit::Done,
            (true, false) => {
                tell_what_is_left(status_receiver.borrow().as_ref());
                Exit::NotReady
            }
            (false, _) => return Err(anyhow!("the agent's loop ended").into()),
        }),
        () = server => Err(anyhow!("the HTTP server ended").into()),
    }
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
    config::parse_node_name(name)
        .map_err(|error| Failure::Usage(format!("the name of the own Node {error}: {REMEDY}")))
}

fn introduce(configuration: &Configuration, node: &str, api: &ApiServer) {
    info!(version = env!("CARGO_PKG_VERSION"), node, server = %api.url(), "started");
    for rule in &configuration.rules {
        let gates = rule.gates.len();
        info!(rule = rule.name, taint = %rule.taint, gates, dry_run = rule.dry_run, "follows the rule");
    }
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
    let is_done = |rule: &&RuleStatus| matches!(rule.decision, "absent" | "not-selected");
    if status.rules.iter().all(|rule| is_done(&rule)) {
        error!(
            "not in time: the taints are gone, but Karpenter has not registered the node, or the last look failed"
        );
    }
    for rule in status.rules.iter().filter(|rule| !is_done(rule)) {
        let RuleStatus {
            name,
            decision,
            denied,
            ..
        } = rule;
        error!(rule = name, decision, denied, "not in time");
        for gate in rule.gates.iter().filter(|gate| gate.state != "open") {
            error!(
                rule = name,
                gate = gate.name,
                state = gate.state,
                reason = gate.message,
                "not in time"
            );
        }
    }
}
