//! Whether an admission policy restricts the account of this process. A dry run of a change that every policy of
//! `untaint manifests` refuses shows that. If another policy refuses the change, that does not show what else the account
//! may do. Pure.
//!
//! The change adds a taint that no rule of any account can allow: a rule puts back only `NoSchedule` taints. The change
//! must be valid, because the server evaluates policies last.

use std::time::{Duration, Instant};

use json_patch::Patch;
use k8s_openapi::api::core::v1::Taint;

use super::view::NodeView;
use super::{Answer, Next, patch};
use crate::api::ApiError;
use crate::backoff::{Backoff, jittered};
use crate::taint::{Effect, TaintMatcher};

/// The message of a policy of `untaint manifests` about a request for a Node begins with this.
pub const SIGNATURE: &str = "untaint: ";

const KEY: &str = "untaint.dev/never";
/// The mildest effect. A dry run changes nothing; see [`AccountState::DryRunIgnored`] for a server that ignores `dryRun`.
const EFFECT: Effect = Effect::PreferNoSchedule;
/// A policy comes into force some seconds after it is applied: a missing one is worth a warning only if it is still
/// missing after this time.
const SECOND_RUN: Duration = Duration::from_secs(10);
/// The time between dry runs while a policy is missing.
const PERIOD: Duration = Duration::from_mins(5);
/// The time between dry runs while a policy holds the account: 10,000 nodes send three requests a second.
const HELD_PERIOD: Duration = Duration::from_hours(1);
const RETRY_BASE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq)]
pub struct DryRun {
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
    /// The server made the change: the version of the Node is another one. Only a server, or a proxy before it, that
    /// ignores `dryRun` does so; no Kubernetes since 1.19 does. The agent must remove this taint.
    DryRunIgnored(TaintMatcher),
}

#[derive(Debug)]
pub struct SelfCheck {
    account: AccountState,
    /// When the next dry run is due; `None` for no more dry runs.
    due_at: Option<Instant>,
    backoff: Backoff,
    /// Whether the process may end before a second dry run.
    once: bool,
    not_held_reported: bool,
}

impl SelfCheck {
    /// The first dry run is due `now`. `once`: the process may end before a second one.
    pub fn new(now: Instant, once: bool) -> Self {
        Self {
            account: AccountState::Unknown("not checked yet".into()),
            due_at: Some(now),
            backoff: Backoff::new(RETRY_BASE),
            once,
            not_held_reported: false,
        }
    }

    pub fn account(&self) -> &AccountState {
        &self.account
    }

    /// The taint that a server which ignores `dryRun` has added.
    pub fn taint_to_remove(&self) -> Option<&TaintMatcher> {
        match &self.account {
            AccountState::DryRunIgnored(taint) => Some(taint),
            _ => None,
        }
    }

    /// The dry run that is due. If the Node has the taint already, there is none, and the next one is later.
    pub fn next(&mut self, now: Instant, node: &NodeView) -> Next<DryRun> {
        if self.due_at.is_some_and(|due_at| due_at <= now) {
            if let Some(dry_run) = dry_run(node) {
                return Next::Send(dry_run);
            }
            self.inconclusive(now, format!("the Node has a taint {KEY}"), Duration::ZERO);
        }
        Next::Wait(self.due_at)
    }

    /// Returns the state of the account if it is to be reported.
    pub fn answered(
        &mut self,
        now: Instant,
        dry_run: &DryRun,
        answer: &Answer,
    ) -> Option<AccountState> {
        let found = judge(dry_run, answer);
        let is_new = match &found {
            AccountState::Unknown(message) => {
                let asked = answer.as_ref().err().and_then(ApiError::retry_after);
                self.inconclusive(now, message.clone(), asked.unwrap_or_default());
                return None;
            }
            AccountState::Held(_) => {
                self.due_at = Some(now + jittered(HELD_PERIOD));
                self.not_held_reported = false;
                !matches!(self.account, AccountState::Held(_))
            }
            AccountState::NotHeld => {
                let again = self.account == AccountState::NotHeld || self.once;
                let wait = if again { PERIOD } else { SECOND_RUN };
                self.due_at = Some(now + jittered(wait));
                again && !std::mem::replace(&mut self.not_held_reported, again)
            }
            AccountState::DryRunIgnored(_) => {
                self.due_at = None;
                true
            }
        };
        self.backoff.reset();
        self.account = found;
        is_new.then(|| self.account.clone())
    }

    /// The state of the account stays as it is known.
    fn inconclusive(&mut self, now: Instant, message: String, asked: Duration) {
        if let AccountState::Unknown(known) = &mut self.account {
            *known = message;
        }
        let wait = self.backoff.next(PERIOD).max(jittered(asked));
        self.due_at = Some(now + wait);
    }
}

/// `None` where the Node has the taint already.
fn dry_run(node: &NodeView) -> Option<DryRun> {
    let taint = Taint {
        key: KEY.into(),
        effect: EFFECT.as_str().into(),
        ..Taint::default()
    };
    let mut addition = patch::addition(node, &[taint])?;
    let version = node.metadata.resource_version;
    // Otherwise, an update by another client would look like a dry run that was carried out.
    addition.operations.0.insert(0, patch::test_version(node));
    Some(DryRun {
        uid: addition.uid,
        version,
        operations: addition.operations,
    })
}

fn judge(dry_run: &DryRun, answer: &Answer) -> AccountState {
    let is_ours = |taint: &Taint| taint.key == KEY;
    match answer {
        Ok(node) if !node.taints.iter().any(is_ours) => AccountState::Unknown(format!(
            "a webhook or another program removes the taint {KEY} from the request"
        )),
        Ok(node) if node.metadata.resource_version == dry_run.version => AccountState::NotHeld,
        Ok(_) => AccountState::DryRunIgnored(TaintMatcher {
            key: KEY.into(),
            value: None,
            effect: Some(EFFECT),
        }),
        Err(error) => match refusing_policy(error) {
            Some(message) => AccountState::Held(message),
            None => AccountState::Unknown(error.to_string()),
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
