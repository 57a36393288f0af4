//! The configuration file of a running agent, and what its changes leave behind.

use std::os::unix::fs::symlink;

use serde_json::Value;
use testkit::agent::Agent;
use testkit::config_map::ConfigMap;
use testkit::hung::HungFileSystem;

use super::{As, logs_of};
use crate::metrics::LISTEN;
use crate::scene::{Gates, OnCluster, OnStandIn, TAINT};

fn start(
    role: As,
    hung: &HungFileSystem,
    gates: &Gates,
    node: &str,
    kubeconfig: &std::path::Path,
) -> Agent {
    let command = role.command(hung);
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    gates.agent_in(&command, node, kubeconfig, &LISTEN, &[])
}

#[tokio::test]
async fn a_configuration_that_begins_to_hang_leaves_the_active_one_at_work() {
    for (role, node) in As::BOTH
        .into_iter()
        .zip(["reload-hangs", "reload-hangs-as-pid-1"])
    {
        let Some(hung) = HungFileSystem::mount() else {
            return;
        };
        let Some(scene) = OnCluster::with(node, &[TAINT], Gates::closed().await).await else {
            return;
        };
        let mut agent = start(role, &hung, &scene.gates, node, &scene.kubeconfig);
        agent.wait_for_message("saw the taint").await.unwrap();
        let config = scene.gates.config();
        let new = config.with_extension("new");
        symlink(hung.path("config.yaml"), &new).unwrap();
        std::fs::rename(&new, &config).unwrap();
        let silent = |line: &Value| {
            let problem = line["problem"].as_str().unwrap_or_default();
            problem.ends_with("the file system does not answer")
        };
        // If the link comes while the watch is being placed, the watch hangs as well. Then the poll of each minute finds it.
        if agent.wait_for_log(silent).await.is_err() {
            agent.wait_for_log(silent).await.unwrap();
        }

        assert_eq!(agent.get("/healthz").await.unwrap().0, 200, "{role:?}");
        assert_eq!(agent.get("/readyz").await.unwrap().0, 503, "{role:?}");
        scene.gates.open_both();
        scene.wait_for_taints(&[]).await;
        assert_eq!(role.stop(&mut agent).await, Some(0), "{}", logs_of(&agent));
    }
}

#[tokio::test]
async fn gates_that_hang_hold_few_threads_and_processes_however_often_they_are_changed() {
    const CHANGES: usize = 20;
    let Some(hung) = HungFileSystem::mount() else {
        return;
    };
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let path = hung.path("it");
    let path = path.display();
    let kinds = [
        format!("file: {{path: {path}}}"),
        format!("cniConfig: {{dir: {path}}}"),
        format!("httpGet: {{unixSocket: {path}}}"),
        format!("grpc: {{unixSocket: {path}}}"),
        format!("exec: {{command: [{path}]}}"),
    ];
    let name = |kind: usize, change: usize| format!("gate-{kind}-{change}");
    let rules = |change: usize| {
        let gate = |(kind, check): (usize, &String)| {
            let name = name(kind, change);
            format!("  - {{name: {name}, {check}, periodSeconds: 0.05, timeoutSeconds: 0.05}}\n")
        };
        let gates: String = kinds.iter().enumerate().map(gate).collect();
        format!("- name: hung\n  taint: {{key: example.com/not-ready}}\n  gates:\n{gates}")
    };
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &rules(0));
    let role = As::AnyProcess;
    let mut agent = start(role, &hung, &scene.gates, "node", &scene.kubeconfig);
    for change in 0..CHANGES {
        for kind in 0..kinds.len() {
            let name = name(kind, change);
            let hangs = |line: &Value| line["gate"] == *name && line["state"] == "closed";
            agent.wait_for_log(hangs).await.unwrap();
        }
        map.swap(&rules(change + 1));
    }
    // Four checks of the path, four watches with two threads each, and the threads of the runtime, the log and the
    // configuration, some of which are idle.
    let (threads, children) = (threads(agent.id()), children(agent.id()));
    assert!(threads <= 4 + 8 + 12, "{threads} threads");
    assert!(children <= 4, "{children} processes");
    assert_eq!(agent.get("/healthz").await.unwrap().0, 200);
    assert_eq!(role.stop(&mut agent).await, Some(0), "{}", logs_of(&agent));
}

pub(super) fn threads(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/task"))
        .unwrap()
        .count()
}

fn children(process: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_each = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")));
    of_each
        .map(|children| children.unwrap().split_whitespace().count())
        .sum()
}
