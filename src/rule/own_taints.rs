//! The taints that a rule removes. Pure.

use k8s_openapi::api::core::v1::Taint;

use crate::config::Rule;
use crate::node::view::NodeView;
use crate::taint::TaintMatcher;

#[derive(Debug)]
pub struct OwnTaints {
    taint: TaintMatcher,
    /// What `retaint` puts back.
    put_back: Option<TaintMatcher>,
    puts_back: bool,
    /// What an earlier rule of the same name has put back, as long as the Node has it.
    adopted: Vec<TaintMatcher>,
    /// What the Node had last.
    seen: Option<TaintMatcher>,
}

impl OwnTaints {
    pub(super) fn new(rule: &Rule) -> Self {
        Self {
            taint: rule.taint.clone(),
            put_back: rule.put_back(),
            puts_back: true,
            adopted: Vec::new(),
            seen: None,
        }
    }

    /// Follows another version of the rule.
    pub(super) fn follow(&mut self, rule: &Rule) {
        self.taint.clone_from(&rule.taint);
        self.put_back = rule.put_back();
    }

    pub(super) fn never_put_back(&mut self) {
        self.puts_back = false;
    }

    pub(super) fn adopt(&mut self, taint: TaintMatcher) {
        self.adopted.push(taint);
    }

    /// Records what `node` has. `recreated`: it is another Node than before.
    pub(super) fn observe(&mut self, node: &NodeView, recreated: bool) {
        self.adopted.retain(|taint| !recreated && node.has(taint));
        let seen = self.matchers().find(|taint| node.has(taint));
        if let Some(seen) = seen.cloned() {
            self.seen = Some(seen);
        }
    }

    /// A taint is one of these if a matcher matches it.
    pub fn matchers(&self) -> impl Iterator<Item = &TaintMatcher> {
        let taint = std::iter::once(&self.taint);
        taint.chain(&self.put_back).chain(&self.adopted)
    }

    pub fn include(&self, taint: &Taint) -> bool {
        self.matchers().any(|matcher| matcher.matches(taint))
    }

    pub fn are_on(&self, node: &NodeView) -> bool {
        self.matchers().any(|matcher| node.has(matcher))
    }

    /// The taint that the rule puts back; `None` if it does not.
    pub fn to_put_back(&self) -> Option<&TaintMatcher> {
        self.put_back.as_ref().filter(|_| self.puts_back)
    }

    /// The one that the Node has, or had last, for people; the configured one, if there was none.
    pub fn shown(&self) -> &TaintMatcher {
        self.seen.as_ref().unwrap_or(&self.taint)
    }
}
