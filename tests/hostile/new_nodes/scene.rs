//! Clusters with the policy in force, and what kubelets ask of them.

use serde_json::{Value, json};
use testkit::skip::skip_for_version;
use testkit::taints;
use tokio::sync::OnceCell;

use crate::request::Answer;
use crate::tenants::{self, Caller};

/// The taint that the API server itself adds to every new Node.
pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready:NoSchedule";
/// The label of Karpenter's Nodes.
pub(super) const KARPENTER: &str = "karpenter.sh/nodepool";

pub(super) const RULES: &str = "
- {name: network, taint: {key: example.com/network, value: pending, effect: NoSchedule}, gates: []}
- {name: evicting, taint: {key: example.com/network, effect: NoExecute}, gates: []}
- {name: empty, taint: {key: example.com/empty, value: '', effect: NoSchedule}, gates: []}
- {name: preferred, taint: {key: example.com/preferred, effect: PreferNoSchedule}, gates: []}
- {name: storage, taint: {key: example.com/storage, effect: NoExecute}, nodeSelector: {storage: local}, gates: []}
- {name: both, taint: {key: example.com/both, effect: NoSchedule}, nodeSelector: {zone: z, disk: d}, gates: []}
- {name: a, taint: {key: example.com/pool, value: a, effect: NoSchedule}, nodeSelector: {pool: a}, gates: []}
- {name: b, taint: {key: example.com/pool, value: b, effect: NoSchedule}, nodeSelector: {pool: b}, gates: []}
- {name: gpu, taint: {key: example.com/pool, value: gpu, effect: NoSchedule}, nodeSelector: {gpu: 'yes'}, gates: []}
- {name: watched, taint: {key: example.com/watched}, gates: [], dryRun: true}
";

/// A cluster with the policy.
pub(super) struct Scene(tenants::Scene);

impl std::ops::Deref for Scene {
    type Target = tenants::Scene;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The cluster of this test program with the policy for [`RULES`].
pub(super) async fn with_policy() -> Option<&'static Scene> {
    static SCENE: OnceCell<Option<Scene>> = OnceCell::const_new();
    let scene = SCENE.get_or_init(|| Scene::start(&[], RULES, "--taint-new-nodes"));
    scene.await.as_ref()
}

impl Scene {
    /// A cluster of its own with the policy for these rules, in force.
    pub(super) async fn start(flags: &[&str], rules: &str, option: &str) -> Option<Self> {
        let scene = tenants::Scene::start(flags).await?;
        let served = ["get", "--raw", "/apis/admissionregistration.k8s.io/v1"];
        let served = scene.cluster.kubectl(&served).await.unwrap();
        if !served.contains("\"mutatingadmissionpolicies\"") {
            skip_for_version("this version of Kubernetes does not serve MutatingAdmissionPolicy");
            return None;
        }
        scene.apply_policies(rules, &[option]).await;
        let scene = Self(scene);
        let probe = labelled("probe", &json!({"pool": "a", "zone": "z"}));
        scene
            .wait_for(async || {
                let answer = scene.try_registration("probe", &probe).await;
                taints(&answer.body)
                    .iter()
                    .any(|taint| taint.starts_with("example.com/"))
            })
            .await;
        Some(scene)
    }

    /// What the kubelet of this Node gets for creating it.
    pub(super) async fn register(&self, name: &'static str, node: &Value) -> Answer {
        self.create(Caller::Kubelet(name), node).await
    }

    pub(super) async fn create(&self, caller: Caller, node: &Value) -> Answer {
        self.post(caller, "/api/v1/nodes", node).await
    }

    /// As [`Self::register`], without a Node that stays.
    pub(super) async fn try_registration(&self, name: &'static str, node: &Value) -> Answer {
        let uri = "/api/v1/nodes?dryRun=All";
        self.post(Caller::Kubelet(name), uri, node).await
    }
}

/// The Node has these taints after that of the server, in the order of keys and effects.
#[track_caller]
pub(super) fn assert_taints(node: &Value, plain: &[&str], more: &[&str]) {
    let mut expected = [plain, more].concat();
    expected.sort_by_key(|taint| {
        let (taint, effect) = taint.rsplit_once(':').unwrap();
        let key = taint.split_once('=').map_or(taint, |(key, _)| key);
        (key, effect)
    });
    expected.insert(0, NOT_READY);
    assert_eq!(taints(node), expected);
}

/// What a kubelet sends when it registers: `initialNode` in k8s.io/kubernetes/pkg/kubelet.
pub(super) fn registration(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"providerID": format!("example:///{name}")},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{
                "type": "Ready",
                "status": "False",
                "reason": "KubeletNotReady",
                "message": "container runtime network not ready",
            }],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": "m", "systemUUID": "s", "bootID": "b", "kernelVersion": "6.1", "osImage": "Linux",
                "containerRuntimeVersion": "containerd://2.1", "kubeletVersion": "v1.37.2", "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}

/// With these labels of `--node-labels` too.
pub(super) fn labelled(name: &str, labels: &Value) -> Value {
    let mut node = registration(name);
    let all = node["metadata"]["labels"].as_object_mut().unwrap();
    all.extend(labels.as_object().unwrap().clone());
    node
}
