//! The configuration: one YAML file, read strictly into validated values.
//!
//! [`parse`] is pure; [`load`] reads a file. Each type is beside its reader: `gate` has the gates, one file a kind;
//! `rule` has everything else of a rule. `read` is how YAML becomes values, and how all problems are found at once.
//! `conflicts` compares rules with each other. The types have the shape and the field names of the file, so that
//! [`parse`] reads again what [`show`] writes, and [`schema`] is their JSON Schema.

mod conflicts;
mod duration;
mod gate;
mod labels;
mod read;
mod rule;
pub mod schema;
mod taint;

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

pub use duration::parse_duration;
pub(crate) use duration::shown as shown_duration;
pub use gate::*;
pub use read::Problems;
pub use rule::{Deadline, DeadlineAction, PublishCondition, Retaint, Rule};

use crate::small_file;
use crate::text::quoted;
use read::{Cursor, Names, Value};

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

/// A whole configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// Also write an Event on the Node when something happens to a rule. Needs an additional permission.
    #[schemars(default)]
    pub events: bool,
    /// The rules, at least one. They do not depend on each other.
    #[schemars(length(min = 1))]
    pub rules: Vec<Rule>,
}

/// Reads the text of a configuration file. The error has all problems of the text, each with its place.
pub fn parse(text: &str) -> Result<Configuration, Problems> {
    read::document(text, Configuration::read)
}

/// [`parse`] with errors that name the file in each line.
pub fn parse_file(path: &Path, text: &str) -> Result<Configuration, Problems> {
    parse(text).map_err(|problems| problems.in_file(path))
}

/// What is valid in the text of a configuration file and worth a warning. There is none in an invalid text.
pub fn warnings(path: &Path, text: &str) -> Option<Problems> {
    let (_, warnings) = read::document_with_warnings(text, Configuration::read).ok()?;
    (!warnings.is_empty()).then(|| warnings.in_file(path))
}

/// Reads the text of a configuration file.
pub fn read(path: &Path) -> Result<String, Problems> {
    small_file::read_text(path).map_err(|message| Problems::of_the_whole(message).in_file(path))
}

/// Reads a configuration file. The error names the file in each of its lines.
pub fn load(path: &Path) -> Result<Configuration, Problems> {
    parse_file(path, &read(path)?)
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

impl Configuration {
    fn read(root: &Cursor<'_>) -> Option<Self> {
        if root.is_null() {
            root.report_whole("is empty; it must have apiVersion, kind and rules");
            return None;
        }
        if !matches!(root.value(), Value::Map(_)) {
            // It may be another file by mistake, such as a token or a key.
            return root.secret().mismatch("a mapping");
        }
        root.mapping("the file", |fields| {
            let mut is_foreign = false;
            for (name, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
                fields.required(name, |field| {
                    let read = field.parsed(|text| {
                        let refusal = || format!("must be {expected:?}, not {}", quoted(text));
                        (text == expected).then_some(()).ok_or_else(refusal)
                    });
                    is_foreign |= read.is_none();
                    read
                });
            }
            if is_foreign {
                // Every other problem would follow from this one.
                fields.skip_rest();
                return None;
            }
            let (mut names, mut partial_rules) = (Names::default(), Vec::new());
            let configuration = Self {
                events: fields.flag("events"),
                rules: fields.required("rules", |rules| {
                    rules.filled_list(|rule| Rule::read(rule, &mut names, &mut partial_rules))
                }),
            };
            conflicts::report(&partial_rules);
            Some(configuration)
        })
    }
}
