//! What a CNI configuration directory means to a container runtime. Pure: the caller reads the files.
//!
//! The rules are those of libcni 1.3 (`libcni/conf.go`) and of containerd's go-cni 1.1 (`opts.go`,
//! `loadFromConfDir`). CRI-O skips a file that is invalid or lacks a program, where containerd loads nothing at all.

mod decide;
mod multus;
mod names;
mod network;
mod shape;
mod template;
mod version;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

pub use decide::{Candidate, ValidFile, decide, delegates};
pub use network::Network;

/// A larger configuration file is refused unread. Real ones have a few kilobytes.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The extensions that runtimes look for (go-cni, `loadFromConfDir`).
const EXTENSIONS: [&str; 3] = [".conf", ".conflist", ".json"];

/// The names that a runtime considers, in the order in which it does: byte order.
pub fn candidates(names: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut names: Vec<_> = names
        .into_iter()
        .filter(|name| EXTENSIONS.iter().any(|wanted| has_extension(name, wanted)))
        .collect();
    names.sort_unstable();
    names
}

/// Whether `name` ends in `extension`, dot included. Unlike [`std::path::Path::extension`], and like Go's
/// `filepath.Ext`, this finds the extension of a file that is called `.conf`.
pub(crate) fn has_extension(name: &OsStr, extension: &str) -> bool {
    name.as_bytes().ends_with(extension.as_bytes())
}

#[cfg(test)]
mod tests;
