//! What the account may do with Events.

use super::cel;
use super::yaml::{Message, Policy, Validation};
use crate::events::CONTROLLER;
use crate::manifests::Manifests;

/// Those of events.k8s.io alone: the account has no right to the others.
const EVENTS: &str = r#"- apiGroups: [events.k8s.io]
  apiVersions: ["*"]
  resources: [events]
  operations: ["*"]
  scope: "*"
"#;

const ABOUT: &str = "# The account may tell of the Node that the token is for, and of nothing else.
";

/// With untaint's own account.
pub(super) fn policy(manifests: &Manifests) -> Policy {
    Policy {
        name: manifests.account.objects_for("events"),
        about: ABOUT,
        resources: EVENTS,
        conditions: vec![cel::account(manifests)],
        variables: vec![cel::node()],
        validations: vec![operation(), cel::has_node(), own_node()],
    }
}

fn operation() -> Validation {
    Validation {
        about: "",
        expression: "request.operation in ['CREATE', 'UPDATE'] && request.namespace == 'default'".into(),
        message: Message::Expression(
            "'this account may only create and update Events, in the namespace default; refused: ' +\n\
             request.operation + ' in ' + request.namespace"
                .into(),
        ),
    }
}

fn own_node() -> Validation {
    let controller = cel::string(CONTROLLER);
    Validation {
        about: "# Also of the Event as it was: one of others must be left alone.\n",
        expression: format!(
            "[dyn(object), dyn(oldObject)].all(e, e == null ||\n  \
             e.?regarding.?kind.orValue('') == 'Node' && e.?regarding.?name.orValue('') == variables.node &&\n  \
             e.?reportingController.orValue('') == {controller})"
        ),
        message: Message::Expression(format!(
            "'this account may only tell of the Node ' + variables.node + ', as the reportingController {CONTROLLER}'"
        )),
    }
}
