//! The configuration: one YAML file, read strictly into validated values.
//!
//! [`parse`] is pure; [`load`] reads a file. Text → `tree` (YAML with places) → `cursor`, `fields` (values by name,
//! problems collected) → `rules`, `rule_options`, `taints`, `gates`, `network`, `objects` (meaning). The types have the
//! shape and the field names of the file, so that [`parse`] reads again what [`show`] writes, and [`schema`] is their
//! JSON Schema.

mod checks;
mod claims;
mod cursor;
mod cycles;
mod duration;
mod fields;
mod file;
mod flags;
mod gates;
mod network;
mod objects;
mod observed;
mod options;
mod problem;
mod rule_options;
mod rules;
pub mod schema;
mod taints;
mod tree;
mod types;
mod unique;
mod url;

use schemars::JsonSchema;
use serde::Serialize;

pub use checks::{
    CniConfig, Endpoint, Exec, Expect, FileCheck, Grpc, HttpGet, HttpHeader, ProbeHandler, Scheme,
    StatusRange, TcpSocket,
};
pub(crate) use duration::shown as shown_duration;
pub use file::{load, parse_file, read};
pub use flags::{
    parse_duration, parse_image, parse_namespace, parse_network, parse_node_name, parse_path,
    parse_selinux_type, parse_service_account,
};
pub use observed::{Allocatable, CsiDriver, NodeCondition, ObservedObject, Pods};
pub use options::{Deadline, DeadlineAction, PublishCondition, Retaint};
pub use problem::{LoadError, Problems};
pub use types::{Check, Configuration, Gate, Group, Observation, Probe, Rule, Schedule};
pub use url::http_get_from_url;

use cursor::{Context, Cursor};
use problem::Problem;

/// `apiVersion` of the only version there is.
pub const API_VERSION: &str = "untaint/v1alpha1";
/// `kind` of the file.
pub const KIND: &str = "UntaintConfiguration";

/// The configuration of untaint: which taints it removes from its own Node, and when.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UntaintConfiguration")]
struct File<'a> {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: &'static str,
    /// The kind of file.
    #[schemars(extend("const" = KIND))]
    kind: &'static str,
    #[serde(flatten)]
    configuration: &'a Configuration,
}

/// Reads the text of a configuration file. The error has all problems of the text, each with its place.
pub fn parse(text: &str) -> Result<Configuration, Problems> {
    let root = tree::read(text)?;
    let context = Context::new(text);
    let root = Cursor::root(&context, &root);
    if root.is_null() {
        return Err(
            Problem::of_the_whole("is empty; it must have apiVersion, kind and rules").into(),
        );
    }
    match (rules::configuration(&root), context.into_problems()) {
        (Some(configuration), problems) if problems.is_empty() => Ok(configuration),
        (_, problems) => Err(Problems::new(problems)),
    }
}

/// Writes a configuration as [`parse`] reads it, with every default filled in.
pub fn show(configuration: &Configuration) -> String {
    #[expect(
        clippy::expect_used,
        reason = "the types have string keys only and bounded durations"
    )]
    serde_yaml::to_string(&File {
        api_version: API_VERSION,
        kind: KIND,
        configuration,
    })
    .expect("a configuration is always valid YAML")
}
