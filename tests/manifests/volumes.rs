//! What of the host is mounted for the gates.

use serde_json::Value;

use crate::render::{Objects, configuration, list, written};

const ACCOUNT: &str = "--service-account=agent";

/// The host's directories that untaint's container sees, each at its own path and not to be written to.
fn mounted(objects: &Objects) -> Vec<String> {
    let (program, _) = objects.runner();
    let mounts = list(&program.container["volumeMounts"]);
    let volumes = list(&objects.pod()["volumes"]).iter();
    let of_host = volumes.filter(|volume| !volume["hostPath"].is_null());
    let paths = of_host.map(|volume| {
        let mut mounts = mounts.iter();
        let mount = mounts.find(|mount| mount["name"] == volume["name"]);
        let mount = mount.unwrap();
        assert_eq!(volume["hostPath"]["path"], mount["mountPath"]);
        assert_eq!(volume["hostPath"]["type"], "DirectoryOrCreate");
        assert_eq!(mount["readOnly"], true);
        mount["mountPath"].as_str().unwrap().to_owned()
    });
    paths.collect()
}

/// containerd#6490, calico#8694 (A23): a mount of `net.d` itself would stay with a deleted directory.
#[test]
fn each_gate_has_the_directory_around_what_it_looks_at_and_nothing_else_is_mounted() {
    for (gates, expected) in [
        ("cniConfig: {}", &["/etc/cni"][..]),
        (
            "cniConfig: {dir: /var/lib/rancher/k3s/agent/etc/cni/net.d, binDirs: [/opt/cni/bin]}",
            &["/opt/cni", "/var/lib/rancher/k3s/agent/etc/cni"],
        ),
        ("file: {path: /run/flannel/subnet.env}", &["/run/flannel"]),
        (
            "httpGet: {unixSocket: /run/cilium/cilium.sock}",
            &["/run/cilium"],
        ),
        (
            "grpc: {unixSocket: /run/aws-node/ipamd.sock}",
            &["/run/aws-node"],
        ),
        ("httpGet: {port: 1}", &[]),
        (
            "tcpSocket: {unixSocket: /run/multus/multus.sock}",
            &["/run/multus"],
        ),
        ("tcpSocket: {port: 1}", &[]),
        ("exec: {command: [/usr/bin/true]}", &[]),
        ("file: {path: /proc/sys/net/ipv4/ip_forward}", &[]),
        ("file: {path: /sys/class/infiniband/mlx5_0}", &[]),
        (
            "file: {path: '/opt/a b/\u{e9}: c/ready'}",
            &["/opt/a b/\u{e9}: c"],
        ),
        // One within the other: the outer one shows both.
        (
            "anyOf: [{name: b, file: {path: /run/a/b/c}}, {name: c, file: {path: /run/a/d}}, {name: d, file: {path: /run/ab/d}}]",
            &["/run/a", "/run/ab"],
        ),
    ] {
        let file = configuration(&format!("gates: [{{name: a, {gates}}}]"));
        let path = file.path().to_str().unwrap();
        for form in ["daemonset", "sidecar", "init-container"] {
            let objects = Objects::written(&["--config", path, "--form", form, ACCOUNT]);
            assert_eq!(mounted(&objects), expected, "{gates}");
        }
        // A hook looks at the file system of the container that it is in.
        let objects = Objects::written(&["--config", path, "--form", "post-start", ACCOUNT]);
        assert!(mounted(&objects).is_empty());
    }
}

#[test]
fn a_path_that_cannot_be_made_visible_is_an_error_with_its_remedy() {
    for path in [
        "/ready",
        "/etc/ready",
        "/var/ready",
        "/var/run/a.sock",
        "/etc/untaint/ready",
        "/etc/untaint/more/ready",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        // The container runtime makes /dev/termination-log, which it cannot where /dev is read-only.
        "/dev/nvidia0",
    ] {
        let file = configuration(&format!("gates: [{{name: a, file: {{path: {path}}}}}]"));
        let error = written(&["--config", file.path().to_str().unwrap()]).unwrap_err();
        assert_eq!(
            error,
            format!(
                "gate a: {path} cannot be made visible in a pod: its parent directory also contains files that \
                 the pod itself needs; move it to a directory of its own\n"
            )
        );
    }
}

/// A container has files of its own there, or none. A gate would be open too early, or never.
#[test]
fn a_path_where_a_container_does_not_see_the_files_of_the_host_is_an_error() {
    let processes = "a container sees only its own processes; use a gate for what the process offers, such as a file or a socket";
    let hidden = "container runtimes hide it from containers; use a gate for another file";
    let mounted =
        "a container has another file system there than the host; use a gate for another file";
    let device = "it is a symbolic link to a device, which a pod does not see; use a gate for a file under /sys";
    for (path, reason) in [
        ("/proc/1/root/run/ready", processes),
        ("/proc/4711", processes),
        ("/proc/self/mounts", processes),
        ("/proc/thread-self/status", processes),
        ("/proc/kcore", hidden),
        ("/proc/acpi/wakeup", hidden),
        ("/sys/firmware/efi", hidden),
        ("/sys/fs/bpf/tc/globals/cilium_ipcache", mounted),
        ("/sys/fs/cgroup/kubepods.slice", mounted),
        ("/sys/kernel/debug/tracing", mounted),
        ("/proc/sys/fs/binfmt_misc/qemu-aarch64", mounted),
        ("/dev/disk/by-id/nvme-data", device),
        ("/dev/mapper/vg-data", device),
    ] {
        let file = configuration(&format!("gates: [{{name: a, file: {{path: {path}}}}}]"));
        let config = file.path().to_str().unwrap();
        for form in ["daemonset", "sidecar", "init-container"] {
            let error = written(&["--config", config, "--form", form, ACCOUNT]).unwrap_err();
            let expected = format!("gate a: {path} cannot be made visible in a pod: {reason}\n");
            assert_eq!(error, expected, "{form}");
        }
        // A hook runs in a container that may have them.
        written(&["--config", config, "--form", "post-start", ACCOUNT]).unwrap();
    }
    for path in [
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/modules",
        "/proc/net/route",
        "/sys/class/net/eth0",
    ] {
        let file = configuration(&format!("gates: [{{name: a, file: {{path: {path}}}}}]"));
        written(&["--config", file.path().to_str().unwrap()]).unwrap();
    }
}

/// The API server takes no such hostPath, and which directory is meant depends on links.
#[test]
fn a_path_that_leads_back_is_an_error_wherever_it_leads() {
    for path in [
        "/opt/a/../b/ready",
        "/opt/a/..",
        "/etc/cni/../untaint/ready",
        "/proc/../opt/a/ready",
        "/sys/../proc/ready",
    ] {
        let file = configuration(&format!("gates: [{{name: a, file: {{path: {path}}}}}]"));
        let error = written(&["--config", file.path().to_str().unwrap()]).unwrap_err();
        assert_eq!(
            error,
            format!(
                "gate a: {path} cannot be made visible in a pod: the path of a volume cannot contain '..'; write the path \
                 without it\n"
            )
        );
    }
    let file = configuration("gates: [{name: a, file: {path: /opt/..data/ready}}]");
    let objects = Objects::written(&["--config", file.path().to_str().unwrap()]);
    assert_eq!(mounted(&objects), ["/opt/..data"]);
}

#[test]
fn where_hosts_confine_files_the_containers_have_the_type_that_is_asked_for() {
    for form in ["daemonset", "sidecar", "init-container", "post-start"] {
        let arguments = ["--config", "examples/cilium.yaml", "--form", form, ACCOUNT];
        let plain = Objects::written(&arguments);
        let confined = Objects::written(&[&arguments[..], &["--selinux-type", "spc_t"]].concat());
        for (objects, expected) in [(plain, Value::Null), (confined, Value::from("spc_t"))] {
            for program in objects.programs() {
                if program.path().is_none() {
                    let options = &program.container["securityContext"]["seLinuxOptions"];
                    assert_eq!(options["type"], expected, "{form}");
                }
            }
        }
    }
}
