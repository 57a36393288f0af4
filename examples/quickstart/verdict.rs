//! Whether what happened is what should have. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use testkit::api::Verb;

use crate::timeline::offset;

/// What happened, as the servers and the agent tell it.
pub(crate) struct Record {
    /// In their order.
    pub(crate) events: Vec<Event>,
    /// All that the API server got.
    pub(crate) requests: Vec<Request>,
}

/// A change.
#[derive(Clone)]
pub(crate) struct Event {
    /// Since the start.
    pub(crate) at: Duration,
    pub(crate) what: What,
}

/// What has changed.
#[derive(Clone)]
pub(crate) enum What {
    /// The API server stored the Node with these taints.
    Stored(Vec<String>),
    /// The agent found this gate in this state.
    Gate(String, &'static str),
}

/// A request, whoever sent it.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    /// `None`: not answered.
    pub(crate) code: Option<u16>,
    pub(crate) connection: usize,
}

/// What should have happened.
pub(crate) struct Expected<'a> {
    /// To be removed.
    pub(crate) taint: &'a str,
    /// The only other one, on the Node at all times.
    pub(crate) foreign: &'a str,
    /// To be open before each removal.
    pub(crate) gates: &'a [&'a str],
    pub(crate) removals: usize,
}

/// One time that the taint went.
pub(crate) struct Removal {
    /// The gates that were open by then, and since when.
    pub(crate) opened: BTreeMap<String, Duration>,
    /// When the API server stored the Node without the taint.
    pub(crate) gone: Duration,
}

impl Removal {
    /// From the last gate's opening.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.opened
            .values()
            .max()
            .map(|last| self.gone.saturating_sub(*last))
    }
}

/// What is to be said of a record.
#[derive(Default)]
pub(crate) struct Verdict {
    pub(crate) removals: Vec<Removal>,
    /// Whatever is not as expected; if there is nothing, all is well.
    pub(crate) problems: Vec<String>,
}

/// Compares what happened with what should have.
pub(crate) fn judge(record: &Record, expected: &Expected<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    let tainted = verdict.follow(&record.events, expected);
    if tainted {
        verdict
            .problems
            .push(format!("{} is still there", expected.taint));
    }
    let (removals, wanted) = (verdict.removals.len(), expected.removals);
    if removals != wanted {
        verdict
            .problems
            .push(format!("{removals} removals instead of {wanted}"));
    }
    verdict.count(&record.requests);
    verdict
}

impl Verdict {
    /// Follows the taints and the gates through time. Gives whether the Node has the taint in the end.
    fn follow(&mut self, events: &[Event], expected: &Expected<'_>) -> bool {
        let mut opened = BTreeMap::new();
        let mut tainted = false;
        for Event { at, what } in events {
            match what {
                What::Gate(name, "open") => {
                    opened.entry(name.clone()).or_insert(*at);
                }
                What::Gate(name, _) => {
                    opened.remove(name);
                }
                What::Stored(taints) => {
                    let (own, others): (Vec<_>, Vec<_>) =
                        taints.iter().partition(|taint| *taint == expected.taint);
                    if others != [expected.foreign] {
                        self.problems.push(format!(
                            "{}: the other taints are {others:?} instead of only {}",
                            offset(*at),
                            expected.foreign
                        ));
                    }
                    let was_tainted = std::mem::replace(&mut tainted, !own.is_empty());
                    if tainted && !was_tainted {
                        // What a gate said before the taint was there is no evidence.
                        opened.clear();
                    } else if was_tainted && !tainted {
                        self.remove(*at, opened.clone(), expected);
                    }
                }
            }
        }
        tainted
    }

    fn remove(
        &mut self,
        gone: Duration,
        opened: BTreeMap<String, Duration>,
        expected: &Expected<'_>,
    ) {
        let early = expected
            .gates
            .iter()
            .filter(|gate| !opened.contains_key(**gate));
        let early = early.map(|gate| {
            format!(
                "{}: the taint went while the gate {gate} was not open",
                offset(gone)
            )
        });
        self.problems.extend(early);
        self.removals.push(Removal { opened, gone });
    }

    /// One watch in all and one patch a removal; nothing else, and nothing refused.
    fn count(&mut self, requests: &[Request]) {
        let count = |wanted| {
            requests
                .iter()
                .filter(|request| request.verb == wanted)
                .count()
        };
        for (kind, wanted) in [(Verb::Watch, 1), (Verb::Patch, self.removals.len())] {
            let found = count(kind);
            if found != wanted {
                let verb = verb(kind);
                self.problems
                    .push(format!("{found} {verb} requests instead of {wanted}"));
            }
        }
        for request in requests {
            let verb = verb(request.verb);
            if !matches!(request.verb, Verb::Watch | Verb::Patch) {
                self.problems
                    .push(format!("a {verb} request that was not needed"));
            }
            match request.code {
                Some(200) => {}
                Some(code) => self.problems.push(format!("{verb} was answered {code}")),
                None => self.problems.push(format!("{verb} was not answered")),
            }
        }
    }
}

/// As an audit log has it, in capitals.
pub(crate) fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "CREATE",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::Other => "OTHER",
    }
}

#[cfg(test)]
mod tests;
