//! Paths on a file system that does not answer. A program that uses one hangs in the kernel.

mod files;
mod reloads;

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use testkit::agent::{Agent, write_configuration};
use testkit::hung::HungFileSystem;

use crate::metrics::LISTEN;
use crate::scene::{Gates, OnCluster, PROGRAM, TAINT};
use reloads::threads;

/// The time in which a signal ends the program.
const SOON: Duration = Duration::from_secs(1);
/// The taint of a rule whose gates work.
const FREE: &str = "example.com/free:NoSchedule";

/// How the program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum As {
    AnyProcess,
    Pid1,
}

impl As {
    const BOTH: [Self; 2] = [Self::AnyProcess, Self::Pid1];

    /// The command that takes the program's arguments.
    fn command(self, hung: &HungFileSystem) -> Vec<String> {
        let mut command = match self {
            Self::AnyProcess => hung.command(),
            Self::Pid1 => hung.command_as_pid_1(),
        };
        command.push(PROGRAM.into());
        command
    }

    fn start(self, hung: &HungFileSystem, arguments: &[&str]) -> Agent {
        let command = self.command(hung);
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        Agent::start(command[0], &[&command[1..], arguments].concat(), &[]).unwrap()
    }

    /// Sends SIGTERM, and returns the exit code if the program ends soon.
    async fn stop(self, agent: &mut Agent) -> Option<i32> {
        match self {
            Self::AnyProcess => agent.signal("TERM").await,
            Self::Pid1 => agent.signal_child("TERM").await,
        }
        .unwrap();
        agent.ended(SOON).await.unwrap().code()
    }
}

/// A gate of each kind that uses a path, and one for each way to the path.
fn gates_at(path: &Path, net_d: &Path) -> Vec<String> {
    let (path, net_d) = (path.display(), net_d.display());
    vec![
        format!("{{name: http, httpGet: {{unixSocket: {path}}}}}"),
        format!("{{name: https, httpGet: {{unixSocket: {path}, scheme: HTTPS}}}}"),
        format!("{{name: grpc, grpc: {{unixSocket: {path}}}}}"),
        format!("{{name: tcp, tcpSocket: {{unixSocket: {path}}}}}"),
        format!("{{name: file, file: {{path: {path}}}}}"),
        format!("{{name: cni, cniConfig: {{dir: {path}}}}}"),
        format!("{{name: bin, cniConfig: {{dir: {net_d}, binDirs: [{path}]}}}}"),
        format!("{{name: exec, exec: {{command: [{path}]}}}}"),
    ]
}

fn rule(name: &str, gate: &str) -> String {
    format!("- {{name: {name}, taint: {{key: example.com/{name}}}, gates: [{gate}]}}\n")
}

fn logs_of(agent: &Agent) -> String {
    format!("{:#?}", agent.logs())
}

/// One configuration for each gate, for the program as process 1 and as any process.
async fn for_each_gate(case: impl AsyncFn(As, &HungFileSystem, &str)) {
    let gates = Gates::closed().await;
    gates.write_conflist();
    let (case, gates) = (&case, &gates);
    let cases = As::BOTH.into_iter().flat_map(|role| {
        let kinds = gates_at(Path::new("/"), &gates.net_d()).len();
        (0..kinds).map(move |kind| async move {
            let Some(hung) = HungFileSystem::mount() else {
                return;
            };
            let gate = &gates_at(&hung.path("it"), &gates.net_d())[kind];
            let config = gates.dir.path().join(format!("{role:?}-{kind}.yaml"));
            write_configuration(&config, &rule("hung", gate)).unwrap();
            case(role, &hung, config.to_str().unwrap()).await;
        })
    });
    join_all(cases).await;
}

#[tokio::test]
async fn a_wait_for_a_gate_that_hangs_ends_in_time_and_says_so() {
    for_each_gate(async |role, hung, config| {
        let arguments = ["wait", "--config", config, "--timeout", "2s"];
        let begin = Instant::now();
        let mut agent = role.start(hung, &arguments);
        let code = agent.ended(Duration::from_secs(10)).await.unwrap().code();
        let took = begin.elapsed();
        assert_eq!(code, Some(3), "{role:?}: {}", logs_of(&agent));
        assert!(
            took < Duration::from_secs(4),
            "{took:?}: {}",
            logs_of(&agent)
        );
        let reason = |line: &serde_json::Value| {
            let reason = line["reason"].to_string();
            reason.contains("has not ended") || reason.contains("no answer within 1 s")
        };
        assert!(agent.logs().iter().any(reason), "{}", logs_of(&agent));
    })
    .await;
}

#[tokio::test]
async fn a_check_of_a_gate_that_hangs_ends_with_the_gates_time_out() {
    for_each_gate(async |role, hung, config| {
        let mut agent = role.start(hung, &["check", "--config", config]);
        let end = agent.ended(Duration::from_secs(5)).await.unwrap();
        assert_eq!(end.code(), Some(3), "{role:?}: {}", logs_of(&agent));
    })
    .await;
}

#[tokio::test]
async fn sigterm_ends_a_program_whose_gate_hangs() {
    for_each_gate(async |role, hung, config| {
        let mut agent = role.start(hung, &["wait", "--config", config]);
        let hangs = |line: &serde_json::Value| line["state"] == "closed";
        agent.wait_for_log(hangs).await.unwrap();
        assert_eq!(role.stop(&mut agent).await, Some(3), "{}", logs_of(&agent));
    })
    .await;
}

#[tokio::test]
async fn rules_whose_gates_are_well_go_on_beside_those_whose_gates_hang() {
    for (role, node) in As::BOTH.into_iter().zip(["hangs", "hangs-as-pid-1"]) {
        let Some(hung) = HungFileSystem::mount() else {
            return;
        };
        let taints = ["example.com/hung:NoSchedule", FREE, TAINT];
        let Some(scene) = OnCluster::with(node, &taints, Gates::closed().await).await else {
            return;
        };
        scene.gates.write_conflist();
        let all = gates_at(&hung.path("it"), &scene.gates.net_d()).join(", ");
        let ready = scene.gates.dir.path().join("ready");
        let free = format!("{{name: ready, file: {{path: {}}}}}", ready.display());
        let rules = rule("hung", &all) + &rule("free", &free);
        scene.gates.configure(&rules);

        let command = role.command(&hung);
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        let kubeconfig = &scene.kubeconfig;
        let mut agent = (scene.gates).agent_in(&command, node, kubeconfig, &LISTEN, &[]);
        agent.wait_for_message("saw the taint").await.unwrap();
        let look = |line: &serde_json::Value| {
            line["gate"] == "http" && line["reason"].to_string().contains("has not ended")
        };
        agent.wait_for_log(look).await.unwrap();
        assert_eq!(agent.get("/healthz").await.unwrap().0, 200, "{role:?}");
        std::fs::write(ready, "").unwrap();
        scene.wait_for_taints(&[taints[0], TAINT]).await;

        let status = agent.status().await.unwrap();
        for gate in status["rules"][0]["gates"].as_array().unwrap() {
            assert_eq!(gate["state"], "closed", "{gate}");
        }
        assert_eq!(agent.get("/healthz").await.unwrap().0, 200, "{role:?}");
        assert_eq!(role.stop(&mut agent).await, Some(0), "{role:?}");
    }
}

/// In LXC, `/proc/stat`, which has the boot time, is a file of LXCFS.
#[tokio::test]
async fn a_boot_time_that_nobody_tells_holds_up_neither_rules_nor_a_signal() {
    const CHANGES: usize = 30;
    for (role, node) in As::BOTH.into_iter().zip(["no-boot", "no-boot-as-pid-1"]) {
        let Some(hung) = HungFileSystem::over(Path::new("/proc/stat")) else {
            return;
        };
        let Some(scene) = OnCluster::with(node, &[TAINT], Gates::closed().await).await else {
            return;
        };
        let command = role.command(&hung);
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        let kubeconfig = &scene.kubeconfig;
        let mut agent = (scene.gates).agent_in(&command, node, kubeconfig, &LISTEN, &[]);
        agent.wait_for_message("saw the taint").await.unwrap();
        for change in 0..CHANGES {
            let label = json!({"metadata": {"labels": {"change": change.to_string()}}});
            scene.cluster.patch_node(node, &label).await.unwrap();
        }
        let seen = CHANGES + 1;
        agent.wait_for_count("saw the Node", seen).await.unwrap();
        if role == As::AnyProcess {
            let threads = threads(agent.id());
            assert!(threads < CHANGES, "{threads} threads");
        }
        scene.gates.open_both();
        scene.wait_for_taints(&[]).await;
        assert_eq!(agent.get("/healthz").await.unwrap().0, 200, "{role:?}");
        assert_eq!(role.stop(&mut agent).await, Some(0), "{role:?}");
    }
}
