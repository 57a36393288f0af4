//! `csiDriver`: a CSI driver in the node's `CSINode`. Pure.

use std::collections::HashMap;

use serde::Deserialize;

use crate::api::object::{Metadata, Object, or_default};
use crate::api::watch::Collection;
use crate::config::CsiDriver;
use crate::gate::Outcome;
use crate::text::excerpt;

/// The part of a `CSINode` that matters.
#[derive(Debug, Deserialize)]
pub(super) struct CsiNode {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
struct Spec {
    #[serde(default, deserialize_with = "or_default")]
    drivers: Vec<Driver>,
}

#[derive(Debug, Deserialize)]
struct Driver {
    name: String,
    allocatable: Option<Allocatable>,
}

#[derive(Debug, Deserialize)]
struct Allocatable {
    count: Option<i64>,
}

impl Object for CsiNode {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// A `CSINode` has the name of its Node.
pub(super) fn collection(node: &str) -> Collection {
    Collection::named("/apis/storage.k8s.io/v1/csinodes", node)
}

pub(super) fn judge(expected: &CsiDriver, objects: &HashMap<String, CsiNode>) -> Outcome {
    find(expected, objects).into()
}

fn find(expected: &CsiDriver, objects: &HashMap<String, CsiNode>) -> Result<String, String> {
    let Some(csi_node) = objects.values().next() else {
        return Err("the node has no CSINode yet: the kubelet makes it".into());
    };
    let drivers = &csi_node.spec.drivers;
    let name = &expected.name;
    let Some(driver) = drivers.iter().find(|driver| driver.name == *name) else {
        let others: Vec<_> = drivers.iter().map(|driver| driver.name.as_str()).collect();
        let others = if others.is_empty() {
            "none".into()
        } else {
            excerpt(&others.join(", "))
        };
        return Err(format!(
            "driver {name} is not in the CSINode; registered: {others}"
        ));
    };
    let allocatable = driver.allocatable.as_ref();
    match allocatable.and_then(|allocatable| allocatable.count) {
        Some(0) if expected.allocatable => Err(format!(
            "driver {name} is registered with an allocatable.count of 0"
        )),
        Some(count) => Ok(format!("driver {name} is registered, for {count} volumes")),
        None if expected.allocatable => Err(format!(
            "driver {name} is registered without allocatable.count"
        )),
        None => Ok(format!("driver {name} is registered")),
    }
}
