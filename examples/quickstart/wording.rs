//! The text for requests and log lines in the timeline.

use serde_json::Value;
use testkit::api::Request;

use crate::logs::LogLine;
use crate::rules::rule_of;
use crate::verdict::verb;

/// The path without the query.
pub(crate) fn path(request: &Request) -> &str {
    request.uri.split('?').next().unwrap_or_default()
}

/// The request, with the operations of a JSON Patch or the selection of a watch.
pub(crate) fn describe(request: &Request, operations: &[Value]) -> String {
    let alike = operations.chunk_by(|one, next| one["op"] == next["op"]);
    let operations = alike.map(|alike| {
        let paths: Vec<_> = alike
            .iter()
            .map(|operation| text(operation, "path"))
            .collect();
        format!("{} {}", text(&alike[0], "op"), paths.join(" "))
    });
    let selectors = request.uri.split(['?', '&']);
    let selectors = selectors.filter_map(|part| part.strip_prefix("fieldSelector="));
    let details: Vec<_> = operations
        .chain(selectors.map(|selector| selector.replace("%3D", "=")))
        .collect();
    let (verb, path) = (verb(request.verb), path(request));
    format!("{verb} {path}: {}", details.join(", "))
}

/// The rule of the taint that a JSON Patch tests.
pub(crate) fn patched_rule(operations: &[Value]) -> Option<String> {
    let mut operations = operations.iter();
    let test = operations.find(|operation| text(operation, "path").ends_with("/key"))?;
    rule_of(text(test, "value"))
}

fn text<'a>(operation: &'a Value, field: &str) -> &'a str {
    operation[field].as_str().unwrap_or_default()
}

/// The message of a line, and its other fields.
pub(crate) fn warning(line: &LogLine) -> String {
    let known = ["timestamp", "level", "target", "message", "rule", "taint"];
    let fields = line.fields.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !known.contains(&name.as_str()));
    let fields: Vec<_> = fields
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name}: {text}"),
            None => format!("{name}: {value}"),
        })
        .collect();
    format!("warns: {} ({})", line.text("message"), fields.join(", "))
}
