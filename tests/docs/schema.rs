//! Compares the schema with the parser, with a third-party validator.

use std::collections::BTreeSet;
use std::fs;
use std::iter;
use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value, json};
use serde_yaml::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use untaint::config;

use crate::{at_root, yaml_files};

/// Why a schema cannot find a problem, and the parser's words for such problems.
const BEYOND: [(&str, &[&str]); 4] = [
    (
        "JSON has no field twice, and no keys but strings",
        &["appears twice", "a key must be a string"],
    ),
    (
        "a schema does not compare items",
        &[
            "must be unique",
            "is this gate itself",
            "is not the name of a gate",
            "makes gates wait for each other",
            "can match the same taint",
            "names the same condition",
            "names a condition that the gates of the same rule wait for",
            "names a condition to which a gate of the rule in line",
            "puts back the same taint as the rule in line",
            "puts back a taint that the rule in line",
            "can match the taint that the retaint in line",
        ],
    ),
    (
        "JSON has no such numbers, and its readers round large integers",
        &[
            "must be a finite number",
            "must be an integer of at most 64 bits",
        ],
    ),
    (
        "a pattern does not compare numbers",
        &[
            "must be 1m or more",
            "must be 30s or more",
            "must be 1s or more",
            "a duration up to 24h such as 500ms, 90s or 1m30s, not the string \"25h\"",
            "between 100 and 599, such as 204 or 200-299, not the string \"299-200\"",
        ],
    ),
];

/// The words of [`BEYOND`] that are in a problem.
fn beyond(problem: &str) -> Option<&'static str> {
    let mut words = BEYOND.iter().flat_map(|(_, words)| *words);
    words.find(|words| problem.contains(**words)).copied()
}

/// Fields at which the parser reports a problem, with its words, and the field at which the schema reports it.
const ELSEWHERE: [(&str, &str, &str); 4] = [
    ("retaint", "needs taint.effect", "taint.effect"),
    ("retaint", "needs a gate", "gates"),
    (
        "retaint",
        "cannot be used with deadline.action",
        "deadline.action",
    ),
    ("missing", "needs status", "status"),
];

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(config::schema::TEXT).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
});

/// The text as JSON, read with the parser's options, but with fields that appear twice allowed.
fn instance(text: &str) -> Option<Value> {
    let options = serde_yaml::options! {
        budget: serde_yaml::budget! { max_depth: 32 },
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: 50_000 },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    };
    serde_yaml::from_str_with_options(text, options).ok()
}

/// Asserts that the schema accepts the configuration from `place`.
pub(crate) fn assert_accepts(text: &str, place: &str) {
    let instance = instance(text).unwrap();
    let errors: Vec<_> = SCHEMA
        .iter_errors(&instance)
        .map(|error| format!("{error:#?}"))
        .collect();
    assert!(errors.is_empty(), "{place}:\n{}", errors.join("\n"));
}

#[test]
fn the_schema_accepts_every_example_and_every_valid_file_as_written_and_as_shown() {
    for folder in ["examples", "tests/fixtures/config/valid"] {
        for path in yaml_files(folder) {
            let place = path.display().to_string();
            assert_accepts(&fs::read_to_string(&path).unwrap(), &place);
            assert_accepts(&config::show(&config::load(&[path]).unwrap()), &place);
        }
    }
}

#[test]
fn the_schema_tells_every_problem_of_every_invalid_file_at_its_field_unless_no_schema_can() {
    let mut needed = BTreeSet::new();
    for path in yaml_files("tests/fixtures/config/invalid") {
        let text = fs::read_to_string(&path).unwrap();
        let problems = config::parse(&text).unwrap_err().to_string();
        let Some(instance) = instance(&text) else {
            // A syntax error of YAML is not for the schema.
            assert_eq!(problems.lines().count(), 1, "{}", path.display());
            continue;
        };
        let errors = SCHEMA.iter_errors(&instance);
        let places: BTreeSet<_> = errors.flat_map(|error| places(&error)).collect();
        for problem in problems.lines() {
            if let Some(words) = beyond(problem) {
                needed.insert(words);
                continue;
            }
            // The part after line and column. A problem of the whole text has no line and column.
            let message = problem
                .split_once(": ")
                .map_or(problem, |(_, message)| message);
            let message =
                ELSEWHERE
                    .iter()
                    .fold(message.to_owned(), |message, (field, words, other)| {
                        message.replace(&format!("{field}: {words}"), &format!("{other}: "))
                    });
            let is_told =
                |place: &String| place.is_empty() || message.starts_with(&format!("{place}: "));
            assert!(
                places.iter().any(is_told),
                "{}:{problem}\n{places:#?}",
                path.display()
            );
        }
    }
    let all = BEYOND.iter().flat_map(|(_, words)| *words).copied();
    assert_eq!(needed, all.collect(), "what has no fixture");
}

/// The fields of an error, as the parser names them.
fn places(error: &ValidationError<'_>) -> Vec<String> {
    let place = place(error.instance_path());
    let field = |name: &str| place_of_field(&place, name);
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            unexpected.iter().map(|name| field(name)).collect()
        }
        Kind::Required { property } => vec![field(property.as_str().unwrap())],
        Kind::PropertyNames { error } => vec![field(error.instance().as_str().unwrap())],
        Kind::OneOfMultipleValid { .. } => {
            let present = error.instance().as_object().into_iter();
            let present = present.flat_map(Map::keys);
            present.map(|name| field(name)).collect()
        }
        Kind::OneOfNotValid { context } => {
            let missing = context.iter().flatten().flat_map(places);
            missing.chain([place]).collect()
        }
        _ => vec![place],
    }
}

fn place(location: &Location) -> String {
    location
        .into_iter()
        .fold(String::new(), |place, segment| match segment {
            LocationSegment::Index(index) => format!("{place}[{index}]"),
            LocationSegment::Property(name) => place_of_field(&place, &name),
        })
}

fn place_of_field(place: &str, name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
    match (is_plain, place) {
        (false, _) => format!("{place}[{name:?}]"),
        (true, "") => name.to_owned(),
        (true, _) => format!("{place}.{name}"),
    }
}

/// Fields to add to a mapping.
const STRANGE_FIELDS: [&str; 6] = ["x", "name", "port", "host", "periodSeconds", "retaint"];

/// The schema and the parser accept the same files, except for what no schema can check.
#[test]
fn the_schema_and_the_parser_agree_about_whatever_stands_in_place_of_a_value() {
    let text = fs::read_to_string(at_root("tests/fixtures/config/valid/everything.yaml")).unwrap();
    let mut file = instance(&text).unwrap();
    let gates = file["rules"][0]["gates"].take();
    let mut count = 0;
    for (index, gate) in gates.as_array().unwrap().iter().enumerate() {
        file["rules"][0]["gates"] = json!([gate]);
        let mut places = places_in(&file, "");
        // The rest of the file is the same for each gate.
        places.retain(|place| index == 0 || place.starts_with("/rules/0/gates/"));
        for changed in places.iter().flat_map(|place| changes(&file, place)) {
            let accepts = SCHEMA.is_valid(&changed);
            match config::parse(&changed.to_string()).map_err(|problems| problems.to_string()) {
                Ok(_) => assert!(accepts, "{changed:#}"),
                Err(problems) => {
                    let agrees =
                        !accepts || problems.lines().all(|problem| beyond(problem).is_some());
                    assert!(agrees, "{problems}\n{changed:#}");
                }
            }
            count += 1;
        }
    }
    assert!(count > 1000, "{count}");
}

/// The places of all values below `value`, as JSON pointers.
fn places_in(value: &Value, place: &str) -> Vec<String> {
    let children: Vec<_> = match value {
        Value::Object(fields) => {
            let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
            fields
                .iter()
                .map(|(name, child)| (escaped(name), child))
                .collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, child)| (index.to_string(), child))
                .collect()
        }
        _ => Vec::new(),
    };
    let below = children.into_iter().flat_map(|(name, child)| {
        let place = format!("{place}/{name}");
        let below = places_in(child, &place);
        iter::once(place).chain(below)
    });
    below.collect()
}

/// `file` with other values at `place`, with more fields there, and without it.
fn changes(file: &Value, place: &str) -> Vec<Value> {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = file.clone();
        change(changed.pointer_mut(place).unwrap());
        changed
    };
    let values = json!([
        null, true, 0, 1, -1, 0.5, 70_000, "", "x", "Not a name", "/x", "1m", [], ["x"], {"x": "x"}
    ]);
    let values = values.as_array().unwrap().iter();
    let mut changes: Vec<_> = values
        .map(|value| with(&|old| *old = value.clone()))
        .collect();
    if file.pointer(place).unwrap().is_object() {
        changes.extend(STRANGE_FIELDS.map(|field| with(&|old| old[field] = json!(1))));
    }
    let (parent, name) = place.rsplit_once('/').unwrap();
    let mut without = file.clone();
    if let Some(Value::Object(fields)) = without.pointer_mut(parent) {
        fields.remove(&name.replace("~1", "/").replace("~0", "~"));
        changes.push(without);
    }
    changes
}
