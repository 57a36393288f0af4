//! What is not accepted, and has secrets in it or in the wrong place.

use std::process::Command;

use crate::scene::PROGRAM;
use crate::surface::SECRET;

/// Each is refused, and the rest of the message says where and why.
#[test]
fn nothing_secret_is_told_by_a_refusal() {
    let directory = tempfile::TempDir::new().unwrap();
    let config = directory.path().join("config.yaml");
    let gate = |gate: &str| {
        format!(
            "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n- name: a\n  \
             taint: {{key: example.com/a}}\n  gates:\n  - {{name: g, {gate}}}\n"
        )
    };
    let header = |header: &str| gate(&format!("httpGet: {{port: 1, httpHeaders: {header}}}"));
    let value = |value: &str| header(&format!("[{{name: Authorization, value: {value}}}]"));
    for text in [
        value(r#""hunter2\n""#),
        value(r#""hunter2"#),
        value("[hunter2]"),
        value("{hunter2: hunter2}"),
        value("!hunter2 a"),
        value("!!int hunter2"),
        value("*hunter2 "),
        value("'hunter2'hunter2"),
        value("hunter2: hunter2"),
        header("hunter2"),
        header("[hunter2]"),
        header("['Authorization: hunter2']"),
        header("[{'Authorization: hunter2'}]"),
        header("[{name: 'Authorization: hunter2', value: a}]"),
        header("{Authorization: hunter2}"),
        gate("exec: /bin/x hunter2"),
        gate("exec: [/bin/x, hunter2]"),
        gate("exec: {command: /bin/x hunter2}"),
        gate("exec: {command: [x hunter2]}"),
        gate("exec: {command: [/x, {hunter2: hunter2}]}"),
        gate(r#"exec: {command: [/x, "hunter2\0"]}"#),
        gate("exec: {command: [/x], args: [hunter2]}"),
        gate("httpGet: 'http://user:hunter2@host/?a=hunter2'"),
        gate("httpGet: {port: 1, path: 'healthz?token=hunter2'}"),
        gate("httpGet: {port: 1, path: '/a b?token=hunter2'}"),
        gate("httpGet: {port: 1, host: 'http://user:hunter2@host'}"),
        gate("tcpSocket: 'http://user:hunter2@host'"),
        // What is no configuration at all, and was named by mistake or through a link.
        "hunter2".into(),
        "root:*:hunter2:0\ndaemon:*:hunter2:0\n".into(),
        "TOKEN=hunter2\n".into(),
        "{\"password\": \"hunter2\"}".into(),
        "- hunter2".into(),
        "PATH=/\0TOKEN=hunter2\0".into(),
    ] {
        std::fs::write(&config, &text).unwrap();
        is_refused(&["config", "validate", config.to_str().unwrap()], &text);
    }
    // A number cannot have the marker in it.
    std::fs::write(&config, value("1e99999")).unwrap();
    let message = refusal(&["config", "validate", config.to_str().unwrap()]);
    assert!(!message.contains("99999"), "{message}");

    for arguments in [
        &["wait", "--http-get", "http://user:hunter2@host/?a=hunter2"][..],
        &["wait", "--http-get", "ftp://host/?token=hunter2"],
        &["wait", "--http-get", "ftp://host/?token=a@hunter2"],
        &["wait", "http://user:hunter2@host/?a=hunter2"],
    ] {
        is_refused(arguments, "arguments");
    }
    let kubeconfig = directory.path().join("kubeconfig");
    let whole = |server: &str, user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: {server}}}}}]\nusers: {user}\n"
        )
    };
    let here = "'https://127.0.0.1:1'";
    let user = |user: &str| whole(here, &format!("[{{name: u, user: {user}}}]"));
    for text in [
        whole("'https://user:hunter2@127.0.0.1:1'", "[]"),
        whole("'https://127.0.0.1:1/?token=hunter2'", "[]"),
        whole("'ftp://user:hunter2@host'", "[]"),
        whole(here, "hunter2"),
        whole(here, "[hunter2]"),
        whole(here, "{hunter2: hunter2}"),
        user("hunter2"),
        user("{token: [hunter2]}"),
        user("{token: \"hunter2\\n\"}"),
        user("{token: \"hunter2}"),
        user("{token: *hunter2}"),
        user("{username: a, password: \"hunter2\\n\"}"),
        user("{client-certificate-data: hunter2!, client-key-data: hunter2!}"),
        user("{exec: {command: hunter2, apiVersion: v1}}"),
        "hunter2".into(),
    ] {
        std::fs::write(&kubeconfig, &text).unwrap();
        let kubeconfig = kubeconfig.to_str().unwrap();
        let arguments = [
            "run",
            "--taint",
            "example.com/a",
            "--kubeconfig",
            kubeconfig,
        ];
        is_refused(&[&arguments[..], &["--node-name", "node"]].concat(), &text);
    }
}

fn is_refused(arguments: &[&str], what: &str) {
    let message = refusal(arguments);
    assert!(!message.contains(SECRET), "{what}: {message}");
}

/// What it prints to the one and the other, which must be something.
fn refusal(arguments: &[&str]) -> String {
    let mut program = Command::new(PROGRAM);
    let output = program.args(arguments).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    let message = [output.stdout, output.stderr].concat();
    let message = String::from_utf8(message).unwrap();
    assert!(
        message.len() > 10 && !message.contains("panicked"),
        "{message}"
    );
    message
}
