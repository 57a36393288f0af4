//! Whether an admission policy holds the account of this process. A dry run shows it, of a change that every policy of
//! `untaint manifests` refuses. Another policy may refuse it too, but
//! does not show what else the account may do. Pure.
//!
//! The change is a taint that no rule can allow, whatever account the policy is for: what a rule puts back is
//! `NoSchedule`. The change must be valid, because the server asks policies last.

use std::time::{Duration, Instant};

use json_patch::Patch;
use k8s_openapi::api::core::v1::Taint;

use super::patch;
use super::view::NodeView;
use crate::api::ApiError;
use crate::backoff::{Backoff, jittered};
use crate::taint::{Effect, TaintMatcher};

/// What a policy of `untaint manifests` says of a request for a Node begins with this.
pub const SIGNATURE: &str = "untaint: ";

const KEY: &str = "untaint.dev/never";
/// The mildest. A dry run changes nothing; see [`Finding::CarriedOut`] for a server that ignores `dryRun`.
const EFFECT: Effect = Effect::PreferNoSchedule;
/// A policy comes into force some seconds after it is applied: a missing one is worth a warning only when it is still
/// missing after this time.
const SECOND_LOOK: Duration = Duration::from_secs(10);
/// How often to look whether a missing policy is there by now.
const PERIOD: Duration = Duration::from_mins(5);
/// How often to look whether the policy is still there: three requests a second of 10,000 nodes.
const HELD_PERIOD: Duration = Duration::from_hours(1);
const RETRY_BASE: Duration = Duration::from_secs(2);

/// A dry run, of a Node as it was known.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Of the Node.
    pub uid: String,
    /// Of the Node.
    version: u64,
    /// The change.
    pub operations: Patch,
}

/// What is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing yet, and why.
    Unknown(String),
    /// A policy, in the server's words.
    Held(String),
    /// None.
    NotHeld,
}

/// What an answer says.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    Held(String),
    NotHeld,
    /// Nothing about policies.
    Nothing(String),
    /// The change was made: the version of the Node is another one. Only a server, or a proxy before it, that ignores
    /// `dryRun` does so; no Kubernetes since 1.19 is one.
    CarriedOut,
}

/// What is worth a line.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// A policy holds the account, in the server's words.
    Held(String),
    /// None does, and that is not because it was applied just now.
    NotHeld,
    /// The server ignores `dryRun`.
    CarriedOut,
}

/// When to look, and what was seen.
#[derive(Debug)]
pub struct SelfCheck {
    standing: Standing,
    /// `None`: never again.
    due_at: Option<Instant>,
    backoff: Backoff,
    /// Whether one look is all there is.
    once: bool,
    told: bool,
    leftover: Option<TaintMatcher>,
}

impl SelfCheck {
    /// Looks from `now` on. `once`: the process may end before there is a second look.
    pub fn new(now: Instant, once: bool) -> Self {
        Self {
            standing: Standing::Unknown("not asked yet".into()),
            due_at: Some(now),
            backoff: Backoff::new(RETRY_BASE),
            once,
            told: false,
            leftover: None,
        }
    }

    /// What is known.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// When to look next.
    pub fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// What to take off: the taint that a dry run has left.
    pub fn leftover(&self) -> Option<&TaintMatcher> {
        self.leftover.as_ref()
    }

    /// Whether that is still there.
    pub fn has_left(&self, node: &NodeView) -> bool {
        self.leftover().is_some_and(|taint| node.has(taint))
    }

    /// The dry run for this Node, which is looked at now.
    pub fn look(&mut self, now: Instant, node: &NodeView) -> Option<Probe> {
        let probe = probe(node);
        if probe.is_none() {
            self.inconclusive(now, format!("the Node has a taint {KEY}"), Duration::ZERO);
        }
        probe
    }

    /// Takes in the answer.
    pub fn take(
        &mut self,
        now: Instant,
        probe: &Probe,
        answer: &Result<NodeView, ApiError>,
    ) -> Option<News> {
        match judge(probe, answer) {
            Finding::Held(words) => {
                self.due_at = Some(now + jittered(HELD_PERIOD));
                self.backoff.reset();
                self.told = false;
                let is_known = matches!(self.standing, Standing::Held(_));
                self.standing = Standing::Held(words.clone());
                (!is_known).then_some(News::Held(words))
            }
            Finding::NotHeld => {
                let again = self.standing == Standing::NotHeld || self.once;
                self.standing = Standing::NotHeld;
                self.backoff.reset();
                let wait = if again { PERIOD } else { SECOND_LOOK };
                self.due_at = Some(now + jittered(wait));
                let news = again && !std::mem::replace(&mut self.told, again);
                news.then_some(News::NotHeld)
            }
            Finding::Nothing(words) => {
                let asked = answer.as_ref().err().and_then(ApiError::retry_after);
                self.inconclusive(now, words, asked.unwrap_or_default());
                None
            }
            Finding::CarriedOut => {
                self.due_at = None;
                self.standing = Standing::Unknown("the server ignores dryRun".into());
                self.leftover = Some(TaintMatcher {
                    key: KEY.into(),
                    value: None,
                    effect: Some(EFFECT),
                });
                Some(News::CarriedOut)
            }
        }
    }

    /// What was found out before still counts.
    fn inconclusive(&mut self, now: Instant, words: String, asked: Duration) {
        if let Standing::Unknown(known) = &mut self.standing {
            *known = words;
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
            "something takes the taint {KEY} out of the request"
        )),
        Ok(node) if node.metadata.resource_version == probe.version => Finding::NotHeld,
        Ok(_) => Finding::CarriedOut,
        Err(error) => match refusing_policy(error) {
            Some(words) => Finding::Held(words),
            None => Finding::Nothing(error.to_string()),
        },
    }
}

/// The server's words from the name of the policy on (`dispatcher.go` of the plugin `ValidatingAdmissionPolicy`). Without
/// one of `untaint manifests`, it was something else that refused: a role, the kubelet's restrictions, a webhook, the
/// validation of Nodes, a policy of somebody else.
fn refusing_policy(error: &ApiError) -> Option<String> {
    let ApiError::Refused { message, .. } = error else {
        return None;
    };
    let words = &message[message.find("ValidatingAdmissionPolicy '")?..];
    let (_, reason) = words.split_once(" denied request: ")?;
    reason.starts_with(SIGNATURE).then(|| words.to_owned())
}

#[cfg(test)]
mod tests;
