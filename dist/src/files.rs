//! The files of a release, and their digests.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use ring::digest::{SHA256, digest};

/// The files by their paths in the release.
#[derive(Debug, Default)]
pub(crate) struct Files(BTreeMap<String, File>);

#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    mode: u32,
}

impl Files {
    pub(crate) fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.0.insert(path.into(), File { bytes, mode: 0o644 });
    }

    pub(crate) fn add_program(&mut self, path: impl Into<String>, bytes: Vec<u8>) {
        self.0.insert(path.into(), File { bytes, mode: 0o755 });
    }

    /// Each path with the SHA-256 of its file, in the order of the paths.
    pub(crate) fn digests(&self) -> impl Iterator<Item = (&str, String)> {
        let files = self.0.iter();
        files.map(|(path, file)| (path.as_str(), sha256(&file.bytes)))
    }

    /// In the format of sha256sum.
    pub(crate) fn checksums(&self) -> String {
        let lines = self
            .digests()
            .map(|(path, digest)| format!("{digest}  {path}\n"));
        lines.collect()
    }

    /// Creates `directory` with the files. The umask has no effect. It is an error if there is something already, because
    /// older files would be no part of the checksums.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let about = || format!("{}: cannot create this directory", directory.display());
        fs::create_dir(directory).with_context(about)?;
        for (path, file) in &self.0 {
            let path = directory.join(path);
            let about = || path.display().to_string();
            let parent = path.parent().with_context(about)?;
            fs::create_dir_all(parent).with_context(about)?;
            fs::write(&path, &file.bytes).with_context(about)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))
                .with_context(about)?;
        }
        Ok(())
    }
}

/// In hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}
