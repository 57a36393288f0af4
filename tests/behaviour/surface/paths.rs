//! A path can lead to any kind of file. The program reads it in bounded time and memory, and never shows its content.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use testkit::agent::write_configuration;
use tokio::process::Command;
use tokio::time::timeout;

use super::{LISTEN, SECRET};
use crate::scene::{Gates, OnStandIn, PROGRAM, TAINT};

/// The limit of the address space, in KiB. A program that reads an endless file exceeds it.
const LIMITED: &str = "ulimit -v 2000000; exec \"$0\" \"$@\"";

/// Links to unusual files.
fn hostile_links(dir: &Path) -> Vec<PathBuf> {
    let at = |name: &str| dir.join(name);
    testkit::make_pipe(&at("a-pipe"));
    std::fs::create_dir(at("a-directory")).unwrap();
    let huge = std::fs::File::create(at("a-huge-file")).unwrap();
    huge.set_len(1 << 40).unwrap();
    std::fs::write(at("a-secret"), SECRET).unwrap();
    drop(UnixListener::bind(at("a-dead-socket")).unwrap());
    let targets = [
        "/dev/zero",
        "/dev/tty",
        "/proc/self/environ",
        "/proc/self/mem",
        "/proc/kmsg",
        "a-pipe",
        "a-directory",
        "a-huge-file",
        "a-secret",
        "a-dead-socket",
        "a-loop",
        "nothing",
    ];
    symlink("a-loop", at("a-loop")).unwrap();
    let link = |(index, target): (usize, &&str)| {
        let link = at(&format!("link-{index}"));
        symlink(target, &link).unwrap();
        link
    };
    targets.iter().enumerate().map(link).collect()
}

/// Fails unless the program ends soon with one of these codes and prints nothing of the file.
async fn harmless(arguments: &[&str], codes: &[i32]) -> String {
    let run = Command::new("/bin/sh")
        .args(["-c", LIMITED, PROGRAM])
        .args(arguments)
        .env_clear()
        // This is also in /proc/self/environ.
        .env("TOKEN", SECRET)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(Duration::from_secs(20), run).await;
    let Output {
        status,
        stdout,
        stderr,
    } = output.unwrap().unwrap();
    let output = String::from_utf8([stdout, stderr].concat()).unwrap();
    assert!(
        codes.contains(&status.code().unwrap_or(-1)),
        "{arguments:?}: {status}: {output}"
    );
    assert!(
        !output.contains(SECRET) && !output.contains("panicked"),
        "{arguments:?}: {output}"
    );
    for sign in ["takes too long", "memory", "mmap"] {
        assert!(!output.contains(sign), "{arguments:?}: {output}");
    }
    assert!(
        output.len() < 10_000,
        "{arguments:?}: {} bytes",
        output.len()
    );
    output
}

#[tokio::test]
async fn a_configuration_or_a_kubeconfig_and_its_files_may_lead_anywhere() {
    let dir = TempDir::new().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let run = [
        "run",
        "--taint",
        "example.com/a",
        "--node-name",
        "a",
        "--kubeconfig",
    ];
    for link in hostile_links(dir.path()) {
        let link = link.to_str().unwrap();
        harmless(&["config", "validate", link], &[2]).await;
        harmless(&["check", "--config", link], &[2]).await;
        harmless(&[&run[..], &[link]].concat(), &[2]).await;
        for (cluster, user) in [
            (format!("certificate-authority: {link}"), String::new()),
            (
                String::new(),
                format!("client-certificate: {link}, client-key: {link}"),
            ),
            (String::new(), format!("tokenFile: {link}")),
        ] {
            let text = format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                 contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
                 clusters: [{{name: k, cluster: {{server: 'https://127.0.0.1:1', {cluster}}}}}]\n\
                 users: [{{name: u, user: {{{user}}}}}]\n"
            );
            std::fs::write(kubeconfig, text).unwrap();
            // Only the server can see that a text is not a token.
            let once = ["--once", "--timeout", "100ms"];
            harmless(&[&run[..], &[kubeconfig], &once].concat(), &[2, 3]).await;
        }
    }
}

#[tokio::test]
async fn what_gates_look_at_may_lead_anywhere() {
    let dir = TempDir::new().unwrap();
    let links = hostile_links(dir.path());
    let mut gates = Vec::new();
    for (index, link) in links.iter().enumerate() {
        let net_d = dir.path().join(format!("net-{index}.d"));
        std::fs::create_dir_all(net_d.join("demo")).unwrap();
        symlink(link, net_d.join("10-demo.conflist")).unwrap();
        // The plugins in the directory with the network's name are read too.
        let appended = dir.path().join(format!("appended-{index}.d"));
        std::fs::create_dir_all(appended.join("demo")).unwrap();
        std::fs::write(appended.join("10-demo.conflist"), r#"{"name": "demo"}"#).unwrap();
        symlink(link, appended.join("demo/10.conf")).unwrap();
        let [link, net_d, appended] = [link, &net_d, &appended].map(|path| path.display());
        gates.extend([
            format!("net-{index}, cniConfig: {{dir: {net_d}}}"),
            format!("appended-{index}, cniConfig: {{dir: {appended}}}"),
            format!("dir-{index}, cniConfig: {{dir: {link}, binDirs: [{link}]}}"),
            format!("file-{index}, file: {{path: {link}, newerThanBoot: true}}"),
            // The text is that of one of the files.
            format!("content-{index}, file: {{path: {link}, minBytes: 1, contains: {SECRET}}}"),
            format!("tcp-{index}, tcpSocket: {{unixSocket: {link}}}"),
            format!("http-{index}, httpGet: {{unixSocket: {link}}}"),
            format!("grpc-{index}, grpc: {{unixSocket: {link}}}"),
            format!("exec-{index}, exec: {{command: [{link}]}}"),
        ]);
    }
    let config = dir.path().join("config.yaml");
    for gate in gates {
        let rule =
            format!("- name: a\n  taint: {{key: example.com/a}}\n  gates: [{{name: {gate}}}]\n");
        write_configuration(&config, &rule).unwrap();
        let output = harmless(&["check", "--config", config.to_str().unwrap()], &[0, 3]).await;
        let may_exist = gate.starts_with("file-") || gate.starts_with("content-");
        assert!(may_exist || output.contains("closed"), "{gate}: {output}");
    }
}

#[tokio::test]
async fn a_configuration_that_becomes_a_pipe_or_a_device_leaves_the_active_one_at_work() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    let config = scene.gates.config();
    let links = hostile_links(scene.gates.dir.path());
    for (count, link) in links.iter().take(3).enumerate() {
        let new = config.with_extension("new");
        symlink(link, &new).unwrap();
        std::fs::rename(&new, &config).unwrap();
        let bad = "the configuration file is invalid; continuing with the active configuration";
        agent.wait_for_count(bad, count + 1).await.unwrap();
    }
    scene.gates.open_both();
    scene.wait_for_taints(&[]).await;
    assert_eq!(agent.get("/healthz").await.unwrap().0, 200);
    assert_eq!(agent.get("/readyz").await.unwrap().0, 503);
}
