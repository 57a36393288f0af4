//! Which changes of taints and conditions are the account's to make: by the rules or, where the policy has others than the
//! role, by what the role says.

use super::cel;
use super::yaml::Named;
use crate::manifests::marker;

/// In CEL, of a rule `r`: it applies to the Node.
const ON_ITS_NODES: &str =
    "(!has(r.nodeSelector) || r.nodeSelector.all(label, label in variables.labels))";

pub(super) fn gone() -> Named {
    Named {
        about: "# Taken off, as a rule asks for it.\n",
        name: "gone",
        expression: format!(
            "variables.areTheirs ?
{} :
{}",
            by_rules(
                "oldTaints",
                "(!has(r.value) || t.?value.orValue('') in r.value)",
                "taints"
            ),
            by_role("takenOff", "t, ", "taints", "t.key", "remove"),
        ),
    }
}

pub(super) fn back() -> Named {
    Named {
        about: "# Put back, as the retaint of a rule asks for it.\n",
        name: "back",
        expression: format!(
            "variables.areTheirs ?
{} :
{}",
            by_rules(
                "taints",
                "has(r.retaint) && t.?value.orValue('') in r.retaint && !has(t.timeAdded)",
                "oldTaints"
            ),
            by_role(
                "putThere",
                "t, !has(t.timeAdded) &&\n  ",
                "taints",
                "t.key",
                "add"
            ),
        ),
    }
}

/// The taints of one list that are not in the other, and may be there alone. Those without a rule are sorted out first: a
/// Node may have a thousand, which cannot all be compared with all.
fn by_rules(list: &str, value: &str, other: &str) -> String {
    format!(
        "variables.{list}.filter(t, variables.rules[?t.key].orValue([]).exists(r,
    (!has(r.effect) || t.effect in r.effect) &&
    {value} &&
    {ON_ITS_NODES}) &&
  !(t in variables.{other}))"
    )
}

/// Those for which the role has this permission. None if there are more than the server would ask for: then the agent tries
/// each alone.
fn by_role(list: &str, filter: &str, resource: &str, name: &str, verb: &str) -> String {
    let is_allowed = marker::allowed("authorizer", resource, name, verb);
    format!("variables.{list}.size() > 2 ? [] : variables.{list}.filter({filter}{is_allowed})")
}

/// The types of the conditions.
pub(super) fn published() -> [Named; 4] {
    let published = Named {
        about: "# As a rule asks for it.\n",
        name: "published",
        expression: format!(
            "variables.areTheirs ?
variables.changed.filter(type, variables.rules.exists(key, variables.rules[key].exists(r,
    has(r.publishCondition) && type in r.publishCondition &&
    {ON_ITS_NODES}))) :
{}",
            by_role("changed", "type, ", "conditions", "type", "publish"),
        ),
    };
    [
        cel::plain(
            "oldConditions",
            "oldObject.status.?conditions.orValue([])",
        ),
        cel::plain("conditions", "object.status.?conditions.orValue([])"),
        Named {
            about: "# The types of those that are not as they were.\n",
            name: "changed",
            expression: "variables.conditions.filter(c, !(c in variables.oldConditions)).map(c, c.type) +
variables.oldConditions.filter(old, !variables.conditions.exists(c, c.type == old.type)).map(c, c.type)"
                .into(),
        },
        published,
    ]
}
