//! The status as a page for people, without scripts or other files. Pure.

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::gate::run::GateStatus;
use crate::rule::wait_in_words;
use crate::status::{
    ApiStatus, ConfigurationStatus, LastRemoval, LeftTaintStatus, NodeStatus, PolicyStatus,
    RuleStatus, Status,
};
use crate::text::printable;

/// The query of a page that reloads itself. By default it does not: a person who reads slowly, selects text or uses a
/// screen reader would lose the place.
pub(super) const RELOAD: &str = "reload";
/// In seconds.
const RELOAD_AFTER: u8 = 5;

const STYLE: &str = include_str!("page.css");

/// Allows only [`STYLE`], by its hash.
pub(super) const POLICY: &str = concat!(
    "default-src 'none'; style-src 'sha256-nwMsGSWtjKrPl3vlWloWUzH/il8RRgZV3YyMT0K9gzs='; ",
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
);

/// The longest text on the page, in characters. JSON has the whole text.
const MAX_TEXT: usize = 1000;

/// The page at the time `now`. `status` is `None` until the agent's loop has run once.
pub(super) fn render(status: Option<&Status>, now: Timestamp, reloads: bool) -> String {
    let name = status.map_or("starting", |status| &status.node.name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if reloads { meta http-equiv="refresh" content=(RELOAD_AFTER); }
                title { (shown(name)) " · untaint" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (shown(name)) }
                    p {
                        "untaint " (env!("CARGO_PKG_VERSION")) " at " (moment(now)) ". "
                        @if reloads {
                            "This page reloads itself every " (RELOAD_AFTER) " s: "
                            a href="statusz" { "stop that" } "."
                        } @else {
                            a href={ "?" (RELOAD) } { "Reload every " (RELOAD_AFTER) " s" } "."
                        }
                    }
                }
                main {
                    @match status {
                        Some(status) => (whole(status, now)),
                        None => p { "The agent has just started: nothing is known yet." },
                    }
                }
            }
        }
    };
    page.into_string()
}

fn whole(status: &Status, now: Timestamp) -> Markup {
    let rules = || status.rules.iter().enumerate();
    let done = status.rules.iter().filter(|rule| rule.done).count();
    let in_trouble = rules().filter(|(_, rule)| is_in_trouble(rule));
    html! {
        p {
            strong { (done) " of " (status.rules.len()) " rules done." }
            @for (count, (index, rule)) in in_trouble.enumerate() {
                @if count == 0 { " Look at " } @else { ", " }
                a href={ "#rule-" (index) } { (shown(&rule.name)) }
            }
        }
        dl {
            (node(&status.node))
            (configuration(&status.configuration, now))
            (api(&status.api, now))
            (policy(&status.policy))
            @for left in &status.left_taints {
                (fact("Left taint", &left_taint(left)))
            }
        }
        @for (index, rule) in rules() {
            section {
                h2 id={ "rule-" (index) } { (heading(rule)) }
                dl { (facts(rule, now)) }
                (gates(rule, now))
            }
        }
    }
}

fn is_in_trouble(rule: &RuleStatus) -> bool {
    rule.overdue || rule.denied.is_some() || rule.publish_failure.is_some()
}

fn node(node: &NodeStatus) -> Markup {
    let seen = html! {
        @match (node.resource_version, node.seen) {
            (Some(version), _) => { "seen, resourceVersion " (version) },
            (None, true) => "seen before; there is no Node with this name now",
            (None, false) => "not seen yet",
        }
    };
    fact("Node", &seen)
}

fn configuration(active: &ConfigurationStatus, now: Timestamp) -> Markup {
    let source = html! {
        (shown(&active.source)) ", since " (then(active.loaded, now)) ", reloads: " (active.reloads)
    };
    html! {
        (fact("Configuration", &source))
        @if let Some(hash) = &active.sha256 {
            (fact("SHA-256", &html! { code { (hash) } }))
        }
        @if let Some(failure) = &active.last_failure {
            (fact("Last invalid file", &html! {
                @if active.failing { (mark("alarm", "invalid now: untaint continues with the active configuration")) br; }
                @for problem in failure.message.lines() { (shown(problem)) br; }
                (then(failure.time, now))
            }))
        }
    }
}

fn api(api: &ApiStatus, now: Timestamp) -> Markup {
    let watch = if api.watching {
        mark("good", "watching")
    } else {
        mark("alarm", "not watching")
    };
    html! {
        (fact("API server", &watch))
        @if let Some(error) = &api.last_error {
            (fact("Last API error", &html! { (shown(&error.message)) " — " (then(error.time, now)) }))
        }
    }
}

fn policy(policy: &PolicyStatus) -> Markup {
    let class = match policy.state {
        "held" => "good",
        "not-held" => "alarm",
        _ => "note",
    };
    fact(
        "Admission policy",
        &html! { (mark(class, policy.state)) " " (shown(&policy.message)) },
    )
}

fn left_taint(left: &LeftTaintStatus) -> Markup {
    html! {
        code { (shown(&left.taint)) } " of " (shown(&left.rule)) " " (mark("alarm", left.reason)) " " (left.message)
        @if let Some(denied) = &left.denied { ": " (shown(denied)) }
    }
}

fn heading(rule: &RuleStatus) -> Markup {
    html! {
        (shown(&rule.name)) " "
        (mark(if rule.done { "good" } else { "pending" }, rule.decision))
        @if rule.overdue { " " (mark("alarm", "overdue")) }
        @if rule.denied.is_some() { " " (mark("alarm", "denied")) }
        @if rule.publish_failure.is_some() { " " (mark("alarm", "not published")) }
        @if rule.dry_run { " " (mark("note", "dry run")) }
    }
}

fn facts(rule: &RuleStatus, now: Timestamp) -> Markup {
    html! {
        (fact("Taint", &html! { code { (shown(&rule.taint)) } }))
        @if let Some(taint) = &rule.retaint_taint {
            (fact("Taint of retaint", &html! { code { (shown(taint)) } }))
        }
        (fact("Decision", &html! { (rule.decision) ": " (rule.meaning) " — since " (then(rule.since, now)) }))
        @if rule.overdue {
            (fact("Deadline", &html! { "the taint has been there for longer than the rule's deadline" }))
        }
        @if let Some(message) = &rule.denied {
            (fact("Denied", &html! { (shown(message)) }))
        }
        @if let Some(message) = &rule.write_failure {
            (fact("Last try failed", &html! { (shown(message)) }))
        }
        @if let Some(message) = &rule.publish_failure {
            (fact("Not published", &html! { (shown(message)) }))
        }
        (fact("Last removal", &html! {
            @match &rule.last_removal {
                Some(removal) => { (then(removal.time, now)) "," (waited(removal)) },
                None => "none since this process started",
            }
        }))
        @if let Some(put_back) = rule.last_put_back {
            (fact("Last put-back", &then(put_back, now)))
        }
    }
}

fn waited(removal: &LastRemoval) -> String {
    let gate = removal.last_gate.as_deref();
    shown(&wait_in_words(removal.waited_seconds, gate))
}

fn gates(rule: &RuleStatus, now: Timestamp) -> Markup {
    let row = |gate: &GateStatus| {
        let since = iso(gate.since);
        html! {
            tr {
                th scope="row" { (shown(&gate.name)) }
                td {
                    (mark(gate.state.as_str(), gate.state.as_str())) " "
                    time datetime=(since) title=(since) { (ago(gate.since, now)) }
                }
                td { (shown(&gate.message)) }
            }
        }
    };
    html! {
        @if rule.gates.is_empty() {
            p { "The rule has no gates." }
        } @else {
            table {
                caption { "Gates of " (shown(&rule.name)) }
                tr { @for head in ["Gate", "State, since", "Reason"] { th scope="col" { (head) } } }
                @for gate in &rule.gates { (row(gate)) }
            }
        }
    }
}

fn fact(term: &str, detail: &Markup) -> Markup {
    html! { div { dt { (term) } dd { (detail) } } }
}

/// A highlighted word. The style has a sign and a colour for each class.
fn mark(class: &str, word: &str) -> Markup {
    html! { span class={ "mark " (class) } { (word) } }
}

/// Text of others. `html!` escapes markup. This escapes invisible characters and limits the length.
fn shown(text: &str) -> String {
    printable(text, MAX_TEXT)
}

/// The full time, for reports and for searches in logs.
fn moment(at: Timestamp) -> Markup {
    html! { time datetime=(iso(at)) { (iso(at)) } }
}

fn then(at: Timestamp, now: Timestamp) -> Markup {
    html! { (moment(at)) " (" (ago(at, now)) ")" }
}

fn iso(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// In the largest unit that is not too coarse. If the clock was set back, `at` may be after `now`.
fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    let (count, unit) = match seconds {
        ..120 => (seconds, "s"),
        120..7_200 => (seconds / 60, "min"),
        7_200..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{count} {unit} ago")
}

#[cfg(test)]
mod tests;
