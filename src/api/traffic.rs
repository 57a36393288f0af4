//! How many requests there were, how they ended and how long they took.

use std::borrow::Cow;
use std::time::Instant;

use http::{Method, Request, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Seconds. A PATCH takes some milliseconds, and no request longer than its time-out of 5 s. There are few, as each is a
/// series a verb and node.
const BUCKETS: [f64; 6] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

/// What a request does, in the words of the API server's authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection.
    Watch,
    /// Changes an object in part.
    Patch,
    /// Asks what a change would lead to: the self-check.
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

    /// Among the requests of this program: it lists by selectors only.
    fn of<T>(request: &Request<T>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        match *request.method() {
            Method::PATCH if query.contains("dryRun=") => Self::DryRun,
            Method::PATCH => Self::Patch,
            Method::POST => Self::Create,
            _ if query.contains("watch=true") => Self::Watch,
            _ if query.contains("Selector=") => Self::List,
            _ => Self::Get,
        }
    }

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

    /// The status code of an answer to a request that was carried out.
    fn success(self) -> StatusCode {
        match self {
            Self::Create => StatusCode::CREATED,
            // A policy is to refuse it: those of `untaint manifests` answer Forbidden.
            Self::DryRun => StatusCode::FORBIDDEN,
            Self::Get | Self::List | Self::Watch | Self::Patch => StatusCode::OK,
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With an answer of this status code.
    Answer(u16),
    /// Without a whole answer in time.
    Timeout,
    /// Without a whole answer for another reason: no connection, one that broke, or nobody waited any longer.
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    code: Cow<'static, str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabel {
    verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    resource: String,
    reason: &'static str,
}

/// What is counted. Clones count together.
#[derive(Debug, Clone)]
pub struct Traffic {
    requests: Family<RequestLabels, Counter>,
    durations: Family<VerbLabel, Histogram>,
    restarts: Family<WatchLabels, Counter>,
}

impl Default for Traffic {
    /// Whatever may be counted is there from the start, so that its first increase can be seen.
    fn default() -> Self {
        let traffic = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            restarts: Family::default(),
        };
        for verb in Verb::ALL {
            let success = End::Answer(verb.success().as_u16());
            for end in [success, End::Timeout, End::Error] {
                let _ = traffic.requests.get_or_create(&labels(verb, end));
            }
            let verb = verb.as_str();
            let _ = traffic.durations.get_or_create(&VerbLabel { verb });
        }
        traffic
    }
}

impl Traffic {
    /// Has them shown.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "untaint_api_requests",
            "Requests to the API server by verb and status code, or timeout or error where there was no answer",
            self.requests.clone(),
        );
        registry.register(
            "untaint_api_request_duration_seconds",
            "Time from sending a request to the end of its answer, where there was one, for a watch to its answer's headers",
            self.durations.clone(),
        );
        registry.register(
            "untaint_api_watch_restarts",
            "Watches that ended, as all do after some minutes, or failed, and were begun again",
            self.restarts.clone(),
        );
    }

    /// A request is about to be sent.
    pub(super) fn begin<T>(&self, request: &Request<T>) -> Counted<'_> {
        Counted {
            traffic: self,
            verb: Verb::of(request),
            started: Instant::now(),
            end: End::Error,
        }
    }

    /// Those of the watch of a collection at `path`.
    pub(super) fn restarts(&self, path: &str) -> Restarts {
        let resource = path.rsplit('/').next().unwrap_or_default();
        let counter = |reason| {
            let resource = resource.to_owned();
            self.restarts
                .get_or_create_owned(&WatchLabels { resource, reason })
        };
        Restarts {
            ended: counter("ended"),
            failed: counter("failed"),
        }
    }
}

/// A request under way. It is counted when it is dropped, however that comes about.
pub(super) struct Counted<'a> {
    traffic: &'a Traffic,
    verb: Verb,
    started: Instant,
    /// How it has ended.
    pub(super) end: End,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let Self { traffic, verb, .. } = *self;
        traffic
            .requests
            .get_or_create(&labels(verb, self.end))
            .inc();
        if let End::Answer(_) = self.end {
            let verb = verb.as_str();
            let durations = traffic.durations.get_or_create(&VerbLabel { verb });
            durations.observe(self.started.elapsed().as_secs_f64());
        }
    }
}

/// How often a watch was begun again.
pub(super) struct Restarts {
    /// After a clean end.
    pub(super) ended: Counter,
    /// After a failure.
    pub(super) failed: Counter,
}

fn labels(verb: Verb, end: End) -> RequestLabels {
    RequestLabels {
        verb: verb.as_str(),
        code: end.code(),
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text;

    use super::*;

    #[test]
    fn how_long_an_answer_took_is_known_only_where_there_was_one() {
        let traffic = Traffic::default();
        let mut registry = Registry::default();
        traffic.register(&mut registry);
        let request = Request::get("/api/v1/nodes/n").body(()).unwrap();
        let count = r#"untaint_api_request_duration_seconds_count{verb="get"}"#;
        for (end, observed) in [
            (End::Timeout, 0),
            (End::Error, 0),
            (End::Answer(404), 1),
            (End::Answer(200), 2),
        ] {
            traffic.begin(&request).end = end;
            let mut page = String::new();
            prometheus_text::encode(&mut page, &registry).unwrap();
            let line = format!("{count} {observed}");
            assert!(page.lines().any(|found| found == line), "{line} in {page}");
        }
    }

    #[test]
    fn a_verb_is_told_by_method_and_query() {
        let table = [
            (Method::GET, "/api/v1/nodes/n", Verb::Get),
            (Method::GET, "/api/v1/nodes?fieldSelector=a%3Db", Verb::List),
            (Method::GET, "/api/v1/pods?&labelSelector=a%3Db", Verb::List),
            (
                Method::GET,
                "/api/v1/nodes?&watch=true&fieldSelector=a%3Db",
                Verb::Watch,
            ),
            (
                Method::PATCH,
                "/api/v1/nodes/n?&fieldManager=m",
                Verb::Patch,
            ),
            (
                Method::PATCH,
                "/api/v1/nodes/n?&dryRun=All&fieldManager=m",
                Verb::DryRun,
            ),
            (Method::POST, "/api/v1/events", Verb::Create),
        ];
        for (method, uri, verb) in table {
            let request = Request::builder().method(method).uri(uri).body(());
            assert_eq!(Verb::of(&request.unwrap()), verb, "{uri}");
        }
    }
}
