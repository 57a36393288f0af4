//! What is generated from the types of the configuration, and checked in. `make generate` writes it.

use std::{env, fs};

use untaint::config;

use crate::{REFERENCE, at_root, reference};

#[test]
fn the_schema_and_the_tables_of_the_reference_are_what_the_types_give() {
    let schema = config::schema::generate();
    let page = fs::read_to_string(at_root(REFERENCE)).unwrap();
    let page = reference::with_tables(&page, schema.as_value());
    let text = format!("{:#}\n", schema.as_value());
    for (path, expected) in [("src/config/schema.json", text), (REFERENCE, page)] {
        let path = at_root(path);
        if env::var("UNTAINT_GENERATE").as_deref() == Ok("true") {
            fs::write(path, expected).unwrap();
        } else {
            let found = fs::read_to_string(&path).unwrap();
            let is_up_to_date = found == expected;
            assert!(is_up_to_date, "{}: run `make generate`", path.display());
        }
    }
}
