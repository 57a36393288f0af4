//! `kubectl untaint`: for people at a laptop with a kubeconfig. kubectl runs this program if it is in the `PATH`.
//!
//! [`cluster`] reads what there is to know, [`explain`] says what it means, and [`show`] writes it. Only [`cluster`] and
//! [`agent`] use the API.

mod agent;
mod cluster;
mod explain;
mod karpenter;
mod kubelet;
mod owners;
mod show;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::cluster::{Cluster, Wanted};

/// Says what keeps pods off nodes, and what to do next.
#[derive(Debug, Parser)]
#[command(name = "kubectl-untaint", bin_name = "kubectl untaint", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Explain each taint of nodes: who removes it, what that waits for, and what to do next.
    Explain(ExplainArgs),
}

#[derive(Debug, Args)]
struct ExplainArgs {
    /// The names of Nodes.
    #[arg(value_name = "NODE", required_unless_present = "all")]
    nodes: Vec<String>,
    /// All Nodes, in groups with the same reason. Agents are not asked, so gates are known only from conditions and Events.
    #[arg(long, conflicts_with = "nodes")]
    all: bool,
    /// How to write the answer.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Output,
    /// A kubeconfig. Without it, those that kubectl uses.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
    /// The context of the kubeconfig to use.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Command::Explain(args) = Cli::parse().command;
    match explain_nodes(args).await {
        Ok(text) => {
            // A reader such as `head` may have ended.
            let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("error: {error:#}\n").as_bytes(),
            );
            ExitCode::FAILURE
        }
    }
}

async fn explain_nodes(args: ExplainArgs) -> Result<String> {
    let client = client(&args).await.context("the kubeconfig")?;
    let wanted = if args.all {
        Wanted::All
    } else {
        Wanted::Named(args.nodes)
    };
    let cluster = Cluster::read(&client, &wanted).await?;
    let explanations = explain::all(&cluster);
    Ok(match (args.output, wanted) {
        (Output::Json, _) => show::json(&cluster, &explanations)?,
        (Output::Text, Wanted::Named(_)) => show::text(&cluster, &explanations),
        (Output::Text, Wanted::All) => show::groups(&cluster, &explanations),
    })
}

async fn client(args: &ExplainArgs) -> Result<Client> {
    let options = KubeConfigOptions {
        context: args.context.clone(),
        ..KubeConfigOptions::default()
    };
    let config = match &args.kubeconfig {
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await?
        }
        None => Config::from_kubeconfig(&options).await?,
    };
    Ok(Client::try_from(config)?)
}
