//! A configuration in a mounted ConfigMap.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The text before the rules.
pub const HEAD: &str = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";

/// The configuration file as the kubelet mounts it. `config.yaml` is a link to `..data/config.yaml`, and `..data` is a
/// link to the directory of a version.
pub struct ConfigMap {
    dir: PathBuf,
    version: usize,
}

impl ConfigMap {
    /// Mounts a ConfigMap with these rules. It replaces the file `config.yaml` in `dir`.
    #[must_use]
    pub fn mount(dir: &Path, rules: &str) -> Self {
        let file = dir.join("config.yaml");
        if file.exists() {
            fs::remove_file(&file).unwrap();
        }
        let dir = dir.to_owned();
        let mut map = Self { dir, version: 0 };
        map.swap(rules);
        symlink("..data/config.yaml", file).unwrap();
        map
    }

    /// Writes another version, with these rules.
    pub fn swap(&mut self, rules: &str) {
        self.swap_files(Some(&format!("{HEAD}{rules}")));
    }

    /// The same with this text. `None` if the ConfigMap no longer has the file.
    pub fn swap_files(&mut self, text: Option<&str>) {
        let file = text.map(|text| ("config.yaml", text.to_owned()));
        self.write(file.as_slice());
    }

    /// Mounts a ConfigMap with these keys, each with its rules.
    #[must_use]
    pub fn mount_all(dir: &Path, files: &[(&str, &str)]) -> Self {
        let dir = dir.to_owned();
        let mut map = Self { dir, version: 0 };
        map.swap_all(files);
        map
    }

    /// Writes another version with these keys, each with its rules.
    pub fn swap_all(&mut self, files: &[(&str, &str)]) {
        let text = |(name, rules): &(_, &str)| (*name, format!("{HEAD}{rules}"));
        let files: Vec<_> = files.iter().map(text).collect();
        self.write(&files);
        let link = |name: &str| self.dir.join(name);
        for (name, _) in &files {
            if !link(name).is_symlink() {
                symlink(format!("..data/{name}"), link(name)).unwrap();
            }
        }
        for entry in fs::read_dir(&self.dir).unwrap() {
            let path = entry.unwrap().path();
            if !path.exists() {
                fs::remove_file(path).unwrap();
            }
        }
    }

    /// Writes another version, as the kubelet's `AtomicWriter` does.
    fn write(&mut self, files: &[(&str, String)]) {
        let name = |version| format!("..2026_10_18_00_00_00.{version}");
        let old = self.dir.join(name(self.version));
        self.version += 1;
        let new = name(self.version);
        fs::create_dir(self.dir.join(&new)).unwrap();
        for (name, text) in files {
            fs::write(self.dir.join(&new).join(name), text).unwrap();
        }
        symlink(&new, self.dir.join("..data_tmp")).unwrap();
        fs::rename(self.dir.join("..data_tmp"), self.dir.join("..data")).unwrap();
        if self.version > 1 {
            fs::remove_dir_all(old).unwrap();
        }
    }
}
