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
            first: false,
            newer_than_boot: false,
        }
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
            first: fields.flag("first"),
            newer_than_boot: fields.flag("newerThanBoot"),
        }))
    })
}
