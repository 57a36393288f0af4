//! From the tree to gates.

use std::iter::{once, repeat};
use std::path::PathBuf;

use super::checks::{CniConfig, Exec, FileCheck, ProbeHandler};
use super::cursor::Cursor;
use super::fields::Fields;
use super::network::{grpc, http_get, tcp_socket};
use super::objects::{allocatable, csi_driver, node_condition, pods};
use super::observed::ObservedObject;
use super::rules::{NO_GATES, unique_name};
use super::types::{Check, Gate, Group, Observation, Probe, Schedule};
use super::unique::Unique;
use crate::syntax::{ABSOLUTE_PATH, ARGUMENT, NETWORK_NAME, PLUGIN_TYPE};

/// The longest delay, period and time-out, in seconds.
pub(super) const MAX_SECONDS: u16 = 3600;
/// The shortest period and time-out, in seconds: a busier gate would be a load of its own.
pub(super) const MIN_SECONDS: f64 = 0.01;
/// The largest threshold.
pub(super) const MAX_THRESHOLD: u32 = 1000;

/// How the field that says what a gate is about is read.
#[derive(Clone, Copy)]
enum Subject {
    /// Of a probe.
    Asked(fn(&Cursor<'_>) -> Option<ProbeHandler>),
    /// Of an object, whose changes the API server tells.
    Told(fn(&Cursor<'_>) -> Option<ObservedObject>),
}

use Subject::{Asked, Told};

const SUBJECTS: [(&str, Subject); 10] = [
    (
        "cniConfig",
        Asked(|field| cni_config(field).map(ProbeHandler::CniConfig)),
    ),
    (
        "httpGet",
        Asked(|field| http_get(field).map(ProbeHandler::HttpGet)),
    ),
    (
        "tcpSocket",
        Asked(|field| tcp_socket(field).map(ProbeHandler::TcpSocket)),
    ),
    ("grpc", Asked(|field| grpc(field).map(ProbeHandler::Grpc))),
    ("exec", Asked(|field| exec(field).map(ProbeHandler::Exec))),
    ("file", Asked(|field| file(field).map(ProbeHandler::File))),
    (
        "csiDriver",
        Told(|field| csi_driver(field).map(ObservedObject::CsiDriver)),
    ),
    (
        "allocatable",
        Told(|field| allocatable(field).map(ObservedObject::Allocatable)),
    ),
    (
        "nodeCondition",
        Told(|field| node_condition(field).map(ObservedObject::NodeCondition)),
    ),
    ("pods", Told(|field| pods(field).map(ObservedObject::Pods))),
];

/// The fields of a [`Schedule`].
const SCHEDULE: [&str; 5] = [
    "initialDelaySeconds",
    "periodSeconds",
    "timeoutSeconds",
    "successThreshold",
    "failureThreshold",
];
/// Why they must not stand beside an object.
const NO_SCHEDULE: &str = "must not stand here: this gate is not asked time and again, the API server tells of each \
                           change by itself";

/// The gates of a rule.
pub(super) fn gates(cursor: &Cursor<'_>) -> Option<Vec<Gate>> {
    if cursor.is_null() {
        cursor.report(format!("has no value{NO_GATES}"));
        return None;
    }
    let mut names = Unique::default();
    cursor.list(|cursor| gate(cursor, &mut names))
}

fn gate(cursor: &Cursor<'_>, names: &mut Unique<String>) -> Option<Gate> {
    if cursor.has("anyOf") {
        return group(cursor, names).map(Gate::AnyOf);
    }
    let condition = cursor.mapping("a gate", |fields| {
        let subjects = subjects(fields);
        // Not there, but among the fields to choose from.
        fields.optional("anyOf");
        condition(fields, &subjects, names)
    });
    condition.map(Gate::Single)
}

fn group(cursor: &Cursor<'_>, names: &mut Unique<String>) -> Option<Group> {
    cursor.mapping("a gate with anyOf", |fields| {
        let name = unique_name(fields, names);
        let mut member_names = Unique::default();
        let any_of = fields.required("anyOf")?.filled_list(|member| {
            member.mapping("a member of anyOf", |fields| {
                let subjects = subjects(fields);
                condition(fields, &subjects, &mut member_names)
            })
        });
        Some(Group {
            name: name?,
            any_of: any_of?,
        })
    })
}

/// All subjects that the fields have, from top to bottom.
fn subjects<'t>(fields: &mut Fields<'_, 't>) -> Vec<(Cursor<'t>, Subject)> {
    let found = SUBJECTS.iter().filter_map(|(name, subject)| {
        let field = fields.optional(name)?;
        Some((field, *subject))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(field, _)| field.place());
    found
}

/// Only one of `subjects` is allowed; all of them are read for their problems.
fn condition(
    fields: &mut Fields<'_, '_>,
    subjects: &[(Cursor<'_>, Subject)],
    names: &mut Unique<String>,
) -> Option<Check> {
    let Some(((first, subject), others)) = subjects.split_first() else {
        fields.report(format!("must have one of {}", fields.known()));
        unique_name(fields, names);
        schedule(fields);
        return None;
    };
    for (field, subject) in others {
        field.report_key(format!(
            "a gate has one check; this one has another in line {}",
            first.line()
        ));
        match subject {
            Asked(read) => drop(read(field)),
            Told(read) => drop(read(field)),
        }
    }
    let name = unique_name(fields, names);
    match subject {
        Asked(read) => {
            let check = read(first);
            let schedule = schedule(fields);
            Some(Check::Probe(Probe {
                name: name?,
                handler: check?,
                schedule,
            }))
        }
        Told(read) => {
            let object = read(first);
            for field in SCHEDULE {
                fields.refuse(field, NO_SCHEDULE);
            }
            Some(Check::Observation(Observation {
                name: name?,
                object: object?,
            }))
        }
    }
}

fn schedule(fields: &mut Fields<'_, '_>) -> Schedule {
    let mut seconds = |name, least, default| {
        let field = fields.optional(name);
        let read = field.and_then(|field| field.seconds(&(least..=MAX_SECONDS.into())));
        read.unwrap_or(default)
    };
    let default = Schedule::default();
    let initial_delay = seconds("initialDelaySeconds", 0.0, default.initial_delay);
    let period = seconds("periodSeconds", MIN_SECONDS, default.period);
    let timeout = seconds("timeoutSeconds", MIN_SECONDS, default.timeout);
    let mut threshold = |name, default| {
        let field = fields.optional(name);
        let read = field.and_then(|field| field.whole_number(&(1..=MAX_THRESHOLD)));
        read.unwrap_or(default)
    };
    Schedule {
        initial_delay,
        period,
        timeout,
        success_threshold: threshold("successThreshold", default.success_threshold),
        failure_threshold: threshold("failureThreshold", default.failure_threshold),
    }
}

fn cni_config(cursor: &Cursor<'_>) -> Option<CniConfig> {
    cursor.mapping("cniConfig", |fields| {
        let dir = fields.optional("dir").and_then(|dir| path(&dir));
        let network = fields.optional("network");
        let plugins = fields.optional("plugins");
        let bin_dirs = fields.optional("binDirs");
        Some(CniConfig {
            dir: dir.unwrap_or_else(|| CniConfig::default().dir),
            network: network.and_then(|network| network.text(&NETWORK_NAME)),
            plugins: plugins
                .and_then(|plugins| plugins.list(|plugin| plugin.text(&PLUGIN_TYPE)))
                .unwrap_or_default(),
            bin_dirs: bin_dirs
                .and_then(|dirs| dirs.list(path))
                .unwrap_or_default(),
            first: fields.flag("first"),
            newer_than_boot: fields.flag("newerThanBoot"),
        })
    })
}

fn exec(cursor: &Cursor<'_>) -> Option<Exec> {
    // The program too: people write whole commands in its place.
    cursor.clone().secret().mapping("exec", |fields| {
        let mut forms = once(&ABSOLUTE_PATH).chain(repeat(&ARGUMENT));
        let command = fields.required("command")?;
        let command = command.filled_list(|argument| argument.text(forms.next()?));
        Some(Exec { command: command? })
    })
}

fn file(cursor: &Cursor<'_>) -> Option<FileCheck> {
    cursor.mapping("file", |fields| {
        let path = fields.required("path").and_then(|field| path(&field));
        let newer_than_boot = fields.flag("newerThanBoot");
        Some(FileCheck {
            path: path?,
            newer_than_boot,
        })
    })
}

fn path(cursor: &Cursor<'_>) -> Option<PathBuf> {
    cursor.text(&ABSOLUTE_PATH).map(PathBuf::from)
}
