//! Whether a policy holds the account, beside everything else and never in its way.

use std::time::Instant;

use tracing::{debug, error, info, warn};

use super::pending::{Answer, Pending};
use super::rule::RuleAtWork;
use super::{Agent, Options};
use crate::node;
use crate::node::self_check::{News, Probe, SelfCheck, Standing};
use crate::status::PolicyStatus;

/// Where to read on.
const REMEDY: &str = "apply the policies that untaint manifests writes; see Is the account held? in docs/security.md";

/// `None` where nobody wants to know, and where nothing is written.
pub(super) fn begin(options: &Options) -> Option<SelfCheck> {
    let is_wanted = options.policy_check && !options.dry_run;
    is_wanted.then(|| SelfCheck::new(Instant::now(), options.once.is_some()))
}

impl<'a> Agent<'a> {
    /// Starts the dry run if it is due `now` and nothing is written: `idle`.
    pub(super) fn next_self_check(&mut self, now: Instant, idle: bool) -> Pending<'a, Probe> {
        self.check_at = None;
        let writes = self.writes_anything();
        let (Some(check), Some(node)) = (&mut self.self_check, self.latest.get()) else {
            return Pending::NONE;
        };
        let Some(due_at) = check
            .due_at()
            .filter(|_| idle && writes && self.connection.is_watching())
        else {
            return Pending::NONE;
        };
        let due = (due_at <= now).then(|| check.look(now, node)).flatten();
        let Some(probe) = due else {
            self.check_at = check.due_at();
            return Pending::NONE;
        };
        let (api, name) = (self.api, self.node_name.clone());
        let (uid, operations) = (probe.uid.clone(), probe.operations.clone());
        Pending::new(probe, async move {
            node::dry_run(api, &name, &uid, operations).await
        })
    }

    /// Takes in the answer. It is about a Node that there is not: nothing else follows from it.
    pub(super) fn take_self_check(&mut self, probe: &Probe, answer: &Answer) {
        let Some(check) = &mut self.self_check else {
            return;
        };
        match check.take(Instant::now(), probe, answer) {
            Some(News::Held(by)) => info!(by, "an admission policy holds this account"),
            Some(News::NotHeld) => warn!(
                remedy = REMEDY,
                "no admission policy holds this account: its token can change any Node as its roles allow"
            ),
            Some(News::CarriedOut) => error!(
                "the server has carried out a dry run; taking the taint off again, and asking no more whether a policy holds this account"
            ),
            None => {
                debug!(standing = ?check.standing(), "asked whether a policy holds this account");
            }
        }
    }

    pub(super) fn policy_status(&self) -> PolicyStatus {
        let (state, message) = match &self.self_check {
            None => (
                "unchecked",
                "switched off by --no-policy-check or --dry-run",
            ),
            Some(_) if !self.writes_anything() => ("unchecked", "no rule writes"),
            Some(check) => match check.standing() {
                Standing::Unknown(why) => ("unknown", why.as_str()),
                Standing::Held(by) => ("held", by.as_str()),
                Standing::NotHeld => ("not-held", REMEDY),
            },
        };
        PolicyStatus {
            state,
            message: message.to_owned(),
        }
    }

    fn writes_anything(&self) -> bool {
        !self
            .rules
            .iter()
            .all(|rule: &RuleAtWork| rule.rule().dry_run)
    }
}
