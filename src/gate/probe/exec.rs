//! `exec`: a program that exits with 0.
//!
//! It runs without a shell, in `/`, with an empty standard input, in a process group of its own, and with `PATH` and
//! `NODE_NAME` as its only environment variables: it must not see the agent's environment (addresses, names, secrets), and
//! must behave the same wherever the agent runs. Nothing that it starts outlives the check, with the exceptions in
//! docs/security.md.

mod orphans;
mod output;
mod process_group;
mod start_error;

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tokio::process::Command;

pub(crate) use self::orphans::{reap_orphans, wait_for_orphans};
use self::output::Output;
use self::process_group::ProcessGroup;
use self::start_error::{check_format, describe, empty_input};
use super::drive::while_driving;
use super::lock::{ProbeLock, ProbeLockGuard};
use crate::config::Exec;
use crate::text::{excerpt, io_message};

/// Where a script finds its commands.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs the program to its end. Fails while the last run still has a process: one that waits for a disk or a file server
/// does not die when it is killed. `node_name`: the program's `NODE_NAME`.
pub(super) async fn check(
    spec: &Exec,
    node_name: Option<&str>,
    lock: &ProbeLock,
) -> Result<String, String> {
    let program = spec.command.first().ok_or("no program is given")?;
    let name = name(program);
    let command = spec.command.clone();
    let node_name = node_name.map(str::to_owned);
    // On another thread: a program on a file system that hangs would stop this one. If the caller no longer waits for the
    // result, the result is dropped and the processes end.
    let spawned = lock.run_blocking(program.as_ref(), move |guard| {
        orphans::start_alone(|| spawn(&command, node_name, guard))
            .map_err(|error| describe(&command[0], &error))
    });
    let Started {
        mut group,
        mut output,
        is_foreign,
    } = spawned
        .await
        .ok_or(
            "the previous run has not ended: untaint has killed a process that does not end, or the file system of the program does not answer",
        )?
        .map_err(|why| format!("{name}: {why}"))?;
    let status = while_driving(output.read(), group.wait())
        .await
        .map_err(|error| format!("{name}: {}", io_message(&error)))?;
    output.read_rest();
    let hint = if is_foreign {
        "; the program is for another CPU architecture"
    } else {
        ""
    };
    judge(status, &output).map_err(|why| format!("{name}: {why}{hint}"))
}

struct Started {
    group: ProcessGroup,
    output: Output,
    /// Whether the program is for another CPU architecture.
    is_foreign: bool,
}

/// `command` is not empty.
fn spawn(
    command: &[String],
    node_name: Option<String>,
    guard: ProbeLockGuard,
) -> io::Result<Started> {
    let is_foreign = check_format(&command[0])?;
    // One pipe for both streams keeps their order. The command holds the writing ends until this returns.
    let (output, writer) = Output::pipe()?;
    let mut child = Command::new(&command[0]);
    child
        .args(&command[1..])
        .env_clear()
        .env("PATH", PATH)
        .envs(node_name.map(|name| ("NODE_NAME", name)))
        .current_dir("/")
        .stdin(empty_input()?)
        .stdout(writer.try_clone()?)
        .stderr(writer);
    Ok(Started {
        group: ProcessGroup::start(&mut child, guard)?,
        output,
        is_foreign,
    })
}

/// `program` as reasons name it. Text after a space is probably an argument, and may be secret.
fn name(program: &str) -> String {
    match program.split_once(char::is_whitespace) {
        Some((name, _)) => format!("{name} …"),
        None => program.to_owned(),
    }
}

fn judge(status: ExitStatus, output: &Output) -> Result<String, String> {
    let ended = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    };
    if status.success() {
        return Ok(ended);
    }
    Err(match output.last_line() {
        Some(line) => format!("{ended}: {}", excerpt(&line)),
        None => ended,
    })
}

#[cfg(test)]
mod tests;
