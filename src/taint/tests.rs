use super::*;

fn taint(key: &str, value: Option<&str>, effect: Effect) -> Taint {
    Taint {
        key: key.into(),
        value: value.map(Into::into),
        effect: effect.as_str().into(),
        time_added: None,
    }
}

fn matcher(key: &str, value: Option<&str>, effect: Option<Effect>) -> TaintMatcher {
    TaintMatcher {
        key: key.into(),
        value: value.map(Into::into),
        effect,
    }
}

#[test]
fn a_matcher_with_only_a_key_matches_every_value_and_effect_of_that_key_alone() {
    let any = matcher("k", None, None);
    assert!(any.matches(&taint("k", None, Effect::NoExecute)));
    assert!(any.matches(&taint("k", Some("true"), Effect::NoSchedule)));
    assert!(!any.matches(&taint("k2", None, Effect::NoSchedule)));
}

#[test]
fn a_missing_value_and_an_empty_one_are_the_same_value() {
    let empty = matcher("k", Some(""), None);
    assert!(empty.matches(&taint("k", None, Effect::NoSchedule)));
    assert!(empty.matches(&taint("k", Some(""), Effect::NoSchedule)));
    assert!(!empty.matches(&taint("k", Some("true"), Effect::NoSchedule)));
}

#[test]
fn a_named_effect_matches_that_effect_alone() {
    let one = matcher("k", None, Some(Effect::NoSchedule));
    assert!(one.matches(&taint("k", None, Effect::NoSchedule)));
    assert!(!one.matches(&taint("k", None, Effect::NoExecute)));
}

#[test]
fn matchers_overlap_unless_they_ask_different_keys_values_or_effects() {
    let any = matcher("k", None, None);
    let valued = matcher("k", Some("a"), None);
    let effect = matcher("k", None, Some(Effect::NoExecute));
    assert!(any.overlaps(&valued) && valued.overlaps(&effect) && effect.overlaps(&any));
    assert!(!valued.overlaps(&matcher("k", Some("b"), None)));
    assert!(!effect.overlaps(&matcher("k", None, Some(Effect::NoSchedule))));
    assert!(!any.overlaps(&matcher("other", None, None)));
}

#[test]
fn a_taint_is_read_as_kubectl_writes_it_and_displayed_the_same() {
    for (text, value, effect) in [
        ("example.com/a", None, None),
        ("example.com/a=", Some(""), None),
        ("example.com/a=b", Some("b"), None),
        ("example.com/a:NoExecute", None, Some(Effect::NoExecute)),
        (
            "example.com/a=:NoSchedule",
            Some(""),
            Some(Effect::NoSchedule),
        ),
        (
            "example.com/a=b:PreferNoSchedule",
            Some("b"),
            Some(Effect::PreferNoSchedule),
        ),
    ] {
        let taint = parse_taint(text).unwrap();
        assert_eq!(taint.key, "example.com/a");
        assert_eq!(taint.value.as_deref(), value, "{text}");
        assert_eq!(taint.effect, effect, "{text}");
        assert_eq!(taint.to_string(), text);
    }
}

#[test]
fn a_taint_that_kubernetes_would_refuse_is_an_error_that_names_the_part() {
    for (text, part) in [
        ("", "its key must be"),
        ("a b", "its key must be"),
        ("a=b=c", "its value must be"),
        (
            "a=b:",
            "its effect must be one of NoSchedule, PreferNoSchedule, NoExecute, or left out for any, not \"\"",
        ),
        ("a:noexecute", "its effect must be"),
        ("a:NoExecute:x", "its effect must be"),
        ("example.com/a:NoExecute-", "its effect must be"),
    ] {
        let message = parse_taint(text).unwrap_err();
        assert!(message.starts_with(part), "{text}: {message}");
    }
}

#[test]
fn keys_of_others_are_refused_naming_the_owner_and_similar_ones_are_not() {
    for (key, owner) in [
        ("node.kubernetes.io/not-ready", "kubelet"),
        ("node.kubernetes.io/out-of-service", "kubelet"),
        (
            "node.cloudprovider.kubernetes.io/uninitialized",
            "cloud controller manager",
        ),
        ("node-role.kubernetes.io/control-plane", "roles"),
        ("karpenter.sh/unregistered", "Karpenter"),
        ("karpenter.sh/disrupted", "Karpenter"),
        ("karpenter.sh/disruption", "Karpenter"),
        ("karpenter.sh/rebooting", "Karpenter"),
        ("ToBeDeletedByClusterAutoscaler", "Cluster Autoscaler"),
        ("DeletionCandidateOfClusterAutoscaler", "Cluster Autoscaler"),
        ("node.cluster.x-k8s.io/uninitialized", "Cluster API"),
        ("node.cluster.x-k8s.io/outdated-revision", "Cluster API"),
        ("UpdateInProgress", "Machine Config Operator"),
        ("medik8s.io/remediation", "Medik8s"),
        ("medik8s.io/drain", "Medik8s"),
        ("aws-node-termination-handler/spot-itn", "AWS"),
        ("cloud.google.com/impending-node-termination", "GKE"),
        ("remediator.kubernetes.azure.com/unschedulable", "AKS"),
        ("drbd.linbit.com/lost-quorum", "Piraeus"),
    ] {
        let message = parse_taint(key).expect_err(key);
        assert!(message.contains(owner), "{key}: {message}");
        // Whatever the rest asks for.
        for rest in ["=", "=true", ":NoSchedule", "=a:NoExecute"] {
            assert!(parse_taint(&format!("{key}{rest}")).is_err(), "{key}{rest}");
        }
    }
    for key in [
        "startup-taint.cluster-autoscaler.kubernetes.io/x",
        "ignore-taint.cluster-autoscaler.kubernetes.io/x",
        "status-taint.cluster-autoscaler.kubernetes.io/x",
        "readiness.k8s.io/x",
        "node.cilium.io/agent-not-ready",
        "ebs.csi.aws.com/agent-not-ready",
        "efs.csi.aws.com/agent-not-ready",
        "node.gardener.cloud/critical-components-not-ready",
        "kubernetes.azure.com/scalesetpriority",
        "cloud.google.com/gke-quick-remove",
        "nvidia.com/gpu",
        "x.karpenter.sh/y",
        "karpenter.sh",
        "example.com/ToBeDeletedByClusterAutoscaler",
        "example.com/UpdateInProgress",
        "ToBeDeletedByClusterAutoscaler2",
        "cluster.x-k8s.io/y",
        "x.node.cluster.x-k8s.io/y",
        "aws-node-termination-handler",
        "cloud.google.com/impending-node-termination-2",
    ] {
        assert!(parse_taint(key).is_ok(), "{key}");
    }
}
