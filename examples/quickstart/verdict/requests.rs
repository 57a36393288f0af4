//! Checks the requests to the API server.

use std::collections::BTreeSet;

use testkit::api::Verb;

use super::Expected;

/// A request from any client.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    /// The path without the query.
    pub(crate) path: String,
    /// `None` without an answer.
    pub(crate) code: Option<u16>,
    pub(crate) connection: usize,
}

impl Request {
    fn is(&self, verb: Verb, path: &str) -> bool {
        self.verb == verb && self.path == path
    }
}

/// Checks that there is one watch of each collection and one patch for each removal, on one connection, and nothing
/// else. The server refused none of them.
pub(super) fn judge(requests: &[Request], expected: &Expected, removals: usize) -> Vec<String> {
    let mut problems = Vec::new();
    let watches = expected.watched.iter().map(|path| (Verb::Watch, *path, 1));
    let patches = (Verb::Patch, expected.patched, removals);
    let wanted: Vec<_> = watches.chain([patches]).collect();
    for (kind, path, wanted) in &wanted {
        let found = requests.iter().filter(|one| one.is(*kind, path)).count();
        if found != *wanted {
            let verb = verb(*kind);
            problems.push(format!("{found} times {verb} {path} instead of {wanted}"));
        }
    }
    for request in requests {
        let what = format!("{} {}", verb(request.verb), request.path);
        if !wanted.iter().any(|(verb, path, _)| request.is(*verb, path)) {
            problems.push(format!("{what} was not needed"));
        }
        match request.code {
            Some(200) => {}
            Some(code) => problems.push(format!("{what} got the answer {code}")),
            None => problems.push(format!("{what} got no answer")),
        }
    }
    let connections: BTreeSet<_> = requests.iter().map(|request| request.connection).collect();
    if connections.len() > 1 {
        problems.push(format!("{} connections instead of 1", connections.len()));
    }
    problems
}

/// The verb of an audit log, in capitals.
pub(crate) fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "CREATE",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::Other => "OTHER",
    }
}
