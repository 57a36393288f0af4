//! Several removers on one Node, each with its own taint.

mod readiness_rules;

use tempfile::TempDir;
use testkit::agent::Agent;
use testkit::cluster;

use crate::scene::{FOREIGN, PROGRAM, own_taints};

/// ebs-csi#2199: of two removers that race, one mistakes the other's success for its own.
#[tokio::test]
async fn two_agents_with_different_taints_on_one_node_are_done_only_when_each_has_removed_its_own()
{
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    for round in 0..20 {
        let node = format!("neighbours-{round}");
        let taints = ["one:NoSchedule", FOREIGN, "two:NoExecute"];
        cluster.create_node(&node, &taints).await.unwrap();
        let dir = TempDir::new().unwrap();
        let kubeconfig = cluster.agent_kubeconfig(dir.path(), &node).await.unwrap();
        let kubeconfig = kubeconfig.to_str().unwrap();
        let agent = |key| {
            let once = ["run", "--once", "--settle", "0s", "--taint", key];
            let on = ["--node-name", &node, "--kubeconfig", kubeconfig];
            Agent::start(PROGRAM, &[&once[..], &on].concat(), &[]).unwrap()
        };
        let mut agents = [agent("one"), agent("two")];
        for agent in &mut agents {
            assert_eq!(agent.exit_code().await.unwrap(), 0, "{node}");
        }
        let left = own_taints(&cluster.node(&node).await.unwrap());
        assert_eq!(left, [FOREIGN], "{node}");
        for agent in &agents {
            assert_eq!(agent.count("removed the taint"), 1, "{:#?}", agent.logs());
        }
    }
}
