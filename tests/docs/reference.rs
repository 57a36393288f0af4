//! Writes the tables of fields in the reference from the schema.
//!
//! A table is between `<!-- fields of TYPE: FIELD … -->`, which lists its fields in order, and `<!-- end -->`.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Map, Value};

use crate::document::anchor;

const END: &str = "<!-- end -->";
const HEAD: &str = "\n| field | type | default | meaning |\n|---|---|---|---|\n";

/// Returns `page` with the tables of `schema`. Every field of the schema must be in a table.
pub(crate) fn with_tables(page: &str, schema: &Value) -> String {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let types = Types {
        schema,
        anchors: headings.map(anchor).collect(),
    };
    let mut missing = types.fields();
    let mut filled = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(filled, "{line}").unwrap();
        let Some((name, fields)) = marker(line) else {
            continue;
        };
        filled += HEAD;
        for field in fields.split_whitespace() {
            filled += &types.row(name, field);
            missing.remove(&(name, field));
        }
        assert!(lines.any(|line| line == END), "no {END} after {line}");
        writeln!(filled, "\n{END}").unwrap();
    }
    assert!(missing.is_empty(), "in no table: {missing:?}");
    filled
}

/// The type and the fields of the table that starts in this line.
fn marker(line: &str) -> Option<(&str, &str)> {
    let marker = line.strip_prefix("<!-- fields of ")?.strip_suffix(" -->")?;
    marker.split_once(':')
}

/// The mappings of the configuration file.
struct Types<'a> {
    schema: &'a Value,
    /// The anchors of the page's sections.
    anchors: BTreeSet<String>,
}

impl<'a> Types<'a> {
    /// The schema of the type `name`: of the whole file, or a definition.
    fn named(&self, name: &str) -> &'a Value {
        if self.schema["title"] == name {
            self.schema
        } else {
            &self.schema["$defs"][name]
        }
    }

    /// Each type with each of its fields. A member of `anyOf` has the fields of a gate.
    fn fields(&self) -> BTreeSet<(&'a str, &'a str)> {
        let title = self.schema["title"].as_str();
        let definitions = self.schema["$defs"].as_object().unwrap().keys();
        let names = title.into_iter().chain(definitions.map(String::as_str));
        let names = names.filter(|name| *name != "Check");
        let fields = names.flat_map(|name| {
            let fields = self.named(name)["properties"].as_object();
            fields
                .into_iter()
                .flat_map(Map::keys)
                .map(move |field| (name, field.as_str()))
        });
        fields.collect()
    }

    fn row(&self, of: &str, name: &str) -> String {
        let mapping = self.named(of);
        let field = &mapping["properties"][name];
        assert!(field.is_object(), "{of} has no field {name}");
        let cells = [
            format!("`{name}`"),
            self.kind(name, field),
            default(mapping, name),
            self.meaning(field),
        ];
        let cells = cells.map(|cell| cell.replace('|', r"\|"));
        format!("| {} |\n", cells.join(" | "))
    }

    fn kind(&self, name: &str, field: &'a Value) -> String {
        let range = match (&field["minimum"], &field["maximum"]) {
            (Value::Number(least), Value::Number(most)) => format!(", {least} to {most}"),
            _ => String::new(),
        };
        let is_text = |value: &Value| value["type"] == "string";
        let kind = match self.resolved(field)["type"].as_str() {
            Some("array") if is_text(&field["items"]) => "list of strings",
            Some("array") => "list",
            Some("object") if is_text(&field["additionalProperties"]) => "mapping of strings",
            Some("object") => "mapping",
            Some("integer") => "whole number",
            Some(kind) => kind,
            // An enum has no type of its own; its choices are strings.
            None => "string",
        };
        let has_parts = kind == "list" || kind == "mapping";
        let anchor = name.to_lowercase();
        if has_parts && self.anchors.contains(&anchor) {
            format!("[{kind}](#{anchor})")
        } else {
            format!("{kind}{range}")
        }
    }

    /// The schema of a field, or of the type to which it refers.
    fn resolved(&self, field: &'a Value) -> &'a Value {
        let name = field["$ref"]
            .as_str()
            .and_then(|path| path.rsplit('/').next());
        name.map_or(field, |name| self.named(name))
    }

    fn meaning(&self, field: &'a Value) -> String {
        let mut meaning = field["description"].as_str().unwrap().to_owned();
        if let Some(value) = field.get("const") {
            write!(meaning, " Always {}.", code(value)).unwrap();
        }
        if let Some(values) = field["enum"].as_array() {
            let values: Vec<_> = values.iter().map(code).collect();
            write!(meaning, " One of {}.", values.join(", ")).unwrap();
        }
        let choices = self.resolved(field)["oneOf"].as_array();
        for choice in choices.into_iter().flatten() {
            if let (Some(value), Some(words)) =
                (choice.get("const"), choice["description"].as_str())
            {
                write!(meaning, "<br>{}: {words}", code(value)).unwrap();
            }
        }
        meaning
    }
}

/// The value of a field that is not in the file.
fn default(mapping: &Value, name: &str) -> String {
    let is_in = |list: &Value| {
        let mut names = list.as_array().into_iter().flatten();
        names.any(|one| one == name)
    };
    if is_in(&mapping["required"]) {
        return "required".into();
    }
    let choices = mapping["oneOf"].as_array().into_iter().flatten();
    let choices = choices.map(|choice| &choice["required"]);
    let (own, others): (Vec<_>, Vec<_>) = choices.partition(|required| is_in(required));
    match (own.as_slice(), others.as_slice()) {
        ([_], [other]) => format!("required, or {}", code(&other[0])),
        ([_], _) => "one of these".into(),
        _ => mapping["properties"][name]
            .get("default")
            .map_or_else(|| "none".into(), code),
    }
}

/// A value as it is written in the file.
fn code(value: &Value) -> String {
    format!("`{}`", flow(value))
}

fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", flow(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        scalar => serde_yaml::to_string(scalar).unwrap().trim_end().to_owned(),
    }
}
