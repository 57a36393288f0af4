//! What the kubelet means by its condition Ready.

/// What a message of the condition says, in other words, and what to do next. A part of the message, in lower case, is
/// first. A message can have several parts, of which the first here is the cause. They are from pkg/kubelet/runtime.go,
/// pkg/kubelet/kubelet.go, pkg/volume/csi/csi_plugin.go and pkg/controller/nodelifecycle of k8s.io/kubernetes; `NetworkPluginNotReady` is from the CRI plugin of containerd, and CRI-O uses it too.
const MEANINGS: [(&str, &str, &str); 9] = [
    (
        "container runtime is down",
        "the kubelet cannot reach the container runtime",
        "see whether the container runtime runs on the node",
    ),
    (
        "container runtime status check may not have completed yet",
        "the kubelet has not asked the container runtime yet",
        "wait some seconds",
    ),
    (
        "pleg is not healthy",
        "the container runtime answers too slowly",
        "see the load of the node and the log of the container runtime",
    ),
    (
        "networkpluginnotready",
        "the container runtime has no CNI configuration that it can use",
        "see the pod of the CNI plugin on the node, and the files in /etc/cni/net.d",
    ),
    (
        "csinode is not yet initialized",
        "the kubelet has not written the CSINode yet",
        "wait; if it stays, see the log of the kubelet",
    ),
    (
        "failed to initialize csinode",
        "the kubelet cannot write the CSINode",
        "see the log of the kubelet: it needs permission for csinodes",
    ),
    (
        "node is shutting down",
        "the machine is shutting down",
        "nothing: the machine comes back, or is replaced",
    ),
    (
        "kubelet stopped posting node status",
        "the kubelet does not report any more",
        "see whether the machine runs, and whether its kubelet reaches the API server",
    ),
    (
        "kubelet never posted node status",
        "the kubelet has never reported",
        "see whether the machine runs, and whether its kubelet reaches the API server",
    ),
];

/// The meaning of the message and the next step, if the message is known.
pub(crate) fn meaning(message: &str) -> Option<(&'static str, &'static str)> {
    let message = message.to_lowercase();
    let known = MEANINGS.iter().find(|(part, ..)| message.contains(part));
    known.map(|(_, meaning, next)| (*meaning, *next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_node_without_a_network_is_known() {
        let message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
             message:Network plugin returns error: cni plugin not initialized";
        let (found, _) = meaning(message).unwrap();
        assert!(found.contains("CNI configuration"), "{found}");
        assert!(meaning("PLEG is not healthy: pleg was last seen active 3m ago").is_some());
        let both =
            "[container runtime is down, PLEG is not healthy: pleg has yet to be successful]";
        let (found, _) = meaning(both).unwrap();
        assert_eq!(found, "the kubelet cannot reach the container runtime");
        assert_eq!(meaning("something new"), None);
    }
}
