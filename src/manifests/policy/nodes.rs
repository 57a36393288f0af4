//! What the account may do with Nodes.

use super::yaml::{Message, Named, Policy, Validation};
use super::{cel, changes, data, managed_fields};
use crate::manifests::Manifests;
use crate::manifests::marker::Marker;
use crate::node::self_check::SIGNATURE;

/// Every request, of every subresource: with `nodes` alone, nodes/status and nodes/proxy would not be looked at.
const ALL: &str = r#"- apiGroups: [""]
  apiVersions: ["*"]
  # Subresources such as nodes/status and nodes/proxy are not part of nodes.
  resources: [nodes, nodes/*]
  operations: ["*"]
  scope: "*"
"#;

/// Taints change by nothing else.
const UPDATES: &str = r#"- apiGroups: [""]
  apiVersions: ["*"]
  resources: [nodes]
  # Patches are updates.
  operations: [UPDATE]
  scope: "*"
"#;

/// Of an account that is held to untaint's work: all that it may do. Of another: what it may do with taints. Only the
/// variable `rules` and the hash beside it depend on the configuration.
pub(super) fn policy(manifests: &Manifests) -> Policy {
    let is_held = manifests.holds_account();
    let mut conditions = vec![cel::account(manifests)];
    let mut variables = variables(manifests);
    let mut validations = Vec::new();
    if is_held {
        variables.extend(changes::published());
        validations.push(operation());
    } else {
        conditions.push(changes_taints());
    }
    validations.extend([cel::has_node(), own_node()]);
    if manifests.check_node_uid {
        validations.push(own_uid());
    }
    if is_held {
        validations.extend([
            metadata(),
            spec(),
            taints(),
            status(),
            managed_fields::of_all(),
        ]);
    } else {
        // The status is not looked at where the account is another's.
        validations.extend([taints(), managed_fields::of_taints()]);
    }
    Policy {
        name: manifests.account.objects(),
        about: if is_held { ABOUT_OWN } else { ABOUT_SHARED },
        resources: if is_held { ALL } else { UPDATES },
        conditions,
        variables,
        validations,
    }
    .signed(SIGNATURE)
}

const ABOUT_OWN: &str = "# Of what the roles allow, this lets through in every request for Nodes what the configuration asks for, on the Node
# that the token is for, and nothing else: whoever has the token of one node can do no more to the others than look.
";

const ABOUT_SHARED: &str = "# The account has other work to do, which this leaves alone. Where it changes taints, it may do only what the
# configuration asks for, on the Node that the token is for.
";

/// Of a Node without taints, there is no such field.
const OLD_TAINTS: &str = "oldObject.spec.?taints.orValue([])";
const TAINTS: &str = "object.spec.?taints.orValue([])";

fn changes_taints() -> Named {
    Named {
        about: "",
        name: "changes-taints",
        expression: format!(
            "{OLD_TAINTS} != {TAINTS} ||\n{}",
            managed_fields::NEW_OF_TAINTS
        ),
    }
}

fn variables(manifests: &Manifests) -> Vec<Named> {
    let rules: Vec<_> = manifests.writing_rules().collect();
    let marker = Marker::of(manifests);
    vec![
        cel::node(),
        Named {
            about: "# All that depends on the configuration: the rules that write, by the keys of their taints. What a rule leaves out may
# be anything; retaint has the value of the taint that may be put back.
",
            name: "rules",
            expression: data::rules(&rules),
        },
        Named {
            about: "# Whether the account's role is for these rules. It is not if the role has changed and this policy has not, or if the
# account is another installation's, renamed. The role then lists the taints and conditions that the account may
# change, and everything else here holds.
",
            name: "rulesApply",
            expression: marker.follows_rules(),
        },
        cel::plain("labels", LABELS),
        cel::plain("oldTaints", OLD_TAINTS),
        cel::plain("taints", TAINTS),
        cel::plain("takenOff", "variables.oldTaints.filter(t, !(t in variables.taints))"),
        cel::plain("putThere", "variables.taints.filter(t, !(t in variables.oldTaints))"),
        changes::gone(),
        changes::back(),
        cel::plain("othersStay", OTHERS_STAY),
        told("takenOffText", "takenOff"),
        told("putThereText", "putThere"),
    ]
}

const LABELS: &str =
    "oldObject.metadata.?labels.orValue({}).map(key, key + '=' + oldObject.metadata.labels[key])";

const OTHERS_STAY: &str = "variables.oldTaints.filter(t, !(t in variables.gone)) ==
variables.taints.filter(t, !(t in variables.back))";

/// For a message, which the server drops if it is too long. The server evaluates it for every request, and permission
/// checks would cost too much there: so it lists all taints that change, allowed or not. A thousand cannot all be compared
/// with all.
fn told(name: &'static str, list: &str) -> Named {
    Named {
        about: "# For the message: a list of one text.\n",
        name,
        expression: format!(
            "variables.oldTaints.size() + variables.taints.size() > 200 ? ['too many to tell'] :
[variables.{list}.map(t, t.key + ':' + t.effect).join(', ')].map(all,
  all == '' ? 'none' : all.size() > 500 ? all.substring(0, 500) + '...' : all)"
        ),
    }
}

fn operation() -> Validation {
    let subresource = "request.?subResource.orValue('')";
    Validation {
        about: "",
        expression: format!("request.operation == 'UPDATE' && {subresource} in ['', 'status']"),
        message: Message::Expression(format!(
            "'this account may only update its own Node; refused: ' + request.operation + ' of nodes' +\n\
             ({subresource} == '' ? '' : '/' + {subresource})"
        )),
    }
}

fn own_node() -> Validation {
    Validation {
        about: "",
        expression: "request.name == variables.node".into(),
        message: Message::Expression(
            "'the token is for the Node ' + variables.node + ': with it, this account may not change the Node ' +\nrequest.name"
                .into(),
        ),
    }
}

fn own_uid() -> Validation {
    Validation {
        about: "# A token outlives its Node: until the kubelet has got another one, it says the uid of the Node before, if any.\n",
        expression: format!(
            "!variables.rulesApply || {} == oldObject.metadata.uid",
            cel::claim("node-uid")
        ),
        message: Message::Text(
            "the token is not for this Node but at most for an earlier one of its name: its claim \
             authentication.kubernetes.io/node-uid is not the uid of the Node; a new pod has a new token"
                .into(),
        ),
    }
}

fn metadata() -> Validation {
    let kept_by_the_server = ["managedFields", "resourceVersion", "generation"];
    Validation {
        about: "# What may change is listed, not what may not: labels, annotations, finalizers, ownerReferences, whatever comes.\n",
        expression: cel::same_but("metadata", &kept_by_the_server),
        message: Message::Text(
            "this account may not change the Node's labels, annotations or anything else of its metadata".into(),
        ),
    }
}

fn spec() -> Validation {
    Validation {
        about: "",
        expression: cel::same_but("spec", &["taints"]),
        message: Message::Text(
            "this account may change nothing of the Node's spec but taints".into(),
        ),
    }
}

fn taints() -> Validation {
    let message = "'taken off: ' + variables.takenOffText[0] + '; put there: ' + variables.putThereText[0] +
'; this account may take off and put back the taints of its rules alone, on the Nodes that a rule is for: ' +
'all others must stay as they are, in their order; where the configuration has changed, apply what untaint manifests makes of it'";
    Validation {
        about: "# All others as they were, in their order.\n",
        expression: "variables.othersStay".into(),
        message: Message::Expression(message.into()),
    }
}

fn status() -> Validation {
    Validation {
        about: "",
        expression: format!(
            "{} &&
variables.oldConditions.filter(c, !(c.type in variables.published)) ==
variables.conditions.filter(c, !(c.type in variables.published))",
            cel::same_but("status", &["conditions"]),
        ),
        message: Message::Text(
            "this account may change nothing of the Node's status but the conditions that a rule for this Node publishes; \
             where the configuration has changed, apply what untaint manifests makes of it"
                .into(),
        ),
    }
}
