//! A CNI that writes its configuration early and makes its network later, and a pod that needs that network.

use anyhow::Result;

use crate::habitat::Habitat;
use crate::node::Node;

/// The taint that a node with this CNI starts with.
pub(crate) const KEY: &str = "stand-in.example.com/not-ready";
pub(crate) const CONFLIST: &str = "/etc/cni/net.d/10-stand-in.conflist";
/// With all that is recommended for such a CNI. More gates can follow.
pub(crate) const CONFIGURATION: &str = r"
apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: network
  taint: {key: stand-in.example.com/not-ready, effect: NoExecute}
  gates:
  - name: conflist
    cniConfig: {network: stand-in, plugins: [bridge], first: true}
  - name: agent
    httpGet: {port: 9879, path: /healthz}
  - name: node
    nodeCondition: {type: Ready}
";

/// Deploys the CNI.
pub(crate) async fn deploy(habitat: &Habitat) -> Result<()> {
    habitat
        .cluster
        .apply(include_str!("../manifests/stand-in.yaml"))
        .await
}

/// Lets the CNI of this node make its network.
pub(crate) fn go(node: &Node) -> Result<()> {
    node.write("/run/stand-in/go", "")
}

/// Creates the pod `NAME` in the namespace `default`. It waits until its own name is known by an account.
pub(crate) async fn create_app(habitat: &Habitat, name: &str) -> Result<()> {
    let pod = include_str!("../manifests/app.yaml");
    let pod = pod.replace("  name: app\nspec:", &format!("  name: {name}\nspec:"));
    habitat.cluster.apply(&pod).await
}
