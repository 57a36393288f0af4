//! The JSON Schema of the file, for editors and continuous integration.
//!
//! It is generated from the types: their fields, doc comments and defaults, and the forms of their strings. It accepts
//! everything that the reference allows, and refuses what [`super::parse`] refuses, as far as a schema can.
//!
//! The program contains the text of the schema, 33 KB. The code that generates it takes 198 KB, so only `make generate`
//! and the test that compares the text with the types run it, and the linker drops it from the program.

use std::collections::BTreeSet;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

use super::File;

/// The schema of the file, in draft 2020-12, as [`generate`] returns it.
pub const TEXT: &str = include_str!("schema.json");

/// The schema of the file from the types.
pub fn generate() -> Schema {
    SchemaSettings::draft2020_12()
        .with_transform(ParserRules)
        .into_generator()
        .into_root_schema_for::<File<'_>>()
}

/// What the parser does with each type.
#[derive(Clone)]
struct ParserRules;

impl Transform for ParserRules {
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

/// A mapping that has one of several fields, as a gate has one check, is an enum in its type, and its schema has a
/// subschema for each variant. A validator would report the errors of all variants, and none at its field. So the fields
/// of the variants become fields of the mapping: `oneOf` demands one of those that make the choice, and
/// `dependentSchemas` refuses beside each of them the fields of the others.
fn choices_as_fields(mapping: &mut Map<String, Value>) {
    let shapes = shapes(mapping);
    let is_in_all = |field: &String| shapes.iter().all(|shape| shape.required.contains(field));
    let required = shapes.iter().flat_map(|shape| shape.required.clone());
    let (always, choices): (BTreeSet<_>, BTreeSet<_>) = required.partition(is_in_all);
    if choices.is_empty() {
        return;
    }
    // The first shape that has a field describes it.
    let fields = shapes.iter().rev().flat_map(|shape| shape.fields.clone());
    let fields: Map<_, _> = fields.collect();
    let mut beside = Map::new();
    for shape in &shapes {
        let foreign =
            |field: &&String| !shape.fields.contains_key(*field) && !choices.contains(*field);
        let never = fields.keys().filter(foreign);
        let never: Map<_, _> = never.map(|field| (field.clone(), false.into())).collect();
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
    let choices = choices.iter().map(|choice| json!({"required": [choice]}));
    mapping.insert("oneOf".into(), choices.collect());
    mapping.insert("dependentSchemas".into(), beside.into());
}

/// One of the forms that a mapping may have.
struct Shape {
    fields: Map<String, Value>,
    required: BTreeSet<String>,
}

/// The forms that a mapping may have; a single one, unless it has a choice.
fn shapes(mapping: &Map<String, Value>) -> Vec<Shape> {
    let list = |keyword| mapping.get(keyword).and_then(Value::as_array);
    let fields = mapping.get("properties").and_then(Value::as_object);
    let mut fields = fields.cloned().unwrap_or_default();
    let required = list("required").into_iter().flatten();
    let required = required.filter_map(|name| name.as_str().map(str::to_owned));
    let required: BTreeSet<_> = required.collect();

    let variants = list("anyOf").or_else(|| list("oneOf"));
    let variants = variants.into_iter().flatten().filter_map(Value::as_object);
    let variants: Vec<_> = variants.flat_map(shapes).collect();
    if variants.is_empty() {
        // The description of a variant is that of its field.
        if let (Some(words), Some(Value::Object(field))) =
            (mapping.get("description"), fields.values_mut().next())
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
