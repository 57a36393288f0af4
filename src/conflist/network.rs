//! One configuration file, read as libcni reads it.
//!
//! Of two equal keys the last one counts, as in Go. Stricter than Go: no invalid UTF-8, no unpaired surrogates, 128 levels
//! instead of 10,000, and one spelling of a key. Stricter than libcni: no invalid `cniVersion`, no unexpanded templates.

use std::ffi::OsStr;

use serde_json::{Map, Value};

use super::names::printable_name;
use super::shape::{Shape, text};
use super::{has_extension, multus, template, version};
use crate::syntax::NETWORK_NAME;

/// `types.PluginConf` (libcni `pkg/types/types.go`): a wrong type in any of these fields fails the whole file.
const PLUGIN: Shape = Shape::Struct(&[
    ("cniVersion", Shape::Text),
    ("name", Shape::Text),
    ("type", Shape::Text),
    ("capabilities", Shape::Map(&Shape::Flag)),
    ("ipam", Shape::Struct(&[("type", Shape::Text)])),
    (
        "dns",
        Shape::Struct(&[
            ("nameservers", Shape::List(&Shape::Text)),
            ("domain", Shape::Text),
            ("search", Shape::List(&Shape::Text)),
            ("options", Shape::List(&Shape::Text)),
        ]),
    ),
    ("prevResult", Shape::Map(&Shape::Any)),
    (
        "cni.dev/valid-attachments",
        Shape::List(&Shape::Struct(&[
            ("containerID", Shape::Text),
            ("ifname", Shape::Text),
        ])),
    ),
]);

/// The part of a valid network configuration that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Follows the SPEC's name rule.
    pub name: String,
    /// The version of the CNI specification that the plugins get. Empty if there is none, which means 0.1.0.
    pub version: String,
    /// The `type` of each plugin, in the order of the chain.
    pub plugins: Vec<String>,
    /// libcni appends the plugins of `<dir>/<name>/*.conf`.
    pub appends_directory: bool,
    /// The networks that Multus calls, if it is in the chain, or why they are not known. There is at least one.
    pub delegates: Option<Result<Vec<Self>, String>>,
}

impl Network {
    /// Reads the file called `file`. An empty chain is only a fault once the plugins that [`Self::appends_directory`] adds
    /// are known.
    pub fn parse(file: &OsStr, contents: &[u8]) -> Result<Self, String> {
        let value = json(contents)?;
        let network = if has_extension(file, ".conflist") {
            Self::from_list(&value)
        } else {
            Self::from_plugin(&value)
        };
        network?.with_valid_name()
    }

    /// libcni checks this rule only when a pod starts (`ValidateNetworkName`), which is too late. The rule also keeps
    /// `<dir>/<name>` inside the directory.
    fn with_valid_name(self) -> Result<Self, String> {
        if NETWORK_NAME.check(&self.name).is_ok() {
            Ok(self)
        } else {
            let name = printable_name(&self.name);
            Err(format!(
                "the network name \"{name}\" has characters that are not allowed"
            ))
        }
    }

    /// Appends the one plugin in a file of `<dir>/<name>/` (`NetworkPluginConfFromBytes`).
    pub(crate) fn append(&mut self, contents: &[u8]) -> Result<(), String> {
        let value = json(contents)?;
        self.plugins.push(plugin(&value)?);
        // Those of the first Multus stay.
        if self.delegates.is_none() {
            self.delegates = delegates(std::slice::from_ref(&value));
        }
        Ok(())
    }

    /// `NetworkConfFromBytes`.
    fn from_list(value: &Value) -> Result<Self, String> {
        let list = value.as_object().ok_or("must be a JSON object")?;
        let name = list.get("name").ok_or("no `name`")?;
        let name = name.as_str().ok_or("`name` must be a string")?;
        let version = version::of_list(list)?;
        flag(list, "disableCheck")?;
        flag(list, "disableGC")?;
        let inlined_only = flag(list, "loadOnlyInlinedPlugins")?;
        let inline = list.get("plugins");
        let plugins = match inline {
            None if inlined_only => {
                return Err("`loadOnlyInlinedPlugins` is true, but there are no `plugins`".into());
            }
            None => Vec::new(),
            Some(plugins) => inlined(plugins)?,
        };
        Ok(Self {
            name: name.to_owned(),
            version,
            plugins,
            appends_directory: !inlined_only,
            delegates: inline
                .and_then(Value::as_array)
                .and_then(|plugins| delegates(plugins)),
        })
    }

    /// `ConfFromFile` and `ConfListFromConf`.
    fn from_plugin(value: &Value) -> Result<Self, String> {
        let plugin = plugin(value).map_err(|fault| match value.get("plugins") {
            Some(_) => format!("{fault}: a list of plugins must be in a *.conflist file"),
            None => fault,
        })?;
        let name = text(value, "name").ok_or("no `name`")?;
        Ok(Self {
            name: name.to_owned(),
            version: version::of_plugin(text(value, "cniVersion"))?,
            plugins: vec![plugin],
            appends_directory: false,
            delegates: delegates(std::slice::from_ref(value)),
        })
    }

    /// What Multus passes to libcni (`LoadDelegateNetConf`). Multus reads no plugins from `<dir>/<name>/`.
    fn from_delegate(value: &Value) -> Result<Self, String> {
        let network = if multus::is_plugin(value) {
            Self::from_plugin(value)
        } else {
            PLUGIN.check(value)?;
            multus::check_list(value)?;
            Self::from_list(value)
        }?;
        let network = Self {
            appends_directory: false,
            ..network
        };
        network.with_valid_name()
    }
}

fn json(contents: &[u8]) -> Result<Value, String> {
    if contents.trim_ascii().is_empty() {
        return Err("the file is empty".into());
    }
    let value = serde_json::from_slice(contents).map_err(|error| {
        let fault = format!("not valid JSON: {error}");
        match template::check_text(&String::from_utf8_lossy(contents)) {
            Ok(()) => fault,
            Err(cause) => format!("{fault}; {cause}"),
        }
    })?;
    template::check(&value)?;
    Ok(value)
}

fn plugin(value: &Value) -> Result<String, String> {
    PLUGIN.check(value)?;
    match text(value, "type") {
        None | Some("") => Err("no `type`".into()),
        Some(kind) => Ok(kind.to_owned()),
    }
}

fn inlined(plugins: &Value) -> Result<Vec<String>, String> {
    let plugins = plugins.as_array().ok_or("`plugins` must be a list")?;
    if plugins.is_empty() {
        return Err("`plugins` is empty".into());
    }
    plugins
        .iter()
        .enumerate()
        .map(|(index, value)| plugin(value).map_err(|fault| format!("plugin {index}: {fault}")))
        .collect()
}

/// Those of the first Multus in the chain.
fn delegates(plugins: &[Value]) -> Option<Result<Vec<Network>, String>> {
    let multus = plugins.iter().find(|plugin| multus::is_multus(plugin))?;
    let networks = |delegates: &[Value]| {
        let delegates = delegates.iter().enumerate();
        let networks = delegates.map(|(index, delegate)| {
            Network::from_delegate(delegate)
                .map_err(|fault| format!("delegates[{index}] of Multus: {fault}"))
        });
        networks.collect()
    };
    Some(multus::delegates(multus).and_then(networks))
}

/// A boolean, or one written as a string in any case.
fn flag(list: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match list.get(key) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::String(flag)) if flag.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(flag)) if flag.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(format!("`{key}` must be true or false")),
    }
}

#[cfg(test)]
mod tests;
