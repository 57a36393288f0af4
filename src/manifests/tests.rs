use super::*;
use crate::config::{self, SourceFile};
use crate::node::self_check::SIGNATURE;

const CONFIGURATION: &str = "apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
events: true
rules:
- name: all
  taint: {key: example.com/a, effect: NoSchedule}
  gates:
  - {name: file, file: {path: /run/a/ready}}
  - {name: pods, pods: {namespace: shop, matchLabels: {a: b}}}
  retaint: {after: 30s}
  publishCondition: {type: example.com/A}
";

/// With every option, for each form.
fn all() -> impl Iterator<Item = Manifests> {
    let forms = [
        (Form::Daemonset, true),
        (Form::Sidecar, false),
        (Form::InitContainer, true),
        (Form::PostStart, false),
    ];
    forms.into_iter().map(|(form, strict_policy)| Manifests {
        files: vec![SourceFile {
            name: "rules.yaml".into(),
            text: CONFIGURATION.into(),
        }],
        configuration: config::parse(CONFIGURATION).unwrap(),
        form,
        account: "shop:agent".parse().unwrap(),
        image: "untaint".into(),
        exact_tolerations: true,
        selinux_type: Some("spc_t".into()),
        check_node_uid: true,
        strict_policy,
        tenants: Tenants {
            tolerations: Some(Enforcement::Deny),
            node_names: Some(Enforcement::Warn),
            ..Tenants::default()
        },
        taint_new_nodes: Some(NewNodes::ExceptKarpenter),
        additions: Additions {
            flow_schema: form.has_own_account(),
            labels: BTreeMap::from([("team".into(), "a".into())]),
            image_pull_secrets: vec!["registry".into()],
            node_selector: BTreeMap::from([("pool".into(), "a".into())]),
            affinity: None,
        },
    })
}

#[test]
fn every_name_in_a_template_has_a_value() {
    for manifests in all() {
        let parts = [Part::Rbac, Part::Policy, Part::Config, Part::Workload];
        let yaml = manifests.render(&parts).unwrap();
        for mark in ["{{", "##"] {
            assert!(!yaml.contains(mark), "{mark} in {yaml}");
        }
    }
}

/// The agent's self-check recognizes the policies by it.
#[test]
fn every_message_of_a_policy_for_the_account_begins_with_the_signature() {
    for mut manifests in all() {
        manifests.tenants = Tenants::default();
        let yaml = manifests.render(&[Part::Policy]).unwrap();
        let texts = yaml.split("\n    message: \"").skip(1);
        let expressions = yaml.split("\n    messageExpression: |-\n      '").skip(1);
        let messages: Vec<_> = texts.chain(expressions).collect();
        assert_eq!(messages.len(), yaml.matches("reason: Forbidden").count());
        for message in messages {
            assert!(message.starts_with(SIGNATURE), "{message}");
        }
    }
}

#[test]
fn the_key_of_a_retaint_is_in_every_list_of_the_taints_of_a_rule() {
    let with_key = CONFIGURATION.replace("{after: 30s}", "{key: example.com/lapsed}");
    for mut manifests in all() {
        manifests.configuration = config::parse(&with_key).unwrap();
        let tolerations = "- key: example.com/lapsed\n";
        let tenants = "{'key': 'example.com/lapsed', 'effect': 'NoSchedule'}";
        let rules = "'example.com/lapsed': [{'effect': ['NoSchedule'], 'retaint': ['']}]";
        let removed =
            "resourceNames:\n  - example.com/a\n  - example.com/lapsed\n  verbs: [remove]";
        let added = "resourceNames:\n  - example.com/lapsed\n  verbs: [add]";
        let yaml = |part| manifests.render(&[part]).unwrap();
        let policy = yaml(Part::Policy);
        assert!(
            policy.contains(tenants) && policy.contains(rules),
            "{policy}"
        );
        let rbac = yaml(Part::Rbac);
        assert!(rbac.contains(removed) && rbac.contains(added), "{rbac}");
        if manifests.form == Form::Daemonset {
            let pods = yaml(Part::Workload);
            assert!(pods.contains(tolerations), "{pods}");
        }
    }
}
