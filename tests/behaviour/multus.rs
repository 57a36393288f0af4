//! `cniConfig` where Multus is the file that the runtime picks.

use testkit::DEADLINE;
use tokio::process::Command;

use crate::scene::{FOREIGN, Gates, OnCluster, PROGRAM, TAINT};

fn rule(gates: &Gates) -> String {
    let dir = gates.net_d();
    format!(
        "- name: multus\n  taint: {{key: example.com/not-ready}}\n  gates:\n\
         \x20 - {{name: cni, cniConfig: {{dir: {}, first: true, delegate: {{network: cilium}}}}}}\n",
        dir.display()
    )
}

/// The file of Multus, which calls the network of this name.
fn calling(network: &str) -> String {
    format!(
        r#"{{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus","delegates":[
           {{"cniVersion":"0.3.1","name":"{network}","plugins":[{{"type":"{network}-cni"}}]}}]}}"#
    )
}

/// multus-cni#1306, cozystack#2315 (D15).
#[tokio::test]
async fn a_multus_that_calls_another_network_keeps_the_taint_until_it_calls_the_right_one() {
    let gates = Gates::closed().await;
    gates.configure(&rule(&gates));
    let Some(scene) = OnCluster::with("multus", &[TAINT, FOREIGN], gates).await else {
        return;
    };
    let dir = scene.gates.net_d();
    std::fs::create_dir_all(&dir).unwrap();
    let write = |file: &str, contents: &str| std::fs::write(dir.join(file), contents).unwrap();
    write(
        "05-cilium.conflist",
        r#"{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"}]}"#,
    );
    write("00-multus.conf", &calling("kube-ovn"));
    let agent = scene.agent(&[]);
    let says = async |reason: &str| {
        let is_it = |line: &serde_json::Value| {
            let text = line["reason"].as_str();
            line["state"] == "closed" && text.is_some_and(|text| text.contains(reason))
        };
        agent.wait_for_log(is_it).await.unwrap();
    };
    says("00-multus.conf: delegates[0] of Multus: network kube-ovn, not cilium").await;
    write(
        "00-multus.conf",
        r#"{"cniVersion":"0.3.1","name":"m","type":"multus-shim","clusterNetwork":"/host/etc/cni/net.d/05-cilium.conflist"}"#,
    );
    says("set `overrideNetworkName` in the configuration of Multus").await;
    assert_eq!(scene.taints().await, [TAINT, FOREIGN]);
    let mut check = Command::new(PROGRAM);
    let config = scene.gates.config();
    check.args(["check", "--config", config.to_str().unwrap()]);
    let output = tokio::time::timeout(DEADLINE, check.output()).await;
    let output = output.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(3));

    write("00-multus.conf", &calling("cilium"));
    scene.wait_for_taints(&[FOREIGN]).await;
}
