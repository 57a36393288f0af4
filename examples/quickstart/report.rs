//! The text before and after the timeline.

use std::collections::BTreeSet;
use std::io;

use crate::rules::EXPECTED;
use crate::scene::Scene;
use crate::timeline::{Timeline, Tone, say};
use crate::verdict::{Outcome, Record, Request, Verdict, What, verb};

/// The text before the timeline.
pub(crate) fn introduction(scene: &Scene, rules: &str) -> io::Result<()> {
    say(
        "A taint keeps pods away from a Node. A new Node has a taint for each component that is not ready yet.\n\
         The real untaint agent, in this process, removes the taints in its configuration when their gates are open:\n",
    )?;
    for line in rules.lines() {
        say(&format!("  {line}"))?;
    }
    let server = scene.server.address();
    say(&format!(
        "\nThe Node also has other taints, which untaint must not change. The API server is a stand-in at\n\
         https://{server}. Below, net.d is short for the directory above.\n"
    ))?;
    scene.timeline.print_head()
}

/// The text after the timeline.
pub(crate) fn summary(timeline: &Timeline, record: &Record, verdict: &Verdict) -> io::Result<()> {
    say("")?;
    row("rule", "waited for", "outcome")?;
    for (rule, outcome) in EXPECTED.rules.iter().zip(&verdict.outcomes) {
        let gates: Vec<_> = rule.gates.iter().map(|gate| gate.name).collect();
        for text in describe(outcome) {
            row(rule.name, &gates.join(", "), &text)?;
        }
    }
    say("")?;
    list("taints left", left(record))?;
    list("overdue", &record.overdue)?;
    list("requests", &requests(&record.requests))?;
    entry(
        "more",
        "on a node: http://127.0.0.1:9468/statusz and /metrics; for this run: with --metrics",
    )?;
    for problem in &verdict.problems {
        entry("wrong", &timeline.paint(Tone::Bad, problem))?;
    }
    let (tone, word) = if verdict.problems.is_empty() {
        let good = "verified: untaint removed two taints when their gates opened, and not before; it kept and \
                    reported the third; it changed no other taint";
        (Tone::Good, good)
    } else {
        (Tone::Bad, "failed")
    };
    entry("verdict", &timeline.paint(tone, word))
}

/// A line for each removal of the taint, and one if the Node has it at the end.
fn describe(outcome: &Outcome) -> Vec<String> {
    let removals = outcome.removals.iter().enumerate();
    let mut lines: Vec<_> = removals
        .map(|(index, removal)| {
            let again = if index == 0 { "" } else { " again," };
            removal.last_gate().map_or_else(
                || format!("removed{again} with no gate open"),
                |(gate, delay)| {
                    let milliseconds = delay.as_secs_f64() * 1000.0;
                    format!(
                        "removed{again} {milliseconds:.1} ms after its last gate opened ({gate})"
                    )
                },
            )
        })
        .collect();
    if outcome.tainted.is_some() {
        let mut parts = vec!["kept, because not every gate has opened".to_owned()];
        let reports = outcome.reports.iter();
        parts.extend(reports.map(|at| format!("reported at {} ms", at.as_millis())));
        lines.push(parts.join("; "));
    }
    lines
}

/// The taints of the Node at the end.
fn left(record: &Record) -> &[String] {
    let mut events = record.events.iter().rev();
    let stored = events.find_map(|event| match &event.what {
        What::Stored(taints) => Some(taints.as_slice()),
        _ => None,
    });
    stored.unwrap_or_default()
}

/// The number of requests of each kind, in the order of their first ones, and the number of connections.
fn requests(all: &[Request]) -> Vec<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for request in all {
        let kind = format!("{} {}", verb(request.verb), request.path);
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    let mut lines: Vec<_> = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let connections: BTreeSet<_> = all.iter().map(|request| request.connection).collect();
    lines.push(format!("connections: {}", connections.len()));
    lines
}

fn entry(name: &str, text: &str) -> io::Result<()> {
    say(&format!("{name:<14}{text}"))
}

fn row(rule: &str, gates: &str, text: &str) -> io::Result<()> {
    entry(rule, &format!("{gates:<17}{text}"))
}

/// One item in each line, the first next to the name.
fn list(name: &str, items: &[String]) -> io::Result<()> {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    names
        .zip(items)
        .try_for_each(|(name, item)| entry(name, item))
}
