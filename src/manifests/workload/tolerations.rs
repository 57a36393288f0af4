//! The tolerations of the pods.

use crate::manifests::Manifests;
use crate::manifests::yaml::scalar;
use crate::taint::TaintMatcher;

const EVERYTHING: &str = "\
# All taints, as other system agents do: untaint must run before any taint is removed, and also on nodes with a
# permanent taint, such as a pool of GPU nodes.
tolerations:
- operator: Exists
";

const ABOUT_EXACT: &str =
    "# The taints that new nodes usually have. Add the permanent taints of your node pools.\n";

/// The taints of new nodes besides the start-up taints. Kubernetes adds tolerations of its other taints to the pods of
/// DaemonSets: `AddOrUpdateDaemonPodTolerations` in k8s.io/kubernetes/pkg/controller/daemon/util.
const OF_NEW_NODES: &str = "# Every new Node has this taint until it is ready.
- key: node.kubernetes.io/not-ready
  operator: Exists
  effect: NoSchedule
# A new Node has this taint until the cloud controller has initialized it.
- key: node.cloudprovider.kubernetes.io/uninitialized
  operator: Exists
# A new Node has this taint until Karpenter has registered it.
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
    format!("{ABOUT_EXACT}tolerations:\n{tolerations}{OF_NEW_NODES}")
}

fn of_taint(taint: &TaintMatcher) -> String {
    let TaintMatcher { key, value, effect } = taint;
    let value = match value.as_deref() {
        // The server drops an empty `value`, so each `kubectl apply` would add it again.
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
