//! A CNI directory: names and contents, judged without a disk.
//!
//! The input is a sequence of files, each ended by [`END`]: a line with the name, then the contents.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;
use untaint::config::CniConfig;
use untaint::conflist::{Candidate, Network, ValidFile, candidates, decide};

/// Cannot be in UTF-8, so neither in a valid file.
const END: u8 = 0xff;

type Files<'a> = BTreeMap<&'a OsStr, &'a [u8]>;

pub fn check(input: &[u8]) -> bool {
    let files: Files<'_> = input
        .split(|byte| *byte == END)
        .filter_map(|file| {
            let end = file.iter().position(|byte| *byte == b'\n')?;
            Some((OsStr::from_bytes(&file[..end]), &file[end + 1..]))
        })
        .collect();
    let any = CniConfig {
        dir: "/d".into(),
        ..CniConfig::default()
    };
    let named = CniConfig {
        network: Some("cilium".into()),
        ..any.clone()
    };
    let chained = CniConfig {
        plugins: vec!["cilium-cni".into()],
        ..any.clone()
    };
    let mut keys = files.keys().map(|key| key.to_string_lossy());
    let is_plain = keys.all(|key| !key.contains(char::is_control));
    let mut opened = false;
    for wanted in [any, named, chained] {
        let first = CniConfig {
            first: true,
            ..wanted.clone()
        };
        let (anywhere, picked) = (verdict(&files, &wanted), verdict(&files, &first));
        opened |= anywhere.is_ok();
        // Fewer demands never lead to a refusal.
        assert!(
            anywhere.is_ok() || picked.is_err(),
            "{anywhere:?} {picked:?}"
        );
        for (verdict, must_be_first) in [(anywhere, false), (picked, true)] {
            match verdict {
                Ok(seen) => assert!(explains(&files, &wanted, must_be_first, &seen), "{seen}"),
                Err(reason) => {
                    assert!(!reason.is_empty());
                    // Only the names of files are as they are.
                    assert!(!is_plain || !reason.contains(char::is_control));
                }
            }
        }
    }
    opened
}

/// The verdict of the gate where there is no `<dir>/<name>/`.
fn verdict(files: &Files<'_>, wanted: &CniConfig) -> Result<String, String> {
    let names = files.keys().map(|name| OsString::from(*name));
    let candidates = candidates(names).into_iter().map(|file| Candidate {
        content: Network::parse(&file, files[file.as_os_str()]).and_then(|network| {
            if network.plugins.is_empty() {
                return Err("no plugins".into());
            }
            Ok(ValidFile {
                network,
                stale: None,
                program_fault: None,
            })
        }),
        file,
    });
    decide(wanted, candidates)
}

/// Whether `seen` is about a file that is there, that has what is wanted when read in another way, and that is the first of
/// all where `must_be_first`.
fn explains(files: &Files<'_>, wanted: &CniConfig, must_be_first: bool, seen: &str) -> bool {
    let mut eligible = files.iter().filter(|(name, _)| {
        let name = name.as_bytes();
        [&b".conf"[..], b".conflist", b".json"]
            .iter()
            .any(|end| name.ends_with(end))
    });
    let bears_out = |(name, contents): (&&OsStr, &&[u8])| {
        let path = wanted.dir.join(name);
        seen.starts_with(&format!("{}: network ", path.display())) && has(contents, wanted)
    };
    // Without expectations, only the first counts.
    if must_be_first || wanted.network.is_none() && wanted.plugins.is_empty() {
        eligible.next().is_some_and(bears_out)
    } else {
        eligible.any(bears_out)
    }
}

/// Whether these are JSON with a name and at least one plugin, and with what is wanted.
fn has(contents: &[u8], wanted: &CniConfig) -> bool {
    let Ok(Value::Object(file)) = serde_json::from_slice(contents) else {
        return false;
    };
    let field = |object: &serde_json::Map<String, Value>, wanted: &str| {
        let mut fields = object
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(wanted));
        fields.find_map(|(_, value)| value.as_str().map(str::to_owned))
    };
    let mut plugins: Vec<_> = file
        .get("plugins")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|plugin| field(plugin.as_object()?, "type"))
        .collect();
    plugins.extend(field(&file, "type"));
    let name = field(&file, "name");
    name.is_some()
        && !plugins.is_empty()
        && (wanted.network.is_none() || wanted.network == name)
        && wanted.plugins.iter().all(|plugin| plugins.contains(plugin))
}
