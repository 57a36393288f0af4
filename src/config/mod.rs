//! The configuration: one or more YAML files, read strictly into validated values.
//!
//! [`parse`] and [`parse_files`] are pure; `files` finds and reads the files. Each type is beside its reader: `gate` has
//! the gates, one file a kind; `rule` has everything else of a rule. `read` is how YAML becomes values, and how all
//! problems are found at once. `conflicts` compares rules with each other. The types have the shape and the field names
//! of the file, so that [`parse`] reads again what [`show`] writes, and [`schema`] is their JSON Schema.

mod conflicts;
mod duration;
mod files;
mod gate;
mod labels;
mod read;
mod rule;
pub mod schema;
mod taint;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

pub use duration::parse_duration;
pub(crate) use duration::shown as shown_duration;
pub use files::{SourceFile, hash, is_in_directory, is_standard_input, names, read_files};
pub use gate::*;
pub use read::Problems;
pub use rule::{Deadline, DeadlineAction, PublishCondition, Retaint, Rule};

use crate::text::quoted;
use conflicts::PartialRule;
use read::{Cursor, Names, Source, Value};

/// `apiVersion` of the only version there is.
pub const API_VERSION: &str = "untaint/v1alpha1";
/// `kind` of the file.
pub const KIND: &str = "UntaintConfiguration";

/// Objects of the API that may have a configuration in them, by their `kind`, and what to use of them.
const AROUND: [(&str, &str); 4] = [
    ("ConfigMap", "the text under data, not the ConfigMap"),
    (
        "ConfigMapList",
        "the text under data of one ConfigMap, not the list",
    ),
    ("List", "the text under data of one ConfigMap, not the list"),
    ("Secret", "the decoded text under data, not the Secret"),
];

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

/// A configuration, from one file or joined from several.
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
    read::documents(&[Source::new(None, text)], Configuration::read)
        .map(|(configuration, _)| configuration)
}

/// Joins configuration files and checks them together. Also returns what is valid and worth a warning. The error has all
/// problems, each with its file and place.
pub fn parse_files(files: &[SourceFile]) -> Result<(Configuration, Problems), Problems> {
    let sources = files
        .iter()
        .map(|file| Source::new(Some(&file.name), &file.text));
    read::documents(&sources.collect::<Vec<_>>(), Configuration::read)
}

/// [`read_files`] and [`parse_files`], without the warnings.
pub fn load(paths: &[PathBuf]) -> Result<Configuration, Problems> {
    parse_files(&read_files(paths)?).map(|(configuration, _)| configuration)
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
    /// The gates that only the API server can open, as `RULE/GATE, …`; empty if there are none. A group with a probe is
    /// not one of them.
    pub fn gates_of_api_server(&self) -> String {
        let gates = self.rules.iter().flat_map(|rule| {
            let gates = rule.gates.iter().filter(|gate| gate.needs_api_server());
            gates.map(|gate| format!("{}/{}", rule.name, gate.name()))
        });
        gates.collect::<Vec<_>>().join(", ")
    }

    /// The `pods` gates and members of groups with `every`, each with the names of its rule and its gate.
    pub fn gates_for_every_daemon_set(&self) -> impl Iterator<Item = (&str, &str, &Pods)> {
        let gates = self.rules.iter();
        let gates = gates.flat_map(|rule| rule.gates.iter().map(move |gate| (rule, gate)));
        gates.flat_map(|(rule, gate)| {
            gate.checks().iter().filter_map(move |check| match check {
                Check::Observation(Observation {
                    object: ObservedObject::Pods(pods),
                    ..
                }) if pods.every => Some((rule.name.as_str(), gate.name(), pods)),
                _ => None,
            })
        })
    }

    /// Reads the files, and joins what they have.
    fn read(roots: &[Cursor<'_>]) -> Option<Self> {
        let mut joined = Joined::default();
        let rules: Vec<_> = roots.iter().map(|root| joined.add(root)).collect();
        conflicts::report(&joined.partial_rules);
        Some(Self {
            events: joined.events.is_some_and(|(_, value)| value),
            rules: rules.into_iter().collect::<Option<Vec<_>>>()?.concat(),
        })
    }
}

/// What is known of the files so far.
#[derive(Default)]
struct Joined<'t> {
    names: Names<'t>,
    partial_rules: Vec<PartialRule<'t>>,
    /// The field `events` of the first file that has it.
    events: Option<(Cursor<'t>, bool)>,
}

impl<'t> Joined<'t> {
    /// Returns the rules of a file.
    fn add(&mut self, root: &Cursor<'t>) -> Option<Vec<Rule>> {
        if root.is_null() {
            root.report_whole("is empty; it must have apiVersion, kind and rules");
            return None;
        }
        if !matches!(root.value(), Value::Map(_)) {
            // It may be another file by mistake, such as a token or a key.
            return root.secret().mismatch("a mapping");
        }
        for (name, text) in AROUND {
            if let Some(kind) = root.get("kind").filter(|kind| kind.is(name)) {
                kind.report(format!("is {name}: give untaint {text}"));
                return None;
            }
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
            if let Some(field) = fields.find("events") {
                self.events(field);
            }
            Some(fields.required("rules", |rules| {
                rules.filled_list(|rule| Rule::read(rule, &mut self.names, &mut self.partial_rules))
            }))
        })
    }

    /// A setting of the whole program, so the files that have it must agree.
    fn events(&mut self, field: Cursor<'t>) {
        let Some(value) = field.boolean() else {
            return;
        };
        match &self.events {
            Some((first, other)) if *other != value => field.report_key(format!(
                "is {value}, but is {other} {}; leave it out in one of the files",
                field.whereabouts(first)
            )),
            Some(_) => {}
            None => self.events = Some((field, value)),
        }
    }
}
