//! The demo, which needs no cluster: `cargo run --example quickstart`. `-- --metrics` also prints the agent's metrics
//! page.
//!
//! The real agent runs in this process, with a Node on a stand-in for the API server. A CNI plugin and a CSI driver
//! start, and GPUs do not. The demo prints each event, and then checks them. The exit code is 0 only if the agent
//! removed each taint at the right moment, or kept and reported it, and changed nothing else.
//!
//! [`story`] changes the [`scene`]. [`observer`] prints the effects, from [`logs`] and other sources, and records them.
//! [`verdict`] compares the record, and the pages from [`inside`] the agent, with the expectations in [`rules`].
//! [`report`] prints the result. [`timeline`] formats a line, and [`wording`] has its words.

mod inside;
mod logs;
mod observer;
mod report;
mod rules;
mod scene;
mod story;
mod timeline;
mod verdict;
mod wording;

use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Parser;
use tokio::signal::ctrl_c;
use tokio::sync::{Notify, mpsc, watch};
use untaint::agent::{self, Options};
use untaint::api::{ApiServer, Source};
use untaint::metrics::{Counters, Metrics};
use untaint::reload::Loaded;
use untaint::server::{self, Sources};

use inside::Pages;
use logs::Logs;
use observer::Observer;
use rules::{EXPECTED, NODE};
use scene::Scene;
use timeline::say;

/// Shows how untaint removes taints, without a cluster.
#[derive(Parser)]
struct Args {
    /// Print the agent's metrics page at the end.
    #[arg(long)]
    metrics: bool,
}

fn main() -> ExitCode {
    let Args { metrics } = Args::parse();
    // As src/main.rs does.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let verified = match runtime {
        Ok(runtime) => runtime.block_on(demonstrate(metrics)),
        Err(error) => Err(error.into()),
    };
    match verified {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether everything happened as expected. With `show_metrics`, prints that page, too.
async fn demonstrate(show_metrics: bool) -> Result<bool> {
    let logs = Logs::keep();
    let scene = Scene::set().await?;
    let rules = rules::written(&scene.net_d(), scene.health_port());
    report::introduction(&scene, &rules)?;
    let configuration = rules::parse(&rules)?;
    let api = Arc::new(ApiServer::new(Source::Kubeconfig(scene.kubeconfig()?)).await?);
    let loaded = Loaded::without_file(configuration);
    let counters = Counters::default();
    let options = Options {
        node_name: NODE.into(),
        once: None,
        dry_run: false,
        // The stand-in has no policies.
        policy_check: false,
        counters: counters.clone(),
        events: None,
    };
    // The configuration does not change.
    let (_reloads, reloaded) = mpsc::channel(1);
    let (sender, status) = watch::channel(None);
    let (pings, pinged) = mpsc::channel(1);
    let metrics = Metrics::new(api.traffic(), status.clone(), counters);
    let sources = Sources {
        status: status.clone(),
        metrics: Arc::new(metrics),
        pings,
    };
    let start = Notify::new();
    let agent = async {
        start.notified().await;
        let server = server::serve((Ipv4Addr::LOCALHOST, 0).into(), sources);
        tokio::select! {
            () = agent::run(loaded, reloaded, api, options, sender, pinged) => {}
            () = server => {}
        }
        anyhow!("the agent ended")
    };
    let mut observer = Observer::new(&scene, status.clone(), logs.clone());
    let mut pages = Pages::default();
    let story = async {
        let played = story::play(&scene, status, &start).await;
        pages = inside::read(&logs).await?;
        played
    };
    // The agent and its observer share one thread, and the agent runs first. So the state of the gates is recorded
    // before a request that follows from it is sent.
    let played = tokio::select! {
        biased;
        error = agent => Err(error),
        error = observer.observe() => Err(error),
        played = story => played,
        _ = ctrl_c() => Err(anyhow!("interrupted")),
    };
    let record = observer.into_record(pages.overdue)?;
    let mut verdict = verdict::judge(&record, &EXPECTED);
    if let Err(error) = played {
        verdict.problems.insert(0, format!("{error:#}"));
    }
    if show_metrics {
        say(&format!("\n{}", pages.metrics.trim_end()))?;
    }
    report::summary(&scene.timeline, &record, &verdict)?;
    Ok(verdict.problems.is_empty())
}
