//! The taints of other programs, which rely on them and remove them when it is time.
//!
//! The table has only taints whose owner is known from the source or the documents of a project. It has no start-up
//! taints, which operators add for another program to remove, and no permanent taints of node pools, because a rule for
//! one of these can be right.

use schemars::Schema;
use serde_json::json;

use crate::text::quoted;

/// A program and its taints.
pub struct Owner {
    /// Completes "only … may remove this taint".
    pub name: &'static str,
    /// A key, or a domain that ends in `/` and stands for all keys in it.
    pub keys: &'static [&'static str],
    /// Where the program names them: a repository or Go module, and a file in it.
    pub source: (&'static str, &'static str),
}

/// All owners that untaint knows.
pub const OWNERS: [Owner; 12] = [
    Owner {
        name: "the kubelet and the node lifecycle controller",
        keys: &["node.kubernetes.io/"],
        source: ("k8s.io/api", "core/v1/well_known_taints.go"),
    },
    Owner {
        name: "the cloud controller manager",
        keys: &["node.cloudprovider.kubernetes.io/"],
        source: ("k8s.io/cloud-provider", "api/well_known_taints.go"),
    },
    Owner {
        name: "the program that gives nodes their roles",
        keys: &["node-role.kubernetes.io/"],
        source: (
            "k8s.io/kubernetes",
            "cmd/kubeadm/app/constants/constants.go",
        ),
    },
    Owner {
        name: "Cluster Autoscaler",
        keys: &[
            "ToBeDeletedByClusterAutoscaler",
            "DeletionCandidateOfClusterAutoscaler",
        ],
        source: (
            "k8s.io/autoscaler",
            "cluster-autoscaler/utils/taints/taints.go",
        ),
    },
    Owner {
        name: "Karpenter",
        keys: &["karpenter.sh/"],
        source: ("sigs.k8s.io/karpenter", "pkg/apis/v1/taints.go"),
    },
    Owner {
        name: "Cluster API",
        keys: &["node.cluster.x-k8s.io/"],
        source: (
            "sigs.k8s.io/cluster-api",
            "api/core/v1beta1/common_types.go",
        ),
    },
    Owner {
        name: "the Machine Config Operator of OpenShift",
        keys: &["UpdateInProgress"],
        source: (
            "github.com/openshift/machine-config-operator",
            "pkg/constants/constants.go",
        ),
    },
    Owner {
        name: "the operators of Medik8s",
        keys: &["medik8s.io/"],
        source: (
            "github.com/medik8s/node-maintenance-operator",
            "internal/controller/taint.go",
        ),
    },
    Owner {
        name: "the AWS Node Termination Handler",
        keys: &["aws-node-termination-handler/"],
        source: (
            "github.com/aws/aws-node-termination-handler",
            "pkg/node/node.go",
        ),
    },
    Owner {
        name: "the node termination handler of GKE",
        keys: &["cloud.google.com/impending-node-termination"],
        source: (
            "k8s.io/autoscaler",
            "cluster-autoscaler/utils/taints/taints.go",
        ),
    },
    Owner {
        name: "the node auto-repair of AKS",
        keys: &["remediator.kubernetes.azure.com/"],
        source: ("github.com/Azure/AKS", "CHANGELOG.md"),
    },
    Owner {
        name: "the high-availability controller of Piraeus",
        keys: &["drbd.linbit.com/"],
        source: (
            "github.com/piraeusdatastore/piraeus-ha-controller",
            "pkg/metadata/metadata.go",
        ),
    },
];

/// The program that alone may remove the taint with this key, if it is known.
pub fn owner_of(key: &str) -> Option<&'static Owner> {
    let owns = |owned: &&str| match owned.strip_suffix('/') {
        Some(domain) => key.split_once('/').is_some_and(|(of, _)| of == domain),
        None => key == *owned,
    };
    OWNERS.iter().find(|owner| owner.keys.iter().any(owns))
}

/// `Err` says whose taint it is.
pub(super) fn check(key: &str) -> Result<(), String> {
    owner_of(key).map_or(Ok(()), |owner| {
        Err(format!(
            "must not be {}: only {} may remove this taint",
            quoted(key),
            owner.name
        ))
    })
}

/// For the schema: none of these keys.
pub(crate) fn refuse(key: &mut Schema) {
    let keys = OWNERS.iter().flat_map(|owner| owner.keys);
    let patterns = keys.map(|key| {
        let end = if key.ends_with('/') { "" } else { "$" };
        key.replace('.', r"\.") + end
    });
    let owned = format!("^({})", patterns.collect::<Vec<_>>().join("|"));
    key.insert("not".into(), json!({"pattern": owned}));
}
