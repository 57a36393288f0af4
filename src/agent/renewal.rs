//! After a refusal of the credentials, the agent sends again what was refused as soon as they have changed.

use std::future::pending;
use std::pin::Pin;
use std::time::Instant;

use super::Agent;
use super::once::Once;
use super::rule::RuleRunner;
use crate::api::{ApiError, ApiServer};

/// The next change of the credentials, while something waits for it.
#[derive(Default)]
pub(super) struct Renewal(Option<Pin<Box<dyn Future<Output = ()>>>>);

impl Renewal {
    /// A request has failed.
    pub(super) fn failed(&mut self, api: &ApiServer, error: &ApiError) {
        if error.refuses_credentials() {
            // An earlier refusal waits for an earlier change.
            self.0.get_or_insert_with(|| Box::pin(api.renewed()));
        }
    }

    /// Completes when the credentials have changed; never if nothing waits for that. Safe to drop and call again.
    pub(super) async fn done(&mut self) {
        let Some(renewed) = &mut self.0 else {
            return pending().await;
        };
        renewed.await;
        self.0 = None;
    }
}

impl Agent<'_> {
    /// Stops looking for other credentials if nothing waits for them.
    pub(super) fn wait_for_credentials(&mut self) {
        let write = self.write_at.is_some() && self.writes.waits_for_credentials();
        let once = self.once.as_ref().is_some_and(Once::waits_for_credentials);
        let mut rules = self.rules.iter();
        let condition =
            self.conditions.are_refused() && rules.any(|rule| rule.condition_at().is_some());
        if !write && !once && !condition {
            self.renewal.0 = None;
        }
    }

    pub(super) fn request_failed(&mut self, error: &ApiError) {
        self.connection.request_failed(error);
        self.renewal.failed(self.api, error);
    }

    pub(super) fn credentials_renewed(&mut self) {
        self.writes.credentials_renewed();
        self.conditions.credentials_renewed();
        self.rules
            .iter_mut()
            .for_each(RuleRunner::credentials_renewed);
        if let Some(once) = &mut self.once {
            once.credentials_renewed(Instant::now());
        }
    }
}
