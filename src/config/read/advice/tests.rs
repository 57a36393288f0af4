use super::*;

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
