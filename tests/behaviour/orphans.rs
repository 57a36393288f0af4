//! Processes that the programs of `exec` gates leave behind.

use std::fmt::Debug;
use std::fs;
use std::iter;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use testkit::DEADLINE;
use testkit::agent::{Agent, write_configuration};
use testkit::skip::skip;
use tokio::time::{sleep, timeout};

use crate::scene::PROGRAM;

/// The number of timed-out runs of each command.
const RUNS: usize = 200;
/// The number of gates that run them at the same time.
const GATES: usize = 10;

/// A process in its own process group. `$0` is the time to sleep.
const TIMEOUT: &str = "timeout 1000 sleep $0 | grep ok";
/// A process in its own session.
const SETSID: &str = "setsid sleep $0 & wait";

/// In its own PID namespace, as in a container.
const AS_PID_1: &[&str] = &[
    "/usr/bin/unshare",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

#[tokio::test]
async fn nothing_is_left_of_200_timed_out_programs_that_changed_their_group() {
    nothing_is_left(TIMEOUT, &[]).await;
}

#[tokio::test]
async fn nothing_is_left_of_200_timed_out_programs_that_changed_their_session() {
    nothing_is_left(SETSID, &[]).await;
}

#[tokio::test]
async fn as_pid_1_nothing_is_left_of_200_timed_out_programs_that_changed_their_group() {
    nothing_is_left(TIMEOUT, AS_PID_1).await;
}

#[tokio::test]
async fn as_pid_1_nothing_is_left_of_200_timed_out_programs_that_changed_their_session() {
    nothing_is_left(SETSID, AS_PID_1).await;
}

#[tokio::test]
async fn a_command_that_ends_takes_with_it_what_its_programs_have_started() {
    for (command, signal) in [("wait", Some("TERM")), ("check", None)] {
        let scene = Scene::new();
        let script = format!("echo >>$1/runs; {SETSID}");
        let mut agent = scene.start(command, &script, 3, &[]).unwrap();
        if let Some(signal) = signal {
            eventually(|| at_least(1, scene.sleepers().count())).await;
            agent.signal(signal).await.unwrap();
        }
        assert_eq!(agent.exit_code().await.unwrap(), 3);
        assert!(scene.runs() > 0);
        // A process that was killed may take a moment to end.
        eventually(|| no_more(scene.sleepers().count())).await;
    }
}

/// docs/security.md describes a hard limit that is lower than the marks.
#[tokio::test]
async fn where_no_mark_can_be_handed_down_the_process_group_is_ended_all_the_same() {
    let scene = Scene::new();
    let script = "sleep $0 & echo >>$1/runs; wait";
    let limited = ["/usr/bin/prlimit", "--locks=100:100"];
    let mut agent = scene.start("wait", script, 1, &limited).unwrap();
    eventually(|| at_least(3, scene.runs())).await;
    agent.signal("TERM").await.unwrap();
    assert_eq!(agent.exit_code().await.unwrap(), 3);
    eventually(|| no_more(scene.sleepers().count())).await;
}

#[tokio::test]
async fn what_no_check_has_started_is_reaped_and_not_ended() {
    let scene = Scene::new();
    // A shell starts a child and then becomes the program. While checks run, the program becomes the parent of this
    // child's child.
    let child = "until test -s $1/runs; do sleep 0.01; done; setsid sleep $0 &";
    let shell = r#"sh -c "$0" "$1" "$2" & shift 2; exec "$@""#;
    let directory = scene.dir.path().to_str().unwrap();
    let start = ["/bin/sh", "-c", shell, child, &scene.seconds, directory];
    let script = "echo >>$1/runs; setsid sleep 999 & wait";
    let mut agent = scene.start("wait", script, 1, &start).unwrap();
    eventually(|| at_least(1, scene.sleepers().count())).await;
    let sleeper = scene.sleepers().next().unwrap();
    let enough = scene.runs() + 10;
    eventually(|| at_least(enough, scene.runs())).await;

    let parent = format!(" S {} ", agent.id());
    let of_sleeper = fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap();
    assert!(of_sleeper.contains(&parent), "{of_sleeper}");
    end(sleeper);
    eventually(|| no_more(defunct(agent.id()))).await;
    // SIGKILL would leave the program of the check behind.
    agent.signal("TERM").await.unwrap();
    assert_eq!(agent.exit_code().await.unwrap(), 3);
}

#[tokio::test]
async fn without_any_exec_gate_the_dead_are_reaped_too() {
    let scene = Scene::new();
    let shell = r#"sleep "$0" & exec "$@""#;
    let start = ["/bin/sh", "-c", shell, &scene.seconds];
    let agent = scene.start("wait", "", 0, &start).unwrap();
    let never = |line: &Value| line["gate"] == "never";
    agent.wait_for_log(never).await.unwrap();
    eventually(|| at_least(1, scene.sleepers().count())).await;
    end(scene.sleepers().next().unwrap());
    eventually(|| no_more(scene.sleepers().count() + defunct(agent.id()))).await;
}

async fn nothing_is_left(script: &str, start: &[&str]) {
    let scene = Scene::new();
    let script = format!("test -e $1/enough && exit; echo >>$1/runs; {script}");
    let Some(mut agent) = scene.start("wait", &script, GATES, start) else {
        return;
    };
    eventually(|| at_least(RUNS, scene.runs())).await;
    fs::write(scene.path("enough"), "").unwrap();
    let left = || {
        let left = (scene.sleepers().count(), defunct(program(&agent, start)));
        if left == (0, 0) { Ok(()) } else { Err(left) }
    };
    eventually(left).await;
    // Another run may have started before this count was reached.
    end(program(&agent, start));
    assert_eq!(agent.exit_code().await.unwrap(), 3);
    assert_eq!(scene.sleepers().count(), 0);
}

/// Gates that run programs, and the programs.
struct Scene {
    dir: TempDir,
    /// The time that the programs sleep. No other test uses the same time.
    seconds: String,
}

impl Scene {
    fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            seconds: format!("1000.{:010}", fastrand::u32(..)),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts a command with gates whose programs get the time to sleep and the directory. One more gate prevents that
    /// the command ends by itself. `None` if the test was reported as skipped.
    fn start(&self, command: &str, script: &str, gates: usize, start: &[&str]) -> Option<Agent> {
        if start == AS_PID_1 && !works(start) {
            skip("without PID namespaces nothing is PID 1");
            return None;
        }
        let (seconds, directory) = (&self.seconds, self.dir.path().display());
        let programs = (0..gates).map(|gate| {
            format!(
                "  - name: gate-{gate}\n    periodSeconds: 0.01\n    timeoutSeconds: 0.1\n    exec:\n      \
                 command: [/bin/sh, -c, '{script}', '{seconds}', {directory}]\n"
            )
        });
        let rule = "- name: programs\n  taint: {key: example.com/not-ready}\n  gates:\n\
             \x20 - {name: never, file: {path: /no/such/file}}\n";
        let rules: String = iter::once(rule.to_owned()).chain(programs).collect();
        let config = self.path("config.yaml");
        write_configuration(&config, &rules).unwrap();
        let program = [PROGRAM, command, "--config", config.to_str().unwrap()];
        let all = [start, &program].concat();
        let path = [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")];
        Some(Agent::start(all[0], &all[1..], &path).unwrap())
    }

    fn runs(&self) -> usize {
        fs::read(self.path("runs")).map_or(0, |runs| runs.len())
    }

    /// The processes that sleep for this test.
    fn sleepers(&self) -> impl Iterator<Item = u32> {
        processes().filter(|pid| {
            let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command == format!("sleep\0{}\0", self.seconds)
        })
    }
}

fn works(start: &[&str]) -> bool {
    let status = Command::new(start[0])
        .args(&start[1..])
        .arg("true")
        .status();
    status.is_ok_and(|status| status.success())
}

/// The process id of the program, which `unshare` may have started.
fn program(agent: &Agent, start: &[&str]) -> u32 {
    if start != AS_PID_1 {
        return agent.id();
    }
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", agent.id()));
    children.unwrap().trim().parse().unwrap()
}

/// The number of zombies.
fn defunct(parent: u32) -> usize {
    let is_defunct = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(&format!(") Z {parent} "))
    };
    processes().filter(is_defunct).count()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn at_least(wanted: usize, found: usize) -> Result<(), usize> {
    if found >= wanted { Ok(()) } else { Err(found) }
}

fn no_more(found: usize) -> Result<(), usize> {
    if found == 0 { Ok(()) } else { Err(found) }
}

fn end(process: u32) {
    let status = Command::new("kill").arg(process.to_string()).status();
    assert!(status.unwrap().success());
}

/// Waits until `look` succeeds. At the deadline, fails with its last error.
async fn eventually<T: Debug>(look: impl Fn() -> Result<(), T>) {
    let content = async {
        while look().is_err() {
            // There is no event to wait for. The deadline is below.
            sleep(Duration::from_millis(10)).await;
        }
    };
    if timeout(DEADLINE, content).await.is_err() {
        look().unwrap();
    }
}
