//! What the user adds to the objects.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::Value;

use crate::manifests::Additions;
use crate::syntax::{DNS_SUBDOMAIN, LABEL_VALUE, QUALIFIED_NAME};

/// Labels, secrets, nodes, an affinity and a FlowSchema.
#[derive(Debug, Args)]
pub struct AdditionArgs {
    /// Add a FlowSchema, with which the requests of untaint for Nodes and for what gates read have the priority of those
    /// of kubelets, also while other programs flood the API server.
    #[arg(long, env = "UNTAINT_FLOW_SCHEMA")]
    pub flow_schema: bool,
    /// A label that every object gets, besides its own. Can be repeated, or separated by commas.
    #[arg(long, env = "UNTAINT_LABEL", value_name = "KEY=VALUE", value_delimiter = ',', conflicts_with = "patch", value_parser = label)]
    pub label: Vec<(String, String)>,
    /// A Secret in the Namespace of the pods with credentials for the registry of the image. Can be repeated, or separated
    /// by commas.
    #[arg(long, env = "UNTAINT_IMAGE_PULL_SECRET", value_name = "NAME", value_delimiter = ',', value_parser = |name: &str| DNS_SUBDOMAIN.parse(name))]
    pub image_pull_secret: Vec<String>,
    /// A label of the nodes on which the pods run. Can be repeated, or separated by commas.
    #[arg(long, env = "UNTAINT_NODE_SELECTOR", value_name = "KEY=VALUE", value_delimiter = ',', conflicts_with = "patch", value_parser = node_label)]
    pub node_selector: Vec<(String, String)>,
    /// The affinity of the pods, in YAML or JSON, such as {nodeAffinity: ...}, instead of the one that keeps them off Nodes
    /// that are not machines.
    #[arg(long, env = "UNTAINT_AFFINITY", value_name = "YAML", conflicts_with = "patch", value_parser = affinity)]
    pub affinity: Option<Value>,
}

/// The error names a label that is there twice.
impl TryFrom<AdditionArgs> for Additions {
    type Error = String;

    fn try_from(args: AdditionArgs) -> Result<Self, String> {
        Ok(Self {
            flow_schema: args.flow_schema,
            labels: once("--label", args.label)?,
            image_pull_secrets: args.image_pull_secret,
            node_selector: once("--node-selector", args.node_selector)?,
            affinity: args.affinity,
        })
    }
}

fn once(option: &str, labels: Vec<(String, String)>) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    for (key, value) in labels {
        if let Some(first) = all.insert(key.clone(), value) {
            return Err(format!(
                "{option} has {key} twice, the first time with the value {first:?}: leave one out"
            ));
        }
    }
    Ok(all)
}

/// A label that untaint does not set.
fn label(text: &str) -> Result<(String, String), String> {
    let label = key_and_value(text)?;
    let key = label.0.as_str();
    let own = ["name", "instance", "part-of"];
    let is_own = key
        .strip_prefix("app.kubernetes.io/")
        .is_some_and(|name| own.contains(&name));
    if is_own || key.starts_with("pod-security.kubernetes.io/") {
        return Err(format!(
            "untaint sets the label {key} itself: use another key"
        ));
    }
    Ok(label)
}

fn node_label(text: &str) -> Result<(String, String), String> {
    let label = key_and_value(text)?;
    if label.0 == "kubernetes.io/os" {
        return Err(
            "untaint runs on Linux only, and the manifests say so: leave this label out".into(),
        );
    }
    Ok(label)
}

/// Its fields are those of `Affinity` in k8s.io/api/core/v1. The API server checks what is in them.
fn affinity(text: &str) -> Result<Value, String> {
    const FIELDS: [&str; 3] = ["nodeAffinity", "podAffinity", "podAntiAffinity"];
    let affinity: Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    let fields = affinity.as_object().filter(|fields| !fields.is_empty());
    match fields.and_then(|fields| fields.keys().find(|key| !FIELDS.contains(&key.as_str()))) {
        None if fields.is_some() => Ok(affinity),
        _ => Err(format!("must be a mapping with only {}", FIELDS.join(", "))),
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    let key = QUALIFIED_NAME.parse(key);
    let value = LABEL_VALUE.parse(value);
    Ok((
        key.map_err(|error| format!("the KEY {error}"))?,
        value.map_err(|error| format!("the VALUE {error}"))?,
    ))
}
