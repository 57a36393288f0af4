//! Another configuration while the agent runs.

use std::time::Instant;

use tracing::info;

use super::Agent;
use super::calls::{Call, wanted};
use super::conditions::ConditionWrite;
use super::pending::Pending;
use super::rule::RuleRunner;
use crate::config::Configuration;
use crate::reload::{Loaded, Reload};
use crate::status::ConfigurationStatus;

impl Agent<'_> {
    pub(super) fn reload(
        &mut self,
        reload: Reload,
        pending: &mut Pending<'_, Call>,
        writing: &mut Pending<'_, ConditionWrite>,
    ) {
        match reload {
            Reload::Changed(Loaded {
                configuration,
                status,
            }) => {
                let ConfigurationStatus { source, sha256, .. } = &status;
                info!(source, sha256, "reloaded the configuration");
                self.configuration = status;
                self.follow(configuration);
                self.writes.forget_denials();
                self.break_off_what_nobody_wants(pending, writing);
            }
            Reload::Kept(status) => {
                let failure = status.last_failure.as_ref().filter(|_| status.failing);
                if let (Some(failure), Some(node)) = (failure, self.latest.get()) {
                    let uid = &node.metadata.uid;
                    self.notifier.tell_of_bad_file(uid, &failure.message);
                }
                self.configuration = status;
            }
        }
    }

    /// Follows these rules and no others from now on. Those that were followed before keep what they know.
    pub(super) fn follow(&mut self, configuration: Configuration) {
        // An Event is a write.
        self.notifier
            .switch_events(configuration.events && !self.dry_run);
        let now = Instant::now();
        let stays = |known: &RuleRunner| {
            let mut rules = configuration.rules.iter();
            rules.any(|rule| known.rule().is_same(rule))
        };
        let followed = std::mem::take(&mut self.rules);
        let (mut followed, gone): (Vec<_>, Vec<_>) = followed.into_iter().partition(stays);
        for gone in gone {
            let name = &gone.rule().name;
            info!(rule = name, "follows the rule no more");
            self.notifier.forget(name);
        }
        for mut rule in configuration.rules {
            rule.dry_run |= self.dry_run;
            if self.once.is_some() {
                // Nobody would be there to remove it again.
                rule.retaint = None;
            }
            let index = followed
                .iter()
                .position(|known| known.rule().is_same(&rule));
            let known = index.map(|index| followed.swap_remove(index));
            if known.as_ref().is_none_or(|known| *known.rule() != rule) {
                let (name, taint, dry_run) = (&rule.name, &rule.taint, rule.dry_run);
                let gates = rule.gates.len();
                info!(rule = name, %taint, gates, dry_run, "follows the rule");
            }
            self.rules.push(if let Some(mut known) = known {
                known.reconfigure(now, rule);
                known
            } else {
                self.notifier.begin(&rule.name);
                let (context, notifier) = (self.context.clone(), self.notifier.clone());
                RuleRunner::new(rule, self.boot, context, notifier)
            });
        }
    }

    /// Nothing else is left of what a rule that is gone had written: what to send is asked of the rules each time.
    fn break_off_what_nobody_wants(
        &mut self,
        pending: &mut Pending<'_, Call>,
        writing: &mut Pending<'_, ConditionWrite>,
    ) {
        let wanted = wanted(&self.rules, self.self_check.as_ref());
        let broken_off = pending.break_off_unless(|call| match call {
            Call::Send(change) => wanted.includes(change),
            Call::Read(_) | Call::Confirm(_) => true,
        });
        if let Some(Call::Send(change)) = broken_off {
            info!("broke off a change that is not wanted any more");
            self.writes.broken_off();
            self.unanswered(&change);
        }
        writing.break_off_unless(|write| self.wants(write));
    }
}
