//! `pods` with `every` and `daemonSets`. No controllers run here: the tests write the pods as the DaemonSet controller and
//! the kubelet would.

mod many;
mod own_pod;

use serde_json::{Value, json};

use super::{apply, gates, kubectl, open_last, requests, said, set_status};
use crate::scene::{Gates, OnCluster, TAINT, beginning, grant};

/// A pod of a DaemonSet.
fn pod(namespace: &str, set: &str, name: &str, node: &str) -> Value {
    let owner = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": set,
        "uid": set,
        "controller": true,
    });
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "a", "image": "example.com/a"}],
            "tolerations": [{"operator": "Exists"}],
        },
    })
}

fn ready(status: &str) -> Value {
    json!({"conditions": [{"type": "Ready", "status": status}]})
}

/// The pods of a namespace on the scene's Node.
struct Pods<'s> {
    scene: &'s OnCluster,
    namespace: &'static str,
}

impl<'s> Pods<'s> {
    /// Creates the namespace.
    async fn new(scene: &'s OnCluster, namespace: &'static str) -> Self {
        kubectl(scene.cluster, &["create", "namespace", namespace]).await;
        Self { scene, namespace }
    }

    /// Permits the agents to read them.
    async fn permit(&self) {
        let Self { scene, namespace } = self;
        let rules = format!(
            "- {{name: a, taint: {{key: a}}, gates: [{{name: a, pods: {{namespace: {namespace}, every: true}}}}]}}\n"
        );
        grant(scene.cluster, &rules, ["watch", "pods"], namespace).await;
    }

    fn of(&self, set: &str, name: &str) -> Value {
        pod(self.namespace, set, name, self.scene.name)
    }

    async fn create(&self, pod: &Value) {
        apply(self.scene.cluster, &self.scene.gates, pod).await;
    }

    async fn set(&self, name: &str, status: &Value) {
        let object = ["--namespace", self.namespace, "pod", name];
        set_status(self.scene.cluster, &object, status).await;
    }

    /// Deletes a pod at once.
    async fn delete(&self, name: &str) {
        let at_once = ["delete", "--grace-period=0", "--force"];
        let pod = ["--namespace", self.namespace, "pod", name];
        kubectl(self.scene.cluster, &[at_once.as_slice(), &pod].concat()).await;
    }

    /// Creates a pod of a DaemonSet with this status.
    async fn add(&self, set: &str, name: &str, status: &Value) {
        self.create(&self.of(set, name)).await;
        self.set(name, status).await;
    }
}

/// zalando kubernetes-on-aws#1151, nodetaint#17 (D24).
#[tokio::test]
async fn every_daemon_set_with_a_pod_here_must_be_ready_whoever_else_is_not() {
    let every = "{name: every, pods: {namespace: every, every: true}}";
    let Some(scene) = OnCluster::with("every", &[TAINT], gates(&[every]).await).await else {
        return;
    };
    let pods = Pods::new(&scene, "every").await;
    let agent = scene.agent(&[]);
    let missing = format!("cannot {} resource \"pods\"", beginning().await);
    said(&agent, "every", "unknown", &missing).await;
    pods.permit().await;
    let none = "no DaemonSet in every has a pod on this node";
    said(&agent, "every", "closed", none).await;
    let sets = "DaemonSets in every are not ready on this node";
    pods.create(&pods.of("a", "a-1")).await;
    let unready = format!("1 of 1 {sets}: pod a-1 is not ready");
    said(&agent, "every", "closed", &unready).await;
    pods.set("a-1", &ready("True")).await;
    let open = "1 of 1 DaemonSets in every are ready";
    said(&agent, "every", "open", open).await;
    // None of these is ready. They are of another node, of a ReplicaSet, of nothing, and static.
    let elsewhere = pod("every", "b", "elsewhere", "other");
    pods.create(&elsewhere).await;
    for (name, owner) in [
        ("replica", Some("ReplicaSet")),
        ("bare", None),
        ("static", Some("Node")),
    ] {
        let mut other = pods.of(name, name);
        if let Some(kind) = owner {
            other["metadata"]["ownerReferences"][0]["kind"] = kind.into();
        } else {
            let metadata = other["metadata"].as_object_mut().unwrap();
            metadata.remove("ownerReferences");
        }
        pods.create(&other).await;
    }
    // It does not tolerate the taint, so its successor comes only later.
    let mut late = pods.of("late", "late-1");
    late["spec"]["tolerations"] = json!([]);
    pods.create(&late).await;
    let late = "; not waited for: pod late-1 does not tolerate example.com/not-ready";
    said(&agent, "every", "open", late).await;
    pods.create(&pods.of("b", "b-1")).await;
    let unready = format!("1 of 2 {sets}: pod b-1 is not ready");
    said(&agent, "every", "closed", &unready).await;
    pods.set("b-1", &ready("True")).await;
    let open = "2 of 2 DaemonSets in every are ready";
    said(&agent, "every", "open", open).await;
    open_last(&scene).await;
    let expected = [
        "watch /api/v1/nodes",
        "watch /api/v1/namespaces/every/pods",
        "patch /api/v1/nodes/every",
    ];
    assert_eq!(requests(&scene).await, expected);
}

#[tokio::test]
async fn a_daemon_set_whose_pod_ends_is_ready_only_with_the_next_one() {
    let every = "{name: every, pods: {namespace: replaced, every: true}}";
    let Some(scene) = OnCluster::with("replaced", &[TAINT], gates(&[every]).await).await else {
        return;
    };
    let pods = Pods::new(&scene, "replaced").await;
    pods.permit().await;
    let agent = scene.agent(&[]);
    pods.add("a", "a-1", &ready("True")).await;
    pods.add("b", "b-1", &ready("True")).await;
    said(
        &agent,
        "every",
        "open",
        "2 of 2 DaemonSets in replaced are ready",
    )
    .await;
    let mut ended = ready("True");
    ended["phase"] = "Failed".into();
    pods.set("b-1", &ended).await;
    said(&agent, "every", "closed", ": pod b-1 has ended").await;
    // No kubelet reports that the pod has ended.
    let delete = [
        "delete",
        "--wait=false",
        "--namespace",
        "replaced",
        "pod",
        "a-1",
    ];
    kubectl(scene.cluster, &delete).await;
    said(
        &agent,
        "every",
        "closed",
        ": pod a-1 is terminating, pod b-1 has ended",
    )
    .await;
    pods.add("a", "a-2", &ready("True")).await;
    let sets = "DaemonSets in replaced are not ready on this node";
    said(
        &agent,
        "every",
        "closed",
        &format!("1 of 2 {sets}: pod b-1 has ended"),
    )
    .await;
    scene.gates.health.set(200);
    said(&agent, "last", "open", "").await;
    assert_eq!(scene.taints().await, [TAINT]);
    // Its controller deletes the pod that has ended, and creates the next one.
    pods.delete("b-1").await;
    let unknown = "1 of 2 DaemonSets in replaced are not known to be ready on this node: b has had no pod since ";
    said(&agent, "every", "unknown", unknown).await;
    assert_eq!(scene.taints().await, [TAINT]);
    pods.add("b", "b-2", &ready("True")).await;
    scene.wait_for_taints(&[]).await;
}

/// As long as the agent runs, the boot is the same.
#[tokio::test]
async fn what_a_gate_saw_of_pods_stays_while_it_waits_for_others() {
    let gates = Gates::closed().await;
    gates.write_conflist();
    gates.configure(&gates.rule(
        "  - {name: every, pods: {namespace: remembers, every: true}, after: [agent]}\n  stableFor: 1h\n",
    ));
    let Some(scene) = OnCluster::with("remembers", &[TAINT], gates).await else {
        return;
    };
    let pods = Pods::new(&scene, "remembers").await;
    pods.permit().await;
    let since = |time: &str| {
        let mut status = ready("True");
        status["conditions"][0]["lastTransitionTime"] = time.into();
        status
    };
    pods.add("a", "a-1", &since("2020-01-01T00:00:00Z")).await;
    pods.add("b", "b-1", &ready("True")).await;
    let agent = scene.agent(&[]);
    let health = &scene.gates.health;
    health.set(200);
    let doubt = "1 of 2 DaemonSets in remembers are not known to be ready on this node: pod a-1 is ready, but the newest time";
    said(&agent, "every", "unknown", doubt).await;
    // The kubelet writes it again, by a clock that is wrong.
    pods.set("a-1", &since("2020-01-01T00:00:10Z")).await;
    let open = "2 of 2 DaemonSets in remembers are ready";
    said(&agent, "every", "open", open).await;

    health.set(503);
    said(&agent, "agent", "closed", "").await;
    pods.delete("b-1").await;
    health.set(200);
    let unknown = "1 of 2 DaemonSets in remembers are not known to be ready on this node: b has had no pod since ";
    said(&agent, "every", "unknown", unknown).await;
    let is_doubt = |line: &Value| {
        line["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains(doubt))
    };
    let logs = agent.logs();
    let doubts = logs.iter().filter(|line| is_doubt(line));
    assert_eq!(doubts.count(), 1, "{logs:#?}");
}

#[tokio::test]
async fn each_named_daemon_set_must_have_a_pod_here_that_has_become_ready_in_this_boot() {
    let named = "{name: named, pods: {namespace: named, daemonSets: [proxy, logs]}}";
    let Some(scene) = OnCluster::with("named", &[TAINT], gates(&[named]).await).await else {
        return;
    };
    let pods = Pods::new(&scene, "named").await;
    pods.permit().await;
    let agent = scene.agent(&[]);
    let sets = "DaemonSets in named are not ready on this node";
    let hint = "a DaemonSet has a pod here only if it exists, selects this node and tolerates example.com/not-ready";
    let none = format!("2 of 2 {sets}: proxy has no pod, logs has no pod; {hint}");
    said(&agent, "named", "closed", &none).await;
    pods.add("other", "other-1", &ready("False")).await;
    pods.add("proxy", "proxy-1", &ready("True")).await;
    let one = format!("1 of 2 {sets}: logs has no pod; {hint}");
    said(&agent, "named", "closed", &one).await;
    let since = |time: &str| {
        let mut status = ready("True");
        status["conditions"][0]["lastTransitionTime"] = time.into();
        status
    };
    pods.add("logs", "logs-1", &since("2020-01-01T00:00:00Z"))
        .await;
    let doubt = "1 of 2 DaemonSets in named are not known to be ready on this node: pod logs-1 is ready, but the newest \
                 time in its status is from 2020-01-01T00:00:00Z";
    said(&agent, "named", "unknown", doubt).await;
    // The kubelet writes it again, by a clock that is wrong.
    pods.set("logs-1", &since("2020-01-01T00:00:10Z")).await;
    said(
        &agent,
        "named",
        "open",
        "2 of 2 DaemonSets in named are ready",
    )
    .await;
    open_last(&scene).await;
}
