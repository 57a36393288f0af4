//! Gates. Each kind has one file, with its type, schema, defaults and reader.
//!
//! A new kind is a file here, a variant of [`ProbeHandler`] or [`ObservedObject`], and a row in [`KINDS`].

mod after;
mod allocatable;
mod any_of;
mod cni_config;
mod csi_driver;
mod endpoint;
mod exec;
mod file;
mod grpc;
mod http_get;
mod node_condition;
mod node_label;
mod pods;
mod schedule;
mod tcp_socket;

use schemars::JsonSchema;
use serde::Serialize;

use super::read::{Cursor, Fields, Names};
use crate::syntax::{DNS_LABEL, Each, Form};

pub use after::Order;
pub use allocatable::Allocatable;
pub use any_of::Group;
pub use cni_config::{CniConfig, Delegate};
pub use csi_driver::CsiDriver;
pub use endpoint::Endpoint;
pub use exec::Exec;
pub use file::FileCheck;
pub use grpc::Grpc;
pub use http_get::{Expect, HttpGet, HttpHeader, Scheme, StatusRange};
pub use node_condition::NodeCondition;
pub use node_label::NodeLabel;
pub use pods::Pods;
pub use schedule::Schedule;
pub use tcp_socket::TcpSocket;

/// What must be true before the taint is removed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gate {
    /// What it checks.
    #[serde(flatten)]
    pub kind: GateKind,
    /// Other gates of the rule. All must be open before untaint asks this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, transform = Each(&DNS_LABEL))]
    pub after: Vec<String>,
}

/// One check, or one of several.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum GateKind {
    /// One check.
    Single(#[schemars(schema_with = "Check::json_schema")] Check),
    /// A group of checks.
    AnyOf(Group),
}

/// A check: a probe of the node, or an observation through the API server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Check {
    /// The agent asks the node periodically.
    Probe(Probe),
    /// The API server reports changes.
    Observation(Observation),
}

/// What to ask the node, and when.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Probe {
    /// Unique among the gates of its rule and, in a group, among its members.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub name: String,
    /// What to ask.
    #[serde(flatten)]
    pub handler: ProbeHandler,
    /// When to ask, and how many answers make a state.
    #[serde(flatten)]
    pub schedule: Schedule,
}

/// What to observe through the API server, which reports changes: there is no schedule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Observation {
    /// Unique among the gates of its rule and, in a group, among its members.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub name: String,
    /// What to observe.
    #[serde(flatten)]
    pub object: ObservedObject,
}

/// What a probe asks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProbeHandler {
    /// The CNI configuration that the container runtime will load.
    CniConfig(CniConfig),
    /// An HTTP answer.
    HttpGet(HttpGet),
    /// A TCP port or a unix socket that accepts connections.
    TcpSocket(TcpSocket),
    /// The gRPC health service, `grpc.health.v1.Health/Check`.
    Grpc(Grpc),
    /// A program that exits with 0.
    Exec(Exec),
    /// A file that exists.
    File(FileCheck),
}

/// An object about this node, and what it must contain.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ObservedObject {
    /// A CSI driver that has registered with the kubelet: it is in the node's CSINode.
    CsiDriver(CsiDriver),
    /// A resource in the Node's `status.allocatable`, and how much there must be.
    Allocatable(Allocatable),
    /// A condition of the Node and its status.
    NodeCondition(NodeCondition),
    /// A label of the Node and its value.
    NodeLabel(NodeLabel),
    /// Ready pods on this node: one, or those of DaemonSets.
    Pods(Pods),
}

/// Reads the field of a kind.
#[derive(Clone, Copy)]
enum Reader {
    Probe(fn(&Cursor<'_>) -> Option<ProbeHandler>),
    Observation(fn(&Cursor<'_>) -> Option<ObservedObject>),
}

/// The field of each kind.
const KINDS: [(&str, Reader); 11] = [
    ("cniConfig", Reader::Probe(cni_config::read)),
    ("httpGet", Reader::Probe(http_get::read)),
    ("tcpSocket", Reader::Probe(tcp_socket::read)),
    ("grpc", Reader::Probe(grpc::read)),
    ("exec", Reader::Probe(exec::read)),
    ("file", Reader::Probe(file::read)),
    ("csiDriver", Reader::Observation(csi_driver::read)),
    ("allocatable", Reader::Observation(allocatable::read)),
    ("nodeCondition", Reader::Observation(node_condition::read)),
    ("nodeLabel", Reader::Observation(node_label::read)),
    ("pods", Reader::Observation(pods::read)),
];

impl From<Probe> for Gate {
    fn from(probe: Probe) -> Self {
        Check::Probe(probe).into()
    }
}

impl From<Check> for Gate {
    fn from(check: Check) -> Self {
        Self {
            kind: GateKind::Single(check),
            after: Vec::new(),
        }
    }
}

impl Gate {
    /// The end of a message about a rule without gates.
    pub(super) const NONE: &str = "; write [] for a rule that is ready at once";

    pub fn name(&self) -> &str {
        match &self.kind {
            GateKind::Single(check) => check.name(),
            GateKind::AnyOf(group) => &group.name,
        }
    }

    /// Its one check, or the members of the group.
    pub fn checks(&self) -> &[Check] {
        match &self.kind {
            GateKind::Single(check) => std::slice::from_ref(check),
            GateKind::AnyOf(group) => &group.any_of,
        }
    }

    /// Whether only the API server can open it: no check asks the node.
    pub(super) fn needs_api_server(&self) -> bool {
        let mut checks = self.checks().iter();
        checks.all(|check| matches!(check, Check::Observation(_)))
    }

    /// Whether some check looks at the Node itself.
    pub(super) fn reads_node(&self) -> bool {
        let mut checks = self.checks().iter();
        checks.any(|check| match check {
            Check::Probe(_) => false,
            Check::Observation(observation) => match observation.object {
                ObservedObject::CsiDriver(_) | ObservedObject::Pods(_) => false,
                ObservedObject::Allocatable(_)
                | ObservedObject::NodeCondition(_)
                | ObservedObject::NodeLabel(_) => true,
            },
        })
    }

    /// Warns about the gates of a rule without `stableFor`, which stand `at`.
    pub(super) fn warn_if_unstable(at: &Cursor<'_>) {
        for gate in at.items().into_iter().flatten() {
            let members = gate.get("anyOf").and_then(|members| members.items());
            for check in members.unwrap_or_else(|| vec![gate]) {
                allocatable::warn_if_unstable(&check);
                node_condition::warn_if_unstable(&check);
                pods::warn_if_unstable(&check);
            }
        }
    }

    /// Reads the field `gates` of a rule, which stands `at`.
    pub(super) fn read_all(at: &Cursor<'_>) -> Option<Vec<Self>> {
        if at.is_null() {
            at.report(format!("has no value{}", Self::NONE));
            return None;
        }
        let mut names = Names::default();
        let mut entries = Vec::new();
        let gates = at.list(|gate| Self::read(gate, &mut names, &mut entries));
        after::check(&entries);
        gates
    }

    fn read<'t>(
        cursor: &Cursor<'t>,
        names: &mut Names<'t>,
        entries: &mut Vec<after::Entry<'t>>,
    ) -> Option<Self> {
        if cursor.get("anyOf").is_some() {
            return cursor.mapping("a gate with anyOf", |fields| {
                let group = Group::read(fields, names);
                let members = group.any_of.iter();
                let members = members.map(|member| member.name().to_owned()).collect();
                Some(Self {
                    after: after::read(cursor, fields, members, entries),
                    kind: GateKind::AnyOf(group),
                })
            });
        }
        cursor.mapping("a gate", |fields| {
            let kinds = kinds(fields);
            // It is absent here, but messages must list it among the fields of a gate.
            fields.find("anyOf");
            let check = Check::read(fields, &kinds, names);
            let after = after::read(cursor, fields, Vec::new(), entries);
            Some(Self {
                kind: GateKind::Single(check?),
                after,
            })
        })
    }
}

/// The fields of kinds that a gate has, from top to bottom.
fn kinds<'t>(fields: &mut Fields<'_, 't>) -> Vec<(Cursor<'t>, Reader)> {
    let found = KINDS.iter();
    let found = found.filter_map(|(name, reader)| Some((fields.find(name)?, *reader)));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(field, _)| field.place());
    found
}

impl Check {
    pub fn name(&self) -> &str {
        match self {
            Self::Probe(probe) => &probe.name,
            Self::Observation(observation) => &observation.name,
        }
    }

    /// The condition of the Node that it waits for.
    pub(super) fn node_condition(&self) -> Option<&NodeCondition> {
        match self {
            Self::Observation(Observation {
                object: ObservedObject::NodeCondition(condition),
                ..
            }) => Some(condition),
            _ => None,
        }
    }

    /// A check has one kind. The fields of others are read for their problems.
    fn read<'t>(
        fields: &mut Fields<'_, 't>,
        kinds: &[(Cursor<'t>, Reader)],
        names: &mut Names<'t>,
    ) -> Option<Self> {
        let Some(((field, reader), others)) = kinds.split_first() else {
            fields.report(format!("must have one of {}", fields.known()));
            fields.name(names);
            Schedule::read(fields);
            return None;
        };
        for (other, reader) in others {
            let line = field.line();
            other.report_key(format!(
                "a gate must have exactly one of these fields; this gate has another one in line {line}"
            ));
            match reader {
                Reader::Probe(read) => drop(read(other)),
                Reader::Observation(read) => drop(read(other)),
            }
        }
        let name = fields.name(names);
        match reader {
            Reader::Probe(read) => {
                let handler = read(field);
                let schedule = Schedule::read(fields);
                Some(Self::Probe(Probe {
                    name,
                    handler: handler?,
                    schedule,
                }))
            }
            Reader::Observation(read) => {
                Schedule::refuse(fields);
                let object = read(field)?;
                Some(Self::Observation(Observation { name, object }))
            }
        }
    }
}
