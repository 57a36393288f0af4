//! The performance table: the real program against a real API server.
//!
//! Machines differ and can be busy. So the table also shows latencies as multiples of one PATCH on an open connection,
//! which is measured in turn with them.

mod connection;
mod flood;
mod idle;
mod latency;
mod node_watch;
mod policy;
mod samples;
mod subject;
mod table;

use std::io::Write as _;
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{fs, io, thread};

use anyhow::Result;
use clap::Parser;
use testkit::cluster::{self, Cluster};
use tokio_rustls::rustls::crypto::ring;

use crate::latency::Latencies;
use crate::table::{Row, Target};

/// The taint of every Node here.
const TAINT: &str = "example.com/not-ready:NoExecute";
const MIB: f64 = 1024.0 * 1024.0;

/// Measures untaint against the real API server and prints a table in Markdown.
#[derive(Parser)]
struct Arguments {
    /// Fail if a target is missed, which can happen on a busy machine
    #[arg(long)]
    check: bool,
    /// The number of rounds of each latency
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The number of seconds for which the wake-ups of an idle agent are counted
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
    /// Measure only removals while another account floods the server
    #[arg(long)]
    flood: bool,
    /// Measure this program instead of the one that is built with the bench
    #[arg(long, default_value = env!("CARGO_BIN_EXE_untaint"))]
    program: String,
    /// Set by cargo bench, and not by cargo test --all-targets
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(ExitCode::SUCCESS);
    }
    let _ = ring::default_provider().install_default();
    let flags = if arguments.flood {
        &flood::FLAGS[..]
    } else {
        &[]
    };
    let Some(cluster) = cluster::fresh(flags).await else {
        return Ok(ExitCode::SUCCESS);
    };
    let rows = if arguments.flood {
        vec![flood::measure(&cluster, &arguments.program, arguments.rounds).await?]
    } else {
        measure(&arguments, &cluster).await?
    };
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "\n{}\n\n{}",
        circumstances(&cluster, arguments.rounds).await?,
        table::markdown(&rows)
    )?;
    let missed = rows.iter().any(Row::is_missed);
    Ok(ExitCode::from(u8::from(arguments.check && missed)))
}

async fn measure(arguments: &Arguments, cluster: &Cluster) -> Result<Vec<Row>> {
    let latencies = Latencies::measure(cluster, &arguments.program, arguments.rounds).await?;
    let mut rows = latencies.rows();
    rows.extend(policy::measure(cluster, &arguments.program, arguments.rounds).await?);
    let duration = Duration::from_secs(arguments.idle);
    rows.extend(idle::measure(cluster, &arguments.program, duration).await?);
    rows.extend(program(&arguments.program)?);
    Ok(rows)
}

/// The circumstances of the measurement.
async fn circumstances(cluster: &Cluster, rounds: u32) -> Result<String> {
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    Ok(format!(
        "kube-apiserver {} on the same machine, {} CPUs, load {load}; {rounds} rounds",
        cluster.version().await?,
        thread::available_parallelism()?
    ))
}

fn program(program: &str) -> Result<[Row; 2]> {
    #[expect(clippy::cast_precision_loss, reason = "no program is that large")]
    let size = fs::metadata(program)?.len() as f64 / MIB;
    let ldd = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .output()?;
    let said = String::from_utf8([ldd.stdout, ldd.stderr].concat())?;
    let is_static = ["statically linked", "not a dynamic executable"]
        .iter()
        .any(|words| said.contains(words));
    Ok([
        Row::new("size of the program", format!("{size:.1} MiB"))
            .target(Target::at_most(size, 8.0, "MiB")),
        Row::new(
            "libraries that it needs",
            if is_static { "none" } else { "some" }.into(),
        )
        .target(Target::new(is_static, "none".into())),
    ])
}
