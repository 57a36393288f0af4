//! A rule that can wait for itself: its taint keeps away the pods that would open its gate.

use crate::config::gate::{Check, Gate, ProbeHandler};
use crate::config::read::Cursor;
use crate::taint::{Effect, TaintMatcher};

/// Cilium documents `NoExecute` for its start-up taint, and its DaemonSet tolerates everything.
const OF_CILIUM: &str = "node.cilium.io/agent-not-ready";

/// Warns about the effect of `taint`, which stands `at`, if a gate waits for a CNI. The pods of a CNI tolerate `NoSchedule`,
/// because every new Node has `node.kubernetes.io/not-ready:NoSchedule`. Some tolerate nothing else: those of Flannel's
/// Documentation/kube-flannel.yml and of the older manifests of Multus.
pub(super) fn warn(at: &Cursor<'_>, taint: &TaintMatcher, gates: &[Gate]) {
    if taint.effect != Some(Effect::NoExecute) || taint.key == OF_CILIUM {
        return;
    }
    let waits_for_cni = |check: &Check| match check {
        Check::Probe(probe) => matches!(probe.handler, ProbeHandler::CniConfig(_)),
        Check::Observation(_) => false,
    };
    let mut gates = gates.iter();
    let gate = gates.find(|gate| gate.checks().iter().any(waits_for_cni));
    if let Some((effect, gate)) = at.get("effect").zip(gate) {
        effect.warn_key(format!(
            "keeps away the pods of a CNI that tolerate only NoSchedule, such as Flannel's, and the gate {} then never opens; \
             check that the DaemonSet of your CNI tolerates NoExecute, or use the effect NoSchedule",
            gate.name()
        ));
    }
}
