//! `exec`: a program that exits with 0.
//!
//! It runs without a shell, in `/`, with nothing on standard input, in a process group of its own, and with `PATH` as
//! its only environment variable: what is in the agent's environment (addresses, names, secrets) is not its business,
//! and it must behave the same wherever the agent runs. Nothing that it starts outlives the check, unless it left the
//! process group.

mod group;
mod output;

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};

use self::group::Group;
use self::output::Output;
use super::Outcome;
use super::drive::while_driving;
use crate::config::Exec;
use crate::text::{excerpt, plain};

/// Where a script finds its commands.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs the program to its end.
pub async fn check(spec: &Exec) -> Outcome {
    // On the heap while it runs: it is large, and whoever calls this from time to time should not be.
    Box::pin(run(&spec.command)).await.into()
}

async fn run(command: &[String]) -> Result<String, String> {
    let [program, arguments @ ..] = command else {
        return Err("no program is given".into());
    };
    let (mut child, mut output) = spawn(program, arguments)
        .map_err(|error| format!("{program}: {}", describe(program, &error)))?;
    // Declared after the child, so that on a time-out the group is killed while the child still holds its number.
    let _group = Group::of(&child);
    let status = while_driving(output.read(), child.wait())
        .await
        .map_err(|error| format!("{program}: {}", plain(&error)))?;
    output.read_rest();
    judge(status, &output).map_err(|why| format!("{program}: {why}"))
}

fn spawn(program: &str, arguments: &[String]) -> io::Result<(Child, Output)> {
    // One pipe for both streams keeps their order. The command, which holds the writing ends, ends here.
    let (output, writer) = Output::pipe()?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    Ok((child, output))
}

fn describe(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if Path::new(program).exists() => {
            "the interpreter or loader that it names is not found".into()
        }
        io::ErrorKind::NotFound => "not found".into(),
        io::ErrorKind::PermissionDenied => "permission denied, or not executable".into(),
        _ => plain(error),
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
