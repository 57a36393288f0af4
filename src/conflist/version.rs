//! Which version of the CNI specification a runtime gives to the plugins.

use serde_json::{Map, Value};

use super::names::printable_name;

/// All versions of the specification: `version.All` (libcni 1.3, `pkg/version/version.go`).
const RELEASED: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// `version.Current` there. libcni ignores newer versions where it has several to choose from.
const CURRENT: Numbers = (1, 1, 0);

type Numbers = (i64, i64, i64);

/// The version that libcni gives to each plugin of a list (`NetworkConfFromBytes`): the newest that it knows, if there are
/// several. Empty if there is none.
pub(super) fn of_list(list: &Map<String, Value>) -> Result<String, String> {
    let version = match list.get("cniVersion") {
        None => "",
        Some(version) => version.as_str().ok_or("`cniVersion` must be a string")?,
    };
    let own = (numbers("cniVersion", version)?, version);
    let mut known = Vec::new();
    if let Some(versions) = list.get("cniVersions") {
        for each in versions.as_array().ok_or("`cniVersions` must be a list")? {
            let each = each
                .as_str()
                .ok_or("`cniVersions` must have strings only")?;
            known.push((numbers("cniVersions", each)?, each));
        }
        if !version.is_empty() {
            known.push(own);
        }
    }
    known.retain(|(numbers, _)| *numbers <= CURRENT);
    let newest = known.into_iter().max();
    Ok(newest.unwrap_or(own).1.to_owned())
}

/// The version that libcni gives to a single plugin.
pub(super) fn of_plugin(version: Option<&str>) -> Result<String, String> {
    let version = version.unwrap_or_default();
    numbers("cniVersion", version)?;
    Ok(version.to_owned())
}

/// `ParseVersion` (libcni `pkg/version/plugin.go`): one to three numbers, or nothing at all, which is 0.1.0.
///
/// libcni loads a file with a single invalid version, but pods cannot start and stop with it: plugins refuse it
/// (`checkVersionAndCall` in `pkg/skel/skel.go`), and libcni itself fails to delete a pod's network
/// (`DelNetworkList` in `libcni/api.go`).
fn numbers(key: &str, version: &str) -> Result<Numbers, String> {
    if version.is_empty() {
        return Ok((0, 1, 0));
    }
    let parts = version.split('.').map(|part| part.parse().ok());
    match parts.collect::<Option<Vec<i64>>>().as_deref() {
        Some(&[major]) => Ok((major, 0, 0)),
        Some(&[major, minor]) => Ok((major, minor, 0)),
        Some(&[major, minor, micro]) => Ok((major, minor, micro)),
        _ => Err(format!(
            "`{key}` has \"{}\", which is not a valid version",
            printable_name(version)
        )),
    }
}

/// Why plugins may fail with this version. They compare it with the versions that they support character by character
/// (`CheckRaw` in libcni `pkg/version/reconcile.go`).
pub(super) fn warning(version: &str) -> Option<String> {
    if version.is_empty() {
        return Some(
            "no `cniVersion`, which means 0.1.0: plugins that do not support this version fail"
                .into(),
        );
    }
    (!RELEASED.contains(&version)).then(|| {
        format!(
            "`cniVersion` {} is not a CNI version that untaint knows (the newest is 1.1.0): plugins that do not support it fail",
            printable_name(version)
        )
    })
}
