//! Files of the API client that can no longer be read. The agent continues with what it has read before.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testkit::agent::Agent;
use testkit::api::TOKEN;
use testkit::hung::HungFileSystem;

use crate::mounts::program_seeing;
use crate::scene::{FOREIGN, Gates, OnStandIn, PROGRAM, TAINT};

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];
/// The time in which a signal ends the agent.
const SOON: Duration = Duration::from_secs(1);
/// kube reads a token again after 50 s, and a certificate authority after 60 s.
const LONG: Duration = Duration::from_secs(65);
const FAILED: &str = "failed to read the credentials; continuing with the earlier ones";

/// Replaces a file with a pipe.
fn replace_by_pipe(path: &Path) {
    let pipe = path.with_extension("pipe");
    testkit::make_pipe(&pipe);
    fs::rename(pipe, path).unwrap();
}

fn rename_into_place(path: &Path, content: &str) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// The directory with the stand-in's credentials as in a pod, and a command that sees it at the path of a pod.
fn as_in_a_pod(scene: &OnStandIn) -> Option<(PathBuf, Vec<String>)> {
    let run = scene.gates.dir.path().join("run");
    let account = run.join("secrets/kubernetes.io/serviceaccount");
    fs::create_dir_all(&account).unwrap();
    fs::write(account.join("ca.crt"), scene.server.authority()).unwrap();
    fs::write(account.join("token"), TOKEN).unwrap();
    fs::write(account.join("namespace"), "untaint").unwrap();
    let command = program_seeing(&[(&run, "/var/run")])?;
    Some((account, command))
}

fn agent_in_a_pod(scene: &OnStandIn, command: &[String]) -> Agent {
    let config = scene.gates.config();
    let mut arguments: Vec<_> = command.iter().skip(1).map(String::as_str).collect();
    arguments.extend(["--log-level", "debug", "run", "--node-name", "node"]);
    arguments.extend(["--config", config.to_str().unwrap()]);
    arguments.extend(LISTEN);
    let port = scene.server.address().port().to_string();
    let environment = [
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
        ("KUBERNETES_SERVICE_PORT", port.as_str()),
    ];
    Agent::start(&command[0], &arguments, &environment).unwrap()
}

/// Adds a taint, and waits for its removal and for an answer of the agent.
async fn works(scene: &OnStandIn, agent: &Agent) {
    scene.set_taints(&[FOREIGN, TAINT]);
    scene.wait_for_taints(&[FOREIGN]).await;
    assert_eq!(agent.get("/healthz").await.unwrap().0, 200);
}

#[tokio::test]
async fn files_that_become_pipes_freeze_nothing_however_long_that_lasts() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let Some((account, command)) = as_in_a_pod(&scene) else {
        return;
    };
    let mut agent = agent_in_a_pod(&scene, &command);
    agent.wait_for_message("saw the Node").await.unwrap();
    replace_by_pipe(&account.join("token"));
    replace_by_pipe(&account.join("ca.crt"));
    let began = Instant::now();
    // A taint that keeps coming back is removed at most once in ten seconds.
    while began.elapsed() < LONG {
        works(&scene, &agent).await;
    }
    scene.server.reset_connections();
    works(&scene, &agent).await;
    let failed = agent.wait_for_message(FAILED).await.unwrap();
    let error = failed["error"].as_str().unwrap();
    let file = "credentials: /var/run/secrets/kubernetes.io/serviceaccount/";
    assert!(error.starts_with(file), "{error}");
    assert!(error.contains("not a regular file"), "{error}");
    agent.signal("TERM").await.unwrap();
    assert_eq!(agent.ended(SOON).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_token_that_was_a_pipe_for_a_while_is_used_as_soon_as_it_is_one_again() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let Some((account, command)) = as_in_a_pod(&scene) else {
        return;
    };
    let agent = agent_in_a_pod(&scene, &command);
    agent.wait_for_message("saw the Node").await.unwrap();
    replace_by_pipe(&account.join("token"));
    scene.server.accept_tokens(&["rotated"]);
    scene.set_taints(&[FOREIGN, TAINT]);
    let refused = "a request failed; trying again";
    agent.wait_for_message(refused).await.unwrap();
    rename_into_place(&account.join("token"), "rotated\n");
    scene.wait_for_taints(&[FOREIGN]).await;
    let again = "the credentials can be read again";
    agent.wait_for_message(again).await.unwrap();
    assert_eq!(agent.count(FAILED), 1);
}

#[tokio::test]
async fn no_file_of_a_kubeconfig_is_needed_again_once_it_has_been_read() {
    for file in ["kubeconfig", "token", "ca.crt"] {
        let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
        let agent = scene.agent(&LISTEN);
        agent.wait_for_message("saw the Node").await.unwrap();
        replace_by_pipe(&scene.kubeconfig.with_file_name(file));
        // After a refusal, the agent reads everything again.
        scene.server.accept_tokens(&["another"]);
        scene.set_taints(&[FOREIGN, TAINT]);
        let failed = agent.wait_for_message(FAILED).await.unwrap();
        scene.server.accept_tokens(&[TOKEN]);
        scene.wait_for_taints(&[FOREIGN]).await;
        let error = failed["error"].as_str().unwrap();
        assert!(error.contains(file), "{error}");
        let status = agent.status().await.unwrap();
        assert_eq!(status["api"]["watching"], true, "{status:#}");
    }
}

/// The number of threads of a process that wait in the kernel for a FUSE server.
fn hung_threads(process: u32) -> usize {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let states = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("wchan")).unwrap());
    states.filter(|state| state.contains("fuse")).count()
}

#[tokio::test]
async fn a_file_system_that_does_not_answer_holds_one_thread_until_it_does() {
    let Some(hung) = HungFileSystem::mount() else {
        return;
    };
    let scene = OnStandIn::with(&[FOREIGN], Gates::open().await).await;
    let mut command = hung.command();
    command.push(PROGRAM.into());
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    let gates = &scene.gates;
    let mut agent = gates.agent_in(&command, "node", &scene.kubeconfig, &LISTEN, &[]);
    agent.wait_for_message("saw the Node").await.unwrap();

    let token = scene.kubeconfig.with_file_name("token");
    let link = token.with_extension("link");
    symlink(hung.path("token"), &link).unwrap();
    fs::rename(link, &token).unwrap();
    scene.server.accept_tokens(&["rotated"]);
    scene.set_taints(&[FOREIGN, TAINT]);
    agent.wait_for_message(FAILED).await.unwrap();
    // The agent does not start a second read before the first has ended.
    let again = "a request failed; trying again";
    agent.wait_for_message(again).await.unwrap();
    assert_eq!(hung_threads(agent.id()), 1);
    // During the hang, everything that needs no other token continues.
    scene.server.accept_tokens(&["rotated", TOKEN]);
    scene.wait_for_taints(&[FOREIGN]).await;
    assert_eq!(agent.get("/healthz").await.unwrap().0, 200);

    scene.server.accept_tokens(&["rotated"]);
    scene.set_taints(&[FOREIGN, TAINT]);
    rename_into_place(&token, "rotated");
    drop(hung);
    scene.wait_for_taints(&[FOREIGN]).await;
    agent.signal("TERM").await.unwrap();
    assert_eq!(agent.ended(SOON).await.unwrap().code(), Some(0));
}
