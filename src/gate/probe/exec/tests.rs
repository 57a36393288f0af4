use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::gate::Outcome;
use crate::gate::probe::testing::soon;

mod orphans;

fn exec(command: &[&str]) -> Exec {
    Exec {
        command: command.iter().map(ToString::to_string).collect(),
    }
}

async fn check(spec: &Exec, lock: &ProbeLock) -> Result<String, String> {
    super::check(spec, Some("node-1"), lock).await
}

async fn outcome(command: &[&str]) -> Outcome {
    soon(check(&exec(command), &ProbeLock::default()))
        .await
        .into()
}

async fn shell(script: &str) -> Outcome {
    outcome(&["/bin/sh", "-c", script]).await
}

fn closed(reason: &str) -> Outcome {
    Outcome::Closed(reason.into())
}

/// The number that a failed script printed last.
fn printed_pid(outcome: &Outcome) -> i32 {
    let (_, pid) = outcome.message().rsplit_once(' ').unwrap();
    pid.parse().unwrap()
}

/// Waits until there is no such process, not even a zombie.
async fn gone(pid: i32) {
    soon(async {
        while Path::new(&format!("/proc/{pid}")).exists() {
            // There is no event for this; `soon` is the deadline.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Runs `script` until it has renamed the file `$1` to `$2`, drops the check as a time-out does, and returns the process
/// IDs in the file.
async fn dropped_after(script: &str) -> Vec<i32> {
    let dir = TempDir::new().unwrap();
    let [writing, written] = ["writing", "written"].map(|name| dir.path().join(name));
    let spec = exec(&[
        "/bin/sh",
        "-c",
        script,
        "sh",
        writing.to_str().unwrap(),
        written.to_str().unwrap(),
    ]);
    let lock = ProbeLock::default();
    let appeared = async {
        while !written.exists() {
            // There is no event for this; `soon` is the deadline.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon(async {
        tokio::select! {
            outcome = check(&spec, &lock) => panic!("did not wait: {outcome:?}"),
            () = appeared => {}
        }
    })
    .await;
    let pids = fs::read_to_string(written).unwrap();
    pids.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

#[tokio::test]
async fn exit_code_0_opens_and_any_other_end_closes_with_the_last_line() {
    assert_eq!(
        outcome(&["/bin/true"]).await,
        Outcome::Open("exit code 0".into())
    );
    assert_eq!(
        outcome(&["/bin/false"]).await,
        closed("/bin/false: exit code 1")
    );
    assert_eq!(
        shell("echo out; printf 'no \\033[31mroute\\n\\n' >&2; exit 3").await,
        closed("/bin/sh: exit code 3: no \\u{1b}[31mroute")
    );
    assert_eq!(
        shell("kill -9 $$").await,
        closed("/bin/sh: killed by signal 9")
    );
}

#[tokio::test]
async fn a_program_that_cannot_be_started_closes_with_the_cause() {
    let dir = TempDir::new().unwrap();
    let file = |name: &str, content: &[u8], mode| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let link = dir.path().join("link");
    symlink("/no/such/program", &link).unwrap();
    let elf = fs::read("/bin/true").unwrap();
    let mut of_another_machine = elf.clone();
    // EM_S390 (elf.h).
    of_another_machine[18..20].copy_from_slice(&[22, 0]);
    let loader = elf
        .windows(6)
        .position(|bytes| bytes == b"/lib64")
        .expect("dynamically linked");
    let mut without_loader = elf.clone();
    without_loader[loader + 1..loader + 4].copy_from_slice(b"no/");
    let names = std::cell::Cell::new(0);
    let program = |content: &[u8], mode| {
        names.set(names.get() + 1);
        file(&format!("program-{}", names.get()), content, mode)
    };
    let not_executable = "permission denied, or not executable";
    let wrong_format = "exec format error: the file is neither a program for this machine nor a script whose first line begins with #! and an interpreter";
    for (program, why) in [
        ("/bin/true;true".into(), "not found"),
        ("/".into(), not_executable),
        (
            link.to_str().unwrap().into(),
            "broken symbolic link to /no/such/program",
        ),
        (program(b"#!/bin/sh\n", 0o644), not_executable),
        (
            program(b"#! /no/such/shell -e\n", 0o755),
            "its interpreter /no/such/shell does not exist",
        ),
        (
            program(b"#!/bin/sh\r\nexit 0\r\n", 0o755),
            "its interpreter /bin/sh\\r does not exist: the script has the line endings of Windows",
        ),
        (program(b"exit 0\n", 0o755), wrong_format),
        (program(b"", 0o755), wrong_format),
        // What a file system may leave of a program after a power failure.
        (program(&[0; 4096], 0o755), wrong_format),
        (program(b"\0\nexit 0\n", 0o755), wrong_format),
        (program(b"exit 0\n\0", 0o755), wrong_format),
        (program(&elf[..4], 0o755), wrong_format),
        (program(b"#!\nexit 0\n", 0o755), wrong_format),
        (program(b" #!/bin/sh\nexit 0\n", 0o755), wrong_format),
        (
            program(b"\xef\xbb\xbf#!/bin/sh\nexit 0\n", 0o755),
            wrong_format,
        ),
        (
            program(&without_loader, 0o755),
            "the loader that the program needs does not exist: use a statically linked program",
        ),
        ("/a\0b".into(), "nul byte found in provided data"),
    ] {
        let reason = format!("{program}: {why}");
        assert_eq!(outcome(&[&program]).await, closed(&reason));
    }
    let foreign = program(&of_another_machine, 0o755);
    let reason = outcome(&[&foreign]).await;
    // Without a shell, or in a program that is not static, the start fails.
    let words = ["for another CPU architecture", "exec format error"];
    let is_named = words.iter().any(|words| reason.message().contains(words));
    assert!(is_named && !reason.is_open(), "{reason:?}");
    let whole_command = outcome(&["/bin/echo secret"]).await;
    assert_eq!(whole_command, closed("/bin/echo …: not found"));
    assert_eq!(outcome(&[]).await, closed("no program is given"));
}

/// In a static program, glibc looks for `/bin/sh` after a refusal of the format, and its absence is what is reported.
#[test]
fn a_missing_thing_is_named_as_what_it_is() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("program");
    let program = path.to_str().unwrap();
    let not_found = io::Error::from(rustix::io::Errno::NOENT);
    let mut foreign = fs::read("/bin/true").unwrap();
    foreign[18..20].copy_from_slice(&[22, 0]);
    fs::write(&path, foreign).unwrap();
    let why = describe(program, &not_found);
    assert!(why.starts_with("exec format error: "), "{why}");
    for (errno, expected) in [
        (rustix::io::Errno::AGAIN, "no more processes can start"),
        (rustix::io::Errno::MFILE, "too many open files"),
    ] {
        let why = describe(program, &errno.into());
        assert!(why.starts_with(expected), "{why}");
    }
}

#[tokio::test]
async fn nothing_of_the_agent_leaks_into_the_program() {
    let script = r"
        echo $(tr '\0' ' ' </proc/$$/environ) $(readlink /proc/$$/cwd /proc/$$/fd/0) group $(cut -d' ' -f5 /proc/$$/stat) $$
        exit 1";
    let outcome = shell(script).await;
    let pid = printed_pid(&outcome);
    assert_eq!(
        outcome,
        closed(&format!(
            "/bin/sh: exit code 1: NODE_NAME=node-1 PATH={PATH} / /dev/null group {pid} {pid}"
        ))
    );
}

#[tokio::test]
async fn a_program_has_no_node_name_where_none_is_known() {
    let script = r"tr '\0' ' ' </proc/$$/environ; exit 1";
    let spec = exec(&["/bin/sh", "-c", script]);
    let reason = soon(super::check(&spec, None, &ProbeLock::default())).await;
    let expected = format!("/bin/sh: exit code 1: PATH={PATH} ");
    assert_eq!(reason.unwrap_err().trim_end(), expected.trim_end());
}

#[tokio::test]
async fn no_shell_reads_the_arguments() {
    let script = "printf '%s|' \"$@\"; exit 1";
    let arguments = ["$HOME", "$(id)", "`id`", "*", "a b", ";", "|", ">x", "\\"];
    let command = [&["/bin/sh", "-c", script, "sh"][..], &arguments].concat();
    let printed: String = arguments.map(|argument| format!("{argument}|")).concat();
    let reason = format!("/bin/sh: exit code 1: {printed}");
    assert_eq!(outcome(&command).await, closed(&reason));
}

/// What `allowPrivilegeEscalation: false` of a container comes down to.
#[tokio::test]
async fn a_program_cannot_gain_privileges_where_the_agent_cannot() {
    let privileges = "echo $(grep NoNewPrivs /proc/self/status); exit 1";
    rustix::thread::set_no_new_privs(true).unwrap();
    let reason = "/bin/sh: exit code 1: NoNewPrivs: 1";
    assert_eq!(shell(privileges).await, closed(reason));
}

#[tokio::test]
async fn much_output_neither_blocks_nor_kills_the_program_and_its_end_is_kept() {
    assert_eq!(
        shell("head -c 1000000 /dev/zero").await,
        Outcome::Open("exit code 0".into())
    );
    assert_eq!(
        shell("head -c 1000000 /dev/zero; echo; echo end; exit 1").await,
        closed("/bin/sh: exit code 1: end")
    );
}

#[tokio::test]
async fn endless_output_ends_with_the_time_out() {
    let pids = dropped_after("echo $$ >$1; mv $1 $2; exec yes").await;
    gone(pids[0]).await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_in_its_group_is_killed() {
    let outcome = shell("sleep 1000 & echo $!; exit 1").await;
    gone(printed_pid(&outcome)).await;
}

#[tokio::test]
async fn one_that_left_the_group_and_holds_the_pipe_neither_holds_the_check_nor_outlives_it() {
    for escaped in ["sleep 1000", "yes"] {
        // A file, because what it prints may be the last line.
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "setsid sh -c 'echo $$ >$0; exec {escaped}' $0 &
            until test -s $0; do :; done; exit 1"
        );
        let outcome = outcome(&["/bin/sh", "-c", &script, file.to_str().unwrap()]).await;
        assert!(outcome.message().starts_with("/bin/sh: exit code 1"));
        gone(fs::read_to_string(file).unwrap().trim().parse().unwrap()).await;
    }
}

#[tokio::test]
async fn a_time_out_kills_the_whole_group_and_leaves_no_zombie() {
    let pids = dropped_after("sleep 1000 & echo $$ $! >$1; mv $1 $2; wait").await;
    assert_eq!(pids.len(), 2);
    for pid in pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn grandchildren_are_reaped_too() {
    let pids =
        dropped_after(r"sh -c 'sleep 1000 & echo $PPID $$ $! >$0; mv $0 $1; wait' $1 $2; true")
            .await;
    assert_eq!(pids.len(), 3);
    for pid in pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn while_something_of_the_last_run_is_left_there_is_no_other_run() {
    let (spec, lock) = (exec(&["/bin/true"]), ProbeLock::default());
    let left = lock.acquire().await.unwrap();
    let reason = soon(check(&spec, &lock)).await.unwrap_err();
    assert!(reason.contains("has not ended"), "{reason}");
    drop(left);
    assert!(soon(check(&spec, &lock)).await.is_ok());
}
