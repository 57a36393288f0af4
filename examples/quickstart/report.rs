//! What is said before and after the timeline.

use std::collections::BTreeSet;
use std::io;

use crate::scene::Scene;
use crate::timeline::{Timeline, Tone, offset, say};
use crate::verdict::{Record, Removal, Request, Verdict, What, verb};

/// What is what in the timeline.
pub(crate) fn introduction(scene: &Scene) -> io::Result<()> {
    say("The real untaint agent, in this process, follows this configuration:\n")?;
    for line in scene.rules().lines() {
        say(&format!("  {line}"))?;
    }
    let server = scene.server.address();
    say(&format!(
        "\nIts API server is a stand-in at https://{server}. Below, net.d is short for the directory above.\n"
    ))
}

/// What it came to.
pub(crate) fn summary(timeline: &Timeline, record: &Record, verdict: &Verdict) -> io::Result<()> {
    let entry = |name: &str, text: &str| say(&format!("{name:<15}{text}"));
    let stored: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Stored(taints) => Some(taints.join(", ")),
            What::Gate(..) => None,
        })
        .collect();
    say("")?;
    for (name, taints) in [("before", stored.first()), ("after", stored.last())] {
        entry(&format!("taints {name}"), taints.map_or("", String::as_str))?;
    }
    for (removal, number) in verdict.removals.iter().zip(1..) {
        entry(&format!("removal {number}"), &describe(removal))?;
    }
    entry("requests", &requests(&record.requests))?;
    for problem in &verdict.problems {
        entry("wrong", &timeline.paint(Tone::Bad, problem))?;
    }
    let (tone, word) = if verdict.problems.is_empty() {
        let good = "verified: the taint went only after every gate was open, and no other taint was touched";
        (Tone::Good, good)
    } else {
        (Tone::Bad, "failed")
    };
    entry("verdict", &timeline.paint(tone, word))
}

fn describe(removal: &Removal) -> String {
    let mut opened: Vec<_> = removal.opened.iter().collect();
    opened.sort_by_key(|(_, at)| **at);
    let opened = opened
        .into_iter()
        .map(|(gate, at)| format!("{gate} open {}, ", offset(*at)));
    let opened: String = opened.collect();
    let delay = removal.delay().map_or_else(String::new, |delay| {
        let milliseconds = delay.as_secs_f64() * 1000.0;
        format!(": {milliseconds:.1} ms after the last gate")
    });
    format!("{opened}taint gone {}{delay}", offset(removal.gone))
}

/// How many of each kind, in the order of their first ones.
fn requests(all: &[Request]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for request in all {
        let answer = request.code.map(|code| code.to_string());
        let kind = format!(
            "{} {}",
            verb(request.verb),
            answer.as_deref().unwrap_or("unanswered")
        );
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let connections: BTreeSet<_> = all.iter().map(|request| request.connection).collect();
    format!("{}; connections: {}", counts.join(", "), connections.len())
}
