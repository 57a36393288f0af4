//! Another configuration while the agent runs.

use std::time::Instant;

use tracing::info;

use super::Agent;
use super::rule::RuleRunner;
use crate::boot::Boot;
use crate::config::Configuration;
use crate::reload::{Loaded, Reload};
use crate::status::ConfigurationStatus;

impl Agent<'_> {
    pub(super) fn reload(&mut self, reload: Reload) {
        match reload {
            Reload::Changed(Loaded {
                configuration,
                status,
            }) => {
                let ConfigurationStatus { source, sha256, .. } = &status;
                info!(source, sha256, "reloaded the configuration");
                self.configuration = status;
                self.follow(configuration, None);
                self.update_put_backs(Instant::now());
                self.writes.forget_denials();
                self.cancel_unwanted_change();
                self.cancel_unwanted_condition();
            }
            Reload::Kept(status) => {
                let failure = status.last_failure.as_ref().filter(|_| status.failing);
                if let (Some(failure), Some(node)) = (failure, self.latest.get()) {
                    self.notifier.bad_file(&node.metadata.uid, &failure.message);
                }
                self.configuration = status;
            }
        }
    }

    /// Follows these rules and no others from now on. A rule that was followed before keeps what it knows. `boot`: the one
    /// that this process has come up with, if the others come with it.
    pub(super) fn follow(&mut self, configuration: Configuration, boot: Option<Boot>) {
        // An Event is a write.
        self.notifier
            .switch_events(configuration.events && !self.options.dry_run);
        let now = Instant::now();
        let stays = |known: &RuleRunner| {
            let mut rules = configuration.rules.iter();
            rules.any(|rule| known.state.rule().is_same(rule))
        };
        let followed = std::mem::take(&mut self.rules).into_iter();
        let (mut followed, removed): (Vec<_>, Vec<_>) = followed.partition(stays);
        // Another rule may have the name of a removed one: forget that first.
        for removed in removed {
            let name = &removed.state.rule().name;
            info!(rule = name, "stopped the rule");
            self.notifier.counters.forget(name);
        }
        for mut rule in configuration.rules {
            rule.dry_run |= self.options.dry_run;
            let is_same = |known: &RuleRunner| known.state.rule().is_same(&rule);
            let known = followed.iter().position(is_same);
            let known = known.map(|index| followed.swap_remove(index));
            let is_followed = |known: &RuleRunner| *known.state.rule() == rule;
            if !known.as_ref().is_some_and(is_followed) {
                let (name, taint, dry_run) = (&rule.name, &rule.taint, rule.dry_run);
                let gates = rule.gates.len();
                info!(rule = name, %taint, gates, dry_run, "started the rule");
            }
            self.rules.push(if let Some(mut known) = known {
                known.reconfigure(now, rule);
                known
            } else {
                self.notifier.counters.begin(&rule.name);
                let (context, notifier) = (self.context.clone(), self.notifier.clone());
                let mut runner = RuleRunner::new(rule, boot, context, notifier);
                if self.once.is_some() {
                    runner.state.never_put_back();
                }
                runner
            });
        }
    }
}
