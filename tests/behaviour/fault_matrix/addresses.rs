//! The server's address: IPv6, and a name that does not resolve yet.

use std::fs;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use testkit::agent::Agent;
use testkit::kubeconfig::point_at;
use testkit::proxy::FaultProxy;

use super::{OTHERS, SLACK, TAINTS, WATCH_FAILED};
use crate::mounts::program_seeing;
use crate::scene::{Gates, OnCluster};

#[tokio::test]
async fn a_server_at_an_ipv6_address_is_as_good_as_any() {
    let Some(scene) = OnCluster::with("ipv6", &TAINTS, Gates::open().await).await else {
        return;
    };
    let proxy = FaultProxy::start_at(Ipv6Addr::LOCALHOST.into(), scene.cluster.address()).await;
    let proxy = proxy.unwrap();
    point_at(&scene.kubeconfig, proxy.address()).unwrap();
    let agent = scene.agent(&[]);
    agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(scene.taints().await, OTHERS);
    assert_eq!(verbs(&scene).await, ["watch", "patch"]);
    assert_eq!(proxy.connections(), 1);
}

/// kube-rs#874 (B17): in a pod, the environment has the address.
#[tokio::test]
async fn the_environment_of_a_pod_may_name_an_ipv6_address_with_brackets_or_without() {
    let Some(scene) = OnCluster::with("ipv6-pod", &TAINTS, Gates::open().await).await else {
        return;
    };
    let proxy = FaultProxy::start_at(Ipv6Addr::LOCALHOST.into(), scene.cluster.address()).await;
    let proxy = proxy.unwrap();
    let port = proxy.address().port().to_string();
    let run = scene.gates.dir.path().join("run");
    let account = run.join("secrets/kubernetes.io/serviceaccount");
    fs::create_dir_all(&account).unwrap();
    for file in ["ca.crt", "token"] {
        fs::copy(scene.kubeconfig.with_file_name(file), account.join(file)).unwrap();
    }
    fs::write(account.join("namespace"), "untaint").unwrap();
    let Some(command) = program_seeing(&[(&run, "/var/run")]) else {
        return;
    };
    let config = scene.gates.config();
    let arguments = [
        "run",
        "--no-policy-check",
        "--listen",
        "off",
        "--node-name",
        scene.name,
        "--config",
    ];
    let mut command: Vec<_> = command.iter().map(String::as_str).collect();
    command.extend(arguments);
    command.push(config.to_str().unwrap());
    for host in ["::1", "[::1]"] {
        scene.set_taints(&TAINTS).await;
        let environment = [
            ("KUBERNETES_SERVICE_HOST", host),
            ("KUBERNETES_SERVICE_PORT", &port),
        ];
        let agent = Agent::start(command[0], &command[1..], &environment).unwrap();
        agent.wait_for_message("removed the taint").await.unwrap();
        assert_eq!(scene.taints().await, OTHERS, "{host}");
    }
    assert_eq!(verbs(&scene).await, ["watch", "patch", "watch", "patch"]);
}

#[tokio::test]
async fn a_name_that_does_not_resolve_at_the_start_is_asked_for_until_it_does() {
    let Some(scene) = OnCluster::with("dns", &TAINTS, Gates::closed().await).await else {
        return;
    };
    let file = |name: &str, content: &str| {
        let path = scene.gates.dir.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let hosts = file("hosts", "127.0.0.1 localhost\n");
    // No server answers at this address.
    let resolv_conf = file("resolv.conf", "nameserver 127.0.0.1\n");
    let files = [(&*hosts, "/etc/hosts"), (&*resolv_conf, "/etc/resolv.conf")];
    let Some(command) = program_seeing(&files) else {
        return;
    };
    let by_address = fs::read_to_string(&scene.kubeconfig).unwrap();
    let by_name = by_address.replace("https://127.0.0.1:", "https://kubernetes:");
    fs::write(&scene.kubeconfig, by_name).unwrap();
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    let kubeconfig = &scene.kubeconfig;
    let gates = &scene.gates;
    let agent = gates.agent_in(&command, scene.name, kubeconfig, &[], &[]);
    let failed = agent.wait_for_message(WATCH_FAILED).await.unwrap();
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("dns error"), "{error}");
    gates.open_both();
    file("hosts", "127.0.0.1 localhost kubernetes\n");
    let began = Instant::now();
    scene.wait_for_taints(&OTHERS).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5) + SLACK, "{took:?}");
    agent.wait_for_message("removed the taint").await.unwrap();
    assert_eq!(verbs(&scene).await, ["watch", "patch"]);
}

async fn verbs(scene: &OnCluster) -> Vec<String> {
    let requests = scene.requests().await;
    requests.into_iter().map(|request| request.verb).collect()
}
