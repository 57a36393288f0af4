//! Files that commands read and write, and output pipes without a reader.

use std::io::{PipeReader, PipeWriter, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::DEADLINE;
use testkit::hung::HungFileSystem;
use tokio::process::Command;
use tokio::time::timeout;

use super::{As, SOON, logs_of};
use crate::scene::PROGRAM;

/// The log message of a program that waits for a file system.
const WAITS: &str = "a file system has not answered yet; waiting for it";

#[tokio::test]
async fn a_configuration_that_hangs_costs_a_command_with_a_time_out_no_more_than_that() {
    let run = ["run", "--once", "--node-name", "a"];
    for role in As::BOTH {
        for command in [&["wait"][..], &run] {
            let Some(hung) = HungFileSystem::mount() else {
                return;
            };
            let config = hung.path("config.yaml");
            let config = config.to_str().unwrap();
            let limited = [command, &["--config", config, "--timeout", "2s"]].concat();
            let begin = Instant::now();
            let mut agent = role.start(&hung, &limited);
            let why = |line: &Value| {
                let error = line["error"].as_str().unwrap_or_default();
                error.starts_with(config) && error.ends_with("the file system does not answer")
            };
            agent.wait_for_log(why).await.unwrap();
            let code = agent.ended(SOON).await.unwrap().code();
            assert_eq!(code, Some(3), "{role:?} {command:?}: {}", logs_of(&agent));
            let took = begin.elapsed();
            assert!(took < Duration::from_secs(4), "{command:?}: {took:?}");
        }
    }
}

#[tokio::test]
async fn sigterm_ends_a_command_that_waits_for_a_file_system_and_says_so() {
    let commands = [
        (&["run", "--node-name", "a", "--config"][..], 0),
        (&["wait", "--config"], 3),
        (&["check", "--config"], 3),
        (&["config", "validate"], 3),
        (&["config", "show"], 3),
        (&["manifests", "--config"], 3),
        (&["install"], 3),
    ];
    let mut waiting = Vec::new();
    for role in As::BOTH {
        for (command, code) in commands {
            let Some(hung) = HungFileSystem::mount() else {
                return;
            };
            let path = hung.path("it").to_str().unwrap().to_owned();
            let agent = role.start(&hung, &[command, &[path.as_str()]].concat());
            waiting.push((role, hung, path, code, agent));
        }
    }
    for (role, _hung, path, code, mut agent) in waiting {
        let line = agent.wait_for_message(WAITS).await.unwrap();
        assert_eq!(line["path"], *path);
        assert_eq!(
            role.stop(&mut agent).await,
            Some(code),
            "{}",
            logs_of(&agent)
        );
    }
}

/// A write to a full pipe without a reader hangs like a file system.
#[tokio::test]
async fn sigterm_ends_a_command_whose_output_nobody_reads() {
    let missing = "/no/such/file";
    for (command, output) in [
        (&["config", "schema"][..], "stdout"),
        (&["config", "show", "examples/cilium.yaml"], "stdout"),
        (&["check", "--file", missing], "stdout"),
        (&["manifests", "--config", "examples/cilium.yaml"], "stdout"),
        (&["config", "validate", missing], "stderr"),
    ] {
        let (_reader, full) = full_pipe();
        let mut program = Command::new(PROGRAM);
        program
            .args(command)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match output {
            "stdout" => program.stdout(full),
            _ => program.stderr(full),
        };
        let mut program = program.kill_on_drop(true).spawn().unwrap();
        let id = program.id().unwrap();
        timeout(DEADLINE, catches_sigterm(id)).await.unwrap();
        kill_process(
            Pid::from_raw(i32::try_from(id).unwrap()).unwrap(),
            Signal::TERM,
        )
        .unwrap();
        let end = timeout(SOON, program.wait()).await;
        assert_eq!(end.unwrap().unwrap().code(), Some(3), "{command:?}");
    }
}

fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b' '; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

async fn catches_sigterm(id: u32) {
    let status = format!("/proc/{id}/status");
    let caught = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        caught & 1 << (Signal::TERM.as_raw() - 1) != 0
    };
    while !caught() {
        // There is no event to wait for. The caller has a deadline.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
