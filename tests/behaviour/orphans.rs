//! What the programs of `exec` gates leave behind.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use testkit::DEADLINE;
use testkit::agent::{Agent, write_configuration};
use testkit::skip::skip;
use tokio::time::{sleep, timeout};

use crate::scene::PROGRAM;

/// Timed-out runs of each command.
const RUNS: u64 = 200;
/// How many gates share them, side by side.
const GATES: u64 = 10;

/// What has a process group of its own. `$0` is how long to sleep.
const TIMEOUT: &str = "timeout 1000 sleep $0 | grep ok";
/// What has a session of its own.
const SETSID: &str = "setsid sleep $0 & wait";

/// In a PID namespace of its own, as in a container.
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

async fn nothing_is_left(script: &str, start: &[&str]) {
    let scene = Scene::new();
    let gates = (0..GATES).map(|gate| {
        scene.gate(
            gate,
            &format!("test -e $2/enough && exit; echo >>$2/runs; {script}"),
        )
    });
    let Some(agent) = scene.wait(&gates.collect::<String>(), start) else {
        return;
    };
    let runs = || fs::metadata(scene.path("runs")).map_or(0, |file| file.len());
    eventually(|| (runs() >= RUNS).then_some(()).ok_or(runs())).await;
    fs::write(scene.path("enough"), "").unwrap();
    let left = || {
        let left = (scene.sleepers(), defunct(program(&agent, start)));
        (left == (0, 0)).then_some(()).ok_or(left)
    };
    eventually(left).await;
}

/// A configuration whose gates run programs.
struct Scene {
    dir: TempDir,
    /// How long the programs sleep: no other test's do so.
    seconds: String,
}

impl Scene {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let unique = fastrand::u32(..);
        Self {
            dir,
            seconds: format!("1000.{unique:010}"),
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// A gate whose program gets how long to sleep, the gate's number and the directory.
    fn gate(&self, number: u64, script: &str) -> String {
        let (seconds, directory) = (&self.seconds, self.dir.path().display());
        format!(
            "  - name: gate-{number}\n    periodSeconds: 0.01\n    timeoutSeconds: 0.1\n    \
             exec: {{command: [/bin/sh, -c, '{script}', '{seconds}', '{number}', {directory}]}}\n"
        )
    }

    /// `untaint wait`, which never ends by itself.
    fn wait(&self, gates: &str, start: &[&str]) -> Option<Agent> {
        if start == AS_PID_1 && !may_have_namespaces() {
            skip("there are no PID namespaces to be had");
            return None;
        }
        let config = self.path("config.yaml");
        let rule = "- name: programs\n  taint: {key: example.com/not-ready}\n  gates:\n";
        let never = "  - {name: never, file: {path: /no/such/file}}\n";
        write_configuration(&config, &format!("{rule}{never}{gates}")).unwrap();
        let command = [
            start,
            &[PROGRAM, "wait", "--config", config.to_str().unwrap()],
        ]
        .concat();
        let path = [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")];
        Some(Agent::start(command[0], &command[1..], &path).unwrap())
    }

    /// How many processes sleep for this test.
    fn sleepers(&self) -> usize {
        let sleeps = |pid: &u32| {
            let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command == format!("sleep\0{}\0", self.seconds)
        };
        processes().filter(sleeps).count()
    }
}

fn may_have_namespaces() -> bool {
    let [program, arguments @ ..] = AS_PID_1 else {
        return false;
    };
    let status = std::process::Command::new(program)
        .args(arguments)
        .arg("true")
        .status();
    status.is_ok_and(|status| status.success())
}

/// The program itself, which `unshare` may have started.
fn program(agent: &Agent, start: &[&str]) -> u32 {
    let children = || fs::read_to_string(format!("/proc/{0}/task/{0}/children", agent.id()));
    match start {
        [] => agent.id(),
        _ => children().unwrap().trim().parse().unwrap(),
    }
}

/// How many dead children nobody has reaped.
fn defunct(parent: u32) -> usize {
    let is_defunct = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
        fields.is_some_and(|fields| fields.starts_with(&format!("Z {parent} ")))
    };
    processes().filter(is_defunct).count()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(Path::new("/proc")).unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Waits until `look` is content; what it last said otherwise is told at the deadline.
async fn eventually<T: std::fmt::Debug>(look: impl Fn() -> Result<(), T>) {
    let content = async {
        while look().is_err() {
            // Nothing tells of it; the deadline is below.
            sleep(Duration::from_millis(10)).await;
        }
    };
    if timeout(DEADLINE, content).await.is_err() {
        look().unwrap();
    }
}
