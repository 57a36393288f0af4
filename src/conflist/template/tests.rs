use std::ffi::OsStr;

use crate::conflist::Network;

#[test]
fn a_template_that_nothing_has_filled_in_is_closed_and_named() {
    for (value, placeholder) in [
        (r#""__KUBECONFIG_FILEPATH__""#, "__KUBECONFIG_FILEPATH__"),
        (r#""/etc/__NODE_NAME__/x""#, "__NODE_NAME__"),
        (r#""${KUBECONFIG}""#, "${KUBECONFIG}"),
        (r#""a${MTU:-1500}b""#, "${MTU:-1500}"),
        (r#""{{.PodCIDR}}""#, "{{.PodCIDR}}"),
        (
            r#""{{ index .PodCIDRRanges 0 }}""#,
            "{{ index .PodCIDRRanges 0 }}",
        ),
        (r#""{% if x %}""#, "{% if x %}"),
        (r#""<no value>""#, "<no value>"),
        (r#"[{"a":["__X1__"]}]"#, "__X1__"),
        (r#"{"${KEY}":1}"#, "${KEY}"),
        // Not JSON either, as they stand.
        ("__CNI_MTU__", "__CNI_MTU__"),
        ("{{ .MTU }}", "{{ .MTU }}"),
        ("${MTU}", "${MTU}"),
    ] {
        for (file, contents) in [
            (
                "x.conflist",
                format!(r#"{{"name":"n","plugins":[{{"type":"p","field":{value}}}]}}"#),
            ),
            (
                "x.conflist",
                format!(r#"{{"name":"n","field":{value},"plugins":[{{"type":"p"}}]}}"#),
            ),
            (
                "x.conf",
                format!(r#"{{"name":"n","type":"p","field":{value}}}"#),
            ),
        ] {
            let parsed = Network::parse(OsStr::new(file), contents.as_bytes());
            let reason = parsed.expect_err(&contents);
            assert!(
                reason.contains(&format!("\"{placeholder}\"")),
                "{contents}: {reason}"
            );
            assert!(reason.contains("template"), "{contents}: {reason}");
        }
        let contents = format!(r#"{{"type":"p","field":{value}}}"#);
        let list = Network::parse(OsStr::new("x.conflist"), br#"{"name":"n"}"#);
        let reason = list.unwrap().append(contents.as_bytes());
        let reason = reason.expect_err(&contents);
        assert!(reason.contains("template"), "{contents}: {reason}");
    }
}

#[test]
fn what_only_resembles_a_template_is_no_reason() {
    let is_ok = |key: &str, value: &str| {
        let contents = serde_json::json!({"name": "n", "type": "p", key: value}).to_string();
        let parsed = Network::parse(OsStr::new("x.conf"), contents.as_bytes());
        assert!(parsed.is_ok(), "{contents}: {parsed:?}");
    };
    for text in [
        "__",
        "____",
        "a__b",
        "my__network__1",
        "__init__",
        "A__B",
        "__A",
        "X__A__Y",
        "__1__",
        "$HOME",
        "$",
        "${}",
        "${",
        "${A",
        "cost ${ 5 }",
        "${1}",
        "^a{2}$",
        "{{",
        "}}",
        "}} {{",
        r#"{"a":{"b":{}}}"#,
        "{}",
        "100%",
        "%}",
        "<none>",
        "<no value",
        "net.ipv4.conf.IFNAME.arp_filter",
        "/etc/cni/net.d/ZZZ-istio-cni-kubeconfig",
    ] {
        is_ok("field", text);
        is_ok(text, "value");
    }
    let template = "rendered from {{ .Config }} for ${NODE} by __SCRIPT__";
    for key in [
        "_comment",
        "//",
        "#",
        "comment",
        "_",
        "description",
        "policy",
    ] {
        is_ok(key, template);
    }
}
