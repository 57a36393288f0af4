//! The pods: untaint's own, or an example of another program's DaemonSet with untaint in it.
//!
//! `workload/` has one template of the DaemonSet for each form. The parts that forms share are here.

mod mounts;
mod tolerations;

use std::collections::BTreeSet;

use super::account::OWN;
use super::yaml::{Values, literal, scalar};
use super::{Form, Manifests};
use crate::text::sha256;

pub use mounts::MountError;

const HOST_NETWORK: &str = "\
# With a network of its own, the pod would start only after the CNI is ready. The cluster's resolver needs the CNI too,
# so the pod uses the host's.
hostNetwork: true
dnsPolicy: Default
";

const PRIORITY: &str = "\
# On GKE, every namespace except kube-system needs a ResourceQuota for this class.
priorityClassName: system-node-critical
nodeSelector:
  kubernetes.io/os: linux
";

const NODE_NAME: &str = "\
env:
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
";

const CONFIG_MOUNT: &str = "\
- name: config
  # The whole directory, because the kubelet never updates a file that is mounted by subPath.
  mountPath: /etc/untaint
  readOnly: true
";

const CONFINEMENT: &str = "\
securityContext:
  {{user}}
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
  {{selinux}}
resources:
  requests:
    cpu: 10m
    memory: 16Mi
  # No CPU limit: it would delay removals, and pods wait for those.
  limits:
    memory: 64Mi
";

/// Where a gate looks at the host's files.
const ROOT: &str = "\
# Often, only root can read CNI configurations and use agents' sockets (mode 0600). Root without capabilities has the
# permissions of the owner root, and no more.
runAsUser: 0
runAsGroup: 0
";

const NOBODY: &str = "\
runAsUser: 65532
runAsGroup: 65532
runAsNonRoot: true
";

/// The Namespace and the ServiceAccount, if they are untaint's own. Those of other programs must not change or be
/// deleted with untaint's manifests.
pub(super) fn account(manifests: &Manifests) -> Vec<String> {
    let mut documents = Vec::new();
    if manifests.account.namespace == OWN {
        documents.push(include_str!("workload/namespace.yaml").to_owned());
    }
    if manifests.form.has_own_account() {
        let template = include_str!("workload/service-account.yaml");
        documents.push(manifests.values().fill(template));
    }
    documents
}

/// The ConfigMap and the DaemonSet.
pub(super) fn documents(manifests: &Manifests) -> Result<[String; 2], MountError> {
    let daemon_set = match manifests.form {
        Form::Daemonset => include_str!("workload/daemonset.yaml"),
        Form::Sidecar => include_str!("workload/sidecar.yaml"),
        Form::InitContainer => include_str!("workload/init-container.yaml"),
        Form::PostStart => include_str!("workload/post-start.yaml"),
    };
    let directories = match manifests.form {
        // The hook sees the file system of the vendor's container.
        Form::PostStart => BTreeSet::new(),
        _ => mounts::directories(manifests)?,
    };
    let selinux = manifests.selinux_type.as_ref();
    let selinux = selinux.map(|kind| format!("seLinuxOptions:\n  type: {}\n", scalar(kind)));
    let confinement = Values::default()
        .with("user", if directories.is_empty() { NOBODY } else { ROOT })
        .with("selinux", selinux.unwrap_or_default())
        .fill(CONFINEMENT);
    // With a hash, a new configuration rolls out by the DaemonSet's update strategy.
    let hash = &sha256(&manifests.text)[..10];
    let config_map = format!("{}-{hash}", manifests.account.objects());
    let values = manifests
        .values()
        .with("configMap", config_map)
        .with("configuration", literal(&manifests.text, 4))
        .with("image", scalar(&manifests.image))
        .with("hostNetwork", HOST_NETWORK)
        .with("tolerations", tolerations::of_pods(manifests))
        .with("priority", PRIORITY)
        .with("nodeName", NODE_NAME)
        .with("confinement", confinement)
        .with("hostMounts", mounts::mounts(&directories))
        .with("configMount", CONFIG_MOUNT)
        .with("hostVolumes", mounts::volumes(&directories));
    Ok(
        [include_str!("workload/config-map.yaml"), daemon_set]
            .map(|template| values.fill(template)),
    )
}
