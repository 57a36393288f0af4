//! `cniConfig`: the CNI configuration that the container runtime will load.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::disk::{self, fault};
use super::lock::ProbeLock;
use super::sightings::{FileState, Sightings};
use crate::bind_mount::deleted;
use crate::boot::{Moment, Uptime};
use crate::config::CniConfig;
use crate::conflist::{
    Candidate, MAX_FILE_BYTES, Network, ValidFile, candidates, decide, delegates, has_extension,
};
use crate::small_file::read_bytes;

pub async fn check(spec: &CniConfig, lock: &ProbeLock) -> Result<String, String> {
    let expected = spec.clone();
    disk::run(lock, &spec.dir, move |seen| check_blocking(&expected, seen)).await
}

fn check_blocking(expected: &CniConfig, seen: &mut Sightings) -> Result<String, String> {
    let dir = &expected.dir;
    let began = Moment::now();
    let uptime = expected.newer_than_boot.then(Uptime::read).transpose()?;
    if let Some(why) = deleted(dir) {
        return Err(format!("{} {why}", dir.display()));
    }
    let names = list(dir).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            seen.list(began, []);
        }
        format!("{}: {}", dir.display(), fault(dir, &error))
    })?;
    let names = candidates(names);
    seen.list(began, &names);
    let candidates = names.into_iter().map(|file| {
        let mut stale = |metadata: &Metadata| {
            seen.stale(&file, FileState::of(metadata), uptime?, Moment::now())
        };
        Candidate {
            content: load(expected, &dir.join(&file), &mut stale),
            file,
        }
    });
    decide(expected, candidates)
}

/// The names of all entries but directories. A link to a directory counts, as in libcni (`ConfFiles`).
fn list(dir: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            names.push(entry.file_name());
        }
    }
    Ok(names)
}

/// Reads one file and, where libcni appends them, the files of `<dir>/<name>/`.
fn load(
    expected: &CniConfig,
    path: &Path,
    stale: &mut impl FnMut(&Metadata) -> Option<String>,
) -> Result<ValidFile, String> {
    let (contents, metadata) = read(path)?;
    // An invalid file too: it may become valid without another write, by its programs or the other files of its network.
    let stale = stale(&metadata);
    if let Some(why) = deleted(path) {
        return Err(why);
    }
    let mut network = Network::parse(path.file_name().unwrap_or_default(), &contents)?;
    if network.appends_directory {
        let dir = path.with_file_name(&network.name);
        append_plugins(&mut network, &dir)?;
    }
    if network.plugins.is_empty() {
        return Err("no plugins".into());
    }
    Ok(ValidFile {
        stale,
        program_fault: missing_program(expected, &network),
        network,
    })
}

/// Why the first program that cannot run cannot, of those that the runtime and Multus call.
fn missing_program(expected: &CniConfig, network: &Network) -> Option<String> {
    let of_delegates = delegates(expected, network).flat_map(|delegate| &delegate.plugins);
    let mut plugins = network.plugins.iter().chain(of_delegates);
    plugins.find_map(|plugin| program_fault(plugin, &expected.bin_dirs))
}

/// `NetworkPluginConfsFromFiles`: the directory may be absent, and any other error is a fault.
fn append_plugins(network: &mut Network, dir: &Path) -> Result<(), String> {
    let mut names = match list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("{}: {}", dir.display(), fault(dir, &error))),
    };
    names.retain(|name| has_extension(name, ".conf"));
    names.sort_unstable();
    names.into_iter().try_for_each(|name| {
        let path = dir.join(name);
        read(&path)
            .and_then(|(contents, _)| network.append(&contents))
            .map_err(|reason| format!("{}: {reason}", path.display()))
    })
}

fn read(path: &Path) -> Result<(Vec<u8>, Metadata), String> {
    read_bytes(path, MAX_FILE_BYTES).map_err(|error| fault(path, &error))
}

/// `FindInPath` (libcni `pkg/invoke/find.go`) takes the first regular file, which must then be executable.
fn program_fault(plugin: &str, bin_dirs: &[PathBuf]) -> Option<String> {
    if bin_dirs.is_empty() {
        return None;
    }
    let file = Path::new(plugin);
    if file.file_name() != Some(OsStr::new(plugin)) {
        return Some(format!("plugin {plugin}: no program can have this name"));
    }
    let program = bin_dirs.iter().find_map(|dir| {
        let path = dir.join(file);
        let metadata = fs::metadata(&path).ok().filter(Metadata::is_file)?;
        Some((path, metadata.permissions().mode()))
    });
    match program {
        Some((path, mode)) if mode & 0o111 != 0 => {
            let why = deleted(&path)?;
            Some(format!("plugin {plugin}: {} {why}", path.display()))
        }
        Some((path, _)) => {
            let path = path.display();
            Some(format!("plugin {plugin}: {path} is not executable"))
        }
        None => {
            let dirs = bin_dirs.iter().map(|dir| dir.display().to_string());
            let dirs = dirs.collect::<Vec<_>>().join(", ");
            let gone = bin_dirs.iter().find_map(|dir| Some((dir, deleted(dir)?)));
            let gone = gone.map(|(dir, why)| format!(": {} {why}", dir.display()));
            let gone = gone.unwrap_or_default();
            Some(format!("plugin {plugin}: no program in {dirs}{gone}"))
        }
    }
}

#[cfg(test)]
mod tests;
