//! The ConfigMap with the configuration files, and where the pods have it.

use std::collections::BTreeMap;
use std::path::Path;

use thiserror::Error;

use crate::bind_mount::CONFIGURATION;
use crate::config::{self, SourceFile, is_in_directory};
use crate::manifests::account::Account;
use crate::manifests::yaml::{literal, scalar};

/// The key of the only file, whatever its name.
const ONLY: &str = "config.yaml";
/// The longest key, in characters: `DNS1123SubdomainMaxLength` in `IsConfigMapKey` of apimachinery.
const LONGEST_KEY: usize = 253;

/// Why several files cannot be the entries of one ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error(
        "{first} and {second} have the same file name, and the ConfigMap has one key for each name: rename one of them"
    )]
    Same { first: String, second: String },
    #[error(
        "the name of the file {file} cannot be a key of the ConfigMap: it must end in .yaml or .yml, must not begin with a \
         dot, and has at most {LONGEST_KEY} letters, digits, '-', '_' and '.'; rename it"
    )]
    Name { file: String },
}

/// The files, each with its key as its name, in the order in which they are read from a directory.
pub(super) struct ConfigMap(Vec<SourceFile>);

impl ConfigMap {
    pub(super) fn of(files: &[SourceFile]) -> Result<Self, KeyError> {
        let with_key = |key: &str, SourceFile { text, .. }: &SourceFile| SourceFile {
            name: key.into(),
            text: text.clone(),
        };
        if let [file] = files {
            return Ok(Self(vec![with_key(ONLY, file)]));
        }
        let mut keys = BTreeMap::new();
        for file in files {
            let key = key(&file.name).ok_or_else(|| KeyError::Name {
                file: file.name.clone(),
            })?;
            if let Some(first) = keys.insert(key, file) {
                return Err(KeyError::Same {
                    first: first.name.clone(),
                    second: file.name.clone(),
                });
            }
        }
        Ok(Self(
            keys.iter().map(|(key, file)| with_key(key, file)).collect(),
        ))
    }

    /// With a hash, so that a new configuration rolls out by the DaemonSet's update strategy.
    pub(super) fn name(&self, account: &Account) -> String {
        format!("{}-{}", account.objects(), &config::hash(&self.0)[..10])
    }

    /// The fields of `data`.
    pub(super) fn data(&self) -> String {
        let field = |file: &SourceFile| {
            let mut field = format!("{}:{}", scalar(&file.name), literal(&file.text, 2));
            field.push('\n');
            field
        };
        self.0.iter().map(field).collect()
    }

    /// The value of `--config` in the pods.
    pub(super) fn mounted(&self) -> String {
        match self.0.as_slice() {
            [file] => format!("{CONFIGURATION}/{}", file.name),
            _ => CONFIGURATION.into(),
        }
    }
}

/// The file name, if it can be a key and a directory of the configuration is read with it.
fn key(name: &str) -> Option<&str> {
    let key = Path::new(name).file_name()?.to_str()?;
    let is_in_key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_key = key.len() <= LONGEST_KEY && key.chars().all(is_in_key);
    (is_key && is_in_directory(Path::new(key))).then_some(key)
}

#[cfg(test)]
mod tests;
