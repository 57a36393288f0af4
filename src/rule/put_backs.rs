//! The taints that untaint has put back, and which taints no rule removes from this Node. Pure.
//!
//! A rule removes what it has put back, as long as it is there and selects the Node. If it is gone, has another taint or
//! no longer selects the Node, the taint would stay forever. So this process remembers what it has put back. It
//! does not mark the Node: see `retaint_timer`. After a restart, nothing distinguishes such a taint from one of others.
//! `managedFields` does not either: `spec.taints` is an atomic list, so its last writer owns all of it.

use k8s_openapi::api::core::v1::Taint;

use super::RuleState;
use super::left_taint::{Left, LeftTaint, not_selected};
use crate::node::Answer;
use crate::node::patch::{Action, Change};
use crate::node::view::NodeView;
use crate::node::writes::Denied;
use crate::taint::TaintMatcher;

/// What is known of a put-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// It has no answer yet.
    UnderWay,
    /// It has no answer, and never will have.
    Unanswered,
    /// The taint was on the Node afterwards.
    Done,
}

/// A taint that this process has put back, as long as the Node has it.
#[derive(Debug)]
struct PutBack {
    /// Of the Node.
    uid: String,
    rule: String,
    taint: Taint,
    /// Matches this taint and no other.
    matcher: TaintMatcher,
    evidence: Evidence,
    /// Its removal may have taken effect without an answer.
    may_be_removed: bool,
    /// The server's message while it refuses the removal.
    denied: Option<String>,
}

/// What [`PutBacks::update`] has found.
#[derive(Debug, Default)]
pub struct Update {
    /// Taints that no rule removes from now on.
    pub newly_left: Vec<LeftTaint>,
    /// See [`PutBacks::accepted`].
    pub taken_off: Vec<TakenOff>,
}

/// untaint has removed a taint that no rule for this Node names.
#[derive(Debug, PartialEq)]
pub struct TakenOff {
    /// The rule that had put it back.
    pub rule: String,
    pub taint: Taint,
    /// The server accepted that, and the taint is there again.
    pub is_undone: bool,
}

#[derive(Debug, Default)]
pub struct PutBacks {
    known: Vec<PutBack>,
    left: Vec<LeftTaint>,
}

impl PutBacks {
    /// `change` is sent. `rules`: those that may want it.
    pub fn sent<'r>(&mut self, change: &Change, rules: impl Iterator<Item = &'r RuleState>) {
        if change.action != Action::PutBack {
            return;
        }
        let rules: Vec<_> = rules.collect();
        for taint in &change.taints {
            let puts_back = |rule: &&&RuleState| {
                let own = rule.own_taints().to_put_back();
                own.is_some_and(|own| own.to_taint() == *taint)
            };
            let rule = rules.iter().find(puts_back);
            if let Some((rule, matcher)) = rule.zip(TaintMatcher::exactly(taint)) {
                let is_it = |known: &PutBack| known.uid == change.uid && known.matcher == matcher;
                let is_unanswered =
                    |known: &PutBack| is_it(known) && known.evidence == Evidence::Unanswered;
                // It may have taken effect: only the Node shows that, whatever the answer is this time.
                if self.known.iter().any(is_unanswered) {
                    continue;
                }
                self.known.retain(|known| !is_it(known));
                self.known.push(PutBack {
                    uid: change.uid.clone(),
                    rule: rule.rule().name.clone(),
                    taint: taint.clone(),
                    matcher,
                    evidence: Evidence::UnderWay,
                    may_be_removed: false,
                    denied: None,
                });
            }
        }
    }

    /// The answer to `change`. Returns what was removed.
    pub fn answered(&mut self, change: &Change, answer: &Answer) -> Vec<TakenOff> {
        match answer {
            Ok(node) => return self.accepted(change, node),
            Err(error) if error.leaves_outcome_unknown() => self.unanswered(change),
            Err(_) => self
                .known
                .retain(|known| known.evidence != Evidence::UnderWay),
        }
        Vec::new()
    }

    fn accepted(&mut self, change: &Change, node: &NodeView) -> Vec<TakenOff> {
        match change.action {
            Action::PutBack => {
                for known in &mut self.known {
                    if known.evidence == Evidence::UnderWay {
                        known.evidence = Evidence::Done;
                    }
                }
                self.known.retain(|known| node.has(&known.matcher));
                Vec::new()
            }
            Action::Remove => {
                let orphans = self.orphans().map(|orphan| orphan.taint.clone());
                let orphans: Vec<_> = orphans.collect();
                let is_taken_off =
                    |known: &mut PutBack| orphans.contains(&known.taint) && known.is_in(change);
                // If something in the server puts it back at once, it is no longer untaint's.
                let taken_off = self.known.extract_if(.., is_taken_off);
                taken_off.map(|known| known.taken_off(node)).collect()
            }
        }
    }

    /// It is not known whether `change` took effect.
    pub fn unanswered(&mut self, change: &Change) {
        for known in &mut self.known {
            match change.action {
                Action::PutBack if known.evidence == Evidence::UnderWay => {
                    known.evidence = Evidence::Unanswered;
                }
                Action::Remove if known.is_in(change) => {
                    known.may_be_removed = true;
                }
                _ => {}
            }
        }
    }

    /// `node` was read after a change whose outcome is not known. If the change has not taken effect, it never will.
    pub fn read(&mut self, node: &NodeView) {
        self.known.retain_mut(|known| {
            let is_there = node.has(&known.matcher);
            known.may_be_removed &= !is_there;
            is_there || known.evidence != Evidence::Unanswered
        });
    }

    /// The server refuses a change. Returns the rule that had put the taint back, if no rule removes it now.
    pub fn denied(&mut self, denied: &Denied) -> Option<String> {
        let is_it = |known: &PutBack| known.matcher.matches(&denied.taint);
        let is_orphan = self.orphans().any(is_it);
        if denied.action != Action::Remove || !is_orphan {
            return None;
        }
        let mut known = self.known.iter_mut();
        let known = known.find(|known| is_it(known))?;
        known.denied = Some(denied.message.clone());
        Some(known.rule.clone())
    }

    /// Judges the taints of `node` by these rules. A rule adopts what an earlier rule of the same name has put back. Only
    /// the answer to the change `under_way` shows who has removed its taints.
    pub fn update(
        &mut self,
        node: &NodeView,
        rules: &mut [&mut RuleState],
        under_way: Option<&Change>,
    ) -> Update {
        let mut update = Update::default();
        let is_gone = |known: &mut PutBack| {
            let is_there = node.has(&known.matcher);
            if is_there && known.evidence == Evidence::Unanswered {
                known.evidence = Evidence::Done;
            }
            let may_be_removed_now = under_way
                .is_some_and(|change| change.action == Action::Remove && known.is_in(change));
            known.uid != node.metadata.uid
                || known.evidence == Evidence::Done && !is_there && !may_be_removed_now
        };
        for gone in self.known.extract_if(.., is_gone) {
            if gone.may_be_removed && gone.uid == node.metadata.uid {
                update.taken_off.push(gone.taken_off(node));
            }
        }
        let mut left = Vec::new();
        for known in &self.known {
            if known.evidence == Evidence::Done
                && let Some(why) = known.judge(node, rules)
            {
                left.push(LeftTaint {
                    rule: known.rule.clone(),
                    taint: known.taint.clone(),
                    left: why,
                    denied: known.denied.clone().filter(|_| why == Left::Orphaned),
                });
            }
        }
        let others = not_selected(node, rules).into_iter().filter(|other| {
            let mut known = self.known.iter();
            !known.any(|known| known.matcher.matches(&other.taint))
        });
        left.extend(others);
        let is_new = |left: &&LeftTaint| !self.left.iter().any(|known| known.is_same(left));
        update.newly_left = left.iter().filter(is_new).cloned().collect();
        self.left = left;
        update
    }

    /// The taints of the Node that no rule removes, as of the last [`Self::update`].
    pub fn left(&self) -> &[LeftTaint] {
        &self.left
    }

    /// What to remove from `node`.
    pub fn to_take_off(&self, node: &NodeView) -> impl Iterator<Item = &TaintMatcher> {
        // Until then, Karpenter would put it back.
        let is_held = node.awaits_registration();
        let orphans = self.orphans().filter(move |_| !is_held);
        orphans.map(|orphan| &orphan.matcher)
    }

    fn orphans(&self) -> impl Iterator<Item = &PutBack> {
        let left = self.left.iter();
        let orphans = left.filter(|left| left.left == Left::Orphaned);
        orphans.filter_map(|orphan| {
            let mut known = self.known.iter();
            known.find(|known| known.taint == orphan.taint)
        })
    }
}

impl PutBack {
    /// By the matcher: `timeAdded` of a taint that the Node has may have been set since.
    fn is_in(&self, change: &Change) -> bool {
        let mut taints = change.taints.iter();
        taints.any(|taint| self.matcher.matches(taint))
    }

    fn taken_off(self, node: &NodeView) -> TakenOff {
        TakenOff {
            is_undone: node.has(&self.matcher),
            rule: self.rule,
            taint: self.taint,
        }
    }

    /// `None`: a rule removes it.
    fn judge(&self, node: &NodeView, rules: &mut [&mut RuleState]) -> Option<Left> {
        let mut is_dry = false;
        for rule in rules.iter().filter(|rule| rule.selects(node)) {
            if rule.own_taints().include(&self.taint) {
                if !rule.rule().dry_run {
                    return None;
                }
                is_dry = true;
            }
        }
        let mut rules = rules.iter_mut();
        let successor = rules.find(|rule| rule.rule().name == self.rule);
        match successor {
            _ if is_dry => Some(Left::DryRun),
            Some(rule) if rule.rule().dry_run => Some(Left::DryRun),
            Some(rule) if rule.selects(node) => {
                rule.adopt(self.matcher.clone());
                None
            }
            _ => Some(Left::Orphaned),
        }
    }
}

#[cfg(test)]
mod tests;
