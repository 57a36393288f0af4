//! A configuration in a mounted ConfigMap.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::scene::Gates;

/// What stands before the rules.
pub(crate) const HEAD: &str = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";

/// The configuration file as the kubelet mounts it: `config.yaml` is a link to `..data/config.yaml`, and `..data` one
/// to the directory of a version.
pub(crate) struct ConfigMap {
    dir: PathBuf,
    version: usize,
}

impl ConfigMap {
    /// In place of the file of `gates`.
    pub(crate) fn mount(gates: &Gates, rules: &str) -> Self {
        let dir = gates.dir.path().to_owned();
        fs::remove_file(gates.config()).unwrap();
        let mut map = Self { dir, version: 0 };
        map.swap(rules);
        symlink("..data/config.yaml", gates.config()).unwrap();
        map
    }

    pub(crate) fn swap(&mut self, rules: &str) {
        self.swap_files(Some(&format!("{HEAD}{rules}")));
    }

    /// As the kubelet's `AtomicWriter` does; `None`: the ConfigMap does not have the file any more.
    pub(crate) fn swap_files(&mut self, text: Option<&str>) {
        let name = |version| format!("..2026_10_18_00_00_00.{version}");
        let old = self.dir.join(name(self.version));
        self.version += 1;
        let new = name(self.version);
        fs::create_dir(self.dir.join(&new)).unwrap();
        if let Some(text) = text {
            fs::write(self.dir.join(&new).join("config.yaml"), text).unwrap();
        }
        symlink(&new, self.dir.join("..data_tmp")).unwrap();
        fs::rename(self.dir.join("..data_tmp"), self.dir.join("..data")).unwrap();
        if self.version > 1 {
            fs::remove_dir_all(old).unwrap();
        }
    }
}
