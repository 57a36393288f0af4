use super::*;

/// For the parser and for the schema.
fn table(syntax: &Syntax, valid: &[&str], invalid: &[&str]) {
    let schema = jsonschema::validator_for(syntax.schema().as_value()).unwrap();
    let accepts = |text: &str| schema.is_valid(&text.into());
    for text in valid {
        assert_eq!(syntax.check(text), Ok(()));
        assert!(accepts(text), "the schema refuses {text:?}");
    }
    for text in invalid {
        assert!(syntax.check(text).is_err(), "{text:?} was accepted");
        assert!(!accepts(text), "the schema accepts {text:?}");
    }
}

#[test]
fn names_are_checked_as_the_api_server_does() {
    let (most, more) = ("a".repeat(63), "a".repeat(64));
    table(
        &DNS_LABEL,
        &["a", "a-1", "1", &most],
        &["", "A", "-a", "a-", "a.b", "a_b", "ä", &more],
    );
    table(
        &LABEL_VALUE,
        &["", "a", "A_b.c-1", &most],
        &["-a", "a-", "a b", "a/b", "ä", &more],
    );
    table(
        &CSI_DRIVER_NAME,
        &["a", "ebs.csi.aws.com", "Disk.CSI.azure.com", &most],
        &["", "a/b", "a_b", "-a", "a..b", "ä", &more],
    );
    table(
        &QUALIFIED_NAME,
        &[
            "a",
            "A_b",
            "startup-taint.cluster-autoscaler.kubernetes.io/x",
            &format!("{}/{most}", "a".repeat(64)),
        ],
        &[
            "", "/", "a/", "/a", "a/b/c", "A.io/x", "a..b/x", "x=y", &more,
        ],
    );
    // A pattern cannot count that far.
    let domain = format!("{}.io/x", "a".repeat(251));
    assert!(QUALIFIED_NAME.check(&domain).is_err());
    table(
        &DNS_SUBDOMAIN,
        &["a", "node-1.example.com", &"a".repeat(253)],
        &["", "A", "a..b", "-a", "a/b", &"a".repeat(254)],
    );
}

#[test]
fn paths_and_hosts_are_checked_as_the_kernel_and_the_resolver_take_them() {
    let socket = format!("/{}", "s".repeat(107));
    table(
        &ABSOLUTE_PATH,
        &["/", "/a b", &socket],
        &["", "a", "./a", "/a\0"],
    );
    table(
        &SOCKET_PATH,
        &["/run/x.sock", &socket[1..].replacen('s', "/", 1)],
        &["x", &socket],
    );
    table(
        &HOST,
        &["localhost", "127.0.0.1", "::1", "a_b.example.com"],
        &["", "[::1]", "a:80", "a b", "http://a", "fe80::1%eth0"],
    );
    table(&PLUGIN_TYPE, &["cilium-cni"], &["", "bin/x", "a\0"]);
    table(&ARGUMENT, &["", "-c", "a\nb"], &["a\0"]);
    table(&SEARCHED_TEXT, &["\n", "a"], &[""]);
    table(
        &NETWORK_NAME,
        &["cilium", "k8s-pod_network.1"],
        &["", "-a", "a b", "a/b"],
    );
}

#[test]
fn requests_are_checked_as_http_writes_them() {
    table(
        &REQUEST_PATH,
        &["/", "/healthz?full=1&x=%20", "/v1/a:b"],
        &[
            "",
            "healthz",
            "/a b",
            "/a#b",
            "/ä",
            "/\r\n",
            "*",
            "http://a/",
        ],
    );
    table(&HEADER_NAME, &["Host", "x-1"], &["", "a b", "a:", "ä"]);
    table(&HEADER_VALUE, &["", "a b", "é"], &["a\r\nb", "a\0"]);
    table(
        &JSON_POINTER,
        &["", "/", "/a/0", "/a~0b~1c"],
        &["a", "/~", "/~2", "#/a"],
    );
}

#[test]
fn a_long_text_is_cut_in_a_message() {
    let message = DNS_LABEL.check(&"é".repeat(1_000_000)).unwrap_err();
    assert!(message.chars().count() < 250, "{message}");
}
