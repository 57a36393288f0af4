//! Metrics of the requests: how many there were, how they ended and how long they took.

use std::borrow::Cow;
use std::time::Instant;

use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// In seconds. A PATCH takes some milliseconds, and no request takes longer than its time-out of 5 s. Each bucket is a
/// series per verb and node, so there are few.
const BUCKETS: [f64; 6] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

/// What a request does, in the words of Kubernetes' authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection.
    Watch,
    /// Changes an object in part.
    Patch,
    /// A patch that the server only tries out, for the self-check. Kubernetes has no verb for it.
    DryRun,
    /// Adds an object.
    Create,
}

impl Verb {
    const ALL: [Self; 6] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Patch,
        Self::DryRun,
        Self::Create,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Patch => "patch",
            Self::DryRun => "dry-run",
            Self::Create => "create",
        }
    }

    /// The status code of the expected answer.
    fn expected_code(self) -> StatusCode {
        match self {
            Self::Create => StatusCode::CREATED,
            // The policies of `untaint manifests` refuse it.
            Self::DryRun => StatusCode::FORBIDDEN,
            Self::Get | Self::List | Self::Watch | Self::Patch => StatusCode::OK,
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The whole answer arrived, with this status code.
    Answer(u16),
    /// The whole answer did not arrive in time.
    Timeout,
    /// The whole answer did not arrive for another reason: there was no connection, it broke, or the request was canceled.
    Error,
}

impl End {
    fn code(self) -> Cow<'static, str> {
        match self {
            Self::Answer(code) => code.to_string().into(),
            Self::Timeout => "timeout".into(),
            Self::Error => "error".into(),
        }
    }
}

type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];

fn verb_and_code(verb: Verb, end: End) -> Labels<2> {
    [("verb", verb.as_str().into()), ("code", end.code())]
}

fn verb_alone(verb: Verb) -> Labels<1> {
    [("verb", verb.as_str().into())]
}

/// The metrics. Clones share them.
#[derive(Debug, Clone)]
pub struct Traffic {
    requests: Family<Labels<2>, Counter>,
    durations: Family<Labels<1>, Histogram>,
    restarts: Family<Labels<2>, Counter>,
}

impl Default for Traffic {
    /// Every expected series exists from the start, so that its first increase can be seen.
    fn default() -> Self {
        let traffic = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            restarts: Family::default(),
        };
        for verb in Verb::ALL {
            let expected = End::Answer(verb.expected_code().as_u16());
            for end in [expected, End::Timeout, End::Error] {
                let _ = traffic.requests.get_or_create(&verb_and_code(verb, end));
            }
            let _ = traffic.durations.get_or_create(&verb_alone(verb));
        }
        traffic
    }
}

impl Traffic {
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "untaint_api_requests",
            "Requests to the API server, by verb and status code. For a request without an answer, the code is timeout or error",
            self.requests.clone(),
        );
        registry.register(
            "untaint_api_request_duration_seconds",
            "Time from when untaint sent a request to the end of the answer or, for a watch, to its headers. Requests without an answer do not count",
            self.durations.clone(),
        );
        registry.register(
            "untaint_api_watch_restarts",
            "Watches that untaint started again because they failed or ended, as every watch does after some minutes",
            self.restarts.clone(),
        );
    }

    /// Call this before sending a request.
    pub(super) fn begin(&self, verb: Verb) -> Counted<'_> {
        Counted {
            traffic: self,
            verb,
            started: Instant::now(),
            end: End::Error,
        }
    }

    /// The counters of the restarts of a watch: after a clean end, and after a failure.
    pub(super) fn restarts(&self, path: &str) -> [Counter; 2] {
        let resource = path.rsplit('/').next().unwrap_or_default();
        ["ended", "failed"].map(|reason| {
            let resource = resource.to_owned().into();
            let labels = [("resource", resource), ("reason", reason.into())];
            self.restarts.get_or_create_owned(&labels)
        })
    }
}

/// A request under way. It is counted when this is dropped, so that a canceled one counts too.
pub(super) struct Counted<'a> {
    traffic: &'a Traffic,
    verb: Verb,
    started: Instant,
    pub(super) end: End,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let Self { traffic, verb, .. } = *self;
        let requests = &traffic.requests;
        requests.get_or_create(&verb_and_code(verb, self.end)).inc();
        if let End::Answer(_) = self.end {
            let durations = traffic.durations.get_or_create(&verb_alone(verb));
            durations.observe(self.started.elapsed().as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text;

    use super::*;

    #[test]
    fn only_requests_with_an_answer_have_a_duration() {
        let traffic = Traffic::default();
        let mut registry = Registry::default();
        traffic.register(&mut registry);
        let count = r#"untaint_api_request_duration_seconds_count{verb="get"}"#;
        for (end, observed) in [
            (End::Timeout, 0),
            (End::Error, 0),
            (End::Answer(404), 1),
            (End::Answer(200), 2),
        ] {
            traffic.begin(Verb::Get).end = end;
            let mut page = String::new();
            prometheus_text::encode(&mut page, &registry).unwrap();
            let line = format!("{count} {observed}");
            assert!(page.lines().any(|found| found == line), "{line} in {page}");
        }
    }
}
