//! Which tolerations slip past a start-up taint: `ToleratesTaint` in k8s.io/api/core/v1, in CEL.

use super::{PODS_AND_TEMPLATES, TOLERATIONS, is_exempt, not_a_kubelet, pod, remedy};
use crate::manifests::policy::cel;
use crate::manifests::policy::yaml::{Message, Named, Policy, Validation};
use crate::manifests::{Manifests, RenderError};
use crate::taint::{Effect, TaintMatcher};

const ABOUT: &str = "# A pod that tolerates a start-up taint does not wait for what the taint stands for: it runs on nodes that are not ready.
# What DaemonSets' pods tolerate by themselves (node.kubernetes.io/...) is no start-up taint.
";

pub(super) fn policy(manifests: &Manifests) -> Result<Policy, RenderError> {
    let name = manifests.account.objects_for(TOLERATIONS);
    // It is evaluated for every pod, also where there is no bypass.
    let message = format!(
        "'pods in the namespace ' + request.namespace + ' may not tolerate start-up taints: ' +\n\
         variables.bypasses.map(found, found[0]).join('; ') +\n{}",
        remedy(&name)
    );
    Ok(Policy {
        name,
        about: ABOUT,
        resources: PODS_AND_TEMPLATES,
        conditions: vec![not_a_kubelet()],
        variables: vec![
            pod(),
            is_exempt(manifests),
            taints(manifests)?,
            added(),
            bypasses(),
        ],
        validations: vec![Validation {
            about: "",
            expression: "variables.bypasses.size() == 0 || variables.isExempt".into(),
            message: Message::Expression(message),
        }],
    })
}

/// A rule with `dryRun` counts as any other: that untaint leaves the taint alone does not let pods past it.
fn taints(manifests: &Manifests) -> Result<Named, RenderError> {
    let rules = manifests.configuration.rules.iter();
    let barriers = rules.filter(|rule| rule.taint.effect != Some(Effect::PreferNoSchedule));
    let taints: Vec<_> = barriers.map(|rule| taint(&rule.taint)).collect();
    if taints.is_empty() {
        return Err(RenderError::NoBarrier);
    }
    Ok(Named {
        about: "# Of all rules, with dryRun or without. Without value or effect, any. Those of the effect PreferNoSchedule keep no pod
# away and are left out.
",
        name: "taints",
        expression: format!("[\n  {}\n]", taints.join(",\n  ")),
    })
}

/// As a map of strings, since CEL in Kubernetes has no lists or maps of mixed types.
fn taint(taint: &TaintMatcher) -> String {
    let TaintMatcher { key, value, effect } = taint;
    let mut fields = vec![("key", key.as_str())];
    if let Some(value) = value {
        fields.push(("value", value));
        if is_number(value) {
            fields.push(("number", value));
        }
    }
    if let Some(effect) = effect {
        fields.push(("effect", effect.as_str()));
    }
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| format!("'{name}': {}", cel::string(value)))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

/// Whether `Lt` and `Gt` compare it: `IsDecimalInteger` in k8s.io/apimachinery/pkg/api/validate/content, and not too
/// large. The value of a taint has no sign.
fn is_number(value: &str) -> bool {
    let is_canonical = value == "0" || !value.starts_with(['0', '+']);
    is_canonical && value.parse::<i64>().is_ok()
}

fn added() -> Named {
    Named {
        about: "# A pod that is there keeps what it has, so that its labels and finalizers can change, however many it has; a template
# makes pods anew.
",
        name: "tolerations",
        expression: "request.resource.resource == 'pods' && request.operation == 'UPDATE' &&
variables.pod.?tolerations == dyn(oldObject).spec.?tolerations ? [] :
variables.pod.?tolerations.orValue([]).filter(t,
  request.resource.resource != 'pods' || request.operation == 'CREATE' ||
  !dyn(oldObject).spec.?tolerations.orValue([]).exists(old,
    old.?key == t.?key && old.?operator == t.?operator && old.?value == t.?value && old.?effect == t.?effect))"
            .into(),
    }
}

/// An operator that is not known counts as one that tolerates.
fn bypasses() -> Named {
    Named {
        about: "# Of each toleration that tolerates such a taint, in words which ones.
",
        name: "bypasses",
        expression: "variables.tolerations.map(t, variables.taints.map(taint,
  t.?key.orValue('') in ['', taint.key] &&
  (has(taint.effect) ? t.?effect.orValue('') in ['', taint.effect] : t.?effect.orValue('') != 'PreferNoSchedule') &&
  (
    t.?operator.orValue('') in ['', 'Equal'] ?
      !has(taint.value) || t.?value.orValue('') == taint.value :
    t.operator == 'Lt' ?
      (has(taint.number) ? int(t.value) > int(taint.number) : !has(taint.value) && int(t.value) > 0) :
    t.operator == 'Gt' ?
      (has(taint.number) ? int(t.value) < int(taint.number) :
        !has(taint.value) && int(t.value) < 9223372036854775807) :
    true
  ),
  '{' + [
    ?t.?key.optMap(key, 'key: ' + key),
    ?t.?operator.optMap(operator, 'operator: ' + operator),
    ?t.?value.optMap(value, 'value: ' + value),
    ?t.?effect.optMap(effect, 'effect: ' + effect)
  ].join(', ') + '} tolerates ' +
  taint.key + taint.?value.optMap(value, '=' + value).orValue('') +
  taint.?effect.optMap(effect, ':' + effect).orValue('')
)).filter(found, found.size() > 0)"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_in_canonical_form_that_64_bits_hold() {
        for number in ["0", "1", "10", "9223372036854775807"] {
            assert!(is_number(number), "{number}");
        }
        for text in ["", "00", "01", "1.0", "1a", "true", "9223372036854775808"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
