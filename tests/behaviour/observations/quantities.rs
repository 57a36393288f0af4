//! `allocatable` with a number.

use serde_json::{Value, json};

use super::{gates, open_last, requests, said, set_status};
use crate::scene::{OnCluster, TAINT};

const NUMBER: &str = "{name: number, allocatable: {resource: nvidia.com/gpu, atLeast: 8}}";
const ALL: &str = "{name: all, allocatable: {resource: nvidia.com/gpu, equalsCapacity: true}}";
const MEMORY: &str = "{name: memory, allocatable: {resource: memory, atLeast: 4Gi}}";
const ANOTHER_BOOT: &str = "00000000-0000-4000-8000-000000000000";

/// The status of a Node with so much of the resources.
fn status(gpus: &str, capacity: &str, memory: &str) -> Value {
    json!({
        "nodeInfo": {"bootID": null},
        "allocatable": {"nvidia.com/gpu": gpus, "memory": memory},
        "capacity": {"nvidia.com/gpu": capacity},
    })
}

/// k8s-device-plugin#125 (D16).
#[tokio::test]
async fn some_of_the_devices_open_no_gate_that_wants_a_number_or_all_of_them() {
    let gates = gates(&[NUMBER, ALL, MEMORY]).await;
    let Some(scene) = OnCluster::with("quantities", &[TAINT], gates).await else {
        return;
    };
    let set = async |status: &Value| {
        set_status(scene.cluster, &["node", scene.name], status).await;
    };
    // From before the reboot.
    let mut old = status("8", "8", "4Gi");
    old["nodeInfo"]["bootID"] = ANOTHER_BOOT.into();
    set(&old).await;
    let agent = scene.agent(&[]);
    for gate in ["number", "all", "memory"] {
        said(&agent, gate, "unknown", "has not reported").await;
    }
    set(&status("7", "8", "4095Mi")).await;
    said(&agent, "number", "closed", "is 7, less than 8").await;
    said(&agent, "all", "closed", "is 7, and the capacity is 8").await;
    said(&agent, "memory", "closed", "is 4095Mi, less than 4Gi").await;
    set(&status("8", "8", "4096Mi")).await;
    for gate in ["number", "all", "memory"] {
        said(&agent, gate, "open", "").await;
    }
    // One device of ten fails.
    set(&status("9", "10", "4Gi")).await;
    said(&agent, "all", "closed", "is 9, and the capacity is 10").await;
    said(&agent, "number", "open", "is 9").await;
    set(&status("10", "10", "5G")).await;
    open_last(&scene).await;
    let expected = ["watch /api/v1/nodes", "patch /api/v1/nodes/quantities"];
    assert_eq!(requests(&scene).await, expected);
}
