use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::*;

/// The fields of a type in the schema.
fn fields(of: &str) -> BTreeSet<String> {
    let schema: Json = serde_json::from_str(crate::config::schema::TEXT).unwrap();
    let fields = schema["$defs"][of]["properties"].as_object().unwrap();
    fields
        .keys()
        .filter(|name| *name != "name")
        .cloned()
        .collect()
}

#[test]
fn the_fields_that_are_looked_for_elsewhere_are_those_of_the_schema() {
    let listed =
        |names: &[&str]| -> BTreeSet<String> { names.iter().map(ToString::to_string).collect() };
    assert_eq!(listed(&RULE), fields("Rule"));
    assert_eq!(listed(&[&KINDS[..], &GATE].concat()), fields("Gate"));
}

#[test]
fn a_misspelled_field_resembles_one_and_another_word_resembles_none() {
    let known = [
        "name",
        "taint",
        "nodeSelector",
        "gates",
        "stableFor",
        "port",
        "host",
        "periodSeconds",
    ];
    for (name, meant) in [
        ("Name", Some("name")),
        ("TAINT", Some("taint")),
        ("tiant", Some("taint")),
        ("taints", Some("taint")),
        ("gate", Some("gates")),
        ("node_selector", Some("nodeSelector")),
        ("node-selectors", Some("nodeSelector")),
        ("nodeSelctor", Some("nodeSelector")),
        ("stablefor", Some("stableFor")),
        ("prot", Some("port")),
        ("ports", Some("port")),
        ("period", Some("periodSeconds")),
        ("periodSecond", Some("periodSeconds")),
        ("note", None),
        ("x", None),
        ("", None),
        ("_", None),
        ("pod", None),
        ("ö", None),
        ("retaint", None),
    ] {
        assert_eq!(nearest(name, &known), meant, "{name}");
    }
    assert_eq!(nearest(&"name".repeat(1_000_000), &["x"]), None);
}
