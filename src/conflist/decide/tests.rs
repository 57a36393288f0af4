use std::ffi::OsStr;

use super::*;

pub(in crate::conflist) fn candidate(file: &str, contents: &[u8]) -> Candidate {
    Candidate {
        file: file.into(),
        content: Network::parse(OsStr::new(file), contents).map(|network| ValidFile {
            network,
            stale: None,
            program_fault: None,
        }),
    }
}

fn list(file: &str, network: &str, plugins: &[&str]) -> Candidate {
    let plugins: Vec<_> = plugins
        .iter()
        .map(|kind| serde_json::json!({ "type": kind }))
        .collect();
    let contents =
        serde_json::json!({ "name": network, "cniVersion": "1.0.0", "plugins": plugins });
    candidate(file, contents.to_string().as_bytes())
}

fn expected(network: Option<&str>, plugins: &[&str]) -> CniConfig {
    CniConfig {
        dir: "/etc/cni/net.d".into(),
        network: network.map(Into::into),
        plugins: plugins.iter().map(ToString::to_string).collect(),
        ..CniConfig::default()
    }
}

#[test]
fn without_expectations_the_file_that_the_runtime_picks_opens() {
    let any = expected(None, &[]);
    let both = [
        list("10-a.conflist", "a", &["p"]),
        list("20-b.conflist", "b", &["q"]),
    ];
    assert_eq!(
        decide(&any, both),
        Ok("/etc/cni/net.d/10-a.conflist: network a, plugins p".into())
    );
    assert_eq!(
        decide(&any, []),
        Err("no *.conf, *.conflist or *.json file in /etc/cni/net.d".into())
    );
}

#[test]
fn an_invalid_first_file_closes_whatever_else_is_there() {
    let good = list("10-cilium.conflist", "cilium", &["cilium-cni"]);
    for expected in [expected(None, &[]), expected(Some("cilium"), &[])] {
        let bad = candidate("05-bad.conflist", b"{");
        let reason = decide(&expected, [bad, good.clone()]).unwrap_err();
        assert!(
            reason.starts_with("/etc/cni/net.d/05-bad.conflist: not valid JSON: EOF"),
            "{reason}"
        );
        assert!(reason.contains("containerd picks this file"), "{reason}");
    }
    // A later one only matters if it is the expected one.
    let bad = candidate("20-bad.conflist", b"{");
    assert!(decide(&expected(None, &[]), [good.clone(), bad.clone()]).is_ok());
    let reason = decide(&expected(Some("x"), &[]), [good, bad]).unwrap_err();
    assert!(
        reason.contains("network cilium, not x; 20-bad.conflist: not valid JSON"),
        "{reason}"
    );
}

/// multus#1499 (B1).
#[test]
fn the_expected_network_opens_and_another_ones_does_not() {
    let wanted = expected(Some("cilium"), &[]);
    let ovn = list("10-kube-ovn.conflist", "kube-ovn", &["kube-ovn"]);
    assert_eq!(
        decide(&wanted, [ovn.clone()]),
        Err("/etc/cni/net.d/10-kube-ovn.conflist: network kube-ovn, not cilium".into())
    );
    let cilium = list("05-cilium.conflist", "cilium", &["cilium-cni"]);
    assert_eq!(
        decide(&wanted, [cilium, ovn]),
        Ok("/etc/cni/net.d/05-cilium.conflist: network cilium, plugins cilium-cni".into())
    );
}

/// linkerd2#10738 (B2).
#[test]
fn every_expected_plugin_must_be_in_one_chain() {
    let wanted = expected(None, &["calico", "linkerd-cni"]);
    let alone = list("01-linkerd.conflist", "linkerd", &["linkerd-cni"]);
    let unchained = list(
        "10-calico.conflist",
        "k8s-pod-network",
        &["calico", "portmap"],
    );
    let reason = decide(&wanted, [alone.clone(), unchained]).unwrap_err();
    assert_eq!(
        reason,
        "/etc/cni/net.d/01-linkerd.conflist: plugin calico is not in the chain linkerd-cni; \
         10-calico.conflist: plugin linkerd-cni is not in the chain calico, portmap"
    );
    let chained = list(
        "10-calico.conflist",
        "k8s-pod-network",
        &["calico", "linkerd-cni"],
    );
    let seen = decide(&wanted, [alone, chained]).unwrap();
    assert!(
        seen.starts_with("/etc/cni/net.d/10-calico.conflist: network k8s-pod-network"),
        "{seen}"
    );
}

/// cri-o#2411 (B3).
#[test]
fn a_runtimes_default_is_warned_of_and_never_taken_for_an_expected_plugin() {
    for default in [
        list(
            "87-podman-bridge.conflist",
            "podman",
            &["bridge", "portmap"],
        ),
        list("100-crio-bridge.conflist", "crio", &["bridge", "portmap"]),
        list("200-loopback.conflist", "lo", &["loopback"]),
    ] {
        let seen = decide(&expected(None, &[]), [default.clone()]).unwrap();
        assert!(seen.contains("; warning: this is"), "{seen}");
        let plugin = default.content.clone().unwrap().network.plugins[0].clone();
        let reason = decide(&expected(None, &[&plugin]), [default.clone()]).unwrap_err();
        assert!(
            reason.contains("default of") || reason.contains("loopback only"),
            "{reason}"
        );
        // Who names it means it.
        let name = default.content.clone().unwrap().network.name;
        let seen = decide(&expected(Some(&name), &[]), [default]).unwrap();
        assert!(!seen.contains("warning"), "{seen}");
    }
}

/// containerd/cri#889 (B5).
#[test]
fn the_file_that_the_runtime_picks_instead_is_named_or_required() {
    let old = list("10-calico.conf.conflist", "old", &["calico"]);
    let new = list("20-calico.conflist", "new", &["calico"]);
    let mut wanted = expected(Some("new"), &[]);
    assert_eq!(
        decide(&wanted, [old.clone(), new.clone()]),
        Ok("/etc/cni/net.d/20-calico.conflist: network new, plugins calico; the runtime picks another file: \
            /etc/cni/net.d/10-calico.conf.conflist: network old, plugins calico"
            .into())
    );
    wanted.first = true;
    assert_eq!(
        decide(&wanted, [old, new.clone()]),
        Err("/etc/cni/net.d/10-calico.conf.conflist: network old, not new".into())
    );
    assert!(decide(&wanted, [new]).is_ok());
}

/// kubernetes#138633 (A10).
#[test]
fn a_file_from_before_this_boot_is_stale() {
    let mut file = list("05-cilium.conflist", "cilium", &["cilium-cni"]);
    if let Ok(valid) = &mut file.content {
        valid.stale = Some("its last write is from 1970".into());
    }
    assert_eq!(
        decide(&expected(None, &[]), [file]),
        Err("/etc/cni/net.d/05-cilium.conflist: its last write is from 1970".into())
    );
}

#[test]
fn a_missing_program_closes_and_is_named() {
    let mut file = list("05-cilium.conflist", "cilium", &["cilium-cni"]);
    if let Ok(valid) = &mut file.content {
        valid.program_fault = Some("plugin cilium-cni: no program".into());
    }
    let reason = decide(&expected(Some("cilium"), &[]), [file.clone()]).unwrap_err();
    assert_eq!(
        reason,
        "/etc/cni/net.d/05-cilium.conflist: plugin cilium-cni: no program"
    );
    // It is the file that the runtime picks: without expectations, no other one counts.
    let other = list("10-other.conflist", "cilium", &["cilium-cni"]);
    assert!(decide(&expected(None, &[]), [file.clone(), other.clone()]).is_err());
    assert!(decide(&expected(Some("cilium"), &[]), [file, other]).is_ok());
}

#[test]
fn files_are_read_only_as_far_as_needed_and_reasons_are_counted_beyond_a_few() {
    let mut read = 0;
    let many = (10..60).map(|number| {
        read += 1;
        list(&format!("{number}.conflist"), &format!("n{number}"), &["p"])
    });
    assert!(decide(&expected(Some("n11"), &[]), many).is_ok());
    assert_eq!(read, 2);
    let many = (10..60).map(|number| list(&format!("{number}.conflist"), "n", &["p"]));
    let reason = decide(&expected(Some("x"), &[]), many).unwrap_err();
    assert!(
        reason.ends_with("13.conflist: network n, not x; and 46 more files"),
        "{reason}"
    );
}

#[test]
fn a_version_that_plugins_refuse_opens_with_a_warning() {
    let open = |fields: &str| {
        let contents = format!(r#"{{"name":"n"{fields},"plugins":[{{"type":"p"}}]}}"#);
        decide(
            &expected(None, &[]),
            [candidate("a.conflist", contents.as_bytes())],
        )
        .unwrap()
    };
    for version in [
        "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
    ] {
        for fields in [
            format!(r#","cniVersion":"{version}""#),
            format!(r#","cniVersions":["{version}"]"#),
            // The runtime takes the newest one that it knows.
            format!(r#","cniVersions":["{version}","2.0.0"]"#),
            format!(r#","cniVersion":"9.9.9","cniVersions":["0.0.1","{version}"]"#),
        ] {
            assert_eq!(
                open(&fields),
                "/etc/cni/net.d/a.conflist: network n, plugins p",
                "{fields}"
            );
        }
    }
    for fields in [
        "",
        r#","cniVersion":"""#,
        r#","cniVersions":[]"#,
        r#","cniVersions":["2.0.0"]"#,
    ] {
        let seen = open(fields);
        assert!(
            seen.contains("; warning: no `cniVersion`, which means 0.1.0"),
            "{fields}: {seen}"
        );
    }
    for (fields, version) in [
        (r#","cniVersion":"1.2.0""#, "1.2.0"),
        (r#","cniVersion":"2.0.0""#, "2.0.0"),
        (r#","cniVersion":"1""#, "1"),
        (r#","cniVersion":"1.0""#, "1.0"),
        (r#","cniVersion":"01.0.0""#, "01.0.0"),
        (r#","cniVersion":"0.3.2""#, "0.3.2"),
        (r#","cniVersion":"9.9.9","cniVersions":["3.0.0"]"#, "9.9.9"),
        (r#","cniVersion":"0.4.0","cniVersions":["1.0"]"#, "1.0"),
    ] {
        let seen = open(fields);
        let warning = format!("; warning: `cniVersion` {version} is not a CNI version");
        assert!(seen.contains(&warning), "{fields}: {seen}");
    }
    // The one of a plugin in the list has no effect.
    let inner =
        br#"{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"p","cniVersion":"banana"}]}"#;
    let seen = decide(&expected(None, &[]), [candidate("a.conflist", inner)]).unwrap();
    assert!(!seen.contains("warning"), "{seen}");
    // So it is in a file that is expected although the runtime picks another one.
    let first = candidate(
        "a.conflist",
        br#"{"name":"m","cniVersion":"1.0.0","plugins":[{"type":"p"}]}"#,
    );
    let second = candidate("b.conf", br#"{"name":"n","type":"p"}"#);
    let seen = decide(&expected(Some("n"), &[]), [first, second]).unwrap();
    assert!(seen.contains("warning: no `cniVersion`"), "{seen}");
    assert!(seen.contains("the runtime picks another file"), "{seen}");
}
