//! Who removes which taint. For the taints of untaint's rules, the configuration says that.

/// What is known of a taint that untaint does not remove.
pub(crate) struct Remover {
    /// A key, or a domain that ends in `/` and stands for all keys in it.
    key: &'static str,
    /// Completes "removed by".
    pub(crate) who: &'static str,
    /// Completes "removed by … ": the condition.
    pub(crate) when: &'static str,
    /// An instruction.
    pub(crate) next: &'static str,
}

const fn remover(
    key: &'static str,
    who: &'static str,
    when: &'static str,
    next: &'static str,
) -> Remover {
    Remover {
        key,
        who,
        when,
        next,
    }
}

const LIFECYCLE: &str = "the node lifecycle controller";
const PRESSURE: &str = "when the kubelet reports that the pressure is over";
const SEE_CONDITIONS: &str = "see the conditions of the Node";
const NODE_PLUGIN: &str = "the node plugin of the CSI driver";
const AFTER_START: &str = "after it has started";
const SEE_DRIVER: &str = "see the pod of the driver on the node, and the drivers in the CSINode";

/// The more special key is first. Sources: k8s.io/api/core/v1/well_known_taints.go,
/// pkg/controller/nodelifecycle/node_lifecycle_controller.go of k8s.io/kubernetes, k8s.io/cloud-provider,
/// sigs.k8s.io/karpenter/pkg/apis/v1/taints.go, and the documents of the other projects.
const REMOVERS: [Remover; 27] = [
    remover(
        "node.kubernetes.io/not-ready",
        LIFECYCLE,
        "when the kubelet reports Ready",
        "see the condition Ready of the Node; if it is True, the taint goes in a moment",
    ),
    remover(
        "node.kubernetes.io/unreachable",
        LIFECYCLE,
        "when the kubelet reports again",
        "see whether the machine and its kubelet run",
    ),
    remover(
        "node.kubernetes.io/unschedulable",
        LIFECYCLE,
        "when the Node is uncordoned",
        "find out who has cordoned the Node; then run kubectl uncordon",
    ),
    remover(
        "node.kubernetes.io/network-unavailable",
        LIFECYCLE,
        "when the condition NetworkUnavailable is False",
        "see the network plugin or the route controller, which write the condition",
    ),
    remover(
        "node.kubernetes.io/out-of-service",
        "a person",
        "after the machine is repaired",
        "remove it with kubectl taint when the machine works",
    ),
    remover(
        "node.kubernetes.io/memory-pressure",
        LIFECYCLE,
        PRESSURE,
        SEE_CONDITIONS,
    ),
    remover(
        "node.kubernetes.io/disk-pressure",
        LIFECYCLE,
        PRESSURE,
        SEE_CONDITIONS,
    ),
    remover(
        "node.kubernetes.io/pid-pressure",
        LIFECYCLE,
        PRESSURE,
        SEE_CONDITIONS,
    ),
    remover(
        "node.cloudprovider.kubernetes.io/uninitialized",
        "the cloud controller manager",
        "when it has initialized the Node",
        "see the log of the cloud controller manager",
    ),
    remover(
        "node.cloudprovider.kubernetes.io/shutdown",
        "the cloud controller manager",
        "when the machine runs again",
        "see the machine at the cloud provider",
    ),
    remover(
        "node-role.kubernetes.io/",
        "nobody",
        "",
        "nothing: the taint reserves the node for the control plane",
    ),
    remover(
        "karpenter.sh/unregistered",
        "Karpenter",
        "when it has registered the node",
        "see the condition Registered of the NodeClaim",
    ),
    remover(
        "karpenter.sh/disrupted",
        "Karpenter",
        "if it gives the disruption up; otherwise, it deletes the node",
        "nothing: Karpenter replaces the node",
    ),
    remover(
        "ToBeDeletedByClusterAutoscaler",
        "Cluster Autoscaler",
        "never, unless the deletion fails: it deletes the node",
        "nothing",
    ),
    remover(
        "DeletionCandidateOfClusterAutoscaler",
        "Cluster Autoscaler",
        "when the node is needed again",
        "nothing",
    ),
    remover(
        "node.cluster.x-k8s.io/uninitialized",
        "Cluster API",
        "when it has written the labels of the Machine",
        "see the Machine",
    ),
    remover(
        "node.cilium.io/agent-not-ready",
        "the Cilium operator, unless operator.removeNodeTaints is false",
        "when the Cilium pod on the node is Ready",
        "see the Cilium pod on the node",
    ),
    remover(
        "ebs.csi.aws.com/agent-not-ready",
        NODE_PLUGIN,
        AFTER_START,
        SEE_DRIVER,
    ),
    remover(
        "efs.csi.aws.com/agent-not-ready",
        NODE_PLUGIN,
        AFTER_START,
        SEE_DRIVER,
    ),
    remover(
        "fsx.csi.aws.com/agent-not-ready",
        NODE_PLUGIN,
        AFTER_START,
        SEE_DRIVER,
    ),
    remover(
        "s3.csi.aws.com/agent-not-ready",
        NODE_PLUGIN,
        AFTER_START,
        SEE_DRIVER,
    ),
    remover(
        "disk.csi.azure.com/agent-not-ready",
        NODE_PLUGIN,
        AFTER_START,
        SEE_DRIVER,
    ),
    remover(
        "pd.csi.storage.gke.io/startup",
        "the controller of the PD CSI driver",
        "when the CSINode has the driver",
        SEE_DRIVER,
    ),
    remover(
        "cni.istio.io/not-ready",
        "istiod, if its untaint controller is on",
        "when the pod of istio-cni on the node is Ready",
        "see the pod of istio-cni on the node, and whether PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS is set in istiod",
    ),
    remover(
        "agent.datadoghq.com/not-ready",
        "the Datadog operator",
        "when the agent on the node is ready",
        "see the pod of the agent on the node",
    ),
    remover(
        "readiness.k8s.io/",
        "the node-readiness-controller",
        "when the conditions of its NodeReadinessRule are there",
        "see the status of the NodeReadinessRule",
    ),
    remover(
        "startup-taint.cluster-autoscaler.kubernetes.io/",
        "nobody that is known",
        "",
        "this is a start-up taint: write a rule for it, or find the program that should remove it",
    ),
];

/// What is known of the taint with this key.
pub(crate) fn of(key: &str) -> Option<&'static Remover> {
    REMOVERS.iter().find(|remover| {
        key == remover.key || remover.key.ends_with('/') && key.starts_with(remover.key)
    })
}

#[cfg(test)]
mod tests {
    use untaint::taint::owner_of;

    use super::*;

    #[test]
    fn the_more_special_key_counts_and_a_key_that_only_begins_like_another_does_not() {
        let when = |key: &str| of(key).map(|remover| remover.when);
        assert_eq!(
            when("node.kubernetes.io/not-ready"),
            Some("when the kubelet reports Ready")
        );
        let pressure = "when the kubelet reports that the pressure is over";
        assert_eq!(when("node.kubernetes.io/disk-pressure"), Some(pressure));
        assert_eq!(when("node.kubernetes.iox/not-ready"), None);
        assert_eq!(when("karpenter.sh/unregistered-x"), None);
        let owner = |key: &str| owner_of(key).map(|owner| owner.name);
        assert_eq!(
            owner("medik8s.io/remediation"),
            Some("the operators of Medik8s")
        );
        assert_eq!(owner("example.com/a"), None);
    }

    #[test]
    fn no_key_is_hidden_by_an_earlier_one() {
        for remover in &REMOVERS {
            assert_eq!(of(remover.key).unwrap().key, remover.key);
        }
    }
}
