//! When to send a change of taints, when to read the Node first, and when to wait. Pure, except for jitter.
//!
//! A conflict (409, or the 422 of a failed `test` of the patch) means that somebody else changed the Node first. As after
//! any answer that leaves the Node in doubt, the agent waits for a short backoff, reads the Node with a GET, and computes
//! the patch again: see [`Writes::patched`] and [`MustRead`]. If that lasts, the answer is reported: see [`Trouble`]. A
//! [refusal](ApiError::is_denial) is tried again less and less often, alone, so that it does not hold up other taints: see
//! [`Writes::got`] and [`Denial`].

mod denial;
mod trouble;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Taint;

use super::patch::{Action, Change, Step, Wanted};
use super::view::NodeView;
use super::{Answer, Next};
use crate::api::ApiError;
use crate::backoff::{Backoff, jittered};
use crate::rate_limit::kind;
use denial::Denial;
use trouble::Trouble;

/// The longest wait between two tries after conflicts or failures.
const RETRY_CAP: Duration = Duration::from_secs(5);
const RETRY_BASE: Duration = Duration::from_millis(20);
/// The least wait after a 429 or a 5xx without `Retry-After`.
const TROUBLE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// A read of the Node with this uid, before the next change.
    Get(String),
    Patch(Change),
}

impl Request {
    pub fn change(&self) -> Option<&Change> {
        match self {
            Self::Get(_) => None,
            Self::Patch(change) => Some(change),
        }
    }
}

/// The server does not make the change of a taint.
#[derive(Debug, Clone, PartialEq)]
pub struct Denied {
    pub action: Action,
    pub taint: Taint,
    /// From the server.
    pub message: String,
    /// Whether it is to be told: the messages before had other words, and were not too many.
    pub first: bool,
    /// Whether the server does not allow the change. Otherwise, it has failed to make it for some time.
    pub decided: bool,
}

/// Whether the Node is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MustRead {
    No,
    /// What is known of it may be outdated.
    BeforeNextPatch,
    /// A change may have taken effect. The agent must find out even if nothing else is wanted. Otherwise, it would report
    /// somebody else's later change as its own.
    AtOnce,
}

/// The state of the writes to one Node. At most one request is under way at a time.
#[derive(Debug)]
pub struct Writes {
    backoff: Backoff,
    not_before: Option<Instant>,
    must_read: MustRead,
    /// A refused change with the server's message, to compare with what the Node asks for once it is read.
    refused: Option<(Change, String)>,
    denials: BTreeMap<Step, Denial>,
    trouble: Option<Trouble>,
}

impl Default for Writes {
    fn default() -> Self {
        Self {
            backoff: Backoff::new(RETRY_BASE),
            not_before: None,
            must_read: MustRead::No,
            refused: None,
            denials: BTreeMap::new(),
            trouble: None,
        }
    }
}

impl Writes {
    /// What to do about the taints of `node`.
    pub fn next(&mut self, now: Instant, node: &NodeView, wanted: &Wanted<'_>) -> Next<Request> {
        self.denials.retain(|step, _| match step.action {
            Action::Remove => step.is_pending(node),
            // A put-back that is due months later is not the one that was denied.
            Action::PutBack => wanted
                .changes(node, |wanted| wanted == step)
                .next()
                .is_some(),
        });
        let is_wanted = wanted.changes(node, |_| true).next().is_some();
        if !is_wanted && self.must_read != MustRead::AtOnce {
            // A gate that flaps must not shorten a wait that the server asked for, and does not replace a read.
            if self.not_before.is_none_or(|time| time <= now) {
                self.backoff.reset();
            }
            self.trouble = None;
            return Next::Wait(None);
        }
        if let Some(time) = self.not_before.filter(|time| *time > now) {
            return Next::Wait(Some(time));
        }
        if self.must_read != MustRead::No {
            return Next::Send(Request::Get(node.metadata.uid.clone()));
        }
        // Changes that were never refused go together. A refused one goes alone, so that it does not hold up the others.
        let mut free = wanted.changes(node, |step| !self.denials.contains_key(step));
        if let Some(change) = free.next() {
            return Next::Send(Request::Patch(change));
        }
        let mut waits = Vec::new();
        for (denied, denial) in &self.denials {
            let Some(alone) = wanted.changes(node, |step| step == denied).next() else {
                continue;
            };
            if denial.until <= now {
                return Next::Send(Request::Patch(alone));
            }
            waits.push(denial.until);
        }
        Next::Wait(waits.into_iter().min())
    }

    /// The answer to [`Request::Patch`]. If it leaves the outcome unknown, the next request is a read. Returns what the
    /// server has failed to do for some time.
    pub fn patched(&mut self, now: Instant, change: &Change, answer: &Answer) -> Vec<Denied> {
        match answer {
            Ok(_) => {
                self.backoff.reset();
                self.not_before = None;
                self.must_read = MustRead::No;
                self.refused = None;
                self.trouble = None;
            }
            Err(error) if error.is_denial() => {
                self.must_read = MustRead::BeforeNextPatch;
                self.refused = Some((change.clone(), error.to_string()));
                self.trouble = None;
            }
            // A conflict, refused credentials, a server in trouble, or an unknown outcome. After a 429 alone, the Node is
            // certainly as it was.
            Err(error) => {
                self.retry(now, least_wait(error));
                if error.leaves_outcome_unknown() {
                    self.must_read = MustRead::AtOnce;
                } else if error.code() != Some(429) {
                    self.must_read = MustRead::BeforeNextPatch;
                }
                let new = || Trouble::new(now, change.clone());
                let trouble = self.trouble.get_or_insert_with(new);
                trouble.change.clone_from(change);
                return trouble.goes_on(now, error);
            }
        }
        Vec::new()
    }

    /// The change whose tries fail, if they do.
    pub fn failing(&self) -> Option<&Change> {
        Some(&self.trouble.as_ref()?.change)
    }

    /// [`Request::Patch`] was canceled. It may have taken effect.
    pub fn canceled(&mut self) {
        self.must_read = MustRead::AtOnce;
    }

    /// The answer to [`Request::Get`]. `wanted` is as for [`Self::next`]. Returns what the server does not allow, or has
    /// failed to do for some time.
    pub fn got(&mut self, now: Instant, wanted: &Wanted<'_>, answer: &Answer) -> Vec<Denied> {
        let node = match answer {
            Ok(node) => Some(node),
            // The agent may not read the Node. It uses what the watch delivers, and the refusal counts.
            Err(error) if error.is_denial() => None,
            Err(error) => {
                self.retry(now, least_wait(error));
                let trouble = self.trouble.as_mut();
                return trouble.map_or_else(Vec::new, |trouble| trouble.goes_on(now, error));
            }
        };
        self.must_read = MustRead::No;
        let Some((refused, message)) = self.refused.take() else {
            if node.is_none() {
                self.retry(now, Duration::ZERO);
            }
            return Vec::new();
        };
        // Where a taint stands in the list may change all the time, and was not what the server refused: its policies see
        // the Node only if all operations of the patch succeed.
        let is_asked_again = |step: &Step| {
            node.is_none_or(|node| {
                let mut changes = wanted.changes(node, |wanted| wanted == step);
                changes.any(|change| change.uid == refused.uid)
            })
        };
        let steps: Vec<_> = refused.steps().filter(is_asked_again).collect();
        if steps.is_empty() {
            self.retry(now, Duration::ZERO);
            return Vec::new();
        }
        if let [taint] = refused.taints.as_slice() {
            return vec![self.deny(now, refused.action, taint, message)];
        }
        for step in steps {
            self.denials
                .entry(step)
                // It was refused again although it was alone: never try again without a wait.
                .and_modify(|denial| denial.postpone(now))
                .or_insert_with(|| Denial::new(now));
        }
        Vec::new()
    }

    /// Ends the wait after a failure.
    pub fn retry_now(&mut self) {
        self.not_before = None;
    }

    /// Call it after a reload: earlier refusals are then no reason to wait.
    pub fn forget_denials(&mut self) {
        self.denials.clear();
    }

    fn deny(&mut self, now: Instant, action: Action, taint: &Taint, message: String) -> Denied {
        let denial = self
            .denials
            .entry(Step::new(action, taint))
            .or_insert_with(|| Denial::new(now));
        denial.postpone(now);
        let kind = kind(&message);
        let first = denial.told != kind;
        denial.told = kind;
        Denied {
            action,
            taint: taint.clone(),
            message,
            first,
            decided: true,
        }
    }

    fn retry(&mut self, now: Instant, least: Duration) {
        self.not_before = Some(now + jittered(least) + self.backoff.next(RETRY_CAP));
    }
}

/// `Retry-After`, or what the status code suggests.
fn least_wait(error: &ApiError) -> Duration {
    let trouble = error.code().is_some_and(|code| code == 429 || code >= 500);
    error
        .retry_after()
        .unwrap_or(if trouble { TROUBLE } else { Duration::ZERO })
}

#[cfg(test)]
mod tests;
