use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::*;
use crate::config::CniConfig;

/// What each product's directory amounts to: the file that the runtime picks, its network, its plugins.
const PRODUCTS: [(&str, &str, &str, &[&str]); 11] = [
    (
        "antrea",
        "10-antrea.conflist",
        "antrea",
        &["antrea", "portmap", "bandwidth"],
    ),
    (
        "aws-vpc-cni",
        "10-aws.conflist",
        "aws-cni",
        &["aws-cni", "egress-cni", "portmap"],
    ),
    (
        "azure",
        "10-azure.conflist",
        "azure",
        &["azure-vnet", "portmap"],
    ),
    (
        "calico",
        "10-calico.conflist",
        "k8s-pod-network",
        &["calico", "portmap", "bandwidth"],
    ),
    ("cilium", "05-cilium.conflist", "cilium", &["cilium-cni"]),
    (
        "flannel",
        "10-flannel.conflist",
        "cbr0",
        &["flannel", "portmap"],
    ),
    (
        "istio-chained",
        "05-cilium.conflist",
        "cilium",
        &["cilium-cni", "istio-cni"],
    ),
    (
        "kube-router",
        "10-kuberouter.conflist",
        "mynet",
        &["bridge", "portmap"],
    ),
    (
        "linkerd-chained",
        "10-ovn-kubernetes.conflist",
        "ovn-kubernetes",
        &["ovn-k8s-cni-overlay", "linkerd-cni"],
    ),
    (
        "multus",
        "00-multus.conf",
        "multus-cni-network",
        &["multus-shim"],
    ),
    (
        "ovn-kubernetes",
        "10-ovn-kubernetes.conf",
        "ovn-kubernetes",
        &["ovn-k8s-cni-overlay"],
    ),
];

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cni")
}

/// Every valid file of every product: its name, its contents.
fn valid_files() -> Vec<(OsString, Vec<u8>)> {
    PRODUCTS
        .iter()
        .map(|(product, file, ..)| {
            let path = fixtures().join(product).join(file);
            (OsString::from(file), fs::read(path).unwrap())
        })
        .collect()
}

fn boot() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000)
}

fn candidate(file: &str, contents: &[u8]) -> Candidate {
    Candidate {
        file: file.into(),
        content: Network::parse(OsStr::new(file), contents).map(|network| Found {
            network,
            modified: boot(),
            program_fault: None,
        }),
    }
}

fn list(file: &str, network: &str, plugins: &[&str]) -> Candidate {
    let plugins: Vec<_> = plugins
        .iter()
        .map(|kind| serde_json::json!({ "type": kind }))
        .collect();
    let contents = serde_json::json!({ "name": network, "plugins": plugins });
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
fn every_products_directory_is_understood() {
    let mut present: Vec<_> = fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    present.sort_unstable();
    assert_eq!(present, PRODUCTS.map(|(product, ..)| product));

    for (product, file, network, plugins) in PRODUCTS {
        let dir = fixtures().join(product);
        let names = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| !entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name());
        let read = |file: OsString| {
            let contents = fs::read(dir.join(&file)).unwrap();
            candidate(file.to_str().unwrap(), &contents)
        };
        let seen = decide(
            &CniConfig {
                dir: "/d".into(),
                first: true,
                ..expected(Some(network), plugins)
            },
            None,
            candidates(names).into_iter().map(read),
        );
        let wanted = format!(
            "/d/{file}: network {network}, plugins {}",
            plugins.join(", ")
        );
        assert_eq!(seen, Ok(wanted), "{product}");
    }
}

#[test]
fn every_truncation_of_every_valid_file_is_closed() {
    for (file, contents) in valid_files() {
        let contents = contents.trim_ascii();
        assert!(Network::parse(&file, contents).is_ok());
        for length in 0..contents.len() {
            let parsed = Network::parse(&file, &contents[..length]);
            assert!(parsed.is_err(), "{file:?} cut at {length}: {parsed:?}");
        }
    }
}

/// A linear congruential generator: the same bytes in each run.
fn noise(mut state: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some(state.to_be_bytes()[0])
    })
}

#[test]
fn arbitrary_bytes_never_panic_and_never_open() {
    for seed in 0..5_000 {
        let mut bytes = noise(seed);
        let length = usize::from(bytes.next().unwrap());
        let contents: Vec<u8> = bytes.by_ref().take(length).collect();
        // Only characters that JSON is made of get beyond the first byte.
        let alphabet = b"{}[]:,\"\\ntrue0.-e name plugins type";
        let almost: Vec<u8> = bytes
            .take(length)
            .map(|byte| alphabet[usize::from(byte) % alphabet.len()])
            .collect();
        for contents in [contents, almost] {
            for file in ["x.conf", "x.conflist"] {
                assert!(Network::parse(OsStr::new(file), &contents).is_err());
            }
            assert!(plugin_type(&contents).is_err());
        }
    }
}

#[test]
fn damaged_files_never_panic() {
    for (file, contents) in valid_files() {
        for seed in 0..500 {
            let mut damaged = contents.clone();
            let mut bytes = noise(seed);
            for _ in 0..3 {
                let place: usize = bytes
                    .by_ref()
                    .take(2)
                    .fold(0, |n, b| n << 8 | usize::from(b));
                let length = damaged.len();
                damaged[place % length] = bytes.next().unwrap();
            }
            _ = Network::parse(&file, &damaged);
        }
    }
}

#[test]
fn only_three_extensions_count_and_the_order_is_that_of_bytes() {
    let names = [
        "b.json",
        "a.conflist",
        "Z.conf",
        "10.conf",
        "9.conf",
        ".conf",
        "é.conf",
        "conf",
        "a.conf.bak",
        "05-cilium.conflist.cilium_bak",
        "a.CONF",
        "kubeconfig",
        "a.conf~",
    ];
    assert_eq!(
        candidates(names.map(OsString::from)),
        [
            ".conf",
            "10.conf",
            "9.conf",
            "Z.conf",
            "a.conflist",
            "b.json",
            "é.conf"
        ]
    );
}

#[test]
fn what_libcni_accepts_as_a_list_is_valid() {
    const P: &str = r#""plugins":[{"type":"p"}]"#;
    let valid = [
        format!(r#"{{"name":"n",{P}}}"#),
        format!(" \t\r\n{{\"name\":\"n\",{P}}} \n"),
        format!(r#"{{"name":"0a_b.c-D","cniVersion":"not parsed",{P}}}"#),
        format!(r#"{{"name":"n","cniVersion":"1","cniVersions":["0.4.0","1.0","","+9.9.9"],{P}}}"#),
        format!(r#"{{"name":"n","disableCheck":true,"disableGC":"FALSE","loadOnlyInlinedPlugins":"True",{P}}}"#),
        // The last one counts; keys of the list itself match exactly.
        format!(r#"{{"name":1,"plugins":{{}},"name":"n","Name":2,{P}}}"#),
        r#"{"name":"n","plugins":[{"TYPE":"p"}]}"#.into(),
        r#"{"name":"n","plugins":[{"type":"p","ipam":{"type":"t","x":[]},"dns":{"search":[null]},"capabilities":null}]}"#.into(),
        r#"{"name":"n","plugins":[{"type":"p","prevResult":{"a":1},"capabilities":{"a":true},"x":1}]}"#.into(),
    ];
    for contents in valid {
        let parsed = Network::parse(OsStr::new("x.conflist"), contents.as_bytes());
        assert_eq!(
            parsed.as_ref().map(|n| n.plugins.clone()),
            Ok(vec!["p".into()]),
            "{contents}"
        );
    }
}

/// Beyond libcni: the name rule, one spelling of a key.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_libcni_refuses_as_a_list_is_closed_with_the_fault() {
    let invalid = [
        (r"", "the file is empty"),
        ("\n", "the file is empty"),
        (r"[]", "must be a JSON object"),
        (r"null", "must be a JSON object"),
        (r"{}", "no `name`"),
        (r#"{"Name":"n","plugins":[{"type":"p"}]}"#, "no `name`"),
        (
            r#"{"name":null,"plugins":[{"type":"p"}]}"#,
            "`name` must be a string",
        ),
        (
            r#"{"name":"","plugins":[{"type":"p"}]}"#,
            r#"the network name "" has"#,
        ),
        (
            r#"{"name":"../n","plugins":[{"type":"p"}]}"#,
            r#"the network name "../n" has"#,
        ),
        (
            r#"{"name":"n/m","plugins":[{"type":"p"}]}"#,
            r#"the network name "n/m" has"#,
        ),
        (
            r#"{"name":"n\n","plugins":[{"type":"p"}]}"#,
            r#"the network name "n\n" has"#,
        ),
        (
            r#"{"name":"n","cniVersion":1,"plugins":[{"type":"p"}]}"#,
            "`cniVersion` must be a string",
        ),
        (
            r#"{"name":"n","cniVersion":null,"plugins":[{"type":"p"}]}"#,
            "`cniVersion` must be a string",
        ),
        (
            r#"{"name":"n","cniVersions":"1.0.0","plugins":[{"type":"p"}]}"#,
            "`cniVersions` must be a list",
        ),
        (
            r#"{"name":"n","cniVersions":[1],"plugins":[{"type":"p"}]}"#,
            "`cniVersions` must have strings",
        ),
        (
            r#"{"name":"n","cniVersions":["1.0.0.0"],"plugins":[{"type":"p"}]}"#,
            r#"has "1.0.0.0""#,
        ),
        (
            r#"{"name":"n","cniVersions":["v1"],"plugins":[{"type":"p"}]}"#,
            r#"has "v1""#,
        ),
        (
            r#"{"name":"n","cniVersion":"x","cniVersions":[],"plugins":[{"type":"p"}]}"#,
            r#"`cniVersion` has "x""#,
        ),
        (
            r#"{"name":"n","disableCheck":1,"plugins":[{"type":"p"}]}"#,
            "`disableCheck` must be",
        ),
        (
            r#"{"name":"n","disableGC":"yes","plugins":[{"type":"p"}]}"#,
            "`disableGC` must be",
        ),
        (
            r#"{"name":"n","loadOnlyInlinedPlugins":null,"plugins":[{"type":"p"}]}"#,
            "`loadOnlyInlinedPlugins` must be",
        ),
        (
            r#"{"name":"n","loadOnlyInlinedPlugins":true}"#,
            "no `plugins`",
        ),
        (r#"{"name":"n","plugins":null}"#, "`plugins` must be a list"),
        (
            r#"{"name":"n","plugins":{"type":"p"}}"#,
            "`plugins` must be a list",
        ),
        (r#"{"name":"n","plugins":[]}"#, "`plugins` is empty"),
        (
            r#"{"name":"n","plugins":[{"type":"p"},null]}"#,
            "plugin 1: no `type`",
        ),
        (
            r#"{"name":"n","plugins":["p"]}"#,
            "plugin 0: must be an object",
        ),
        (
            r#"{"name":"n","plugins":[{"type":""}]}"#,
            "plugin 0: no `type`",
        ),
        (
            r#"{"name":"n","plugins":[{"type":7}]}"#,
            "plugin 0: `type` must be a string",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","Type":"q"}]}"#,
            "two spellings",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","ipam":[]}]}"#,
            "plugin 0: `ipam` must be an object",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","ipam":{"type":1}}]}"#,
            "`ipam` `type` must be a string",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","dns":{"search":"a"}}]}"#,
            "`dns` `search` must be a list",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","capabilities":{"a":1}}]}"#,
            "`capabilities` must be true or false",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","prevResult":[]}]}"#,
            "`prevResult` must be an object",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p"}]}{}"#,
            "not valid JSON",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p"}],"x":1e999}"#,
            "not valid JSON",
        ),
        (
            "\u{feff}{\"name\":\"n\",\"plugins\":[{\"type\":\"p\"}]}",
            "not valid JSON",
        ),
    ];
    for (contents, fault) in invalid {
        let parsed = Network::parse(OsStr::new("x.conflist"), contents.as_bytes());
        let reason = parsed.expect_err(contents);
        assert!(reason.contains(fault), "{contents}: {reason}");
    }
}

#[test]
fn plugins_may_come_from_the_networks_directory_unless_only_inlined_ones_load() {
    let parse = |contents: &str| Network::parse(OsStr::new("x.conflist"), contents.as_bytes());
    let network = parse(r#"{"name":"n"}"#).unwrap();
    assert!(network.appends_directory && network.plugins.is_empty());
    let network = parse(r#"{"name":"n","plugins":[{"type":"p"}]}"#).unwrap();
    assert!(network.appends_directory);
    let inlined = r#"{"name":"n","loadOnlyInlinedPlugins":true,"plugins":[{"type":"p"}]}"#;
    assert!(!parse(inlined).unwrap().appends_directory);
}

#[test]
fn a_single_plugin_needs_a_type_and_a_name_and_is_no_list() {
    for file in ["x.conf", "x.json"] {
        let parse = |contents: &str| Network::parse(OsStr::new(file), contents.as_bytes());
        let network = parse(r#"{"Name":"n","type":"p","cniVersions":1}"#).unwrap();
        assert_eq!(
            (network.name.as_str(), network.plugins),
            ("n", vec!["p".into()])
        );
        assert!(!network.appends_directory);
        for (contents, fault) in [
            (
                r#"{"name":"n","plugins":[{"type":"p"}]}"#,
                "must be in a *.conflist file",
            ),
            (r#"{"type":"p"}"#, "no `name`"),
            (r#"{"name":"n"}"#, "no `type`"),
            (r#"{"name":1,"type":"p"}"#, "`name` must be a string"),
            (
                r#"{"name":"n","type":"p","cniVersion":1}"#,
                "`cniVersion` must be a string",
            ),
            ("null", "no `type`"),
            ("[]", "must be an object"),
        ] {
            let reason = parse(contents).expect_err(contents);
            assert!(reason.contains(fault), "{contents}: {reason}");
        }
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
        decide(&any, None, both),
        Ok("/etc/cni/net.d/10-a.conflist: network a, plugins p".into())
    );
    assert_eq!(
        decide(&any, None, []),
        Err("no *.conf, *.conflist or *.json file in /etc/cni/net.d".into())
    );
}

#[test]
fn an_invalid_first_file_closes_whatever_else_is_there() {
    let good = list("10-cilium.conflist", "cilium", &["cilium-cni"]);
    for expected in [expected(None, &[]), expected(Some("cilium"), &[])] {
        let bad = candidate("05-bad.conflist", b"{");
        let reason = decide(&expected, None, [bad, good.clone()]).unwrap_err();
        assert!(
            reason.starts_with("/etc/cni/net.d/05-bad.conflist: not valid JSON: EOF"),
            "{reason}"
        );
        assert!(reason.contains("containerd picks this file"), "{reason}");
    }
    // A later one only matters if it is the expected one.
    let bad = candidate("20-bad.conflist", b"{");
    assert!(decide(&expected(None, &[]), None, [good.clone(), bad.clone()]).is_ok());
    let reason = decide(&expected(Some("x"), &[]), None, [good, bad]).unwrap_err();
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
        decide(&wanted, None, [ovn.clone()]),
        Err("/etc/cni/net.d/10-kube-ovn.conflist: network kube-ovn, not cilium".into())
    );
    let cilium = list("05-cilium.conflist", "cilium", &["cilium-cni"]);
    assert_eq!(
        decide(&wanted, None, [cilium, ovn]),
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
    let reason = decide(&wanted, None, [alone.clone(), unchained]).unwrap_err();
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
    let seen = decide(&wanted, None, [alone, chained]).unwrap();
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
        let seen = decide(&expected(None, &[]), None, [default.clone()]).unwrap();
        assert!(seen.contains("; warning: this is"), "{seen}");
        let plugin = default.content.clone().unwrap().network.plugins[0].clone();
        let reason = decide(&expected(None, &[&plugin]), None, [default.clone()]).unwrap_err();
        assert!(
            reason.contains("default of") || reason.contains("loopback only"),
            "{reason}"
        );
        // Who names it means it.
        let name = default.content.clone().unwrap().network.name;
        let seen = decide(&expected(Some(&name), &[]), None, [default]).unwrap();
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
        decide(&wanted, None, [old.clone(), new.clone()]),
        Ok("/etc/cni/net.d/20-calico.conflist: network new, plugins calico; the runtime picks another file: \
            /etc/cni/net.d/10-calico.conf.conflist: network old, plugins calico"
            .into())
    );
    wanted.first = true;
    assert_eq!(
        decide(&wanted, None, [old, new.clone()]),
        Err("/etc/cni/net.d/10-calico.conf.conflist: network old, not new".into())
    );
    assert!(decide(&wanted, None, [new]).is_ok());
}

/// kubernetes#138633 (A10).
#[test]
fn a_file_from_before_this_boot_is_stale() {
    let file = list("05-cilium.conflist", "cilium", &["cilium-cni"]);
    assert!(decide(&expected(None, &[]), Some(boot()), [file.clone()]).is_ok());
    let later = boot() + Duration::from_nanos(1);
    assert_eq!(
        decide(&expected(None, &[]), Some(later), [file]),
        Err("/etc/cni/net.d/05-cilium.conflist: last written before this boot".into())
    );
}

#[test]
fn a_missing_program_closes_and_is_named() {
    let mut file = list("05-cilium.conflist", "cilium", &["cilium-cni"]);
    if let Ok(found) = &mut file.content {
        found.program_fault = Some("plugin cilium-cni: no program".into());
    }
    let reason = decide(&expected(Some("cilium"), &[]), None, [file]).unwrap_err();
    assert_eq!(
        reason,
        "/etc/cni/net.d/05-cilium.conflist: plugin cilium-cni: no program"
    );
}

#[test]
fn files_are_read_only_as_far_as_needed_and_reasons_are_counted_beyond_a_few() {
    let mut read = 0;
    let many = (10..60).map(|number| {
        read += 1;
        list(&format!("{number}.conflist"), &format!("n{number}"), &["p"])
    });
    assert!(decide(&expected(Some("n11"), &[]), None, many).is_ok());
    assert_eq!(read, 2);
    let many = (10..60).map(|number| list(&format!("{number}.conflist"), "n", &["p"]));
    let reason = decide(&expected(Some("x"), &[]), None, many).unwrap_err();
    assert!(
        reason.ends_with("13.conflist: network n, not x; and 46 more files"),
        "{reason}"
    );
}
