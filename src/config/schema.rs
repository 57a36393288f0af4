//! The JSON Schema of the file, for editors and continuous integration.
//!
//! It is generated from the types: their fields, words and defaults, and the forms of their strings. It refuses nothing
//! that the reference allows, and of what [`super::parse`] refuses whatever a schema can tell.
//!
//! The program has its text, 33 KB, which is checked in. To derive it at run time takes 198 KB of the program. So only
//! `make generate` and the test that holds the text to the types do that, and the linker drops what they use.

use std::collections::BTreeSet;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

use super::File;

/// The schema of the file, in draft 2020-12: what [`generate`] gave when it was last asked.
pub const TEXT: &str = include_str!("schema.json");

/// The schema of the file from the types.
pub fn generate() -> Schema {
    SchemaSettings::draft2020_12()
        .with_transform(AsTheParser)
        .into_generator()
        .into_root_schema_for::<File<'_>>()
}

/// What the parser does alike everywhere, whatever a type says.
#[derive(Clone)]
struct AsTheParser;

impl Transform for AsTheParser {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(object) = schema.as_object_mut() {
            choices_as_fields(object);
            if object.contains_key("properties") {
                object.insert("additionalProperties".into(), false.into());
                object.remove("unevaluatedProperties");
            }
            // It names the Rust type.
            object.remove("format");
            if let Some(Value::String(words)) = object.get_mut("description") {
                *words = words.replace('\n', " ");
            }
        }
        transform_subschemas(self, schema);
    }
}

/// Where a mapping has one of several fields, as a gate has one check, a type has an enum, and its schema a subschema
/// for each variant. All of their errors would be told at once, and none at its field. So their fields become fields of
/// the mapping: `oneOf` demands one of those that make the choice, and `dependentSchemas` refuses beside each what
/// belongs to the others.
fn choices_as_fields(mapping: &mut Map<String, Value>) {
    let shapes = shapes(mapping);
    let required = shapes.iter().map(|shape| shape.required.clone());
    let always = required
        .clone()
        .reduce(|one, other| &one & &other)
        .unwrap_or_default();
    let choices: BTreeSet<_> = required
        .flatten()
        .filter(|field| !always.contains(field))
        .collect();
    if choices.is_empty() {
        return;
    }
    let mut fields = Map::new();
    for (name, field) in shapes.iter().flat_map(|shape| &shape.fields) {
        fields.entry(name).or_insert_with(|| field.clone());
    }
    let mut beside = Map::new();
    for shape in &shapes {
        let foreign =
            |field: &&String| !shape.fields.contains_key(*field) && !choices.contains(*field);
        let never: Map<_, _> = fields
            .keys()
            .filter(foreign)
            .map(|field| (field.clone(), false.into()))
            .collect();
        if !never.is_empty() {
            let own = shape.required.intersection(&choices);
            beside.extend(own.map(|choice| (choice.clone(), json!({"properties": never}))));
        }
    }
    mapping.remove("anyOf");
    mapping.insert("type".into(), "object".into());
    mapping.insert("properties".into(), fields.into());
    if !always.is_empty() {
        mapping.insert("required".into(), always.into_iter().collect());
    }
    mapping.insert(
        "oneOf".into(),
        choices
            .iter()
            .map(|choice| json!({"required": [choice]}))
            .collect(),
    );
    mapping.insert("dependentSchemas".into(), beside.into());
}

/// One of the forms that a mapping may have.
struct Shape {
    fields: Map<String, Value>,
    required: BTreeSet<String>,
}

/// The forms that a mapping may have; a single one, unless it has a choice.
fn shapes(mapping: &Map<String, Value>) -> Vec<Shape> {
    let get = |keyword| mapping.get(keyword);
    let mut fields = get("properties")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let required = get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let required: BTreeSet<_> = required
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();

    let variants = get("anyOf")
        .or_else(|| get("oneOf"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let variants: Vec<_> = variants
        .filter_map(Value::as_object)
        .flat_map(shapes)
        .collect();
    if variants.is_empty() {
        // What is said of a variant is said of its field.
        if let (Some(words), Some(Value::Object(field))) =
            (get("description"), fields.values_mut().next())
        {
            field.entry("description").or_insert_with(|| words.clone());
        }
        return vec![Shape { fields, required }];
    }
    let whole = |variant: Shape| Shape {
        fields: fields.clone().into_iter().chain(variant.fields).collect(),
        required: &required | &variant.required,
    };
    variants.into_iter().map(whole).collect()
}
