//! Changes of taints: a JSON Patch that removes the taints that it names, or puts them back, and does nothing else. Pure.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation};
use k8s_openapi::api::core::v1::Taint;
use serde_json::{Value, json};

use super::view::NodeView;
use crate::taint::TaintMatcher;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Remove,
    PutBack,
}

/// The change of some taints of one Node.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Of the Node.
    pub uid: String,
    pub action: Action,
    pub taints: Vec<Taint>,
    /// Before every `remove`, there are `test`s of the taint that it removes. So if another writer's taint has moved to
    /// this index, the whole patch fails (422) and the taint stays. `spec.taints` is an atomic list without a
    /// patch strategy: any other type of patch would replace the taints of all writers.
    pub operations: Patch,
}

/// The change of one taint. Taints are the same by key and effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    pub action: Action,
    pub key: String,
    pub effect: String,
}

impl Step {
    pub fn new(action: Action, taint: &Taint) -> Self {
        Self {
            action,
            key: taint.key.clone(),
            effect: taint.effect.clone(),
        }
    }

    /// Whether there is anything to do on this Node.
    pub fn is_pending(&self, node: &NodeView) -> bool {
        let is_it = |taint: &Taint| taint.key == self.key && taint.effect == self.effect;
        node.taints.iter().any(is_it) == (self.action == Action::Remove)
    }
}

impl Change {
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let taints = self.taints.iter();
        taints.map(|taint| Step::new(self.action, taint))
    }
}

/// A wish to remove the taints that match.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    pub matcher: &'a TaintMatcher,
    /// Whether it follows from the Node itself, such as its `status.allocatable`. Such a wish is for this version of the
    /// Node alone: the next one may be without the evidence.
    pub follows_from_node: bool,
}

/// A wish for whatever version the Node has.
impl<'a> From<&'a TaintMatcher> for Wish<'a> {
    fn from(matcher: &'a TaintMatcher) -> Self {
        Self {
            matcher,
            follows_from_node: false,
        }
    }
}

/// What the rules want to do with the Node's taints.
#[derive(Debug, Default)]
pub struct Wanted<'a> {
    pub remove: Vec<Wish<'a>>,
    pub put_back: Vec<Taint>,
}

impl Wanted<'_> {
    /// Whether every step of `change` is wanted.
    pub fn includes(&self, change: &Change) -> bool {
        change.taints.iter().all(|taint| match change.action {
            Action::Remove => self.remove.iter().any(|wish| wish.matcher.matches(taint)),
            Action::PutBack => self.put_back.contains(taint),
        })
    }

    /// The steps that are pending on `node` and `allowed`: at most one change for each action.
    pub fn changes(
        &self,
        node: &NodeView,
        allowed: impl Fn(&Step) -> bool,
    ) -> impl Iterator<Item = Change> {
        let removal = removal(node, |taint| {
            let mut wishes = self.remove.iter().copied();
            let wish = wishes.find(|wish| wish.matcher.matches(taint))?;
            allowed(&Step::new(Action::Remove, taint)).then_some(wish)
        });
        let put_back = self.put_back.iter();
        let put_back = put_back.filter(|taint| allowed(&Step::new(Action::PutBack, taint)));
        let addition = addition(node, &put_back.cloned().collect::<Vec<_>>());
        removal.into_iter().chain(addition)
    }
}

/// Removes the taints for which `select` returns a wish; `None` if there are none.
///
/// Highest index first, so that no `remove` moves a taint that a later operation names.
///
/// If a wish follows from the Node, the patch also tests the version of the Node. The server applies a patch to the Node
/// as it is, and once more to a newer one if another writer was faster (apiserver `endpoints/handlers/patch.go`). So the
/// test fails there as well, with the 422 of any failed test.
pub fn removal<'a>(node: &NodeView, select: impl Fn(&Taint) -> Option<Wish<'a>>) -> Option<Change> {
    let mut taints = Vec::new();
    let mut operations = vec![test_uid(node)];
    let mut follows_from_node = false;
    for (index, taint) in node.taints.iter().enumerate().rev() {
        let Some(wish) = select(taint) else {
            continue;
        };
        let index = index.to_string();
        let path = |field| ["spec", "taints", &index, field];
        operations.push(test(path("key"), taint.key.as_str().into()));
        operations.push(test(path("effect"), taint.effect.as_str().into()));
        follows_from_node |= wish.follows_from_node;
        if wish.matcher.value.is_some() {
            // The API leaves an empty value out, and a `test` of a missing field succeeds only with `null`.
            let value = taint.value.as_deref().filter(|value| !value.is_empty());
            operations.push(test(path("value"), value.map_or(Value::Null, Value::from)));
        }
        let path = PointerBuf::from_tokens(["spec", "taints", &index]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
        taints.push(taint.clone());
    }
    if follows_from_node {
        operations.insert(1, test_version(node));
    }
    (!taints.is_empty()).then_some(Change {
        uid: node.metadata.uid.clone(),
        action: Action::Remove,
        taints,
        operations: Patch(operations),
    })
}

/// Adds those of `taints` that the Node does not have; `None` if it has all.
pub fn addition(node: &NodeView, taints: &[Taint]) -> Option<Change> {
    let is_missing = |taint: &&Taint| Step::new(Action::PutBack, taint).is_pending(node);
    let taints: Vec<_> = taints.iter().filter(is_missing).cloned().collect();
    if taints.is_empty() {
        return None;
    }
    let mut operations = vec![test_uid(node)];
    if node.taints.is_empty() {
        // The patch creates the list. It must not replace one that somebody else has created meanwhile.
        operations.push(test(["spec", "taints"], Value::Null));
        operations.push(add(["spec", "taints"], json!(taints)));
    } else {
        // At the end of the list, whatever its length is now. If the list does not exist any more, the patch fails.
        let append = |taint| add(["spec", "taints", "-"], json!(taint));
        operations.extend(taints.iter().map(append));
    }
    Some(Change {
        uid: node.metadata.uid.clone(),
        action: Action::PutBack,
        taints,
        operations: Patch(operations),
    })
}

fn test_uid(node: &NodeView) -> PatchOperation {
    test(["metadata", "uid"], node.metadata.uid.as_str().into())
}

/// Fails once another client has changed the Node.
pub(super) fn test_version(node: &NodeView) -> PatchOperation {
    let version = node.metadata.resource_version.to_string();
    test(["metadata", "resourceVersion"], version.into())
}

fn add<const N: usize>(path: [&str; N], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation {
        path: PointerBuf::from_tokens(path),
        value,
    })
}

fn test<const N: usize>(path: [&str; N], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation {
        path: PointerBuf::from_tokens(path),
        value,
    })
}

#[cfg(test)]
mod tests;
