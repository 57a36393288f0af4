//! Which file the runtime picks, and whether it is the one that was expected.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::time::SystemTime;

use super::{Network, text};
use crate::config::CniConfig;

/// Files whose reasons are in the message; the others are counted.
const MAX_REASONS: usize = 4;

/// A file that a runtime considers (see [`super::candidates`]).
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The name in the directory.
    pub file: OsString,
    /// `Err` is why the file is invalid.
    pub content: Result<Found, String>,
}

/// A valid configuration file.
#[derive(Debug, Clone)]
pub struct Found {
    /// With the plugins of `<dir>/<name>/` where libcni appends them.
    pub network: Network,
    pub modified: SystemTime,
    /// Why a plugin's program cannot run; `None` if it can, or if nobody asked.
    pub program_fault: Option<String>,
}

/// Returns what was found among the candidates of `expected.dir`, which are in their order, or why that is not enough.
///
/// The first candidate is the one that containerd picks (`max_conf_num` 1). While it is invalid, containerd loads
/// nothing, so nothing can open. With `boot`, an accepted file must not be older. The iterator may read the files: it is
/// only advanced as far as necessary.
pub fn decide(
    expected: &CniConfig,
    boot: Option<SystemTime>,
    candidates: impl IntoIterator<Item = Candidate>,
) -> Result<String, String> {
    let dir = &expected.dir;
    let mut candidates = candidates.into_iter();
    let Some(first) = candidates.next() else {
        return Err(format!(
            "no *.conf, *.conflist or *.json file in {}",
            dir.display()
        ));
    };
    let first_path = dir.join(&first.file);
    let first_found = first.content.map_err(|fault| {
        format!(
            "{}: {fault} (containerd picks this file, and loads no CNI configuration until it is valid)",
            first_path.display()
        )
    })?;
    let first_described = describe(&first_path, &first_found.network);
    let mismatch = match meets(expected, boot, &first_found) {
        Ok(()) => return Ok(first_described + &warning(expected, &first_found.network)),
        Err(mismatch) => format!("{}: {mismatch}", first_path.display()),
    };
    if expected.first || !has_expectations(expected) {
        return Err(mismatch);
    }
    let mut reasons = vec![mismatch];
    for candidate in candidates {
        let accepted = candidate.content.and_then(|found| {
            meets(expected, boot, &found)?;
            Ok(describe(&dir.join(&candidate.file), &found.network))
        });
        match accepted {
            Ok(described) => {
                return Ok(format!(
                    "{described}; the runtime picks another file: {first_described}"
                ));
            }
            Err(reason) => reasons.push(format!("{}: {reason}", candidate.file.display())),
        }
    }
    let more = reasons.len().saturating_sub(MAX_REASONS);
    reasons.truncate(MAX_REASONS);
    let mut reason = reasons.join("; ");
    if more > 0 {
        // Writing to a String cannot fail.
        _ = write!(reason, "; and {more} more files");
    }
    Err(reason)
}

fn has_expectations(expected: &CniConfig) -> bool {
    expected.network.is_some() || !expected.plugins.is_empty()
}

/// `Err` is the first expectation that `found` does not meet.
fn meets(expected: &CniConfig, boot: Option<SystemTime>, found: &Found) -> Result<(), String> {
    let Network { name, plugins, .. } = &found.network;
    if let Some(wanted) = &expected.network {
        if wanted != name {
            return Err(format!(
                "network {}, not {}",
                text::name(name),
                text::name(wanted)
            ));
        }
    } else if has_expectations(expected)
        && let Some(origin) = runtime_default(&found.network)
    {
        return Err(format!(
            "network {} is {origin}, which opens the gate only if `network` names it",
            text::name(name)
        ));
    }
    let wanted = expected.plugins.iter();
    let missing: Vec<_> = wanted.filter(|wanted| !plugins.contains(wanted)).collect();
    if !missing.is_empty() {
        return Err(format!(
            "plugin {} is not in the chain {}",
            text::names(&missing),
            text::names(plugins)
        ));
    }
    if let Some(fault) = &found.program_fault {
        return Err(fault.clone());
    }
    if boot.is_some_and(|boot| found.modified < boot) {
        return Err("last written before this boot".into());
    }
    Ok(())
}

fn describe(path: &Path, network: &Network) -> String {
    format!(
        "{}: network {}, plugins {}",
        path.display(),
        text::name(&network.name),
        text::names(&network.plugins)
    )
}

/// Files that runtimes and their packages install on machines without a cluster's CNI (cri-o#2411).
fn runtime_default(network: &Network) -> Option<&'static str> {
    match network.name.as_str() {
        "podman" => Some("the default of Podman"),
        "crio" => Some("the default of CRI-O"),
        _ if network.plugins.iter().all(|kind| kind == "loopback") => Some("loopback only"),
        _ => None,
    }
}

fn warning(expected: &CniConfig, network: &Network) -> String {
    match runtime_default(network) {
        Some(origin) if !has_expectations(expected) => {
            format!("; warning: this is {origin}, so name the expected network or plugins")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
pub(super) mod tests;
