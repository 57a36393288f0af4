//! A kind of request: the one that is under way, or when the next one is due.

use std::future::pending;
use std::pin::Pin;
use std::time::Instant;

use crate::api::{ApiError, ApiServer};
use crate::node::{Answer, Next};

type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// At most one request of a kind is under way at a time.
pub(super) struct Slot<'a, R> {
    under_way: Option<(R, Answering<'a>)>,
    /// When the next request is due by time alone; `None` while a request is under way.
    due_at: Option<Instant>,
    /// Whether the server refused the credentials of the last request.
    refused: bool,
}

impl<R> Default for Slot<'_, R> {
    fn default() -> Self {
        Self {
            under_way: None,
            due_at: None,
            refused: false,
        }
    }
}

impl<'a, R> Slot<'a, R> {
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// The request under way.
    pub(super) fn request(&self) -> Option<&R> {
        self.under_way.as_ref().map(|(request, _)| request)
    }

    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// Sends the next request, or waits for it. Call it only while the slot is idle.
    pub(super) fn send_or_wait<F: Future<Output = Answer> + 'a>(
        &mut self,
        next: Next<R>,
        send: impl FnOnce(&R) -> F,
    ) {
        match next {
            Next::Wait(until) => self.due_at = until,
            Next::Send(request) => {
                self.due_at = None;
                let answer = Box::pin(send(&request));
                self.under_way = Some((request, answer));
            }
        }
    }

    /// Whether the next request waits although other credentials might help.
    pub(super) fn waits_for_credentials(&self) -> bool {
        self.refused && self.due_at.is_some()
    }

    /// The credentials have changed. Returns whether the server refused the old ones for the last request.
    pub(super) fn credentials_renewed(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Cancels the request under way unless it is `wanted`, and returns it then.
    pub(super) fn cancel_unless(&mut self, wanted: impl Fn(&R) -> bool) -> Option<R> {
        let unwanted = self.under_way.take_if(|(request, _)| !wanted(request));
        unwanted.map(|(request, _)| request)
    }

    /// Completes with the answer; never, if no request is under way. Safe to drop and call again.
    pub(super) async fn answered(&mut self) -> (R, Answer) {
        if let Some((_, answer)) = &mut self.under_way {
            let answer = answer.await;
            if let Some((request, _)) = self.under_way.take() {
                let error = answer.as_ref().err();
                self.refused = error.is_some_and(ApiError::refuses_credentials);
                return (request, answer);
            }
        }
        pending().await
    }
}

/// The next change of the credentials, while a slot waits for it.
#[derive(Default)]
pub(super) struct Renewal(Option<Pin<Box<dyn Future<Output = ()>>>>);

impl Renewal {
    /// Looks for other credentials while they are `awaited`. An earlier wait goes on.
    pub(super) fn follow(&mut self, api: &ApiServer, awaited: bool) {
        if !awaited {
            self.0 = None;
        } else if self.0.is_none() {
            self.0 = Some(Box::pin(api.renewed()));
        }
    }

    /// Completes when the credentials have changed; never, if nothing waits for that. Safe to drop and call again.
    pub(super) async fn done(&mut self) {
        let Some(renewed) = &mut self.0 else {
            return pending().await;
        };
        renewed.await;
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn refused(code: u16) -> Slot<'static, ()> {
        let mut slot = Slot::default();
        let error = ApiError::Refused {
            code,
            message: "no".into(),
            detailed: false,
            retry_after: None,
        };
        slot.send_or_wait(Next::Send(()), |()| async { Err(error) });
        assert!(!slot.is_idle());
        let ((), answer) = slot.answered().await;
        assert_eq!(answer.unwrap_err().code(), Some(code));
        slot
    }

    #[tokio::test]
    async fn a_refusal_of_the_credentials_and_no_other_failure_waits_for_their_renewal() {
        let later = Instant::now() + Duration::from_secs(1);
        for (code, waits) in [(401, true), (429, false), (503, false), (409, false)] {
            let mut slot = refused(code).await;
            assert!(!slot.waits_for_credentials(), "there is nothing to send");
            slot.send_or_wait(Next::Wait(Some(later)), |()| pending());
            assert_eq!(slot.waits_for_credentials(), waits, "{code}");
            assert_eq!(slot.credentials_renewed(), waits, "{code}");
            assert!(!slot.waits_for_credentials());
        }
    }

    #[tokio::test]
    async fn while_a_request_is_under_way_nothing_is_due_and_its_answer_ends_the_refusal() {
        let later = Some(Instant::now() + Duration::from_secs(1));
        let mut slot = refused(401).await;
        slot.send_or_wait(Next::Wait(later), |()| pending());
        assert!(slot.waits_for_credentials());
        assert_eq!(slot.due_at(), later);
        let reset = || async { Err(ApiError::Transport("reset".into())) };
        slot.send_or_wait(Next::Send(()), |()| reset());
        assert_eq!(slot.due_at(), None);
        assert!(!slot.waits_for_credentials());
        let ((), answer) = slot.answered().await;
        assert!(answer.is_err());
        assert!(!slot.credentials_renewed());
    }

    #[test]
    fn a_request_that_is_not_wanted_any_more_is_canceled() {
        let mut slot = Slot::default();
        slot.send_or_wait(Next::Send(1), |_| pending());
        assert_eq!(slot.cancel_unless(|request| *request == 1), None);
        assert_eq!(slot.request(), Some(&1));
        assert_eq!(slot.cancel_unless(|request| *request == 2), Some(1));
        assert!(slot.is_idle());
    }
}
