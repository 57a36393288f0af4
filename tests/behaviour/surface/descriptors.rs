//! An agent with a low limit of open files.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use testkit::agent::Agent;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{LISTEN, dawdle};
use crate::scene::{Gates, OnStandIn, PROGRAM, TAINT};

/// A command that sets this limit of files. The program and its arguments follow.
const FEW_FILES: [&str; 4] = ["/bin/sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\"", PROGRAM];

#[tokio::test]
async fn clients_leave_most_of_its_files_to_the_main_job() {
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    let exec = "  - {name: program, exec: {command: [/bin/true]}, periodSeconds: 0.05}\n";
    scene.gates.configure(&scene.gates.rule(exec));
    let agent = scene
        .gates
        .agent_in(&FEW_FILES, "node", &scene.kubeconfig, &LISTEN, &[]);
    agent.wait_for_message("saw the taint").await.unwrap();
    let listening = agent.wait_for_message("listening").await.unwrap();
    let address = listening["address"].as_str().unwrap().to_owned();
    let mut clients = JoinSet::new();
    for _ in 0..200 {
        let stream = TcpStream::connect(&address).await.unwrap();
        clients.spawn(dawdle(stream));
    }
    scene.gates.open_both();
    scene.wait_for_taints(&[]).await;
    assert_eq!(agent.get("/healthz").await.unwrap().0, 200);
    let failed = "failed to accept a connection; trying again";
    assert_eq!(agent.count(failed), 0, "{:#?}", agent.logs());
}

#[tokio::test]
async fn without_a_file_to_spare_it_neither_spins_nor_stops_and_answers_when_there_are_some_again()
{
    let scene = OnStandIn::with(&[TAINT], Gates::closed().await).await;
    scene.gates.configure(
        "- name: a\n  taint: {key: example.com/not-ready}\n  stableFor: 2s\n  \
         gates: [{name: ready, nodeCondition: {type: Ready}}]\n",
    );
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    let listening = agent.wait_for_message("listening").await.unwrap();
    let address = listening["address"].as_str().unwrap().to_owned();
    let before = limit_files(&agent, Some(3));
    let _waiting = TcpStream::connect(address).await.unwrap();
    let failed = "failed to accept a connection; trying again";
    let line = agent.wait_for_message(failed).await.unwrap();
    assert!(
        line["error"]
            .as_str()
            .unwrap()
            .contains("Too many open files")
    );

    let used = cpu_time(&agent);
    scene.server.update_node("node", |node| {
        node["status"]["conditions"] = serde_json::json!([{"type": "Ready", "status": "True"}]);
    });
    scene.wait_for_taints(&[]).await;
    let used = cpu_time(&agent).saturating_sub(used);
    // So little that a busy loop would use more even on a busy machine.
    assert!(used < Duration::from_millis(100), "{used:?} in 2 s");
    assert_eq!(agent.count(failed), 1, "{:#?}", agent.logs());

    limit_files(&agent, before);
    assert_eq!(agent.get("/healthz").await.unwrap().0, 200);
}

/// Returns the limit before the change.
fn limit_files(agent: &Agent, current: Option<u64>) -> Option<u64> {
    let id = Pid::from_raw(agent.id().try_into().unwrap());
    let files = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit { current, ..files };
    prlimit(id, Resource::Nofile, limit).unwrap().current
}

/// The CPU time: fields 14 and 15 of proc_pid_stat(5), in hundredths of a second.
fn cpu_time(agent: &Agent) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", agent.id())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let times = fields.split(' ').skip(11).take(2);
    let ticks: u64 = times.map(|time| time.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}
