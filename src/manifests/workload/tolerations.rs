//! Which taints the pods tolerate.

use crate::manifests::Manifests;
use crate::manifests::yaml::scalar;
use crate::taint::TaintMatcher;

const EVERYTHING: &str =
    "# Everything, as system agents do: it must run before any taint is gone, and also where another one is permanent,
# such as on a pool of GPU nodes.
tolerations:
- operator: Exists
";

/// What new nodes carry besides the start-up taints. DaemonSets tolerate the other taints of Kubernetes by themselves:
/// `AddOrUpdateDaemonPodTolerations` in k8s.io/kubernetes/pkg/controller/daemon/util.
const OF_NEW_NODES: &str = "# On every new Node, until it is ready.
- key: node.kubernetes.io/not-ready
  operator: Exists
  effect: NoSchedule
# Where a cloud controller has yet to see the Node.
- key: node.cloudprovider.kubernetes.io/uninitialized
  operator: Exists
# Where Karpenter has yet to register it.
- key: karpenter.sh/unregistered
  operator: Exists
";

/// The `tolerations` of a pod.
pub(super) fn of_pods(manifests: &Manifests) -> String {
    if !manifests.exact_tolerations {
        return EVERYTHING.into();
    }
    let rules = manifests.configuration.rules.iter();
    let tolerations: String = rules.map(|rule| of_taint(&rule.taint)).collect();
    format!(
        "# What new nodes are known to carry. Add the permanent taints of your pools.\ntolerations:\n{tolerations}{OF_NEW_NODES}"
    )
}

fn of_taint(taint: &TaintMatcher) -> String {
    let TaintMatcher { key, value, effect } = taint;
    let value = match value.as_deref() {
        // The server leaves the field out, and would be told to add it each time.
        Some("") => "Equal".into(),
        Some(value) => format!("Equal\n  value: {}", scalar(value)),
        None => "Exists".into(),
    };
    let effect = effect.map(|effect| format!("  effect: {}\n", effect.as_str()));
    format!(
        "- key: {}\n  operator: {value}\n{}",
        scalar(key),
        effect.unwrap_or_default()
    )
}
