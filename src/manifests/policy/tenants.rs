//! Against pods that slip past a start-up taint: because they tolerate it, or because no scheduler is asked.

mod tolerations;

use std::collections::BTreeSet;

use super::cel;
use super::yaml::{Message, Named, Policy, Validation};
use crate::manifests::marker::Marker;
use crate::manifests::text::{indent, scalar};
use crate::manifests::{Account, Manifests, RenderError};

/// The label with which a Namespace is exempt, its value being `true`.
const MAY_TOLERATE: &str = "untaint/may-tolerate-startup-taints";

/// What is asked of the pods of others.
#[derive(Debug, Clone, Default)]
pub struct Tenants {
    /// They may not tolerate a configured taint.
    pub tolerations: Option<Enforcement>,
    /// They may not be made for a Node.
    pub node_names: Option<Enforcement>,
    /// Nothing is asked here, nor in kube-system and in untaint's own namespace.
    pub exempt_namespaces: BTreeSet<String>,
    /// Nothing is asked of their pods.
    pub exempt_accounts: BTreeSet<Account>,
}

/// What happens to a pod that a policy is against. Who makes a template of such pods is warned in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// It is refused.
    Deny,
    /// Whoever makes it is warned, and the audit log says so.
    Warn,
}

/// Those that are asked for, each with its bindings.
pub(super) fn documents(manifests: &Manifests) -> Result<Vec<String>, RenderError> {
    let tenants = &manifests.tenants;
    let mut documents = Vec::new();
    if let Some(enforcement) = tenants.tolerations {
        let enforced = Enforced {
            policy: tolerations::policy(manifests)?.checked()?,
            purpose: TOLERATIONS,
            enforcement,
            // Tolerations can be added to a pod that is there.
            operations: "CREATE, UPDATE",
        };
        documents.extend(enforced.documents(manifests));
    }
    if let Some(enforcement) = tenants.node_names {
        let enforced = Enforced {
            policy: node_names(manifests).checked()?,
            purpose: NODE_NAMES,
            enforcement,
            // Later on, each has its Node.
            operations: "CREATE",
        };
        documents.extend(enforced.documents(manifests));
    }
    Ok(documents)
}

const TOLERATIONS: &str = "tolerations";
const NODE_NAMES: &str = "node-names";

/// A policy, and how it is enforced.
struct Enforced {
    policy: Policy,
    /// In its name.
    purpose: &'static str,
    enforcement: Enforcement,
    /// The requests for pods that are looked at.
    operations: &'static str,
}

const PODS_AND_TEMPLATES: &str = r#"- apiGroups: [""]
  apiVersions: ["*"]
  resources: [pods, podtemplates, replicationcontrollers]
  operations: [CREATE, UPDATE]
  scope: "*"
- apiGroups: [apps]
  apiVersions: ["*"]
  resources: [daemonsets, deployments, replicasets, statefulsets]
  operations: [CREATE, UPDATE]
  scope: "*"
- apiGroups: [batch]
  apiVersions: ["*"]
  resources: [cronjobs, jobs]
  operations: [CREATE, UPDATE]
  scope: "*"
"#;

impl Enforced {
    fn documents(&self, manifests: &Manifests) -> [String; 3] {
        let (about, actions) = match self.enforcement {
            Enforcement::Deny => ("", "[Deny]"),
            Enforcement::Warn => (
                "  # To try it out: nothing is refused, and the audit log tells of what would have been.\n",
                "[Warn, Audit]",
            ),
        };
        let pods = |field: &str, operations: &str| {
            format!(
                "{field}:\n- apiGroups: [\"\"]\n  apiVersions: [\"*\"]\n  resources: [pods]\n  operations: [{operations}]\n  scope: \"*\"\n"
            )
        };
        let binding = |name: &str, actions: &str, resources: &str| {
            let exempt = indent(&exempt_namespaces(manifests), 4);
            let resources = indent(resources, 4);
            let rest = format!("{actions}  matchResources:\n{exempt}{resources}");
            self.policy.binding(name, &rest)
        };
        let of_templates = format!("{}-templates", self.purpose);
        let of_templates = manifests.account.objects_for(&of_templates);
        let of_pods = pods("resourceRules", self.operations);
        let of_others = pods("excludeResourceRules", "\"*\"");
        [
            self.policy.yaml(),
            binding(
                &self.policy.name,
                &format!("{about}  validationActions: {actions}\n"),
                &of_pods,
            ),
            binding(&of_templates, TO_TEMPLATES, &of_others),
        ]
    }
}

const TO_TEMPLATES: &str = "  # A controller could not tell its user of a refusal but by Events; a warning reaches whoever makes the template.
  validationActions: [Warn]
";

fn exempt_namespaces(manifests: &Manifests) -> String {
    let own = [manifests.account.namespace.as_str(), "kube-system"];
    let listed = manifests.tenants.exempt_namespaces.iter();
    let names: BTreeSet<_> = listed.map(String::as_str).chain(own).collect();
    let names: Vec<_> = names.into_iter().map(scalar).collect();
    format!(
        "namespaceSelector:
  matchExpressions:
  # Not in these namespaces,
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: [{}]
  # nor in those with this label. Whoever may change a Namespace can exempt it: tenants must not have that right.
  - key: {MAY_TOLERATE}
    operator: NotIn
    values: [\"true\"]
",
        names.join(", ")
    )
}

/// Kubelets make pods only to show those that run from files of their nodes; the admission plugin `NodeRestriction`
/// sees to it.
fn not_a_kubelet() -> Named {
    Named {
        about: "# A static pod runs whatever is said here: to refuse its mirror would only hide it. NodeRestriction keeps
# kubelets from making other pods.
",
        name: "not-a-kubelet",
        expression: "!('system:nodes' in request.userInfo.groups)".into(),
    }
}

/// The variable `pod`: what the object says of its pods. Of every kind, so without a type.
fn pod() -> Named {
    Named {
        about: "# Of a pod, or of a template.\n",
        name: "pod",
        expression: "request.resource.resource == 'pods' ? dyn(object).spec :
request.resource.resource == 'podtemplates' ? dyn(object).template.spec :
request.resource.resource == 'cronjobs' ? dyn(object).spec.jobTemplate.spec.template.spec :
dyn(object).spec.template.spec"
            .into(),
    }
}

/// The variable `isExempt`, by its account.
fn is_exempt(manifests: &Manifests) -> Named {
    let accounts = manifests
        .tenants
        .exempt_accounts
        .iter()
        .map(|Account { namespace, name }| cel::string(&format!("{namespace}:{name}")));
    let accounts: Vec<_> = accounts.collect();
    let account = "variables.pod.?serviceAccountName.orValue('default')";
    Named {
        about: "# A pod names its account itself, so that this is an exemption for all who may make pods in the namespace. It cannot be
# gained later: a pod keeps its account. By what its role alone grants, untaint's own is exempt where it was renamed.
",
        name: "isExempt",
        expression: format!(
            "request.namespace + ':' + {account} in\n[{}] ||\n{}",
            accounts.join(", "),
            Marker::of(manifests).is_held("request.namespace", account),
        ),
    }
}

/// The end of every message, in CEL.
fn remedy(policy: &str) -> String {
    let text = format!(
        "; a cluster administrator can exempt the namespace, by the label {MAY_TOLERATE}=true or in the bindings of \
         the policy {policy}, or the ServiceAccount, in the policy"
    );
    cel::string(&text)
}

const ABOUT_NODE_NAMES: &str = "# Pods that are made with spec.nodeName go to that Node without a scheduler, and nothing but the scheduler keeps pods off
# a Node with a taint of the effect NoSchedule. The right to bind pods (pods/binding, bindings) does the same: it is the
# schedulers', and no role for users that comes with Kubernetes has it.
";

fn node_names(manifests: &Manifests) -> Policy {
    let name = manifests.account.objects_for(NODE_NAMES);
    let message = format!(
        "'pods in the namespace ' + request.namespace + ' may not choose their Node by spec.nodeName (' +\n\
         variables.pod.?nodeName.orValue('') + '), which goes past start-up taints: use nodeSelector or nodeAffinity' +\n{}",
        remedy(&name)
    );
    Policy {
        name,
        about: ABOUT_NODE_NAMES,
        resources: PODS_AND_TEMPLATES,
        conditions: vec![not_a_kubelet()],
        variables: vec![pod(), is_exempt(manifests)],
        validations: vec![Validation {
            about: "",
            expression: "!has(variables.pod.nodeName) || variables.isExempt".into(),
            message: Message::Expression(message),
        }],
    }
}
