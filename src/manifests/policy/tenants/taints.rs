//! The start-up taints as data in CEL.

use super::string;
use crate::config::Rule;
use crate::manifests::{Manifests, RenderError};
use crate::taint::{Effect, TaintMatcher};

/// One on each line, those of rules with `dryRun` too: the taint is on the nodes, even if another program removes it.
pub(super) fn in_cel(manifests: &Manifests) -> Result<String, RenderError> {
    let rules = manifests.configuration.rules.iter();
    let taints = rules.flat_map(Rule::taints);
    let barriers = taints.filter(|taint| taint.effect != Some(Effect::PreferNoSchedule));
    let taints: Vec<_> = barriers.map(|taint| entry(&taint)).collect();
    if taints.is_empty() {
        return Err(RenderError::NoBarrier);
    }
    Ok(taints.join(",\n"))
}

/// A map of strings, because CEL in Kubernetes has no lists or maps of mixed types.
fn entry(taint: &TaintMatcher) -> String {
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
        .map(|(name, value)| format!("'{name}': {}", string(value)))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

/// Whether `Lt` and `Gt` compare it: `IsDecimalInteger` in k8s.io/apimachinery/pkg/api/validate/content, within 64
/// bits. The value of a taint has no sign.
fn is_number(value: &str) -> bool {
    let is_canonical = value == "0" || !value.starts_with(['0', '+']);
    is_canonical && value.parse::<i64>().is_ok()
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
