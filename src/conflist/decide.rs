//! Which file the runtime picks, and whether it is the one that was expected.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use super::names::{printable_name, printable_names};
use super::{Network, version};
use crate::config::CniConfig;

/// The message has the reasons of so many files, and counts the others.
const MAX_REASONS: usize = 4;

/// A file that a runtime considers (see [`super::candidates`]).
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The name in the directory.
    pub file: OsString,
    /// `Err` is why the file is invalid.
    pub content: Result<ValidFile, String>,
}

#[derive(Debug, Clone)]
pub struct ValidFile {
    /// With the plugins of `<dir>/<name>/` where libcni appends them.
    pub network: Network,
    /// Why it was not written since the boot; `None` if it was, or if the gate does not ask.
    pub stale: Option<String>,
    /// Why a plugin's program cannot run; `None` if it can, or if the gate has no `binDirs`.
    pub program_fault: Option<String>,
}

/// Compares the candidates of `expected.dir`, in their order, with what is expected. `Err` is why the gate is closed.
///
/// The first candidate is the one that containerd picks (`max_conf_num` 1). While it is invalid, containerd loads
/// nothing, so the gate is closed. The iterator may read the files, so this advances it no further than necessary.
pub fn decide(
    expected: &CniConfig,
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
    let first_valid = first.content.map_err(|fault| {
        format!(
            "{}: {fault} (containerd picks this file, and loads no CNI configuration until it is valid)",
            first_path.display()
        )
    })?;
    let first_described = describe(expected, &first_path, &first_valid.network);
    let mismatch = match meets(expected, &first_valid) {
        Ok(()) => return Ok(first_described + &warnings(expected, &first_valid.network)),
        Err(mismatch) => format!("{}: {mismatch}", first_path.display()),
    };
    if expected.first || !has_expectations(expected) {
        return Err(mismatch);
    }
    let mut reasons = vec![mismatch];
    for candidate in candidates {
        let accepted = candidate.content.and_then(|file| {
            meets(expected, &file)?;
            let described = describe(expected, &dir.join(&candidate.file), &file.network);
            Ok(described + &warnings(expected, &file.network))
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
    expected.network.is_some() || !expected.plugins.is_empty() || expected.delegate.is_some()
}

/// `Err` is the first expectation that `file` does not meet.
fn meets(expected: &CniConfig, file: &ValidFile) -> Result<(), String> {
    let network = &file.network;
    if has_expectations(expected) {
        is_expected(network, expected.network.as_ref(), &expected.plugins)?;
    }
    if let Some(wanted) = &expected.delegate {
        is_expected(
            delegate_of(network)?,
            wanted.network.as_ref(),
            &wanted.plugins,
        )
        .map_err(|mismatch| format!("delegates[0] of Multus: {mismatch}"))?;
    }
    if let Some(fault) = &file.program_fault {
        return Err(fault.clone());
    }
    file.stale.clone().map_or(Ok(()), Err)
}

/// `Err` is in what `network` differs from a name and plugins.
fn is_expected(
    network: &Network,
    wanted_name: Option<&String>,
    wanted_plugins: &[String],
) -> Result<(), String> {
    let Network { name, plugins, .. } = network;
    if let Some(wanted) = wanted_name {
        if wanted != name {
            return Err(format!(
                "network {}, not {}",
                printable_name(name),
                printable_name(wanted)
            ));
        }
    } else if let Some(origin) = runtime_default(network) {
        return Err(format!(
            "network {} is {origin}, which opens the gate only if `network` names it",
            printable_name(name)
        ));
    }
    let wanted = wanted_plugins.iter();
    let missing: Vec<_> = wanted.filter(|wanted| !plugins.contains(wanted)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "plugin {} is not in the chain {}",
        printable_names(&missing),
        printable_names(plugins)
    ))
}

/// The network that Multus calls for the pod's own interface.
fn delegate_of(network: &Network) -> Result<&Network, String> {
    let delegates = network.delegates.as_ref().ok_or_else(|| {
        format!(
            "no Multus in the chain {}, and so no delegate",
            printable_names(&network.plugins)
        )
    })?;
    let delegates = delegates.as_ref().map_err(Clone::clone)?;
    delegates.first().ok_or_else(|| "no delegate".into())
}

/// All networks that Multus calls, if the gate asks for its delegate. Pods cannot start while one of them fails.
pub fn delegates<'n>(
    expected: &CniConfig,
    network: &'n Network,
) -> impl Iterator<Item = &'n Network> {
    let delegates = network.delegates.as_ref();
    let delegates = delegates.filter(|_| expected.delegate.is_some());
    delegates.into_iter().flatten().flatten()
}

fn describe(expected: &CniConfig, path: &Path, network: &Network) -> String {
    let described = |network: &Network| {
        format!(
            "network {}, plugins {}",
            printable_name(&network.name),
            printable_names(&network.plugins)
        )
    };
    let delegate = expected.delegate.as_ref();
    let delegate = delegate.and_then(|_| delegate_of(network).ok());
    let delegate = delegate.map(|found| format!("; delegate: {}", described(found)));
    format!(
        "{}: {}{}",
        path.display(),
        described(network),
        delegate.unwrap_or_default()
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

fn warnings(expected: &CniConfig, network: &Network) -> String {
    let default = runtime_default(network).filter(|_| !has_expectations(expected));
    let default =
        default.map(|origin| format!("this is {origin}, so name the expected network or plugins"));
    let of_delegates = delegates(expected, network).enumerate();
    let of_delegates = of_delegates.filter_map(|(index, delegate)| {
        let warning = version::warning(&delegate.version)?;
        Some(format!("delegates[{index}] of Multus: {warning}"))
    });
    let warnings = default
        .into_iter()
        .chain(version::warning(&network.version))
        .chain(of_delegates);
    warnings.fold(String::new(), |text, warning| {
        text + "; warning: " + &warning
    })
}

#[cfg(test)]
pub(super) mod tests;
