//! A built program, and what it says of itself.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::read;

/// The name of an architecture, and its number in an ELF file: `e_machine` in elf.h.
const ARCHITECTURES: [(&str, u8); 2] = [("amd64", 62), ("arm64", 183)];

#[derive(Debug)]
pub(crate) struct Program {
    /// As Go and container images name it.
    pub(crate) architecture: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// The list that cargo-auditable has written into it.
    pub(crate) packages: Vec<Value>,
}

impl Program {
    /// All programs of a directory, which has a directory for each architecture.
    pub(crate) fn read_all(directory: &Path) -> Result<Vec<Self>> {
        let mut programs = Vec::new();
        for (architecture, machine) in ARCHITECTURES {
            let directory = directory.join(architecture);
            if !directory.exists() {
                continue;
            }
            let path = directory.join("untaint");
            let about = || path.display().to_string();
            let bytes = fs::read(&path).with_context(about)?;
            // A 64-bit file in little endian has e_machine at byte 18.
            let is_right =
                bytes.starts_with(b"\x7fELF\x02\x01") && bytes.get(18..20) == Some(&[machine, 0]);
            ensure!(
                is_right,
                "{}: not a program for {architecture}",
                path.display()
            );
            let mut list: Value = serde_json::from_str(&read(directory.join("packages.json"))?)?;
            let packages = list["packages"].take();
            let packages = serde_json::from_value(packages).with_context(about)?;
            programs.push(Self {
                architecture,
                bytes,
                packages,
            });
        }
        ensure!(!programs.is_empty(), "{}: no program", directory.display());
        Ok(programs)
    }

    /// The version of the C library that is linked into it, such as `Debian GLIBC 2.36-9+deb12u14`.
    pub(crate) fn c_library(&self) -> Result<&str> {
        let (version, _) = self
            .after("GNU C Library (")?
            .split_once(')')
            .context("its C library")?;
        Ok(version)
    }

    /// The version of the compiler, such as `1.95.0 (59807616e 2026-04-14)`.
    pub(crate) fn compiler(&self) -> Result<&str> {
        self.after("rustc version ")
    }

    /// The version of the compiler of what is not in Rust, such as `(Debian 12.2.0-14+deb12u1) 12.2.0`.
    pub(crate) fn c_compiler(&self) -> Result<&str> {
        self.after("GCC: ")
    }

    /// The rest of the string that begins so.
    fn after(&self, beginning: &str) -> Result<&str> {
        let windows = self.bytes.windows(beginning.len());
        let mut found = windows
            .enumerate()
            .filter(|(_, window)| *window == beginning.as_bytes());
        let (at, _) = found.next().with_context(|| {
            format!(
                "the program for {} does not contain `{beginning}`",
                self.architecture
            )
        })?;
        let rest = &self.bytes[at + beginning.len()..];
        let end = rest.iter().position(|byte| !(b' '..=b'~').contains(byte));
        Ok(std::str::from_utf8(&rest[..end.unwrap_or(rest.len())])?)
    }
}
