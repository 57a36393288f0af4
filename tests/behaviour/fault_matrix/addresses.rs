//! The server's address: IPv6, and a name that does not resolve yet.

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

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

#[tokio::test]
async fn a_name_that_does_not_resolve_at_the_start_is_asked_for_until_it_does() {
    let Some(scene) = OnCluster::with("dns", &TAINTS, Gates::closed().await).await else {
        return;
    };
    let file = |name: &str, content: &str| {
        let path = scene.gates.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let hosts = file("hosts", "127.0.0.1 localhost\n");
    // Nobody answers there.
    let resolv_conf = file("resolv.conf", "nameserver 127.0.0.1\n");
    let files = [(&*hosts, "/etc/hosts"), (&*resolv_conf, "/etc/resolv.conf")];
    let Some(command) = program_seeing(&files) else {
        return;
    };
    let by_address = std::fs::read_to_string(&scene.kubeconfig).unwrap();
    let by_name = by_address.replace("https://127.0.0.1:", "https://kubernetes:");
    std::fs::write(&scene.kubeconfig, by_name).unwrap();
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    let kubeconfig = &scene.kubeconfig;
    let gates = &scene.gates;
    let agent = gates.agent_in(&command, scene.name, kubeconfig, &[], &[]);
    let failed = agent.wait_for_message(WATCH_FAILED).await.unwrap();
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("dns error"), "{error}");
    gates.write_conflist();
    gates.health.set(200);
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
