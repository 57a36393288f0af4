//! The files of a configuration: which they are, and their texts.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Problems;
use crate::small_file::{self, MAX_TEXT_BYTES};
use crate::text::{io_message, printable_path, sha256};

/// The path of standard input.
const STANDARD_INPUT: &str = "-";
/// How many files a directory may have. A directory with more is hardly one of configurations.
const MOST_FILES: usize = 256;

/// A configuration file, or one of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// What messages call it: the path as it was given, or `standard input`.
    pub name: String,
    pub text: String,
}

/// The limit of the readings of files that change all the time.
const MOST_READINGS: usize = 10;

/// Reads the files that `paths` name: a file, a directory, which stands for its files `*.yaml` and `*.yml` in the order
/// of their names, or `-` for standard input. Hidden files do not count, nor do the files of directories below.
///
/// Several files may be replaced while they are read, as those of a mounted ConfigMap are. So they are read again until two
/// readings have the same result, unless one of them is standard input, which can be read only once.
///
/// The error has every file that cannot be read. A file, and all together, have at most 1 MiB.
pub fn read_files(paths: &[PathBuf]) -> Result<Vec<SourceFile>, Problems> {
    let mut last = read_once(paths);
    let is_one_file = paths.len() == 1 && !paths[0].is_dir();
    if is_one_file || paths.iter().any(|path| is_standard_input(path)) {
        return last;
    }
    for _ in 1..MOST_READINGS {
        let again = read_once(paths);
        if again == last {
            return last;
        }
        last = again;
    }
    let message = "changes again and again while untaint reads it; try again";
    Err(Problems::of_files(vec![(names(paths), message.into())]))
}

fn read_once(paths: &[PathBuf]) -> Result<Vec<SourceFile>, Problems> {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    let (mut known, mut size) = (HashSet::new(), 0);
    for path in paths {
        let entries = entries(path).unwrap_or_else(|message| {
            problems.push((name_of(path), message));
            Vec::new()
        });
        for path in entries {
            let read = if known.insert(path.clone()) {
                read_file(&path)
            } else {
                Err("is named twice".into())
            };
            match read {
                Ok(text) => {
                    size += text.len() as u64;
                    let name = name_of(&path);
                    if size > MAX_TEXT_BYTES {
                        let message = "is larger than 1 MiB together with the files before it";
                        problems.push((name, message.into()));
                        return Err(Problems::of_files(problems));
                    }
                    files.push(SourceFile { name, text });
                }
                Err(message) => problems.push((name_of(&path), message)),
            }
        }
    }
    if problems.is_empty() {
        Ok(files)
    } else {
        Err(Problems::of_files(problems))
    }
}

/// Whether `path` stands for standard input, which can be read only once.
pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// Whether a directory of configuration files stands also for the file with this name.
pub fn is_in_directory(name: &Path) -> bool {
    let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
    let end = name.extension();
    !is_hidden && end.is_some_and(|end| end == "yaml" || end == "yml")
}

/// `paths` in a message.
pub fn names(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| name_of(path)).collect();
    names.join(", ")
}

/// The hash of all texts, in hexadecimal: of one file what `sha256sum FILE` prints, of several what
/// `sha256sum FILE… | sha256sum` prints.
pub fn hash(files: &[SourceFile]) -> String {
    if let [file] = files {
        return sha256(&file.text);
    }
    let line = |SourceFile { name, text }: &SourceFile| format!("{}  {name}\n", sha256(text));
    sha256(&files.iter().map(line).collect::<String>())
}

fn name_of(path: &Path) -> String {
    if is_standard_input(path) {
        return "standard input".into();
    }
    if path.as_os_str().is_empty() {
        // Such as what follows a colon at the end of UNTAINT_CONFIG.
        return "the empty path".into();
    }
    printable_path(path)
}

/// The files for which `path` stands. The error completes a sentence that begins with its name.
fn entries(path: &Path) -> Result<Vec<PathBuf>, String> {
    if is_standard_input(path) || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |error| format!("cannot be read: {}", io_message(&error));
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if is_in_directory(Path::new(&name)) {
            found.push(path.join(name));
        }
        if found.len() > MOST_FILES {
            return Err(format!("has more than {MOST_FILES} files *.yaml and *.yml"));
        }
    }
    if found.is_empty() {
        return Err("is a directory without a file *.yaml or *.yml".into());
    }
    found.sort();
    Ok(found)
}

fn read_file(path: &Path) -> Result<String, String> {
    if is_standard_input(path) {
        return small_file::read_standard_input();
    }
    small_file::read_text(path)
}

#[cfg(test)]
mod tests;
