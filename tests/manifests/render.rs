//! Kustomizations as objects, and what of them runs the program.

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::Parser as _;
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};
use testkit::cluster::Cluster;
use untaint::cli;

pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The directories in `deploy/` with a workload.
pub(crate) const FORMS: [&str; 4] = ["daemonset", "sidecar", "init-container", "post-start"];

/// The objects of a kustomization.
pub(crate) struct Objects(pub(crate) Vec<Value>);

impl Objects {
    /// Of one of the [`FORMS`].
    pub(crate) async fn of_form(cluster: &Cluster, form: &str) -> Self {
        Self::of(cluster, &Path::new(ROOT).join("deploy").join(form)).await
    }

    /// What `untaint manifests` writes with these arguments.
    pub(crate) fn written(arguments: &[&str]) -> Self {
        Self(serde_yaml::from_multiple(&written(arguments).unwrap()).unwrap())
    }

    pub(crate) async fn of(cluster: &Cluster, directory: &Path) -> Self {
        let directory = directory.to_str().unwrap();
        let yaml = cluster.kubectl(&["kustomize", directory]).await.unwrap();
        Self(serde_yaml::from_multiple(&yaml).unwrap())
    }

    /// Of the DaemonSet with one of `deploy/components`, as the comment there says.
    pub(crate) async fn with_component(cluster: &Cluster, component: &str) -> Self {
        let copy = copy();
        let own = copy.path().join("own");
        fs::create_dir(&own).unwrap();
        let kustomization = format!(
            "resources: [../deploy/daemonset]\ncomponents: [../deploy/components/{component}]\n"
        );
        fs::write(own.join("kustomization.yaml"), kustomization).unwrap();
        Self::of(cluster, &own).await
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        let objects = self.0.iter();
        objects.filter(|object| object["kind"] == kind).collect()
    }

    pub(crate) fn one(&self, kind: &str) -> &Value {
        let objects = self.all(kind);
        let [object] = objects.as_slice() else {
            panic!("{} objects of kind {kind}", objects.len());
        };
        object
    }

    /// The pod template's spec.
    pub(crate) fn pod(&self) -> &Value {
        &self.one("DaemonSet")["spec"]["template"]["spec"]
    }

    /// Every way in which the pods start the program.
    pub(crate) fn programs(&self) -> Vec<Program<'_>> {
        let pod = self.pod();
        let containers = list(&pod["initContainers"])
            .iter()
            .chain(list(&pod["containers"]));
        let programs = containers.filter_map(|container| {
            let of_image = || {
                container["image"]
                    .as_str()?
                    .contains("/untaint:")
                    .then_some(&container["args"])
            };
            let hook = &container["lifecycle"]["postStart"]["exec"]["command"];
            let command = if hook.is_null() { of_image()? } else { hook };
            let words = list(command).iter().map(|word| word.as_str().unwrap());
            Some(Program {
                container,
                words: words.collect(),
                is_hook: !hook.is_null(),
            })
        });
        programs.collect()
    }

    /// The one that runs, whatever installs it.
    pub(crate) fn runner(&self) -> (Program<'_>, cli::RunArgs) {
        let runs = self
            .programs()
            .into_iter()
            .filter_map(|program| match program.command() {
                cli::Command::Node(cli::NodeCommand::Run(args)) => Some((program, args)),
                _ => None,
            });
        let mut runs: Vec<_> = runs.collect();
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }
}

/// A configuration file of one rule with these fields besides name and taint.
pub(crate) fn configuration(rest: &str) -> NamedTempFile {
    let gates = if rest.contains("gates:") {
        ""
    } else {
        "gates: []"
    };
    let text = format!(
        "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n- name: a\n  \
         taint: {{key: example.com/a}}\n  {gates}\n  {rest}\n"
    );
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

/// The standard output of `untaint manifests` with these arguments, or what it says on the standard error.
pub(crate) fn written(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_untaint"))
        .arg("manifests")
        .args(arguments)
        .current_dir(ROOT)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        let is_warned = text(output.stderr).contains("name your image with --image");
        let is_placeholder = text(output.stdout.clone()).contains("registry.example.com/untaint:");
        assert_eq!(is_warned, is_placeholder);
        Ok(text(output.stdout))
    } else {
        assert_eq!(output.status.code(), Some(2));
        Err(text(output.stderr))
    }
}

/// A container that runs the program, as its own or in a hook.
pub(crate) struct Program<'a> {
    pub(crate) container: &'a Value,
    words: Vec<&'a str>,
    is_hook: bool,
}

impl Program<'_> {
    /// What the program makes of its arguments and of `NODE_NAME`.
    pub(crate) fn command(&self) -> cli::Command {
        let mut words = self.words.clone();
        if !self.is_hook {
            words.insert(0, "untaint");
        }
        let names_node = list(&self.container["env"]).iter().any(|variable| {
            variable["name"] == "NODE_NAME"
                && variable["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
        });
        if names_node {
            words.extend(["--node-name", "node-1"]);
        }
        match cli::Cli::try_parse_from(&words) {
            Ok(cli) => cli.command,
            Err(error) => panic!("{words:?}: {error}"),
        }
    }

    /// The path the program is started by, in a hook.
    pub(crate) fn path(&self) -> Option<&str> {
        self.is_hook.then(|| self.words[0])
    }
}

/// The items of a list; none if there is no list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A copy of all that the kustomizations read.
pub(crate) fn copy() -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let status = Command::new("cp")
        .arg("-R")
        .args(["deploy", "examples", "rbac"])
        .arg(copy.path())
        .current_dir(ROOT)
        .status();
    assert!(status.unwrap().success());
    copy
}
