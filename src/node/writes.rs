//! When to send a change of taints, when to read the Node first, and when to stay away. Time and answers come in; all that is
//! not determined by them is jitter.

mod denial;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Taint;

use super::patch::{Action, Change, Step, Wanted};
use super::view::NodeView;
use crate::api::ApiError;
use crate::backoff::{Backoff, jittered};
use denial::Denial;

/// Longest wait between tries that other writers, the network or the server made fail.
const RETRY_CAP: Duration = Duration::from_secs(5);
const RETRY_BASE: Duration = Duration::from_millis(20);
/// How long to stay away from a server in trouble that does not say how long.
const TROUBLE: Duration = Duration::from_millis(500);

/// What to do now.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Nothing, until something else changes or, with a time, until then.
    Wait(Option<Instant>),
    /// Read the Node.
    Read,
    /// Send this.
    Send(Change),
}

/// What an answer means to people.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The server took the change; the returned Node says what became of the taints.
    Done,
    /// It is not known whether the change took effect.
    Unanswered,
    /// The server does not allow it, and says why.
    Denied {
        /// What may not be done.
        action: Action,
        /// With which taint.
        taint: Taint,
        /// The server's message.
        message: String,
        /// Whether it says this for the first time.
        first: bool,
    },
}

/// Whether the Node is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MustRead {
    No,
    /// What is known of it may be outdated.
    BeforeNext,
    /// A change may have taken effect: whether it has must be known even if nothing else is wanted, or what somebody else
    /// does later would be taken for it.
    AtOnce,
}

/// The state of the writes to one Node. At most one request is under way at a time.
#[derive(Debug)]
pub struct Writes {
    backoff: Backoff,
    not_before: Option<Instant>,
    /// Whether that is because the credentials were refused.
    waits_for_credentials: bool,
    must_read: MustRead,
    /// A refused change and the refusal, to be compared with what a fresh Node asks for.
    refused: Option<(Change, String)>,
    denials: BTreeMap<Step, Denial>,
}

impl Default for Writes {
    fn default() -> Self {
        Self {
            backoff: Backoff::new(RETRY_BASE),
            not_before: None,
            waits_for_credentials: false,
            must_read: MustRead::No,
            refused: None,
            denials: BTreeMap::new(),
        }
    }
}

impl Writes {
    /// What to do about the taints of `node`.
    pub fn next(&mut self, now: Instant, node: &NodeView, wanted: &Wanted<'_>) -> Next {
        self.denials.retain(|step, _| match step.action {
            Action::Remove => step.is_pending(node),
            // What is to be put back months later is another matter.
            Action::PutBack => wanted
                .changes(node, |wanted| wanted == step)
                .next()
                .is_some(),
        });
        if wanted.changes(node, |_| true).next().is_none() {
            // A gate that flaps must not shorten a wait that the server asked for, nor make up for a read.
            if self.must_read != MustRead::AtOnce {
                if self.not_before.is_none_or(|time| time <= now) {
                    self.backoff.reset();
                }
                return Next::Wait(None);
            }
        }
        if let Some(time) = self.not_before.filter(|time| *time > now) {
            return Next::Wait(Some(time));
        }
        if self.must_read != MustRead::No {
            return Next::Read;
        }
        // Those never refused go together; a refused one goes alone, so that it cannot hold the others up.
        let mut free = wanted.changes(node, |step| !self.denials.contains_key(step));
        if let Some(change) = free.next() {
            return Next::Send(change);
        }
        let mut waits = Vec::new();
        for (denied, denial) in &self.denials {
            let Some(alone) = wanted.changes(node, |step| step == denied).next() else {
                continue;
            };
            if denial.until <= now {
                return Next::Send(alone);
            }
            waits.push(denial.until);
        }
        Next::Wait(waits.into_iter().min())
    }

    /// The answer to [`Next::Send`].
    pub fn sent(
        &mut self,
        now: Instant,
        change: &Change,
        answer: &Result<NodeView, ApiError>,
    ) -> Option<Verdict> {
        match answer {
            Ok(_) => {
                self.reset();
                return Some(Verdict::Done);
            }
            Err(error) if is_denial(error) => {
                self.must_read = MustRead::BeforeNext;
                self.refused = Some((change.clone(), error.to_string()));
            }
            // A failed `test`, a stale version, a server in trouble, or an outcome that nobody knows. Only a 429
            // says for certain that nothing has happened.
            Err(error) => {
                self.failed(now, error);
                if error.leaves_outcome_unknown() {
                    self.must_read = MustRead::AtOnce;
                    return Some(Verdict::Unanswered);
                }
                if error.code() != Some(429) {
                    self.must_read = MustRead::BeforeNext;
                }
            }
        }
        None
    }

    /// [`Next::Send`] was broken off: it may have taken effect.
    pub fn broken_off(&mut self) {
        self.must_read = MustRead::AtOnce;
    }

    /// The answer to [`Next::Read`]. `wanted` is as for [`Self::next`].
    pub fn read(
        &mut self,
        now: Instant,
        wanted: &Wanted<'_>,
        answer: &Result<NodeView, ApiError>,
    ) -> Option<Verdict> {
        let node = match answer {
            Ok(node) => Some(node),
            // It may not be read: what the watch says must do, and a refusal is taken at its word.
            Err(error) if is_denial(error) => None,
            Err(error) => {
                self.failed(now, error);
                return None;
            }
        };
        self.must_read = MustRead::No;
        let Some((refused, message)) = self.refused.take() else {
            if node.is_none() {
                self.retry(now, Duration::ZERO);
            }
            return None;
        };
        let steps: Vec<_> = refused.steps().collect();
        let again = node.map(|node| wanted.changes(node, |step| steps.contains(step)).next());
        if again.is_some_and(|again| again.as_ref() != Some(&refused)) {
            // Something else was true when it was refused: try what is right now.
            self.retry(now, Duration::ZERO);
            return None;
        }
        if let [taint] = refused.taints.as_slice() {
            return Some(self.deny(now, refused.action, taint, message));
        }
        for step in steps {
            self.denials
                .entry(step)
                // Refused once more, alone as it was: whatever the reason, not without a wait.
                .and_modify(|denial| denial.postpone(now))
                .or_insert_with(|| Denial::new(now));
        }
        None
    }

    /// Whether the wait is for the credentials, which were refused.
    pub fn waits_for_credentials(&self) -> bool {
        self.waits_for_credentials
    }

    /// The credentials are others: what waits because those before were refused is due now.
    pub fn credentials_renewed(&mut self) {
        if self.waits_for_credentials {
            self.not_before = None;
        }
    }

    /// The rules are others: what was refused to those before is no reason to wait.
    pub fn forget_denials(&mut self) {
        self.denials.clear();
    }

    fn deny(&mut self, now: Instant, action: Action, taint: &Taint, message: String) -> Verdict {
        let denial = self
            .denials
            .entry(Step::new(action, taint))
            .or_insert_with(|| Denial::new(now));
        denial.postpone(now);
        let first = denial.message != message;
        denial.message.clone_from(&message);
        Verdict::Denied {
            action,
            taint: taint.clone(),
            message,
            first,
        }
    }

    fn failed(&mut self, now: Instant, error: &ApiError) {
        self.retry(now, asked_wait(error));
        self.waits_for_credentials = error.refuses_credentials();
    }

    fn retry(&mut self, now: Instant, asked: Duration) {
        self.waits_for_credentials = false;
        self.not_before = Some(now + jittered(asked) + self.backoff.next(RETRY_CAP));
    }

    fn reset(&mut self) {
        self.backoff.reset();
        self.not_before = None;
        self.waits_for_credentials = false;
        self.must_read = MustRead::No;
        self.refused = None;
    }
}

/// Whether the server said no, rather than that somebody was faster. A 422 without details is a failed `test`.
fn is_denial(error: &ApiError) -> bool {
    match error {
        ApiError::Refused {
            code: 422,
            detailed,
            ..
        } => *detailed,
        ApiError::Refused { code, .. } => {
            (400..500).contains(code) && ![401, 404, 408, 409, 429].contains(code)
        }
        _ => false,
    }
}

/// How long the server wants to be left alone, in its own words or by its state.
fn asked_wait(error: &ApiError) -> Duration {
    let trouble = error.code().is_some_and(|code| code == 429 || code >= 500);
    error
        .retry_after()
        .unwrap_or(if trouble { TROUBLE } else { Duration::ZERO })
}

#[cfg(test)]
mod tests;
