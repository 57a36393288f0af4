//! What is particular to each form.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use testkit::cluster::{Cluster, shared};
use untaint::cli::Command;
use untaint::config;

use crate::render::{Objects, copy, list};

/// The volume of a pod's container that is mounted at this path.
fn volume_at<'a>(pod: &'a Value, container: &Value, path: &Path) -> &'a Value {
    let mut mounts = list(&container["volumeMounts"]).iter();
    let mount = mounts.find(|mount| mount["mountPath"] == json!(path));
    let name = &mount.unwrap_or_else(|| panic!("nothing at {}", path.display()))["name"];
    let mut volumes = list(&pod["volumes"]).iter();
    volumes.find(|volume| volume["name"] == *name).unwrap()
}

fn names(containers: &Value) -> Vec<&str> {
    let containers = list(containers).iter();
    containers
        .map(|container| container["name"].as_str().unwrap())
        .collect()
}

/// For forms whose pods start, and resolve names, before the CNI is there.
#[tokio::test]
async fn the_daemon_set_and_the_sidecar_need_no_cni() {
    let Some(cluster) = shared().await else {
        return;
    };
    for form in ["daemonset", "sidecar"] {
        let objects = Objects::of_form(cluster, form).await;
        assert_eq!(objects.pod()["hostNetwork"], true, "{form}");
        assert_eq!(objects.pod()["dnsPolicy"], "Default", "{form}");
    }
}

/// cilium#37589, calico#7461 (A13): CNI configurations are for root alone.
#[tokio::test]
async fn where_cni_configurations_are_read_untaint_is_root() {
    let Some(cluster) = shared().await else {
        return;
    };
    let daemon_set = Objects::of_form(cluster, "daemonset").await;
    let sidecar = Objects::of_form(cluster, "sidecar").await;
    let (container, _) = sidecar.runner();
    for context in [
        &daemon_set.pod()["securityContext"],
        &container.container["securityContext"],
    ] {
        assert_eq!(context["runAsUser"], 0);
        assert_eq!(context["runAsGroup"], 0);
    }
}

#[tokio::test]
async fn the_probes_of_the_daemon_set_ask_where_it_listens_and_no_other_form_listens() {
    let Some(cluster) = shared().await else {
        return;
    };
    let daemon_set = Objects::of_form(cluster, "daemonset").await;
    let (program, args) = daemon_set.runner();
    assert!(!args.once);
    let probe = &program.container["readinessProbe"]["httpGet"];
    let host = probe["host"].as_str().unwrap();
    let port = probe["port"].as_u64().unwrap();
    let address: SocketAddr = format!("{host}:{port}").parse().unwrap();
    assert_eq!(args.listen(), Some(address));
    assert_eq!(probe["path"], "/readyz");
    // A port that another program of the host has taken must not have it killed.
    assert_eq!(program.container["livenessProbe"], Value::Null);
    for form in ["sidecar", "init-container", "post-start"] {
        let objects = Objects::of_form(cluster, form).await;
        let (program, args) = objects.runner();
        assert_eq!(args.listen(), None, "{form}");
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            assert_eq!(program.container[probe], Value::Null, "{form}");
        }
    }
}

#[tokio::test]
async fn the_configuration_of_the_daemon_set_is_valid_and_where_the_command_line_says() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::of_form(cluster, "daemonset").await;
    let (program, args) = objects.runner();
    let path = args.config.unwrap();
    let volume = volume_at(objects.pod(), program.container, path.parent().unwrap());
    let map = objects.one("ConfigMap");
    assert_eq!(volume["configMap"]["name"], map["metadata"]["name"]);
    let file = path.file_name().unwrap().to_str().unwrap();
    let configuration = config::parse(map["data"][file].as_str().unwrap()).unwrap();
    assert_eq!(
        configuration.rules[0].taint.key,
        "node.cilium.io/agent-not-ready"
    );
}

/// Its name has a hash of it, so that another configuration is another pod template.
#[tokio::test]
async fn another_configuration_rolls_out_as_a_config_map_of_another_name() {
    async fn name(cluster: &Cluster, directory: &Path) -> String {
        let objects = Objects::of(cluster, directory).await;
        let name = objects.one("ConfigMap")["metadata"]["name"]
            .as_str()
            .unwrap();
        let (program, _) = objects.runner();
        let volume = volume_at(objects.pod(), program.container, Path::new("/etc/untaint"));
        assert_eq!(volume["configMap"]["name"], name);
        let hash = name.strip_prefix("untaint-").unwrap();
        assert_eq!(hash.len(), 10, "{name}");
        name.to_owned()
    }

    let Some(cluster) = shared().await else {
        return;
    };
    let copy = copy();
    let directory = copy.path().join("deploy/daemonset");
    let before = name(cluster, &directory).await;
    let file = copy.path().join("examples/cilium.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("stableFor: 2s", "stableFor: 3s")).unwrap();
    let after = name(cluster, &directory).await;
    assert_ne!(before, after);

    // As the comment in the kustomization says.
    let own = copy.path().join("own");
    std::fs::create_dir(&own).unwrap();
    let kustomization = "resources: [../deploy/daemonset]\n\
        configMapGenerator:\n\
        - {name: untaint, namespace: untaint, behavior: replace, files: [config.yaml]}\n";
    std::fs::write(own.join("kustomization.yaml"), kustomization).unwrap();
    std::fs::write(own.join("config.yaml"), text).unwrap();
    assert_ne!(name(cluster, &own).await, after);
    let objects = Objects::of(cluster, &own).await;
    let data = objects.one("ConfigMap")["data"].as_object().unwrap();
    assert!(
        data["config.yaml"]
            .as_str()
            .unwrap()
            .contains("stableFor: 2s")
    );
}

#[tokio::test]
async fn the_sidecar_is_a_native_one_and_stays() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::of_form(cluster, "sidecar").await;
    let (program, args) = objects.runner();
    assert!(!args.once);
    assert_eq!(args.gates.cni, Some(None));
    assert_eq!(program.container["restartPolicy"], "Always");
    assert_eq!(names(&objects.pod()["initContainers"]), ["untaint"]);
}

#[tokio::test]
async fn the_init_container_comes_after_the_work_and_gives_up_in_time() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::of_form(cluster, "init-container").await;
    let (_, args) = objects.runner();
    assert!(args.once && args.timeout.is_some());
    assert_eq!(
        names(&objects.pod()["initContainers"]),
        ["prepare", "untaint"]
    );
    let prepare = &objects.pod()["initContainers"][0];
    assert_eq!(prepare["args"], json!(["touch", args.gates.file[0]]));
}

#[tokio::test]
async fn the_hook_starts_what_the_init_container_installs_and_gives_up_in_time() {
    let Some(cluster) = shared().await else {
        return;
    };
    let objects = Objects::of_form(cluster, "post-start").await;
    let pod = objects.pod();
    let programs = objects.programs();
    let [installer, hook] = programs.as_slice() else {
        panic!("{} programs", programs.len());
    };
    let Command::Install { directory } = installer.command() else {
        panic!("{:?}", installer.command());
    };
    let path = Path::new(hook.path().unwrap());
    let from = volume_at(pod, installer.container, &directory);
    let to = volume_at(pod, hook.container, path.parent().unwrap());
    assert_eq!(from, to);
    assert_eq!(path.file_name().unwrap(), "untaint");

    let (_, args) = objects.runner();
    assert!(args.once && args.timeout.is_some());
}
