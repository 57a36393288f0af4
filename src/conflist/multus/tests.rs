use serde_json::json;

use crate::config::{CniConfig, Delegate};
use crate::conflist::decide::tests::candidate;
use crate::conflist::{Candidate, decide};

fn expected(network: Option<&str>, plugins: &[&str]) -> CniConfig {
    CniConfig {
        dir: "/d".into(),
        delegate: Some(Delegate {
            network: network.map(Into::into),
            plugins: plugins.iter().map(ToString::to_string).collect(),
        }),
        ..CniConfig::default()
    }
}

/// A file of the thin plugin with these fields.
fn multus(fields: &str) -> Candidate {
    let text = format!(r#"{{"cniVersion":"0.3.1","name":"m","type":"multus",{fields}}}"#);
    candidate("00-multus.conf", text.as_bytes())
}

fn delegating(delegates: &str) -> Candidate {
    multus(&format!(r#""delegates":{delegates}"#))
}

const CILIUM: &str = r#"{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"},{"type":"portmap"}]}"#;
const OVN: &str = r#"{"cniVersion":"0.3.1","name":"kube-ovn","plugins":[{"type":"kube-ovn"}]}"#;

fn cilium() -> Candidate {
    candidate("05-cilium.conflist", CILIUM.as_bytes())
}

/// multus-cni#1306, cozystack#2315 (D15).
#[test]
fn a_multus_that_calls_another_network_does_not_open_beside_the_right_one() {
    let wrong = delegating(&format!("[{OVN},{CILIUM}]"));
    for (network, plugins, reason) in [
        (Some("cilium"), &[][..], "network kube-ovn, not cilium"),
        (
            None,
            &["cilium-cni"],
            "plugin cilium-cni is not in the chain kube-ovn",
        ),
    ] {
        assert_eq!(
            decide(&expected(network, plugins), [wrong.clone(), cilium()]),
            Err(format!(
                "/d/00-multus.conf: delegates[0] of Multus: {reason}; 05-cilium.conflist: no Multus in the chain \
                 cilium-cni, portmap, and so no delegate"
            ))
        );
    }
    let right = delegating(&format!("[{CILIUM},{OVN}]"));
    for expected in [
        expected(Some("cilium"), &[]),
        expected(None, &["portmap", "cilium-cni"]),
    ] {
        assert_eq!(
            decide(&expected, [right.clone(), cilium()]),
            Ok("/d/00-multus.conf: network m, plugins multus; delegate: network cilium, plugins cilium-cni, portmap".into())
        );
    }
    // With `first`, the runtime must pick Multus.
    let mut first = expected(Some("cilium"), &[]);
    assert!(decide(&first, [cilium(), right.clone()]).is_ok());
    first.first = true;
    assert!(decide(&first, [cilium(), right.clone()]).is_err());
    assert!(decide(&first, [right.clone(), cilium()]).is_ok());
    // The other fields are about Multus itself.
    for (network, plugin, is_open) in [
        ("m", "multus", true),
        ("cilium", "multus", false),
        ("m", "cilium-cni", false),
    ] {
        let both = CniConfig {
            network: Some(network.into()),
            plugins: vec![plugin.into()],
            ..expected(Some("cilium"), &[])
        };
        let decision = decide(&both, [right.clone()]);
        assert_eq!(decision.is_ok(), is_open, "{decision:?}");
    }
}

#[test]
fn multus_is_found_in_each_form_of_its_file() {
    let delegates = format!(r#""delegates":[{CILIUM}]"#);
    for (file, text) in [
        (
            "a.conf",
            format!(r#"{{"name":"m","type":"multus-shim",{delegates}}}"#),
        ),
        (
            "a.json",
            format!(r#"{{"name":"m","type":"multus","clusterNetwork":"",{delegates}}}"#),
        ),
        (
            "a.conf",
            format!(
                r#"{{"name":"m","type":"multus","clusterNetwork":null,"Delegates":[{CILIUM}]}}"#
            ),
        ),
        (
            "a.conflist",
            format!(
                r#"{{"name":"m","plugins":[{{"type":"tuning"}},{{"type":"multus",{delegates}}},{{"type":"istio-cni"}}]}}"#
            ),
        ),
    ] {
        let found = decide(
            &expected(Some("cilium"), &[]),
            [candidate(file, text.as_bytes())],
        );
        assert!(found.is_ok(), "{text}: {found:?}");
    }
    // A plugin with something else of a similar name.
    let flannel = br#"{"name":"cbr0","plugins":[{"type":"flannel","delegate":{"name":"cilium"},"delegates":[]}]}"#;
    let reason = decide(
        &expected(Some("cilium"), &[]),
        [candidate("a.conflist", flannel)],
    );
    assert_eq!(
        reason,
        Err("/d/a.conflist: no Multus in the chain flannel, and so no delegate".into())
    );
}

#[test]
fn a_delegate_is_one_plugin_or_a_list_as_multus_reads_it() {
    for (delegate, wanted, plugins) in [
        (r#"{"name":"a","type":"p"}"#, "a", "p"),
        // With a type, it is one plugin, whatever else it has.
        (
            r#"{"name":"a","type":"p","plugins":[{"type":"q"}]}"#,
            "a",
            "p",
        ),
        (
            r#"{"name":"a","type":"","plugins":[{"type":"q"}]}"#,
            "a",
            "q",
        ),
        (
            r#"{"name":"a","plugins":[{"type":"q"},{"type":"r"}],"disableCheck":true}"#,
            "a",
            "q, r",
        ),
    ] {
        let found = decide(
            &expected(Some(wanted), &[]),
            [delegating(&format!("[{delegate}]"))],
        );
        let found = found.unwrap();
        let described = format!("delegate: network {wanted}, plugins {plugins}");
        assert!(found.contains(&described), "{found}");
    }
    // Multus calls all of them for each pod, so that one which cannot be called fails the pod.
    for (fields, reason) in [
        (
            r#""delegates":[{"type":"p"}]"#,
            "delegates[0] of Multus: no `name`",
        ),
        (
            r#""delegates":[{"name":"a b","type":"p"}]"#,
            "delegates[0] of Multus: the network name \"a b\" has characters",
        ),
        (
            r#""delegates":[{"name":"a"}]"#,
            "delegates[0] of Multus: neither `type` nor `plugins`",
        ),
        (
            r#""delegates":[{"name":"a","plugins":[]}]"#,
            "delegates[0] of Multus: `plugins` is empty",
        ),
        (
            r#""delegates":[{"plugins":[{"type":"p"}]}]"#,
            "delegates[0] of Multus: no `name`",
        ),
        (
            r#""delegates":[{"name":"a","plugins":[{}]}]"#,
            "plugin 0: no `type`",
        ),
        (
            r#""delegates":[{"name":"a","plugins":[{"type":"p"}],"disableCheck":"true"}]"#,
            "delegates[0] of Multus: `disableCheck` must be true or false",
        ),
        (
            r#""delegates":[{"name":"a","type":"p","cniVersion":"banana"}]"#,
            "delegates[0] of Multus: `cniVersion` has \"banana\"",
        ),
        (
            r#""delegates":[{"name":"a","type":"p"},{"name":"b"}]"#,
            "delegates[1] of Multus: neither `type` nor `plugins`",
        ),
        (
            r#""delegates":["a"]"#,
            "Multus: `delegates` must be an object",
        ),
        (
            r#""delegates":{"name":"a"}"#,
            "Multus: `delegates` must be a list",
        ),
        (
            r#""delegates":[{"name":"a","type":"p"}],"kubeconfig":1"#,
            "Multus: `kubeconfig` must be a string",
        ),
        (r#""delegates":[null]"#, "delegates[0] of Multus: "),
        (
            r#""delegates":[]"#,
            "Multus has neither `delegates` nor `clusterNetwork`",
        ),
        (
            r#""logLevel":"debug""#,
            "Multus has neither `delegates` nor `clusterNetwork`",
        ),
    ] {
        let reason_found = decide(&expected(Some("a"), &[]), [multus(fields)]).unwrap_err();
        assert!(reason_found.contains(reason), "{fields}: {reason_found}");
        // The runtime itself accepts the file.
        let any = CniConfig {
            network: Some("m".into()),
            ..CniConfig::default()
        };
        assert!(decide(&any, [multus(fields)]).is_ok(), "{fields}");
    }
}

#[test]
fn where_the_file_does_not_tell_the_network_the_reason_has_the_remedy() {
    let path = "/host/etc/cni/net.d/05-cilium.conflist";
    for (fields, reason) in [
        (json!({"type": "multus-shim", "clusterNetwork": path}), path),
        // It has priority.
        (
            json!({"type": "multus", "clusterNetwork": "cilium", "delegates": [{"name": "cilium", "type": "p"}]}),
            "from `clusterNetwork`, cilium, so this file cannot tell",
        ),
        (json!({"type": "multus-shim"}), "has no `delegates` here"),
        (
            json!({"type": "multus-shim", "delegates": []}),
            "has no `delegates` here",
        ),
    ] {
        let mut file = fields.clone();
        file["name"] = json!("m");
        let file = candidate("00-multus.conf", file.to_string().as_bytes());
        let found = decide(&expected(Some("cilium"), &[]), [file, cilium()]).unwrap_err();
        assert!(found.contains(reason), "{found}");
        assert!(found.contains("set `overrideNetworkName`"), "{found}");
    }
    // The remedy: the file has the name of the network that Multus calls.
    let text =
        r#"{"cniVersion":"0.3.1","name":"cilium","type":"multus-shim","clusterNetwork":"/x"}"#;
    let remedy = CniConfig {
        network: Some("cilium".into()),
        first: true,
        ..CniConfig::default()
    };
    assert!(
        decide(
            &remedy,
            [candidate("00-multus.conf", text.as_bytes()), cilium()]
        )
        .is_ok()
    );
}

#[test]
fn a_default_of_a_runtime_is_no_delegate_that_somebody_expects_and_versions_are_warned_of() {
    let podman = r#"{"cniVersion":"0.4.0","name":"podman","plugins":[{"type":"bridge"}]}"#;
    let file = delegating(&format!("[{podman}]"));
    let reason = decide(&expected(None, &["bridge"]), [file.clone()]).unwrap_err();
    assert!(
        reason.contains("delegates[0] of Multus: network podman is the default of Podman"),
        "{reason}"
    );
    assert!(decide(&expected(Some("podman"), &[]), [file]).is_ok());

    let file =
        delegating(r#"[{"name":"a","type":"p"},{"name":"b","type":"p","cniVersion":"1.2.0"}]"#);
    let seen = decide(&expected(Some("a"), &[]), [file.clone()]).unwrap();
    assert!(
        seen.contains("; warning: delegates[0] of Multus: no `cniVersion`, which means 0.1.0"),
        "{seen}"
    );
    assert!(
        seen.contains("; warning: delegates[1] of Multus: `cniVersion` 1.2.0"),
        "{seen}"
    );
    // Not of interest to a gate that does not ask for a delegate.
    let any = CniConfig {
        network: Some("m".into()),
        ..CniConfig::default()
    };
    assert!(!decide(&any, [file]).unwrap().contains("warning"));
}
