//! Whether an admission policy restricts the account. The check never delays anything else.

use std::time::Instant;

use tracing::{debug, error, info, warn};

use super::slot::Answer;
use super::{Agent, Options};
use crate::node;
use crate::node::self_check::{AccountState, Finding, Probe, SelfCheck};
use crate::status::PolicyStatus;

const REMEDY: &str = "apply the policies that `untaint manifests` writes; see the section `Is the account held?` in docs/security.md";

/// `None` where it is switched off, and where nothing is written.
pub(super) fn begin(options: &Options) -> Option<SelfCheck> {
    let is_wanted = options.policy_check && !options.dry_run;
    is_wanted.then(|| SelfCheck::new(Instant::now(), options.once.is_some()))
}

impl Agent<'_> {
    /// Sends the dry run if it is due and nothing else is under way.
    pub(super) fn send_self_check(&mut self, now: Instant) {
        let may_ask = self.slots.taints.is_idle()
            && self.slots.last_look.is_idle()
            && self.slots.conditions.is_idle()
            && self.writes_anything()
            && self.connection.is_watching();
        let subjects = self.self_check.as_mut().zip(self.latest.get());
        let Some((check, node)) = subjects.filter(|_| may_ask) else {
            self.slots.self_check.wait_until(None);
            return;
        };
        if !self.slots.self_check.is_due(now, check.due_at()) {
            return;
        }
        let Some(probe) = check.look(now, node) else {
            self.slots.self_check.wait_until(check.due_at());
            return;
        };
        let (api, name) = (self.api, self.node_name.clone());
        let (uid, operations) = (probe.uid.clone(), probe.operations.clone());
        let answer = async move { node::dry_run(api, &name, &uid, operations).await };
        self.slots.self_check.send(probe, answer);
    }

    /// The answer shows a Node that does not exist, so nothing else follows from it.
    pub(super) fn self_check_answered(&mut self, probe: &Probe, answer: &Answer) {
        let Some(check) = &mut self.self_check else {
            return;
        };
        match check.answered(Instant::now(), probe, answer) {
            Some(Finding::Held(by)) => info!(by, "an admission policy restricts this account"),
            Some(Finding::NotHeld) => warn!(
                remedy = REMEDY,
                "no admission policy restricts this account: its token can change every Node as its roles allow"
            ),
            Some(Finding::CarriedOut) => error!(
                "the server carried out a dry run and added the taint; removing it, and no longer checking whether a policy restricts this account"
            ),
            Some(Finding::Nothing(_)) | None => {
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
