//! A file system that never answers.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::skip::skip;

const NSENTER: &str = "/usr/bin/nsenter";
const UNSHARE: &str = "/usr/bin/unshare";
/// Mounts its standard input on its first argument and keeps the namespace until it is killed. Not for ever: a test that
/// is killed itself does not kill it.
const HOLD: &str = "mount --internal-only -t fuse -o fd=0,rootmode=40000,user_id=0,group_id=0 hung \"$0\" \
    && echo mounted && exec sleep 600 </dev/null";

/// A FUSE mount without a server, in a mount namespace of its own: whoever looks at a path in it hangs in the kernel until
/// this is dropped or the process is killed.
///
/// Only [`Self::command`] sees the mount, so that nothing else on the machine hangs. Each program needs one of its own:
/// who looks up a name while another one hangs in the same directory waits for a lock, and the kernel lets nobody kill it
/// meanwhile.
pub struct HungFileSystem {
    dir: TempDir,
    holder: Child,
    /// The only handle of the connection: closing it, also by the death of this process, ends all that hangs.
    _connection: File,
}

impl HungFileSystem {
    /// `None`: this machine does not permit it, and the test has been reported as skipped.
    #[must_use]
    pub fn mount() -> Option<Self> {
        let mounted = Self::try_to_mount();
        if mounted.is_none() {
            skip("a file system that hangs needs root, mount namespaces and /dev/fuse");
        }
        mounted
    }

    fn try_to_mount() -> Option<Self> {
        let mut options = OpenOptions::new();
        let connection = options.read(true).write(true).open("/dev/fuse").ok()?;
        let dir = TempDir::new().ok()?;
        let mut holder = Command::new(UNSHARE)
            .args(["--mount", "sh", "-c", HOLD])
            .arg(dir.path())
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

    /// A path that nobody can look at.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs the program that follows it where the mount is seen, and becomes it.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.holder.id());
        vec![NSENTER.into(), namespace]
    }

    /// The same as process 1 of a PID namespace, as in a container. The command itself waits for the program and passes
    /// its exit code on.
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
