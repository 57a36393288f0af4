//! Whether an admission policy restricts the account of this process. A dry run of a change that every policy of
//! `untaint manifests` refuses shows that. If another policy refuses the change, that does not show what else the account
//! may do. Pure.
//!
//! The change adds a taint that no rule can allow, whatever account the policy is for: a rule puts back only `NoSchedule`
//! taints. The change must be valid, because the server asks policies last.

use std::time::{Duration, Instant};

use json_patch::Patch;
use k8s_openapi::api::core::v1::Taint;

use super::patch;
use super::view::NodeView;
use crate::api::ApiError;
use crate::backoff::{Backoff, jittered};
use crate::taint::{Effect, TaintMatcher};

/// The message of a policy of `untaint manifests` about a request for a Node begins with this.
pub const SIGNATURE: &str = "untaint: ";

const KEY: &str = "untaint.dev/never";
/// The mildest effect. A dry run changes nothing; see [`Finding::CarriedOut`] for a server that ignores `dryRun`.
const EFFECT: Effect = Effect::PreferNoSchedule;
/// A policy comes into force some seconds after it is applied: a missing one is worth a warning only if it is still
/// missing after this time.
const SECOND_LOOK: Duration = Duration::from_secs(10);
/// How often to look for a missing policy.
const PERIOD: Duration = Duration::from_mins(5);
/// How often to look whether the policy is still there: three requests a second of 10,000 nodes.
const HELD_PERIOD: Duration = Duration::from_hours(1);
const RETRY_BASE: Duration = Duration::from_secs(2);

/// A dry run.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Of the Node.
    pub uid: String,
    /// Of the Node.
    version: u64,
    pub operations: Patch,
}

/// What is known of the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountState {
    /// Why nothing is known.
    Unknown(String),
    /// The policy that refused, as the server names it.
    Held(String),
    NotHeld,
}

/// What an answer shows.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// The policy that refused, as the server names it.
    Held(String),
    NotHeld,
    /// Nothing about policies, and why.
    Nothing(String),
    /// The server made the change: the version of the Node is another one. Only a server, or a proxy before it, that
    /// ignores `dryRun` does so; no Kubernetes since 1.19 does.
    CarriedOut,
}

#[derive(Debug)]
pub struct SelfCheck {
    account: AccountState,
    /// `None`: never again.
    due_at: Option<Instant>,
    backoff: Backoff,
    /// Whether the process may end before a second look.
    once: bool,
    not_held_reported: bool,
    leftover_taint: Option<TaintMatcher>,
}

impl SelfCheck {
    /// Looks from `now` on. `once`: the process may end before a second look.
    pub fn new(now: Instant, once: bool) -> Self {
        Self {
            account: AccountState::Unknown("not checked yet".into()),
            due_at: Some(now),
            backoff: Backoff::new(RETRY_BASE),
            once,
            not_held_reported: false,
            leftover_taint: None,
        }
    }

    pub fn account(&self) -> &AccountState {
        &self.account
    }

    /// When to look next; `None`: never again.
    pub fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// The taint that a server which ignores `dryRun` has left on the Node. The agent must remove it.
    pub fn leftover_taint(&self) -> Option<&TaintMatcher> {
        self.leftover_taint.as_ref()
    }

    /// The dry run for this Node. If the Node has the taint already, there is none, and the next look is later.
    pub fn look(&mut self, now: Instant, node: &NodeView) -> Option<Probe> {
        let probe = probe(node);
        if probe.is_none() {
            self.inconclusive(now, format!("the Node has a taint {KEY}"), Duration::ZERO);
        }
        probe
    }

    /// Returns the finding if it is news.
    pub fn answered(
        &mut self,
        now: Instant,
        probe: &Probe,
        answer: &Result<NodeView, ApiError>,
    ) -> Option<Finding> {
        match judge(probe, answer) {
            Finding::Held(message) => {
                self.due_at = Some(now + jittered(HELD_PERIOD));
                self.backoff.reset();
                self.not_held_reported = false;
                let is_known = matches!(self.account, AccountState::Held(_));
                self.account = AccountState::Held(message.clone());
                (!is_known).then_some(Finding::Held(message))
            }
            Finding::NotHeld => {
                let again = self.account == AccountState::NotHeld || self.once;
                self.account = AccountState::NotHeld;
                self.backoff.reset();
                let wait = if again { PERIOD } else { SECOND_LOOK };
                self.due_at = Some(now + jittered(wait));
                let is_new = again && !std::mem::replace(&mut self.not_held_reported, again);
                is_new.then_some(Finding::NotHeld)
            }
            Finding::Nothing(message) => {
                let asked = answer.as_ref().err().and_then(ApiError::retry_after);
                self.inconclusive(now, message, asked.unwrap_or_default());
                None
            }
            Finding::CarriedOut => {
                self.due_at = None;
                self.account = AccountState::Unknown("the server ignores dryRun".into());
                self.leftover_taint = Some(TaintMatcher {
                    key: KEY.into(),
                    value: None,
                    effect: Some(EFFECT),
                });
                Some(Finding::CarriedOut)
            }
        }
    }

    /// What is known of the account stays.
    fn inconclusive(&mut self, now: Instant, message: String, asked: Duration) {
        if let AccountState::Unknown(known) = &mut self.account {
            *known = message;
        }
        let wait = self.backoff.next(PERIOD).max(jittered(asked));
        self.due_at = Some(now + wait);
    }
}

/// `None` where the Node has the taint already.
fn probe(node: &NodeView) -> Option<Probe> {
    let taint = Taint {
        key: KEY.into(),
        effect: EFFECT.as_str().into(),
        ..Taint::default()
    };
    let addition = patch::addition(node, &[taint])?;
    Some(Probe {
        uid: addition.uid.clone(),
        version: node.metadata.resource_version,
        operations: patch::pinned(addition, node),
    })
}

fn judge(probe: &Probe, answer: &Result<NodeView, ApiError>) -> Finding {
    let is_ours = |taint: &Taint| taint.key == KEY;
    match answer {
        Ok(node) if !node.taints.iter().any(is_ours) => Finding::Nothing(format!(
            "a webhook or another program removes the taint {KEY} from the request"
        )),
        Ok(node) if node.metadata.resource_version == probe.version => Finding::NotHeld,
        Ok(_) => Finding::CarriedOut,
        Err(error) => match refusing_policy(error) {
            Some(message) => Finding::Held(message),
            None => Finding::Nothing(error.to_string()),
        },
    }
}

/// The server's message from the name of the policy on (`dispatcher.go` of the plugin `ValidatingAdmissionPolicy`). `None`
/// if something else refused: a role, the kubelet's restrictions, a webhook, the validation of Nodes, another policy.
fn refusing_policy(error: &ApiError) -> Option<String> {
    let ApiError::Refused { message, .. } = error else {
        return None;
    };
    let message = &message[message.find("ValidatingAdmissionPolicy '")?..];
    let (_, reason) = message.split_once(" denied request: ")?;
    reason.starts_with(SIGNATURE).then(|| message.to_owned())
}

#[cfg(test)]
mod tests;
