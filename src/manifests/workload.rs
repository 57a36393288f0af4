//! The pods: untaint's own, or untaint in the pods of another program, as an example or as a patch.
//!
//! `workload/` has one template of the DaemonSet for each form, and the parts that forms share.

mod config_map;
mod mounts;
mod nodes;
mod tolerations;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::account::OWN;
use super::yaml::{Values, scalar};
use super::{Form, Manifests, Patch, RenderError};
use crate::config::shown_duration;

use config_map::ConfigMap;
pub use config_map::KeyError;
pub(super) use mounts::created as created_directories;
pub use mounts::{MountError, NOT_OF_HOST, PROCESSES};

/// The Namespace and the ServiceAccount, if they are untaint's own. Those of other programs must not change or be
/// deleted with untaint's manifests.
pub(super) fn account(manifests: &Manifests) -> Vec<String> {
    let mut templates = Vec::new();
    if manifests.account.namespace == OWN {
        templates.push(include_str!("workload/namespace.yaml"));
    }
    if manifests.form.has_own_account() {
        templates.push(include_str!("workload/service-account.yaml"));
    }
    let values = manifests.values();
    let documents = templates.into_iter().map(|template| values.fill(template));
    documents.collect()
}

pub(super) fn config_map(manifests: &Manifests) -> Result<String, RenderError> {
    let config_map = ConfigMap::of(&manifests.files)?;
    let values = manifests
        .values()
        .with("configMap", config_map.name(&manifests.account))
        .with("configuration", config_map.data());
    Ok(values.fill(include_str!("workload/config-map.yaml")))
}

pub(super) fn daemon_set(manifests: &Manifests) -> Result<String, RenderError> {
    let (name, template) = match manifests.form {
        // Its name is that of the account.
        Form::Daemonset => ("", include_str!("workload/daemonset.yaml")),
        Form::Sidecar => ("sidecar", include_str!("workload/sidecar.yaml")),
        Form::InitContainer => (
            "init-container",
            include_str!("workload/init-container.yaml"),
        ),
        Form::PostStart => ("post-start", include_str!("workload/post-start.yaml")),
    };
    let values = of_pods(manifests)?
        .with("example", manifests.account.objects_for(name))
        .with_part("selector", SELECTOR)
        .with("hostNetwork", include_str!("workload/host-network.yaml"))
        .with("tolerations", tolerations::of_pods(manifests))
        .with("nodeSelector", nodes::selector(manifests)?)
        .with("affinity", nodes::affinity(manifests))
        .with_part("nodes", include_str!("workload/nodes.yaml"));
    Ok(values.fill(template))
}

pub(super) fn patch(manifests: &Manifests, patch: &Patch) -> Result<String, RenderError> {
    let mut after = String::new();
    if !patch.after.is_empty() {
        after.push_str(ABOUT_AFTER);
    }
    for name in &patch.after {
        let _ = writeln!(after, "- name: {}", scalar(name));
    }
    let values = of_pods(manifests)?
        .with_part("about", include_str!("workload/about-patch.yaml"))
        .with("daemonSet", scalar(&patch.daemon_set))
        .with("after", after);
    Ok(values.fill(include_str!("workload/patch.yaml")))
}

const ABOUT_AFTER: &str = "\
# The DaemonSet already has these. Kustomize puts the init containers of a patch first, so the patch keeps their order.
";

const SELECTOR: &str = "\
app.kubernetes.io/name: untaint
app.kubernetes.io/instance: {{instance}}
";

/// The values that the DaemonSets and the patch have.
fn of_pods(manifests: &Manifests) -> Result<Values, RenderError> {
    let directories = match manifests.form {
        // The hook sees the file system of the vendor's container.
        Form::PostStart => BTreeSet::new(),
        _ => mounts::directories(manifests)?,
    };
    let config_map = ConfigMap::of(&manifests.files)?;
    let timeout = manifests.form.timeout().map(shown_duration);
    let values = manifests
        .values()
        .with("configMap", config_map.name(&manifests.account))
        .with("config", config_map.mounted())
        .with("image", scalar(&manifests.image))
        .with("timeout", timeout.unwrap_or_default())
        .with("pullSecrets", pull_secrets(manifests))
        .with("nodeName", include_str!("workload/node-name.yaml"))
        .with("confinement", confinement(manifests, &directories))
        .with("hostMounts", mounts::mounts(&directories))
        .with("configMount", include_str!("workload/config-mount.yaml"))
        .with("hostVolumes", mounts::volumes(&directories))
        .with_part("volumes", include_str!("workload/volumes.yaml"));
    Ok(match manifests.form {
        Form::Sidecar => {
            values.with_part("container", include_str!("workload/container/sidecar.yaml"))
        }
        Form::InitContainer => values.with_part(
            "container",
            include_str!("workload/container/init-container.yaml"),
        ),
        Form::Daemonset | Form::PostStart => values,
    })
}

fn pull_secrets(manifests: &Manifests) -> String {
    let names = &manifests.additions.image_pull_secrets;
    let mut field = String::new();
    for (index, name) in names.iter().enumerate() {
        let head = if index == 0 {
            "imagePullSecrets:\n"
        } else {
            ""
        };
        let _ = writeln!(field, "{head}- name: {}", scalar(name));
    }
    field
}

fn confinement(manifests: &Manifests, directories: &BTreeSet<PathBuf>) -> String {
    let user = if directories.is_empty() {
        include_str!("workload/nobody.yaml")
    } else {
        include_str!("workload/root.yaml")
    };
    let selinux = manifests.selinux_type.as_ref();
    let selinux = selinux.map(|kind| format!("seLinuxOptions:\n  type: {}\n", scalar(kind)));
    Values::default()
        .with("user", user)
        .with("selinux", selinux.unwrap_or_default())
        .fill(include_str!("workload/confinement.yaml"))
}
