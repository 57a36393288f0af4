//! The pods: untaint's own, or an example of another program's DaemonSet with untaint in it.
//!
//! `workload/` has one template of the DaemonSet for each form, and the parts that forms share.

mod config_map;
mod mounts;
mod tolerations;

use std::collections::BTreeSet;

use super::account::OWN;
use super::yaml::{Values, scalar};
use super::{Form, Manifests, RenderError};

pub use config_map::KeyError;
pub use mounts::MountError;

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
pub(super) fn documents(manifests: &Manifests) -> Result<[String; 2], RenderError> {
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
    let user = if directories.is_empty() {
        include_str!("workload/nobody.yaml")
    } else {
        include_str!("workload/root.yaml")
    };
    let selinux = manifests.selinux_type.as_ref();
    let selinux = selinux.map(|kind| format!("seLinuxOptions:\n  type: {}\n", scalar(kind)));
    let confinement = Values::default()
        .with("user", user)
        .with("selinux", selinux.unwrap_or_default())
        .fill(include_str!("workload/confinement.yaml"));
    let config_map = config_map::ConfigMap::of(&manifests.files)?;
    let values = manifests
        .values()
        .with("configMap", config_map.name(&manifests.account))
        .with("configuration", config_map.data())
        .with("config", config_map.mounted())
        .with("image", scalar(&manifests.image))
        .with("hostNetwork", include_str!("workload/host-network.yaml"))
        .with("tolerations", tolerations::of_pods(manifests))
        .with("priority", include_str!("workload/priority.yaml"))
        .with("nodeName", include_str!("workload/node-name.yaml"))
        .with("confinement", confinement)
        .with("hostMounts", mounts::mounts(&directories))
        .with("configMount", include_str!("workload/config-mount.yaml"))
        .with("hostVolumes", mounts::volumes(&directories));
    Ok(
        [include_str!("workload/config-map.yaml"), daemon_set]
            .map(|template| values.fill(template)),
    )
}
