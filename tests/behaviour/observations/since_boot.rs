//! After a reboot, the API still has what the kubelet and others wrote before it.

use std::fs;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::cluster::Cluster;

use super::{
    CSI_NODES, DRIVER, GPUS, READY, apply, ebs, gates, kubectl, open_last, register, said,
    set_status,
};
use crate::mounts::program_seeing;
use crate::scene::{OnCluster, TAINT, grant};

const PODS: &str = "- {name: a, taint: {key: a}, gates: [{name: a, pods: {namespace: since-boot, matchLabels: {app: a}}}]}\n";
const DAEMON: &str = "{name: daemon, pods: {namespace: since-boot, matchLabels: {app: a}}}";
/// A condition that its component writes once.
const OTHER: &str = "{name: other, nodeCondition: {type: example.com/Ready}}";
pub(super) const ANOTHER_BOOT: &str = "00000000-0000-4000-8000-000000000000";
pub(super) const LONG_AGO: &str = "2020-01-01T00:00:00Z";

pub(super) fn this_boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    id.trim().to_owned()
}

/// A time in the past, in seconds as in the API.
pub(super) fn ago(seconds: u64) -> String {
    let time = Timestamp::now() - Duration::from_secs(seconds);
    format!("{time:.0}")
}

/// The status of a Node, as the kubelet reports it.
pub(super) fn report(boot_id: Option<&str>, heartbeat: &str) -> Value {
    let ready = json!({
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": heartbeat,
        "lastTransitionTime": LONG_AGO,
    });
    json!({
        "nodeInfo": {"bootID": boot_id},
        "allocatable": {"nvidia.com/gpu": "1"},
        "conditions": [ready],
    })
}

/// The status with the condition of the gate [`OTHER`], which changed at this time.
fn with_other(mut status: Value, since: &str) -> Value {
    let other = json!({"type": "example.com/Ready", "status": "True", "lastTransitionTime": since});
    status["conditions"].as_array_mut().unwrap().push(other);
    status
}

/// The status of a pod whose container started at this time.
fn running(since: &str) -> Value {
    json!({
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
        "containerStatuses": [{
            "name": "a",
            "image": "example.com/a",
            "imageID": "",
            "ready": true,
            "restartCount": 0,
            "state": {"running": {"startedAt": since}},
        }],
    })
}

/// Creates a pod on this node, in the namespace `since-boot`.
async fn make_pod(scene: &OnCluster, status: &Value) {
    let cluster = scene.cluster;
    make_namespace(cluster).await;
    grant(cluster, PODS, ["watch", "pods"], "since-boot").await;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": scene.name, "namespace": "since-boot", "labels": {"app": "a"}},
        "spec": {"nodeName": scene.name, "containers": [{"name": "a", "image": "example.com/a"}]},
    });
    apply(cluster, &scene.gates, &pod).await;
    set_pod(scene, status).await;
}

async fn set_pod(scene: &OnCluster, status: &Value) {
    let object = ["--namespace", "since-boot", "pod", scene.name];
    set_status(scene.cluster, &object, status).await;
}

pub(super) async fn set_node(scene: &OnCluster, status: &Value) {
    set_status(scene.cluster, &["node", scene.name], status).await;
}

/// Tests that run at the same time create it, too.
async fn make_namespace(cluster: &Cluster) {
    let namespace =
        r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "since-boot"}}"#;
    let path = tempfile::NamedTempFile::new().unwrap();
    fs::write(&path, namespace).unwrap();
    let file = path.path().to_str().unwrap();
    kubectl(cluster, &["apply", "--server-side", "--filename", file]).await;
}

#[tokio::test]
async fn what_the_kubelet_wrote_before_the_boot_opens_no_gate_and_what_it_writes_since_does() {
    let gates = gates(&[DRIVER, GPUS, READY, DAEMON]).await;
    let Some(scene) = OnCluster::with("rebooted", &[TAINT], gates).await else {
        return;
    };
    let cluster = scene.cluster;
    grant(cluster, CSI_NODES, ["watch", "csinodes"], "default").await;
    register(cluster, &scene.gates, scene.name, &ebs(Some(25))).await;
    set_node(&scene, &report(Some(ANOTHER_BOOT), &ago(1))).await;
    make_pod(&scene, &running(LONG_AGO)).await;
    let agent = scene.agent(&[]);
    let reason = "the kubelet has not reported since this boot: the Node has boot ID 00000000-";
    for gate in ["driver", "gpus", "ready", "daemon"] {
        said(&agent, gate, "unknown", reason).await;
    }

    set_node(&scene, &report(Some(&this_boot()), &ago(0))).await;
    for gate in ["driver", "gpus", "ready"] {
        said(&agent, gate, "open", "").await;
    }
    let reason = "is ready, but the newest time in its status is from 2020-01-01T00:00:00Z, before the boot at ";
    said(&agent, "daemon", "unknown", reason).await;
    set_pod(&scene, &running(&ago(0))).await;
    said(&agent, "daemon", "open", "").await;
    open_last(&scene).await;
}

#[tokio::test]
async fn a_heartbeat_from_before_the_boot_opens_no_gate_whatever_the_boot_id_says() {
    let names = ["beat-own", "beat-none"];
    for (name, boot_id) in names.into_iter().zip([Some(this_boot()), None]) {
        let gates = gates(&[GPUS, READY]).await;
        let Some(scene) = OnCluster::with(name, &[TAINT], gates).await else {
            return;
        };
        set_node(&scene, &report(boot_id.as_deref(), LONG_AGO)).await;
        let agent = scene.agent(&[]);
        let reason = "the kubelet has not reported since this boot: its last heartbeat is from 2020-01-01T00:00:00Z, before the boot at ";
        for gate in ["gpus", "ready"] {
            said(&agent, gate, "unknown", reason).await;
        }
        set_node(&scene, &report(boot_id.as_deref(), &ago(0))).await;
        for gate in ["gpus", "ready"] {
            said(&agent, gate, "open", "").await;
        }
        open_last(&scene).await;
    }
}

/// The clock of a machine without a battery is behind until it is set, and so are the times that were written before.
/// In some containers, the kubelet sees another boot ID than the agent.
#[tokio::test]
async fn a_report_that_is_seen_to_be_written_counts_whatever_its_time_and_its_boot_id() {
    for (name, boot_id) in [("step-own", None), ("step-other", Some(ANOTHER_BOOT))] {
        let gates = gates(&[GPUS, READY, OTHER]).await;
        let Some(scene) = OnCluster::with(name, &[TAINT], gates).await else {
            return;
        };
        let status = |time: &str| with_other(report(boot_id, time), time);
        set_node(&scene, &status(LONG_AGO)).await;
        let agent = scene.agent(&[]);
        for gate in ["gpus", "ready", "other"] {
            said(&agent, gate, "unknown", "has not reported").await;
        }
        set_node(&scene, &status("2020-01-01T00:00:10Z")).await;
        for gate in ["gpus", "ready", "other"] {
            said(&agent, gate, "open", "").await;
        }
        open_last(&scene).await;
    }
}

#[tokio::test]
async fn a_condition_of_others_from_before_the_boot_opens_no_gate_until_it_is_written_again() {
    let Some(scene) = OnCluster::with("leftover", &[TAINT], gates(&[OTHER]).await).await else {
        return;
    };
    let status = |time: &str| with_other(report(Some(&this_boot()), &ago(0)), time);
    set_node(&scene, &status(LONG_AGO)).await;
    let agent = scene.agent(&[]);
    let reason = "condition example.com/Ready is True, but its last write is from 2020-01-01T00:00:00Z, before the boot at ";
    said(&agent, "other", "unknown", reason).await;
    set_node(&scene, &status(&ago(0))).await;
    said(&agent, "other", "open", "").await;
    open_last(&scene).await;
}

#[tokio::test]
async fn a_clock_that_is_set_after_the_boot_undoes_nothing_that_is_known() {
    let gates = gates(&[GPUS, READY, OTHER, DAEMON]).await;
    let Some(scene) = OnCluster::with("clock-set", &[TAINT], gates).await else {
        return;
    };
    let cluster = scene.cluster;
    let file = scene.gates.dir.path().join("stat");
    let booted = |seconds_ago: u64| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        fs::write(&file, format!("btime {}\n", now - seconds_ago)).unwrap();
    };
    booted(3600);
    set_node(&scene, &with_other(report(None, &ago(600)), &ago(600))).await;
    make_pod(&scene, &running(&ago(600))).await;
    let Some(wrapper) = program_seeing(&[(&file, "/proc/stat")]) else {
        return;
    };
    let wrapper: Vec<_> = wrapper.iter().map(String::as_str).collect();
    let start = || {
        let gates = &scene.gates;
        gates.agent_in(&wrapper, scene.name, &scene.kubeconfig, &[], &[])
    };
    let agent = start();
    let all = ["gpus", "ready", "other", "daemon"];
    for gate in all {
        said(&agent, gate, "open", "").await;
    }
    booted(60);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    cluster.patch_node(scene.name, &label).await.unwrap();
    agent.wait_for_count("saw the Node", 2).await.unwrap();
    let annotate = [
        "--namespace",
        "since-boot",
        "annotate",
        "pod",
        scene.name,
        "a=b",
    ];
    kubectl(cluster, &annotate).await;
    // An agent that has not seen the earlier report cannot know.
    let other = start();
    said(&other, "gpus", "unknown", "has not reported").await;
    drop(other);
    open_last(&scene).await;
    let of_the_boot = |line: &&Value| {
        let reason = line["reason"].as_str().unwrap_or_default();
        reason.contains(" boot")
    };
    assert_eq!(agent.logs().iter().find(of_the_boot), None);
}

#[tokio::test]
async fn a_heartbeat_that_grows_older_than_max_age_makes_its_gate_unknown_by_time_alone() {
    let ready = "{name: ready, nodeCondition: {type: Ready, maxAge: 1m}}";
    let Some(scene) = OnCluster::with("max-age", &[TAINT], gates(&[ready]).await).await else {
        return;
    };
    let heartbeat = ago(55);
    set_node(&scene, &report(None, &heartbeat)).await;
    let agent = scene.agent(&[]);
    said(&agent, "ready", "open", "").await;
    let reason = format!("its last heartbeat was at {heartbeat}, and now it is ");
    said(&agent, "ready", "unknown", &reason).await;
    scene.gates.health.set(200);
    said(&agent, "last", "open", "").await;
    assert_eq!(agent.count("saw the Node"), 1);
    assert_eq!(scene.taints().await, [TAINT]);
    set_node(&scene, &report(None, &ago(0))).await;
    scene.wait_for_taints(&[]).await;
}
