//! A file system that never answers.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::skip::skip;

const NSENTER: &str = "/usr/bin/nsenter";
const UNSHARE: &str = "/usr/bin/unshare";
/// Mounts its standard input on its first argument. Its second argument is the mode of the root. It keeps the namespace
/// until it is killed, or for a limited time, because a test that is killed cannot kill it.
const HOLD: &str = "mount --internal-only -t fuse -o fd=0,rootmode=$1,user_id=0,group_id=0 hung \"$0\" \
    && echo mounted && exec sleep 600 </dev/null";

/// A FUSE mount without a server, in its own mount namespace. A program that uses a path in it hangs in the kernel
/// until this value is dropped or the program is killed.
///
/// Only [`Self::command`] sees the mount, so nothing else on the machine hangs. Each program needs its own mount: a
/// lookup in a directory in which another program hangs waits for a lock, and cannot be killed during this wait.
pub struct HungFileSystem {
    dir: TempDir,
    holder: Child,
    /// The only handle of the connection. When it is closed, or this process ends, all waiting calls end.
    _connection: File,
}

impl HungFileSystem {
    /// `None` if this machine does not permit the mount: the test is reported as skipped.
    #[must_use]
    pub fn mount() -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let target = dir.path().to_owned();
        Self::mount_at(&target, "40000", dir)
    }

    /// Replaces this file with one that nobody can read.
    #[must_use]
    pub fn over(file: &Path) -> Option<Self> {
        Self::mount_at(file, "100644", TempDir::new().unwrap())
    }

    fn mount_at(target: &Path, mode: &str, dir: TempDir) -> Option<Self> {
        let mounted = Self::try_to_mount(target, mode, dir);
        if mounted.is_none() {
            skip("a file system that hangs needs root, mount namespaces and /dev/fuse");
        }
        mounted
    }

    fn try_to_mount(target: &Path, mode: &str, dir: TempDir) -> Option<Self> {
        let mut options = OpenOptions::new();
        let connection = options.read(true).write(true).open("/dev/fuse").ok()?;
        let mut holder = Command::new(UNSHARE)
            .args(["--mount", "sh", "-c", HOLD])
            .arg(target)
            .arg(mode)
            .stdin(connection.try_clone().ok()?)
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let said = BufReader::new(holder.stdout.take()?).read_line(&mut line);
        let mounted = Self {
            dir,
            holder,
            _connection: connection,
        };
        (said.is_ok() && line == "mounted\n").then_some(mounted)
    }

    /// A path on the mount.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command that becomes the program after it, in the namespace with the mount.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.holder.id());
        vec![NSENTER.into(), namespace]
    }

    /// The same, with the program as process 1 of a PID namespace, as in a container. The command waits for the program
    /// and ends with its exit code.
    #[must_use]
    pub fn command_as_pid_1(&self) -> Vec<String> {
        let more = [UNSHARE, "--pid", "--fork", "--kill-child"].map(str::to_owned);
        [self.command(), more.into()].concat()
    }
}

impl Drop for HungFileSystem {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
