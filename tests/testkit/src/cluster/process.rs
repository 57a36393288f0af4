//! Processes that end with this process.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

/// Runs a program until it ends or standard input is closed. Then removes a directory, if one is given. The kernel
/// closes standard input when the process at the other end of the pipe ends.
const SUPERVISOR: &str = r#"
exec 3<&0
directory=$1
shift
"$@" </dev/null 3<&- &
program=$!
{ read -r _ <&3; kill -KILL "$program"; } &
guard=$!
exec 3<&-
wait "$program"
kill "$guard" 2>/dev/null
[ -z "$directory" ] || rm -rf -- "$directory"
"#;

/// A running program; killed when dropped.
pub(super) struct Process(Child);

impl Process {
    /// Starts a program. Its output goes to `log`, and `directory` is removed when it ends.
    pub(super) fn start(
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        log: &Path,
        directory: Option<&Path>,
    ) -> Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        let child = Command::new("sh")
            .args(["-c", SUPERVISOR, "supervisor"])
            .arg(directory.map_or(OsStr::new(""), Path::as_os_str))
            .arg(program)
            .args(arguments)
            // An interrupt from the terminal must not end the supervisor before the program.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("run {}", program.display()))?;
        Ok(Self(child))
    }

    /// Whether the program has ended by itself.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// Ends the program, and waits until it has ended.
    pub(super) fn kill(&mut self) {
        drop(self.0.stdin.take());
        // An error means that there is nothing to wait for.
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_its_directory_go_when_the_other_end_of_the_pipe_does() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let log = outer.path().join("log");
        let program = Path::new("sleep");
        let mut process = Process::start(program, &["1000"], &log, Some(&inner)).unwrap();
        assert!(!process.has_ended().unwrap());
        drop(process);
        assert!(!inner.exists());
    }

    #[test]
    fn a_program_that_ends_by_itself_is_noticed() {
        let outer = tempfile::tempdir().unwrap();
        let log = outer.path().join("log");
        let mut process = Process::start(Path::new("true"), &[""; 0], &log, None).unwrap();
        assert!(process.0.wait().unwrap().success());
        assert!(process.has_ended().unwrap());
    }
}
