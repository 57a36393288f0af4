//! A request under way.

use std::pin::Pin;

use crate::api::ApiError;
use crate::node::view::NodeView;

pub(super) type Answer = Result<NodeView, ApiError>;
type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// The request of a kind that is under way, if there is one: at most one at a time.
pub(super) struct Pending<'a, C>(Option<(C, Answering<'a>)>);

impl<'a, C> Pending<'a, C> {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn new(call: C, answer: impl Future<Output = Answer> + 'a) -> Self {
        Self(Some((call, Box::pin(answer))))
    }

    /// What it is about.
    pub(super) fn call(&self) -> Option<&C> {
        self.0.as_ref().map(|(call, _)| call)
    }

    /// Breaks it off unless it is `wanted`, and gives what it was about.
    pub(super) fn break_off_unless(&mut self, wanted: impl Fn(&C) -> bool) -> Option<C> {
        let unwanted = self.0.take_if(|(call, _)| !wanted(call));
        unwanted.map(|(call, _)| call)
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The answer; for ever, if there is no request. Safe to drop and call again.
    pub(super) async fn answered(&mut self) -> (C, Answer) {
        if let Some((_, answer)) = &mut self.0 {
            let answer = answer.await;
            if let Some((call, _)) = self.0.take() {
                return (call, answer);
            }
        }
        std::future::pending().await
    }
}
