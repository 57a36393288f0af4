//! Which gate of a rule was the last to open. Pure.

use std::time::Instant;

/// When a gate opened, in one round of its rule.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opening {
    /// Since when it has been open; `None` while it is not.
    since: Option<Instant>,
    /// Whether an evaluation of this round has found that it is not open.
    was_not_open: bool,
}

impl Opening {
    pub(super) fn observe(&mut self, now: Instant, is_open: bool, is_evaluated: bool) {
        self.since = is_open.then(|| self.since.unwrap_or(now));
        self.was_not_open |= is_evaluated && !is_open;
    }
}

/// The name of the last gate to open. `None` if one is not open, or if each was open at its first evaluation: then all may
/// have been open for long. Of gates that open at the same moment, it is one that was not open before, and the last one.
pub(super) fn last_to_open<'g>(
    gates: impl IntoIterator<Item = (&'g str, Opening)>,
) -> Option<&'g str> {
    let open = gates
        .into_iter()
        .map(|(gate, opening)| Some((opening.since?, opening.was_not_open, gate)));
    let open: Vec<_> = open.collect::<Option<_>>()?;
    open.iter().find(|(_, was_not_open, _)| *was_not_open)?;
    let last = open
        .iter()
        .max_by_key(|(since, was_not_open, _)| (since, was_not_open))?;
    Some(last.2)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What a gate is at each second: `o`pen, `c`losed or unknown, or not evaluated yet (`.`).
    fn last<'g>(gates: &[(&'g str, &str)]) -> Option<&'g str> {
        let start = Instant::now();
        last_to_open(gates.iter().map(|(gate, states)| {
            let mut opening = Opening::default();
            for (second, state) in (0..).zip(states.chars()) {
                let now = start + Duration::from_secs(second);
                opening.observe(now, state == 'o', state != '.');
            }
            (*gate, opening)
        }))
    }

    #[test]
    fn the_last_gate_to_open_is_the_one_that_opened_last_and_stayed_open() {
        for (gates, expected) in [
            (&[][..], None),
            (&[("a", "co")], Some("a")),
            (&[("a", "ccoo"), ("b", "cooo")], Some("a")),
            (&[("a", "cooo"), ("b", "ccoo")], Some("b")),
            // It closes again in between.
            (&[("a", "coco"), ("b", "ccoo")], Some("a")),
            // The removal waited for one gate alone.
            (&[("a", "oooo"), ("b", "ccoo")], Some("b")),
            (&[("a", "ccoo"), ("b", "oooo")], Some("a")),
            // It waited for the first evaluation of the other.
            (&[("a", "ccoo"), ("b", "...o")], Some("b")),
            // At the same moment.
            (&[("a", "ccoo"), ("b", "ccoo")], Some("b")),
            (&[("a", "ccoo"), ("b", "..oo")], Some("a")),
            // Each was open at its first evaluation.
            (&[("a", "oooo")], None),
            (&[("a", "..oo"), ("b", "...o")], None),
            // One is not open.
            (&[("a", "ccoo"), ("b", "oooc")], None),
            (&[("a", "ccoo"), ("b", "....")], None),
        ] {
            assert_eq!(last(gates), expected, "{gates:?}");
        }
    }
}
