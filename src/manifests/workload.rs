//! The pods: untaint's own, or an example of somebody else's with untaint in it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::account::OWN;
use super::pieces as piece;
use super::text::{indent, literal, scalar};
use super::{Form, Manifests, MountError, mounts, tolerations};
use crate::text::sha256;

/// The Namespace and the ServiceAccount, if they are untaint's own. Others may have much else in theirs, which must not
/// change with untaint's installation, nor go with it.
pub(super) fn account(manifests: &Manifests) -> Vec<String> {
    let account = &manifests.account;
    let namespace = (account.namespace == OWN).then(|| piece::NAMESPACE.to_owned());
    let service_account = manifests.form.has_own_account().then(|| {
        format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n{}  name: {}\n  namespace: {}\n",
            piece::LABELS,
            scalar(&account.name),
            scalar(&account.namespace)
        )
    });
    namespace.into_iter().chain(service_account).collect()
}

/// The configuration and the DaemonSet.
pub(super) fn documents(manifests: &Manifests) -> Result<[String; 2], MountError> {
    let directories = match manifests.form {
        // The container is the vendor's, with a file system of its own.
        Form::PostStart => BTreeSet::new(),
        _ => mounts::directories(manifests)?,
    };
    let pods = Pods {
        manifests,
        directories,
        config_map: config_map_name(manifests),
    };
    Ok([pods.config_map(), pods.daemon_set()])
}

/// With a hash of the configuration, so that another one rolls out as the DaemonSet's update strategy says.
fn config_map_name(manifests: &Manifests) -> String {
    let hash = sha256(&manifests.text);
    format!("{}-{}", manifests.account.objects(), &hash[..10])
}

struct Pods<'a> {
    manifests: &'a Manifests,
    /// What of the host is mounted.
    directories: BTreeSet<PathBuf>,
    config_map: String,
}

impl Pods<'_> {
    fn config_map(&self) -> String {
        format!(
            "apiVersion: v1
kind: ConfigMap
metadata:
{}  # With a hash of the content: another configuration rolls out as a change of the pods.
  name: {}
  namespace: {}
data:
  config.yaml:{}",
            piece::LABELS,
            self.config_map,
            scalar(&self.manifests.account.namespace),
            literal(&self.manifests.text, 4),
        )
    }

    fn daemon_set(&self) -> String {
        let Manifests { form, account, .. } = self.manifests;
        let name = match form {
            Form::Daemonset => scalar(&account.name),
            // Never that of the DaemonSet it is an example for.
            _ => format!("{OWN}-{}", form.as_str()),
        };
        let (about, strategy) = match form {
            Form::Daemonset => ("", piece::UPDATE_STRATEGY),
            Form::Sidecar => (piece::ABOUT_SIDECAR, ""),
            Form::InitContainer => (piece::ABOUT_INIT_CONTAINER, ""),
            Form::PostStart => (piece::ABOUT_POST_START, ""),
        };
        format!(
            "{about}apiVersion: apps/v1
kind: DaemonSet
metadata:
{}  name: {name}
  namespace: {}
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
{strategy}  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
    spec:
{}",
            piece::LABELS,
            scalar(&account.namespace),
            indent(&self.pod(), 6)
        )
    }

    fn pod(&self) -> String {
        let account = scalar(&self.manifests.account.name);
        let untaint = self.container();
        let (settings, containers) = match self.manifests.form {
            Form::Daemonset => (
                [piece::MOUNT_TOKEN, piece::HOST_NETWORK].concat(),
                format!("{}containers:\n{untaint}", piece::GRACE_PERIOD),
            ),
            Form::Sidecar => (
                piece::HOST_NETWORK.into(),
                format!("initContainers:\n{untaint}{}", piece::THE_CNI),
            ),
            Form::InitContainer => (
                String::new(),
                format!(
                    "initContainers:\n{}{untaint}{}",
                    piece::THE_WORK,
                    piece::THE_AGENT
                ),
            ),
            Form::PostStart => (String::new(), self.hook()),
        };
        let tolerations = tolerations::of_pods(self.manifests);
        let volumes = self.volumes();
        format!(
            "serviceAccountName: {account}\n{settings}{tolerations}{}{containers}{volumes}",
            piece::PRIORITY
        )
    }

    /// untaint's own container, as an item of a list.
    fn container(&self) -> String {
        let (native, arguments, service, probe) = match self.manifests.form {
            Form::Daemonset => ("", piece::RUN, piece::API_SERVER, piece::READINESS),
            Form::Sidecar => (
                piece::NATIVE_SIDECAR,
                piece::RUN_WITHOUT_LISTENER,
                piece::API_SERVER,
                "",
            ),
            Form::InitContainer | Form::PostStart => ("", piece::RUN_ONCE, "", ""),
        };
        format!(
            "- name: untaint\n{native}  image: {}\n{arguments}{}{service}{}{}{probe}{}",
            scalar(&self.manifests.image),
            piece::NODE_NAME,
            indent(&self.security_context(), 2),
            piece::RESOURCES,
            indent(&self.volume_mounts(), 2),
        )
    }

    /// The installer, and the vendor's container with the hook.
    fn hook(&self) -> String {
        format!(
            "initContainers:\n{}  image: {}\n{}{}{}{}{}{}{}",
            piece::INSTALLER,
            scalar(&self.manifests.image),
            piece::INSTALL,
            indent(&self.security_context(), 2),
            piece::RESOURCES,
            piece::INSTALLER_MOUNT,
            piece::THE_VENDOR,
            piece::NODE_NAME,
            indent(&self.volume_mounts(), 2),
        )
    }

    fn security_context(&self) -> String {
        let user = if self.directories.is_empty() {
            piece::NOBODY
        } else {
            piece::ROOT
        };
        let selinux = self.manifests.selinux_type.as_ref();
        let selinux =
            selinux.map(|kind| format!("  seLinuxOptions:\n    type: {}\n", scalar(kind)));
        format!(
            "securityContext:\n{user}{}{}",
            piece::CONFINED,
            selinux.unwrap_or_default()
        )
    }

    fn volume_mounts(&self) -> String {
        let program = match self.manifests.form {
            Form::PostStart => piece::PROGRAM_MOUNT,
            _ => "",
        };
        let directories = self.each_directory(|index, path| {
            format!("- name: host-{index}\n  mountPath: {path}\n  readOnly: true\n")
        });
        format!(
            "volumeMounts:\n{program}{directories}{}",
            piece::CONFIG_MOUNT
        )
    }

    fn volumes(&self) -> String {
        let program = match self.manifests.form {
            Form::PostStart => piece::PROGRAM_VOLUME,
            _ => "",
        };
        let about = if self.directories.is_empty() {
            ""
        } else {
            piece::PARENTS
        };
        let directories = self.each_directory(|index, path| {
            format!(
                "- name: host-{index}\n  hostPath:\n    path: {path}\n    type: DirectoryOrCreate\n"
            )
        });
        let config_map = &self.config_map;
        format!(
            "volumes:\n{program}{about}{directories}- name: config\n  configMap:\n    name: {config_map}\n"
        )
    }

    fn each_directory(&self, item: impl Fn(usize, &str) -> String) -> String {
        let directories = self.directories.iter().enumerate();
        let items = directories.map(|(index, path)| item(index, &scalar(&path.to_string_lossy())));
        items.collect::<Vec<_>>().concat()
    }
}
