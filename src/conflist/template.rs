//! Finds what a program should have replaced in a file before it installed it.

use serde_json::Value;

use super::names::printable_name;

/// The reason for a file that has an unexpanded template in a key or a text.
pub(super) fn check(value: &Value) -> Result<(), String> {
    find(value).map_or(Ok(()), |found| Err(reason(found)))
}

/// The same for a text that is not JSON, perhaps because of the template.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    placeholder(text).map_or(Ok(()), |found| Err(reason(found)))
}

fn reason(found: &str) -> String {
    format!(
        "\"{}\" is a placeholder of a template that nothing has replaced",
        printable_name(found)
    )
}

fn find(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => placeholder(text),
        Value::Array(values) => values.iter().find_map(find),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            placeholder(key).or_else(|| (!is_unread(key)).then(|| find(value)).flatten())
        }),
        _ => None,
    }
}

/// Whether no plugin reads a field. Comments for people may speak of the template. And Linkerd leaves
/// `__SERVICEACCOUNT_TOKEN__` in `policy` in a good installation (linkerd2-proxy-init, `install-cni.sh`).
fn is_unread(key: &str) -> bool {
    key.starts_with(['_', '/', '#']) || ["comment", "description", "policy"].contains(&key)
}

/// The first placeholder of one kind: those of Go templates and Jinja, of `envsubst`, and of the install scripts of CNIs,
/// such as `__KUBECONFIG_FILEPATH__`. A Go template writes `<no value>` for a value that is missing.
fn placeholder(text: &str) -> Option<&str> {
    between(text, "{{", "}}")
        .or_else(|| between(text, "{%", "%}"))
        .or_else(|| between(text, "<no value", ">"))
        .or_else(|| variable(text))
        .or_else(|| {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.find(|word| is_install_script_name(word))
        })
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let text = &text[text.find(start)?..];
    let length = start.len() + text[start.len()..].find(end)? + end.len();
    Some(&text[..length])
}

/// `${NAME}`, or `${NAME:-DEFAULT}` and the like.
fn variable(text: &str) -> Option<&str> {
    text.match_indices("${").find_map(|(start, mark)| {
        let rest = &text[start + mark.len()..];
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let is_name = length > 0 && !rest.starts_with(|c: char| c.is_ascii_digit());
        let ends = rest[length..].starts_with(['}', ':', '-', '+', '=', '?']);
        (is_name && ends)
            .then(|| between(&text[start..], mark, "}"))
            .flatten()
    })
}

fn is_install_script_name(word: &str) -> bool {
    let name = word
        .strip_prefix("__")
        .and_then(|word| word.strip_suffix("__"));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && !name.contains(|c: char| c.is_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests;
