//! What the account may do with Nodes.

use super::yaml::{Message, Named, Policy, Validation};
use super::{cel, owners};
use crate::config::Rule;
use crate::manifests::Manifests;
use crate::manifests::text::indent;
use crate::taint::TaintMatcher;

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

/// Of an account that is held to untaint's work: all that it may do. Of another: what it may do with taints.
pub(super) fn policy(manifests: &Manifests) -> Policy {
    let is_held = manifests.holds_account();
    let rules: Vec<_> = manifests.writing_rules().collect();
    // The status is not looked at where the account is another's.
    let kinds = if is_held {
        conditions(&rules)
    } else {
        Vec::new()
    };
    let mut conditions = vec![cel::account(&manifests.account)];
    let mut validations = Vec::new();
    if is_held {
        validations.push(operation(!kinds.is_empty()));
    } else {
        conditions.push(changes_taints());
    }
    validations.extend([cel::has_node(), own_node()]);
    if manifests.check_node_uid {
        validations.push(own_uid());
    }
    if is_held {
        validations.extend([metadata(), spec()]);
    }
    validations.push(taints(&rules));
    if !kinds.is_empty() {
        validations.push(status(&kinds));
    }
    validations.push(if is_held {
        owners::of_all()
    } else {
        owners::of_taints()
    });
    Policy {
        name: manifests.account.objects(),
        about: if is_held { ABOUT_OWN } else { ABOUT_SHARED },
        resources: if is_held { ALL } else { UPDATES },
        conditions,
        variables: variables(&rules),
        validations,
    }
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
        expression: format!("{OLD_TAINTS} != {TAINTS} ||\n{}", owners::NEW_OF_TAINTS),
    }
}

fn variables(rules: &[&Rule]) -> Vec<Named> {
    let list = |name, expression: &str| Named {
        about: "",
        name,
        expression: expression.into(),
    };
    let (old, new) = (list("oldTaints", OLD_TAINTS), list("taints", TAINTS));
    let mut variables = vec![cel::node(), old, new, gone(rules)];
    variables.extend(back(rules));
    variables
}

/// Of rules, those that publish: when each may, and its condition's type.
fn conditions(rules: &[&Rule]) -> Vec<(String, String)> {
    let kinds = rules.iter().filter_map(|rule| {
        let kind = &rule.publish_condition.as_ref()?.kind;
        let is_it = format!("c.type == {}", cel::string(kind));
        Some((on_its_nodes(rule, is_it), kind.clone()))
    });
    kinds.collect()
}

/// `expression`, on Nodes that the rule applies to.
fn on_its_nodes(rule: &Rule, expression: String) -> String {
    let labels = rule.node_selector.iter().map(|(key, value)| {
        let (key, value) = (cel::string(key), cel::string(value));
        format!("oldObject.metadata.?labels[?{key}] == optional.of({value})")
    });
    let all: Vec<_> = labels.chain([expression]).collect();
    all.join(" && ")
}

fn gone(rules: &[&Rule]) -> Named {
    let rules = rules.iter();
    let may_go = rules.map(|rule| on_its_nodes(rule, cel::matches(&rule.taint, "t")));
    Named {
        about: "# Taken off, as a rule asks for it.\n",
        name: "gone",
        expression: changed("oldTaints", may_go, "taints"),
    }
}

/// `None` where no rule puts its taint back.
fn back(rules: &[&Rule]) -> Option<Named> {
    let mut rules = put_back(rules).peekable();
    rules.peek()?;
    let may_come = rules.map(|rule| {
        let taint = made_by_retaint(&rule.taint);
        let is_it = format!("{} && !has(t.timeAdded)", cel::matches(&taint, "t"));
        on_its_nodes(rule, is_it)
    });
    Some(Named {
        about: "# Put back, as the retaint of a rule asks for it.\n",
        name: "back",
        expression: changed("taints", may_come, "oldTaints"),
    })
}

/// Of rules, those that put their taint back.
fn put_back<'a>(rules: &'a [&Rule]) -> impl Iterator<Item = &'a Rule> {
    let rules = rules.iter().copied();
    rules.filter(|rule| rule.retaint.is_some())
}

/// The one taint that a `retaint` makes of the rule's: see [`TaintMatcher::to_taint`].
fn made_by_retaint(taint: &TaintMatcher) -> TaintMatcher {
    TaintMatcher {
        value: Some(taint.value.clone().unwrap_or_default()),
        ..taint.clone()
    }
}

/// The taints of one list that are not in the other, and may be there alone.
fn changed(list: &str, may: impl Iterator<Item = String>, other: &str) -> String {
    let may = indent(&cel::any(may), 2);
    format!("variables.{list}.filter(t, (\n{may}) && !(t in variables.{other}))\n")
}

fn operation(publishes: bool) -> Validation {
    let subresource = "request.?subResource.orValue('')";
    let is_open = if publishes {
        "in ['', 'status']"
    } else {
        "== ''"
    };
    Validation {
        about: "",
        expression: format!("request.operation == 'UPDATE' && {subresource} {is_open}"),
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
        expression: format!("{} == oldObject.metadata.uid", cel::claim("node-uid")),
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

fn taints(rules: &[&Rule]) -> Validation {
    let list = |taints: Vec<String>| match taints.as_slice() {
        [] => "none".to_owned(),
        some => some.join(", "),
    };
    let off = list(rules.iter().map(|rule| rule.taint.to_string()).collect());
    let back: Vec<_> = put_back(rules).map(|rule| rule.taint.to_string()).collect();
    let new = if back.is_empty() {
        "variables.taints"
    } else {
        "variables.taints.filter(t, !(t in variables.back))"
    };
    Validation {
        about: "# All others as they were, in their order.\n",
        expression: format!("variables.oldTaints.filter(t, !(t in variables.gone)) ==\n{new}"),
        message: Message::Text(format!(
            "taints that this account may take off: {off}; that it may put back: {}; all others must stay as they are; \
             where the configuration has changed, apply what untaint manifests makes of it",
            list(back)
        )),
    }
}

fn status(kinds: &[(String, String)]) -> Validation {
    let may = indent(&cel::any(kinds.iter().map(|(is_it, _)| is_it.clone())), 2);
    let others =
        |object: &str| format!("{object}.status.?conditions.orValue([]).filter(c, !(\n{may}))");
    let names: Vec<_> = kinds.iter().map(|(_, kind)| kind.as_str()).collect();
    Validation {
        about: "",
        expression: format!(
            "{} &&\n{} ==\n{}",
            cel::same_but("status", &["conditions"]),
            others("oldObject"),
            others("object"),
        ),
        message: Message::Text(format!(
            "this account may change nothing of the Node's status but the conditions {}; where the configuration has \
             changed, apply what untaint manifests makes of it",
            names.join(", ")
        )),
    }
}
