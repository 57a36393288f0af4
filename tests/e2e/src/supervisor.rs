//! Runs scenarios one after another, and leaves the machine as it was.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_current_process_group, kill_process, set_child_subreaper, wait,
};

use crate::habitat::{PARTS, PROGRAMS, RUN};
use crate::machine::Machine;
use crate::scenarios::{self, Scenario};
use crate::{cgroups, images};

pub(crate) const COMMAND: &str = "supervise";

/// The directory with the results, in the target directory.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/e2e");
/// After the end of a scenario, the kernel removes the last parts of its namespaces in the background.
const SETTLE: Duration = Duration::from_secs(10);

/// The process of the scenario that runs, and whether no other may be started.
#[derive(Default)]
struct Current {
    process: Option<Pid>,
    /// Whether there may be something to remove.
    begun: bool,
    interrupted: bool,
}

pub(crate) fn main(names: &[&str]) -> Result<ExitCode> {
    let chosen = scenarios::chosen(names);
    let results = Path::new(RESULTS);
    fs::create_dir_all(results)?;
    let results = results.canonicalize()?;
    let current = end_with_front();
    let _lock = lock()?;
    build(&results, &chosen)?;

    // Whatever leaves its parent becomes a child of this process, so that no process can be missed.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    current.lock().unwrap_or_else(PoisonError::into_inner).begun = true;
    cgroups::remove()?;
    let (before, enabled) = (Machine::look()?, cgroups::enabled());
    let (start, mut failed, mut rows) = (Instant::now(), 0, Vec::new());
    for scenario in &chosen {
        println!("\n==> {}: {}", scenario.name, scenario.title);
        let from = Instant::now();
        let logs = results.join(scenario.name);
        let outcome = run_in_groups(scenario.name, &logs, &current, &enabled);
        // Whatever goes wrong, the table and the comparison follow.
        let outcome = outcome.unwrap_or_else(|error| {
            println!("error: {error:#}");
            "FAILED"
        });
        failed += usize::from(outcome != "ok");
        if outcome != "ok" {
            println!("{outcome}");
            if fs::read_dir(&logs).is_ok_and(|mut logs| logs.next().is_some()) {
                println!("the logs are in {}", logs.display());
            }
        }
        rows.push((scenario.name, outcome, from.elapsed()));
        if is_interrupted(&current) {
            break;
        }
    }

    println!("\n{:<16}{:<14}{:>8}", "scenario", "result", "seconds");
    for (name, outcome, time) in rows {
        println!("{name:<16}{outcome:<14}{:>8.1}", time.as_secs_f64());
    }
    println!("{:<30}{:>8.1}", "all", start.elapsed().as_secs_f64());
    let differences = before.differences(SETTLE)?;
    let clean = differences.own.is_empty();
    println!(
        "{:<7} the scenarios leave nothing on the machine; compared: {}",
        if clean { "ok" } else { "FAILED" },
        before.summary()
    );
    for line in &differences.own {
        println!("        {line}");
    }
    for line in &differences.foreign {
        println!("        also changed: {line}");
    }
    let good = failed == 0 && clean && !is_interrupted(&current);
    Ok(ExitCode::from(u8::from(!good)))
}

/// Ends the scenario when the front ends, which closes standard input.
fn end_with_front() -> Arc<Mutex<Current>> {
    let current = Arc::new(Mutex::new(Current::default()));
    let shared = Arc::clone(&current);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let mut current = shared.lock().unwrap_or_else(PoisonError::into_inner);
        current.interrupted = true;
        if let Some(process) = current.process {
            let _ = kill_process(process, Signal::KILL);
        } else if !current.begun {
            // The group is this process, with whatever builds programs.
            let _ = kill_current_process_group(Signal::KILL);
        }
    });
    current
}

fn is_interrupted(current: &Mutex<Current>) -> bool {
    current
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .interrupted
}

/// Only one run at a time: the runs would find each other's traces. The lock leaves none.
fn lock() -> Result<File> {
    let file = File::open("/sys/fs/cgroup").context("the control groups of this machine")?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        println!("waiting for another run on this machine, which holds the lock of /sys/fs/cgroup");
        flock(&file, FlockOperation::LockExclusive)?;
    }
    Ok(file)
}

/// Builds all that the scenarios need, outside of their namespaces.
fn build(results: &Path, chosen: &[&Scenario]) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let built = |parts: BTreeSet<&'static str>| -> Result<Vec<(&str, PathBuf)>> {
        let parts = parts.into_iter();
        let built =
            parts.map(|part| Ok((part, runtime.block_on(testkit::assets::build(&[part]))?)));
        built.collect()
    };
    runtime.block_on(testkit::assets::build(&[]))?;
    // Scenarios have directories with their names beside this one.
    let programs = results.join(PROGRAMS);
    fs::create_dir_all(&programs)?;
    let more = chosen.iter().flat_map(|scenario| scenario.parts);
    for (part, directory) in built(PARTS.iter().chain(more).copied().collect())? {
        let link = programs.join(part);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(directory, link)?;
    }
    let images = chosen.iter().flat_map(|scenario| scenario.images);
    let images = built(images.copied().collect())?;
    images::build(&results.join("images"), &images)
}

/// Runs a scenario, and removes its control groups. `enabled` is what [`cgroups::enabled`] was before.
fn run_in_groups(
    name: &str,
    logs: &Path,
    current: &Mutex<Current>,
    enabled: &str,
) -> Result<&'static str> {
    let _ = fs::remove_dir_all(logs);
    let outcome = cgroups::create().and_then(|()| run(name, logs, current));
    cgroups::remove()?;
    cgroups::restore(enabled)?;
    outcome
}

/// Runs a scenario in namespaces of its own, and returns `ok` or what went wrong.
fn run(name: &str, logs: &Path, current: &Mutex<Current>) -> Result<&'static str> {
    fs::create_dir_all(logs)?;
    let mut process = {
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.interrupted {
            return Ok("interrupted");
        }
        let process = Command::new("unshare")
            .args([
                "--mount",
                "--net",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ])
            .args(["--propagation", "private", "--"])
            .arg(std::env::current_exe()?)
            .args([scenarios::COMMAND, name])
            .arg(logs)
            .env("TMPDIR", RUN)
            // The scenario notices the end of this process.
            .stdin(Stdio::piped())
            .spawn()?;
        current.process = Pid::from_raw(process.id().cast_signed());
        process
    };
    let _pipe = process.stdin.take();
    let mut good = false;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
                if current.process == Some(pid) {
                    current.process = None;
                    good = status.exit_status() == Some(0);
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            // No child is left, so no process of the scenario is.
            Err(Errno::CHILD) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(match (good, is_interrupted(current)) {
        (_, true) => "interrupted",
        (true, false) => "ok",
        (false, false) => "FAILED",
    })
}
