//! The program in a mount namespace with other files than the machine's.

use std::path::Path;
use std::process::Command;

use testkit::skip::skip;

use crate::scene::PROGRAM;

const UNSHARE: &str = "/usr/bin/unshare";

/// A command that runs the program with the first file of each pair mounted over the second. `None` if the test was
/// reported as skipped.
pub(crate) fn program_seeing(files: &[(&Path, &str)]) -> Option<Vec<String>> {
    let own_mounts = if rustix::process::getuid().is_root() {
        &["--mount"][..]
    } else {
        &["--map-root-user", "--mount"]
    };
    let works = Command::new(UNSHARE).args(own_mounts).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        skip("files of the machine cannot be replaced without mount namespaces");
        return None;
    }
    let mounts = files.iter().map(|(file, over)| {
        let file = file.display();
        format!("mount --bind '{file}' '{over}' && ")
    });
    let script = format!(r#"{}exec "$0" "$@""#, mounts.collect::<String>());
    let command = [&[UNSHARE], own_mounts, &["sh", "-c", &script, PROGRAM]].concat();
    Some(command.into_iter().map(str::to_owned).collect())
}
