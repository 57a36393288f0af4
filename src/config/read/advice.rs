//! What to write instead: the ends of messages about fields that do not exist, and about values of the wrong kind.
//!
//! Most of what is here comes from people who paste parts of other objects of Kubernetes.

use std::sync::LazyLock;

use serde_json::{Map, Value as Json};

use super::tree::Value;
use crate::config::schema;
use crate::taint::{TaintMatcher, parse_taint};

/// The end of the message that `what` has no field `name`, but the `known` ones.
pub(super) fn for_field(what: &str, name: &str, known: &[&str]) -> String {
    if let Some(advice) = for_pasted(what, name) {
        advice.to_owned()
    } else if let Some(meant) = nearest(name, known) {
        format!("did you mean {meant}?")
    } else if let Some((name, place)) = home(what, name) {
        format!("write {name} {place}")
    } else {
        format!("it has {}", known.join(", "))
    }
}

/// A field of another object, or a usual word for a field.
fn for_pasted(what: &str, name: &str) -> Option<&'static str> {
    Some(match (name, what) {
        ("readinessProbe" | "livenessProbe" | "startupProbe", "a rule") => {
            "write its content as a gate, with a name, under gates"
        }
        ("readinessProbe" | "livenessProbe" | "startupProbe", _) => {
            "write its content directly in the gate"
        }
        ("terminationGracePeriodSeconds", _) => "delete it: untaint does not stop containers",
        ("timeAdded", "a taint") => "delete it: Kubernetes sets it",
        ("operator", "a taint") => "delete it: a taint without the field value matches any value",
        ("tolerations", _) => "delete it: only pods have tolerations",
        ("taints", "a rule") => "write one rule for each taint, with the field taint",
        ("headers", "httpGet") => "did you mean httpHeaders?",
        ("url" | "uri", "httpGet") => "write host, port and path",
        ("interval", "a gate") => "did you mean periodSeconds?",
        ("dependsOn", "a gate") => "did you mean after?",
        ("path" | "socket", "tcpSocket" | "grpc") => "did you mean unixSocket?",
        ("contains", "expect") => "did you mean text?",
        ("text", "file") => "did you mean contains?",
        ("size" | "minSize", "file") => "did you mean minBytes?",
        ("requiredStatus", "nodeCondition") => "did you mean status?",
        ("defaultStatus", "nodeCondition") => "did you mean missing?",
        ("name", "nodeLabel") => "did you mean key?",
        ("operator", "nodeLabel") => {
            "delete it: a gate without the field value opens with any value"
        }
        ("matchLabels", "nodeLabel") => "write one label as key and value",
        ("name", "delegate") => "did you mean network?",
        ("type", "delegate") => "did you mean plugins?",
        ("args", "exec") => "write the arguments in command, after the program",
        ("selector" | "labelSelector", "pods") => "did you mean matchLabels?",
        ("all", "pods") => "did you mean every?",
        ("count" | "min" | "minimum" | "quantity" | "value", "allocatable") => {
            "did you mean atLeast?"
        }
        ("matchExpressions", "pods") => "write labels and their values under matchLabels",
        ("data", "the file") => "give untaint the text under data, not the ConfigMap",
        ("metadata" | "spec", "the file") => "delete it: this file is not an object of the API",
        _ => return None,
    })
}

/// The field that a misspelled `name` most resembles, whatever its case.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = plain(name);
    let limit = name.len() / 4;
    let distances = known.iter().map(|known| {
        let other = plain(known);
        let is_part = name.len().min(other.len()) >= 4
            && (name.starts_with(&other) || other.starts_with(&name));
        let distance = distance(name.as_bytes(), other.as_bytes());
        (if is_part { distance.min(1) } else { distance }, *known)
    });
    let best = distances.min_by_key(|(distance, _)| *distance);
    best.filter(|(distance, _)| *distance <= limit.min(2))
        .map(|(_, known)| known)
}

/// A name without its case and its separators.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_'));
    // A field has no such long name, and the distance takes time.
    letters.take(40).map(|c| c.to_ascii_lowercase()).collect()
}

/// The number of bytes to insert, delete, replace, or exchange with their neighbor.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let width = other.len() + 1;
    let mut rows: Vec<Vec<usize>> = vec![(0..width).collect()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut least = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][width - 1]
}

/// Where the field `name` is one, and how it is spelled there.
fn home(what: &str, name: &str) -> Option<(&'static str, &'static str)> {
    let name = plain(name);
    let find = |of| fields(of).find(|field| plain(field) == name);
    let is_kind = fields(GATE).any(|field| field == what);
    if let Some(field) = find(FILE) {
        return Some((field, "at the top of the file"));
    }
    if let Some(field) = find(RULE) {
        let place = match what {
            "the file" => "in a rule, under rules",
            _ if is_kind => "two levels up, in the rule",
            "expect" | "a header" => "in the rule",
            _ => "one level up, in the rule",
        };
        return Some((field, place));
    }
    if let Some(field) = find(GATE) {
        let place = match what {
            "the file" | "a rule" => "in a gate, under gates",
            "a gate with anyOf" => "in the members of anyOf",
            _ if is_kind => "one level up, in the gate",
            _ => "in the gate",
        };
        return Some((field, place));
    }
    let (of, place) = match what {
        "a rule" => ("/$defs/TaintMatcher", "in taint"),
        "delegate" => ("/$defs/CniConfig", "one level up, in cniConfig"),
        "httpGet" => ("/$defs/Expect", "in expect"),
        "expect" => ("/$defs/HttpGet", "one level up, in httpGet"),
        _ => return None,
    };
    Some((find(of)?, place))
}

/// The fields of the type at this place of the schema, without `name`, which several types have.
fn fields(of: &str) -> impl Iterator<Item = &'static str> {
    static SCHEMA: LazyLock<Json> =
        LazyLock::new(|| serde_json::from_str(schema::TEXT).unwrap_or_default());
    let fields = SCHEMA
        .pointer(of)
        .and_then(|it| it["properties"].as_object());
    let names = fields.into_iter().flat_map(Map::keys).map(String::as_str);
    names.filter(|name| *name != "name")
}

const FILE: &str = "";
const RULE: &str = "/$defs/Rule";
const GATE: &str = "/$defs/Gate";

/// The end of the message that `what` must be a mapping, which says what to write for a `value` that is none. A scalar
/// that is secret comes without its `text`.
pub(super) fn for_mapping(what: &str, value: &Value, text: Option<&str>) -> String {
    match value {
        Value::List(_) if what == "a taint" => return "; a rule has one taint".into(),
        Value::List(_) if what == "exec" => return "; write {command: […]}".into(),
        Value::Map(_) | Value::Null | Value::List(_) => return String::new(),
        _ => {}
    }
    let (field, placeholder) = match what {
        "a taint" => {
            return match text.unwrap_or_default() {
                "" => "; write {key: KEY, effect: EFFECT}".into(),
                text => match parse_taint(text) {
                    Ok(taint) => format!("; write {}", taint_mapping(&taint)),
                    Err(fault) => format!("; {fault}"),
                },
            };
        }
        "deadline" | "retaint" => ("after", "DURATION"),
        "publishCondition" | "nodeCondition" => ("type", "TYPE"),
        "csiDriver" => ("name", "DRIVER"),
        "allocatable" => ("resource", "RESOURCE"),
        "file" => ("path", "PATH"),
        "tcpSocket" | "grpc" if text.is_some_and(|text| text.starts_with('/')) => {
            ("unixSocket", "PATH")
        }
        "tcpSocket" | "grpc" => ("port", "PORT"),
        "cniConfig" | "delegate" => ("network", "NETWORK"),
        "httpGet" => return "; write {host: HOST, port: PORT, path: PATH}".into(),
        "expect" => return "; write {status: [CODE]}".into(),
        "exec" => return "; write {command: [PROGRAM, ARGUMENT]}".into(),
        "nodeLabel" => return "; write {key: KEY, value: VALUE}".into(),
        "a header" => return "; write {name: NAME, value: VALUE}".into(),
        _ => return String::new(),
    };
    let value = text.filter(|text| is_plain(text)).unwrap_or(placeholder);
    format!("; write {{{field}: {value}}}")
}

fn taint_mapping(taint: &TaintMatcher) -> String {
    let key = format!("key: {}", taint.key);
    let value = taint.value.as_ref();
    let value = value.map(|value| format!("value: \"{value}\""));
    let effect = taint
        .effect
        .map(|effect| format!("effect: {}", effect.as_str()));
    let fields: Vec<_> = [Some(key), value, effect].into_iter().flatten().collect();
    format!("{{{}}}", fields.join(", "))
}

/// The end of the message that the field `name` must be a list.
pub(super) fn for_list(name: Option<&str>, value: &Value, text: Option<&str>) -> String {
    let is_of_mappings =
        name.is_some_and(|name| ["rules", "gates", "anyOf", "httpHeaders"].contains(&name));
    match (value, text) {
        (Value::Map(_), _) => "; begin each item with \"- \"".into(),
        (Value::List(_) | Value::Null, _) => String::new(),
        (_, Some(text)) if !is_of_mappings && is_plain(text) => format!("; write [{text}]"),
        _ => String::new(),
    }
}

/// Whether a text is short, and the same in a flow mapping or list.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    (1..=80).contains(&text.len()) && !text.starts_with('-') && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests;
