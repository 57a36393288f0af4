//! The main job in one command, without a cluster: `cargo run --example quickstart`.
//!
//! The real agent, in this process, watches over a Node of a stand-in for the API server, while a CNI directory and a
//! health endpoint come up. What happens is told line by line, then judged: the exit code is 0 only if the taint went
//! at the right moments and nothing else was touched.
//!
//! [`story`] makes things happen to the [`scene`]; [`observer`] tells what comes of it and keeps the record, from which
//! [`verdict`] is reached and [`report`] made. [`timeline`] is how a line looks.

mod observer;
mod report;
mod scene;
mod story;
mod timeline;
mod verdict;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use tokio::signal::ctrl_c;
use tokio::sync::{Notify, mpsc, watch};
use untaint::agent::{self, Options};
use untaint::api::{ApiServer, Source};
use untaint::metrics::Counters;

use observer::Observer;
use scene::{NODE, Scene};

fn main() -> ExitCode {
    // As the program does it: see src/main.rs.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let verified = match runtime {
        Ok(runtime) => runtime.block_on(demonstrate()),
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

/// Gives whether all was as it should be.
async fn demonstrate() -> Result<bool> {
    let scene = Scene::set().await?;
    report::introduction(&scene)?;
    let api = ApiServer::new(Source::Kubeconfig(scene.kubeconfig()?)).await?;
    let configuration = scene.configuration()?;
    let options = Options {
        node_name: NODE.into(),
        once: None,
    };
    let (sender, status) = watch::channel(None);
    // Nobody asks whether the loop is alive.
    let (_pings, pinged) = mpsc::channel(1);
    let start = Notify::new();
    let agent = async {
        start.notified().await;
        agent::run(
            configuration,
            Arc::new(api),
            options,
            sender,
            Counters::default(),
            pinged,
        )
        .await;
        Err(anyhow!("the agent ended"))
    };
    let mut observer = Observer::new(&scene, status.clone());
    // One thread, and the agent goes before its observer: what it says of the gates is on record before a request that
    // follows from it can leave here.
    let played = tokio::select! {
        biased;
        result = agent => result,
        result = observer.observe() => result,
        result = story::play(&scene, status, &start) => result,
        _ = ctrl_c() => Err(anyhow!("interrupted")),
    };
    let record = observer.into_record()?;
    let mut verdict = verdict::judge(&record, &scene::expected());
    if let Err(error) = played {
        verdict.problems.insert(0, format!("{error:#}"));
    }
    report::summary(&scene.timeline, &record, &verdict)?;
    Ok(verdict.problems.is_empty())
}
