//! Multus, a plugin that calls the plugins of other networks, its delegates.
//!
//! The rules are those of Multus 4.2: `LoadNetConf` and `LoadDelegateNetConf` in `pkg/types/conf.go`, and `confAdd` and
//! `conflistAdd` in `pkg/multus/multus.go`, which pass each delegate to libcni.

use serde_json::Value;

use super::names::printable_name;
use super::shape::{Shape, field, text};

/// `NetConf` (`pkg/types/types.go`): a wrong type in any of these fields fails every pod.
const NET_CONF: Shape = Shape::Struct(&[
    ("delegates", Shape::List(&Shape::Map(&Shape::Any))),
    ("clusterNetwork", Shape::Text),
    ("defaultNetworks", Shape::List(&Shape::Text)),
    ("confDir", Shape::Text),
    ("cniDir", Shape::Text),
    ("binDir", Shape::Text),
    ("kubeconfig", Shape::Text),
    ("logFile", Shape::Text),
    ("logLevel", Shape::Text),
    ("logToStderr", Shape::Flag),
    ("readinessindicatorfile", Shape::Text),
    ("namespaceIsolation", Shape::Flag),
    ("globalNamespaces", Shape::Text),
    ("systemNamespaces", Shape::List(&Shape::Text)),
    ("multusNamespace", Shape::Text),
    ("auxiliaryCNIChainName", Shape::Text),
    ("retryDeleteOnError", Shape::Flag),
]);

/// `NetConfList` of libcni, into which Multus reads a delegate with a list of plugins.
const NET_CONF_LIST: Shape =
    Shape::Struct(&[("disableCheck", Shape::Flag), ("disableGC", Shape::Flag)]);

/// What an operator can do where Multus does not take its network from the file.
const REMEDY: &str = "leave out `delegate`, and set `overrideNetworkName` in the configuration of Multus, with which this \
                      file has the name of that network, for `network`";

/// Whether a plugin is Multus. The thick Multus has a plugin that asks its daemon, `multus-shim`.
pub(super) fn is_multus(plugin: &Value) -> bool {
    text(plugin, "type").is_some_and(|kind| kind.starts_with("multus"))
}

/// What Multus calls for every pod, by the configuration of its `plugin`: at least one network. The first one is that of the
/// pod's own interface. `Err` is why pods cannot start, or why the file does not tell.
pub(super) fn delegates(plugin: &Value) -> Result<&[Value], String> {
    NET_CONF
        .check(plugin)
        .map_err(|fault| format!("Multus: {fault}"))?;
    // It has priority over `delegates`, and names an object of the API or a file as the pod of Multus sees it.
    if let Some(network) = text(plugin, "clusterNetwork").filter(|network| !network.is_empty()) {
        return Err(format!(
            "Multus takes its network from `clusterNetwork`, {}, so this file cannot tell which one it is: {REMEDY}",
            printable_name(network)
        ));
    }
    match field(plugin, "delegates").and_then(Value::as_array) {
        Some(delegates) if !delegates.is_empty() => Ok(delegates),
        _ if text(plugin, "type") == Some("multus") => {
            Err("Multus has neither `delegates` nor `clusterNetwork`".into())
        }
        // The daemon has a configuration of its own (`overrideCNIConfigWithServerConfig` in `pkg/server/server.go`).
        _ => Err(format!(
            "Multus has no `delegates` here, so this file cannot tell which network it is: {REMEDY}"
        )),
    }
}

/// Whether a delegate is a single plugin: if it has a `type`, whatever else it has.
pub(super) fn is_plugin(delegate: &Value) -> bool {
    text(delegate, "type").is_some_and(|kind| !kind.is_empty())
}

/// Checks what Multus itself reads of a delegate with a list of plugins.
pub(super) fn check_list(delegate: &Value) -> Result<(), String> {
    NET_CONF_LIST.check(delegate)?;
    match field(delegate, "plugins") {
        None | Some(Value::Null) => Err("neither `type` nor `plugins`".into()),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
