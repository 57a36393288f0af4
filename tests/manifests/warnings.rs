//! What `untaint manifests` says about a configuration that does not work in the pods as it is written.

use std::process::Command;

use tempfile::NamedTempFile;

use crate::render::{FORMS, Objects, ROOT, configuration};

/// The warnings for a rule with these fields, in order.
fn warnings(form: &str, rule: &str, more: &[&str]) -> Vec<String> {
    warnings_for(form, &configuration(rule), more)
}

/// The warnings for a configuration file, in order.
fn warnings_for(form: &str, file: &NamedTempFile, more: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_untaint"))
        .args(["manifests", "--image=registry.internal/untaint", "--config"])
        .arg(file.path())
        .args(["--form", form, "--service-account=agent"])
        .args(more)
        .current_dir(ROOT)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{lines}");
    let lines = lines.lines();
    let warnings = lines.map(|line| line.strip_prefix("warning: ").unwrap().to_owned());
    warnings.collect()
}

fn gate(kind: &str) -> String {
    format!("gates: [{{name: g, {kind}}}]")
}

/// In each form in the table, the gate has a warning with these words. In the other forms it has none.
fn assert_warned(cases: &[(&str, &[&str])], words: &str) {
    for (kind, warned) in cases {
        for form in FORMS {
            let found = warnings(form, &gate(kind), &[]);
            let about = found.iter().filter(|warning| warning.contains(words));
            let about: Vec<_> = about.collect();
            let expected = usize::from(warned.contains(&form));
            assert_eq!(about.len(), expected, "{form}, {kind}: {found:?}");
            for warning in about {
                assert!(warning.starts_with("rule a, gate g: "), "{warning}");
            }
        }
    }
}

#[test]
fn a_gate_that_asks_the_loopback_address_of_a_pod_that_may_not_have_the_hosts_network_has_a_warning()
 {
    let others: &[&str] = &["sidecar", "init-container"];
    assert_warned(
        &[
            ("httpGet: {port: 1}", others),
            ("httpGet: {port: 1, host: localhost}", others),
            ("httpGet: {port: 1, host: LocalHost}", others),
            ("tcpSocket: {port: 1}", others),
            ("tcpSocket: {port: 1, host: '::1'}", others),
            ("tcpSocket: {port: 1, host: 127.3.2.1}", others),
            ("grpc: {port: 1}", others),
            ("grpc: {port: 1, host: '::ffff:127.0.0.1'}", others),
            ("grpc: {port: 1, host: 0.0.0.0}", others),
            ("anyOf: [{name: g, tcpSocket: {port: 1}}]", others),
            ("httpGet: {port: 1, host: 192.0.2.1}", &[]),
            ("tcpSocket: {port: 1, host: '2001:db8::1'}", &[]),
            ("grpc: {port: 1, host: localhost.example.com}", &[]),
            ("httpGet: {unixSocket: /run/a/a.sock}", &[]),
            ("grpc: {unixSocket: /run/a/a.sock}", &[]),
            ("tcpSocket: {unixSocket: /run/a/a.sock}", &[]),
        ],
        " is the pod itself, unless the pods of your DaemonSet have hostNetwork: true; ",
    );
}

#[test]
fn a_name_that_only_the_dns_of_the_cluster_knows_has_a_warning_where_the_pods_use_another_resolver()
{
    let with_hosts_resolver: &[&str] = &["daemonset", "sidecar"];
    assert_warned(
        &[
            (
                "httpGet: {port: 1, host: dns.kube-system.svc}",
                with_hosts_resolver,
            ),
            (
                "tcpSocket: {port: 1, host: a.b.SVC.cluster.local}",
                with_hosts_resolver,
            ),
            (
                "grpc: {port: 1, host: a.b.svc.example.com}",
                with_hosts_resolver,
            ),
            ("httpGet: {port: 1, host: svc.example.com}", &[]),
        ],
        " is a name of the cluster's DNS, which needs the CNI; ",
    );
}

#[test]
fn an_exec_gate_has_a_warning_where_the_image_lacks_its_program() {
    let in_own_image: &[&str] = &["daemonset", "sidecar", "init-container"];
    assert_warned(
        &[
            ("exec: {command: [/bin/sh, -c, 'true']}", in_own_image),
            ("exec: {command: [/untaint-check]}", in_own_image),
            ("exec: {command: [/untaint, --version]}", &[]),
        ],
        "the image of untaint has no program except untaint: ",
    );
}

#[test]
fn a_hook_whose_container_may_not_have_the_cni_configuration_has_a_warning() {
    assert_warned(
        &[
            ("cniConfig: {}", &["post-start"]),
            ("file: {path: /tmp/ready}", &[]),
        ],
        "the hook sees only the files of the container that it runs in: ",
    );
}

/// A mistyped path would otherwise make a directory on every node without a word.
#[test]
fn the_directories_that_a_wrong_path_would_create_are_listed() {
    for (kind, expected) in [
        ("cniConfig: {}", None),
        ("cniConfig: {binDirs: [/opt/cni/bin, /usr/lib/cni]}", None),
        (
            "cniConfig: {dir: /var/lib/rancher/k3s/agent/etc/cni/net.d}",
            None,
        ),
        ("cniConfig: {dir: /ect/cni/net.d}", Some("/ect/cni")),
        ("cniConfig: {dir: /etc/cnii/net.d}", Some("/etc/cnii")),
        ("cniConfig: {binDirs: [/opt/cin/bin]}", Some("/opt/cin")),
        ("file: {path: /run/flanel/subnet.env}", Some("/run/flanel")),
        ("file: {path: /run/ready}", None),
        (
            "httpGet: {unixSocket: /run/clium/a.sock}",
            Some("/run/clium"),
        ),
        ("grpc: {unixSocket: /run/a/b.sock}", Some("/run/a")),
        ("tcpSocket: {unixSocket: /run/a/b.sock}", Some("/run/a")),
        (
            "anyOf: [{name: b, file: {path: /srv/b/c}}, {name: c, file: {path: /run/a/d}}]",
            Some("/run/a, /srv/b"),
        ),
        ("file: {path: /proc/modules}", None),
        ("tcpSocket: {port: 1}", None),
    ] {
        for form in FORMS {
            let all = warnings(form, &gate(kind), &[]);
            let mut all = all.iter();
            let found = all.find_map(|warning| {
                warning.strip_prefix(
                    "on nodes where one of these directories is missing, the kubelet creates it for the pods, so check \
                     the spelling: ",
                )
            });
            let expected = expected.filter(|_| form != "post-start");
            assert_eq!(found, expected, "{form}, {kind}");
        }
    }
}

#[test]
fn a_path_forges_no_line_of_a_message() {
    let gate = gate(r#"file: {path: "/srv/a\nwarning: b/c\u001b/d"}"#);
    let expected = "check the spelling: /srv/a\\nwarning: b/c\\u{1b}";
    let found = warnings("daemonset", &gate, &[]);
    assert!(
        matches!(found.as_slice(), [one] if one.ends_with(expected)),
        "{found:?}"
    );
    let hook = super::warnings::gate(r#"cniConfig: {dir: "/a\nwarning: b"}"#);
    let found = warnings("post-start", &hook, &[]);
    assert!(
        matches!(found.as_slice(), [one] if one.contains(r"/a\nwarning: b ")),
        "{found:?}"
    );
}

/// Their paths are right.
#[test]
fn the_examples_have_no_warning_in_a_daemonset() {
    for entry in std::fs::read_dir(format!("{ROOT}/examples")).unwrap() {
        let path = entry.unwrap().path();
        // The directory of an agent that does not exist.
        if path.is_dir() || path.ends_with("storage-agent.yaml") {
            continue;
        }
        let output = Command::new(env!("CARGO_BIN_EXE_untaint"))
            .args(["manifests", "--image=registry.internal/untaint", "--config"])
            .arg(&path)
            .output()
            .unwrap();
        let lines = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (lines.as_str(), output.status.success()),
            ("", true),
            "{path:?}"
        );
    }
}

#[test]
fn gates_that_may_wait_for_containers_that_wait_for_untaint_are_listed() {
    let rule = "gates: [{name: f, file: {path: /run/ready}}, {name: g, anyOf: [{name: d, csiDriver: {name: a.b}}]}, \
                {name: p, pods: {namespace: a, matchLabels: {a: b}}}, {name: c, nodeCondition: {type: Ready, status: 'True'}}]";
    for (form, expected) in [
        ("daemonset", None),
        ("sidecar", None),
        (
            "init-container",
            Some("f of rule a, d of rule a, p of rule a, c of rule a"),
        ),
        ("post-start", Some("d of rule a, p of rule a, c of rule a")),
    ] {
        let all = warnings(form, rule, &[]);
        let mut all = all.iter();
        let found = all.find_map(|warning| {
            warning.strip_prefix(
                "later containers of the pod start only when untaint has ended, so a gate that waits for one of them never \
                 opens; use the form daemonset for such a gate: ",
            )
        });
        assert_eq!(found, expected, "{form}");
    }
    for form in FORMS {
        assert!(warnings(form, "gates: []", &[]).is_empty(), "{form}");
    }
}

#[test]
fn what_takes_longer_than_the_time_out_of_the_container_has_a_warning() {
    for (rule, daemon_set, init_container, hook) in [
        ("stableFor: 119s", "", "", ""),
        ("stableFor: 2m", "", "", "untaint gives up after "),
        (
            "stableFor: 5m",
            "",
            "untaint gives up after ",
            "untaint gives up after ",
        ),
        ("deadline: {after: 119s, action: Remove}", "", "", ""),
        (
            "deadline: {after: 4m, action: Remove}",
            "",
            "",
            "the deadline never passes",
        ),
        (
            "deadline: {action: Remove}",
            "",
            "the deadline never passes",
            "the deadline never passes",
        ),
        ("deadline: {after: 10m, action: Keep}", "", "", ""),
    ] {
        let expected = [daemon_set, daemon_set, init_container, hook];
        for (form, expected) in FORMS.into_iter().zip(expected) {
            let found = warnings(form, rule, &[]);
            match found.as_slice() {
                [] => assert!(expected.is_empty(), "{form}, {rule}"),
                [warning] => {
                    let start = format!("rule a: {expected}");
                    assert!(
                        !expected.is_empty() && warning.starts_with(&start),
                        "{warning}"
                    );
                }
                _ => panic!("{found:?}"),
            }
        }
    }
}

#[test]
fn a_rule_that_would_put_its_taint_back_has_a_warning_where_untaint_ends() {
    let rule = "retaint: {after: 30s}";
    for form in FORMS {
        let file = configuration(rule);
        let text = std::fs::read_to_string(file.path()).unwrap();
        let text = text.replace("example.com/a}", "example.com/a, effect: NoSchedule}");
        let text = text.replace("gates: []", "gates: [{name: f, file: {path: /run/ready}}]");
        std::fs::write(file.path(), text).unwrap();
        let found = warnings_for(form, &file, &[]);
        let about = "rule a: retaint has no effect after the first removal, ";
        let is_warned = found.iter().any(|warning| warning.starts_with(about));
        let ends = matches!(form, "init-container" | "post-start");
        assert_eq!(is_warned, ends, "{form}: {found:?}");
    }
}

/// The parts for other people have nothing to do with it.
#[test]
fn only_who_writes_pods_is_warned() {
    let rule = gate("exec: {command: [/bin/true]}");
    for (only, expected) in [
        ("--only=rbac", 0),
        ("--only=rbac,policy,config", 0),
        ("--only=workload", 1),
        ("--patch=agent", 1),
    ] {
        assert_eq!(
            warnings("sidecar", &rule, &[only]).len(),
            expected,
            "{only}"
        );
    }
}

/// What is shipped for each form works in it.
#[test]
fn the_manifests_that_are_shipped_have_no_warning_of_a_gate() {
    for form in FORMS {
        let path = format!("{ROOT}/deploy/{form}");
        let entries = std::fs::read_dir(path).unwrap();
        let mut texts =
            entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
        let text = texts.find(|text| text.contains("kind: ConfigMap")).unwrap();
        let objects = Objects(serde_yaml::from_multiple(&text).unwrap());
        let data = &objects.one("ConfigMap")["data"]["config.yaml"];
        let file = configuration("");
        std::fs::write(file.path(), data.as_str().unwrap()).unwrap();
        let found = warnings_for(form, &file, &[]);
        let is_of_gate = |warning: &String| warning.contains(", gate ");
        assert!(!found.iter().any(is_of_gate), "{form}: {found:?}");
    }
}
