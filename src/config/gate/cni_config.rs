use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::ProbeHandler;
use crate::config::read::Cursor;
use crate::syntax::{ABSOLUTE_PATH, Each, Form, NETWORK_NAME, PLUGIN_TYPE};

/// What must be in the directory of the CNI configuration.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default)]
pub struct CniConfig {
    /// The directory, as untaint sees it.
    #[schemars(transform = Form(&ABSOLUTE_PATH))]
    pub dir: PathBuf,
    /// The `name` that the network must have. If left out, any name matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", transform = Form(&NETWORK_NAME))]
    pub network: Option<String>,
    /// Plugin types that must all be in the chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = Each(&PLUGIN_TYPE))]
    pub plugins: Vec<String>,
    /// One of these directories must contain an executable program for each plugin of the chain. If left out, untaint
    /// does not check this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = Each(&ABSOLUTE_PATH))]
    pub bin_dirs: Vec<PathBuf>,
    /// What Multus must call: the file must have Multus in its chain, and this as its first delegate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Delegate")]
    pub delegate: Option<Delegate>,
    /// The file must be the one that the runtime picks.
    pub first: bool,
    /// The file must have been written since the machine booted.
    pub newer_than_boot: bool,
}

impl Default for CniConfig {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("/etc/cni/net.d"),
            network: None,
            plugins: Vec::new(),
            bin_dirs: Vec::new(),
            delegate: None,
            first: false,
            newer_than_boot: false,
        }
    }
}

/// The network that Multus calls for the pod's own interface: the first of its `delegates`. At least one field is
/// required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct Delegate {
    /// The `name` that its network must have. If left out, any name matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", transform = Form(&NETWORK_NAME))]
    pub network: Option<String>,
    /// Plugin types that must all be in its chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, length(min = 1), transform = Each(&PLUGIN_TYPE))]
    pub plugins: Vec<String>,
}

impl Delegate {
    fn read(cursor: &Cursor<'_>) -> Option<Self> {
        cursor.mapping("delegate", |fields| {
            if cursor
                .get("network")
                .or_else(|| cursor.get("plugins"))
                .is_none()
            {
                fields.report("must have network or plugins");
            }
            Some(Self {
                network: fields.optional("network", |network| network.text(&NETWORK_NAME)),
                plugins: fields.or("plugins", Vec::new(), |plugins| {
                    plugins.filled_list(|plugin| plugin.text(&PLUGIN_TYPE))
                }),
            })
        })
    }
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ProbeHandler> {
    cursor.mapping("cniConfig", |fields| {
        Some(ProbeHandler::CniConfig(CniConfig {
            dir: fields.or("dir", CniConfig::default().dir, Cursor::absolute_path),
            network: fields.optional("network", |network| network.text(&NETWORK_NAME)),
            plugins: fields.or("plugins", Vec::new(), |plugins| {
                plugins.list(|plugin| plugin.text(&PLUGIN_TYPE))
            }),
            bin_dirs: fields.or("binDirs", Vec::new(), |dirs| {
                dirs.list(Cursor::absolute_path)
            }),
            delegate: fields.optional("delegate", Delegate::read),
            first: fields.flag("first"),
            newer_than_boot: fields.flag("newerThanBoot"),
        }))
    })
}
