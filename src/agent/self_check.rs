//! Whether an admission policy restricts the account. The check never delays anything else.

use std::time::Instant;

use tracing::{debug, error, info, warn};

use super::{Agent, Options};
use crate::node::self_check::{AccountState, DryRun, SelfCheck};
use crate::node::{self, Answer, Next};
use crate::status::PolicyStatus;

const REMEDY: &str = "apply the policies that `untaint manifests` writes; see the section `Is the account held?` in docs/security.md";

/// `None` if the check is switched off or nothing is written.
pub(super) fn begin(options: &Options) -> Option<SelfCheck> {
    let is_wanted = options.policy_check && !options.dry_run;
    is_wanted.then(|| SelfCheck::new(Instant::now(), options.once.is_some()))
}

impl Agent<'_> {
    /// Sends the dry run if it is due and nothing else is under way.
    pub(super) fn send_self_check(&mut self, now: Instant) {
        if !self.slots.self_check.is_idle() {
            return;
        }
        let may_ask = self.slots.taints.is_idle()
            && self.slots.last_look.is_idle()
            && self.slots.conditions.is_idle()
            && self.writes_anything()
            && self.connection.is_watching();
        let next = match (&mut self.self_check, self.latest.get()) {
            (Some(check), Some(node)) if may_ask => check.next(now, node),
            _ => Next::Wait(None),
        };
        let (api, name) = (self.api, &self.options.node_name);
        self.slots.self_check.send_or_wait(next, |dry_run| {
            node::dry_run(api, name, dry_run.uid.clone(), dry_run.operations.clone())
        });
    }

    /// The answer to a dry run shows a Node that does not exist, so the agent does not record it.
    pub(super) fn self_check_answered(&mut self, dry_run: &DryRun, answer: &Answer) {
        let Some(check) = &mut self.self_check else {
            return;
        };
        match check.answered(Instant::now(), dry_run, answer) {
            Some(AccountState::Held(by)) => info!(by, "an admission policy restricts this account"),
            Some(AccountState::NotHeld) => warn!(
                remedy = REMEDY,
                "no admission policy restricts this account: its token can change every Node as its roles allow"
            ),
            Some(AccountState::DryRunIgnored(_)) => error!(
                "the server carried out a dry run and added the taint; removing it, and no longer checking whether a policy restricts this account"
            ),
            Some(AccountState::Unknown(_)) | None => {
                debug!(account = ?check.account(), "checked whether a policy restricts this account");
            }
        }
    }

    pub(super) fn policy_status(&self) -> PolicyStatus {
        let (state, message) = match &self.self_check {
            None => (
                "unchecked",
                "switched off by --no-policy-check or --dry-run",
            ),
            Some(_) if !self.writes_anything() => ("unchecked", "no rule writes: each has dryRun"),
            Some(check) => match check.account() {
                AccountState::Unknown(why) => ("unknown", why.as_str()),
                AccountState::Held(by) => ("held", by.as_str()),
                AccountState::NotHeld => ("not-held", REMEDY),
                AccountState::DryRunIgnored(_) => ("unknown", "the server ignores dryRun"),
            },
        };
        PolicyStatus {
            state,
            message: message.to_owned(),
        }
    }

    fn writes_anything(&self) -> bool {
        self.rules.iter().any(|rule| !rule.state.rule().dry_run)
    }
}
