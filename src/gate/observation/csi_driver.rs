//! `csiDriver`: a CSI driver in the node's `CSINode`.

use std::collections::HashMap;

use k8s_openapi::api::storage::v1::CSINodeDriver;
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
    drivers: Vec<CSINodeDriver>,
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
    let Some(csi_node) = objects.values().next() else {
        return Outcome::Closed("the node has no CSINode yet; the kubelet creates it".into());
    };
    let drivers = &csi_node.spec.drivers;
    let name = &expected.name;
    let Some(driver) = drivers.iter().find(|driver| driver.name == *name) else {
        let mut others: Vec<_> = drivers.iter().map(|driver| driver.name.as_str()).collect();
        if others.is_empty() {
            others.push("none");
        }
        let others = excerpt(&others.join(", "));
        let reason = format!("driver {name} is not in the CSINode; registered: {others}");
        return Outcome::Closed(reason);
    };
    let registered = format!("driver {name} is registered");
    let allocatable = driver.allocatable.as_ref();
    match allocatable.and_then(|allocatable| allocatable.count) {
        Some(0) if expected.allocatable => {
            Outcome::Closed(format!("{registered}, but its allocatable.count is 0"))
        }
        Some(count) => Outcome::Open(format!("{registered}, and allows {count} volumes")),
        None if expected.allocatable => {
            Outcome::Closed(format!("{registered}, but has no allocatable.count"))
        }
        None => Outcome::Open(registered),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn outcome(allocatable: bool, drivers: &Value) -> Outcome {
        let csi_node = json!({
            "metadata": {"name": "node", "uid": "1", "resourceVersion": "1"},
            "spec": {"drivers": drivers},
        });
        let csi_node = serde_json::from_value(csi_node).unwrap();
        let expected = CsiDriver {
            name: "ebs.csi.aws.com".into(),
            allocatable,
        };
        judge(&expected, &HashMap::from([("1".into(), csi_node)]))
    }

    /// kubernetes#95911: a node takes pods before the driver has registered, or before its limit is known.
    #[test]
    fn a_driver_is_there_once_the_csi_node_has_it_and_where_asked_for_with_its_limit() {
        let driver = |name: &str, allocatable: Value| json!({"name": name, "nodeID": "i-1", "topologyKeys": null, "allocatable": allocatable});
        let ebs = |allocatable| json!([driver("ebs.csi.aws.com", allocatable)]);
        let others = json!([
            driver("efs.csi.aws.com", json!(null)),
            driver("EBS.csi.aws.com", json!({"count": 1}))
        ]);
        let open = |text: &str| Outcome::Open(format!("driver ebs.csi.aws.com is {text}"));
        let closed = |text: &str| Outcome::Closed(format!("driver ebs.csi.aws.com is {text}"));
        for (drivers, plain, with_limit) in [
            (
                json!(null),
                closed("not in the CSINode; registered: none"),
                closed("not in the CSINode; registered: none"),
            ),
            (
                others,
                closed("not in the CSINode; registered: efs.csi.aws.com, EBS.csi.aws.com"),
                closed("not in the CSINode; registered: efs.csi.aws.com, EBS.csi.aws.com"),
            ),
            (
                ebs(json!(null)),
                open("registered"),
                closed("registered, but has no allocatable.count"),
            ),
            (
                ebs(json!({})),
                open("registered"),
                closed("registered, but has no allocatable.count"),
            ),
            (
                ebs(json!({"count": 0})),
                open("registered, and allows 0 volumes"),
                closed("registered, but its allocatable.count is 0"),
            ),
            (
                ebs(json!({"count": 25})),
                open("registered, and allows 25 volumes"),
                open("registered, and allows 25 volumes"),
            ),
        ] {
            assert_eq!(outcome(false, &drivers), plain, "{drivers}");
            assert_eq!(outcome(true, &drivers), with_limit, "{drivers}");
        }
    }

    #[test]
    fn without_a_csi_node_the_reason_is_that() {
        let expected = CsiDriver {
            name: "a".into(),
            allocatable: false,
        };
        let reason = "the node has no CSINode yet; the kubelet creates it";
        assert_eq!(
            judge(&expected, &HashMap::new()),
            Outcome::Closed(reason.into())
        );
    }

    #[test]
    fn the_reason_is_bounded_however_many_drivers_there_are() {
        let drivers: Vec<_> = (0..1000)
            .map(|n| json!({"name": format!("d{n}.example.com")}))
            .collect();
        let outcome = outcome(false, &json!(drivers));
        assert!(outcome.message().chars().count() < 300, "{outcome:?}");
    }
}
