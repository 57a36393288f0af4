//! The cost of an idle agent.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use testkit::cluster::Cluster;
use testkit::health::HealthEndpoint;
use tokio::time::sleep;

use crate::MIB;
use crate::subject::{Gate, Subject};
use crate::table::{Row, Target};

/// Threads that read files end after 10 idle seconds, which is tokio's default.
const SETTLE: Duration = Duration::from_secs(12);

/// Seconds between two HTTP/2 PINGs of the agent.
const PING: u64 = 15;
/// Up to three steps of tokio's timer wheel for the PING, one for its time-out, and the answer.
const WAKES_PER_PING: u64 = 5;
/// Seconds between two bookmarks of the server.
const BOOKMARK: u64 = 60;
/// A bookmark can arrive in two parts.
const WAKES_PER_BOOKMARK: u64 = 2;
/// Seconds between two checks of the configuration file.
const LOOK: u64 = 60;
/// Up to three steps of tokio's timer wheel, up to two for the answer, the thread's idle time-out, and the file events
/// that the check itself causes.
const WAKES_PER_LOOK: u64 = 8;

/// Measures an agent, with the settings of the DaemonSet, for this time after a removal.
pub(crate) async fn measure(
    cluster: &Cluster,
    program: &str,
    duration: Duration,
) -> Result<Vec<Row>> {
    let endpoint = HealthEndpoint::start(503).await?;
    let gates = [Gate::Conflist, Gate::Http(endpoint.port())];
    let idle = Subject::start(cluster, program, "idle".into(), &gates, "127.0.0.1:0").await?;
    idle.install_conflist()?;
    endpoint.set(200);
    idle.agent.wait_for_message("removed the taint").await?;
    sleep(SETTLE).await;

    let process = Path::new("/proc").join(idle.agent.id().to_string());
    let before = switches(&process)?;
    sleep(duration).await;
    let after = switches(&process)?;
    let seconds = duration.as_secs();
    // The measurement can start in the middle of one of each.
    let limit = (seconds / PING + 1) * WAKES_PER_PING
        + (seconds / BOOKMARK + 1) * WAKES_PER_BOOKMARK
        + (seconds / LOOK + 1) * WAKES_PER_LOOK;
    let (voluntary, involuntary) = (
        after.0.saturating_sub(before.0),
        after.1.saturating_sub(before.1),
    );
    let status = fs::read_to_string(process.join("status"))?;
    let [resident, anonymous, peak] = [
        mib(&status, "VmRSS")?,
        mib(&status, "RssAnon")?,
        mib(&status, "VmHWM")?,
    ];
    Ok(vec![
        Row::new(
            "resident memory while idle",
            format!(
                "{resident:.1} MiB ({anonymous:.1} without the program's file; peak {peak:.1})"
            ),
        )
        .target(Target::at_most(resident, 8.0, "MiB")),
        Row::new(
            &format!("wake-ups in {seconds} idle seconds"),
            format!("{voluntary}, and preempted {involuntary} times"),
        )
        .target(Target::new(
            voluntary <= limit,
            format!("≤ {limit}: PINGs, bookmarks, looks at the configuration"),
        )),
    ])
}

/// The numbers of voluntary and of involuntary context switches of a process's threads.
fn switches(process: &Path) -> Result<(u64, u64)> {
    let (mut voluntary, mut involuntary) = (0, 0);
    for task in fs::read_dir(process.join("task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        voluntary += field(&status, "voluntary_ctxt_switches")?;
        involuntary += field(&status, "nonvoluntary_ctxt_switches")?;
    }
    Ok((voluntary, involuntary))
}

#[expect(clippy::cast_precision_loss, reason = "no process is that large")]
fn mib(status: &str, name: &str) -> Result<f64> {
    Ok((field(status, name)? * 1024) as f64 / MIB)
}

/// A number in `/proc/PID/status`. Memory is in KiB.
fn field(status: &str, name: &str) -> Result<u64> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = value.and_then(|value| value.split_whitespace().next());
    Ok(value.with_context(|| name.to_owned())?.parse()?)
}
