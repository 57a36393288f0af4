//! The bill of materials and the provenance.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{REVISION, Scene, VERSION};

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// What schema/bom-1.6.schema.json of the specification requires of the parts in use.
#[test]
fn the_bill_of_materials_has_what_its_schema_requires() {
    let scene = Scene::new();
    scene.make();
    for architecture in ["amd64", "arm64"] {
        let bill = scene.released_json(&format!("untaint-{VERSION}-linux-{architecture}.cdx.json"));
        assert_eq!(
            (&bill["bomFormat"], &bill["specVersion"], &bill["version"]),
            (&json!("CycloneDX"), &json!("1.6"), &json!(1))
        );
        assert_eq!(bill["metadata"]["timestamp"], "2001-09-09T01:46:40Z");
        let root = &bill["metadata"]["component"];
        assert_eq!(
            (&root["type"], &root["name"]),
            (&json!("application"), &json!("untaint"))
        );
        let hash = root["hashes"][0]["content"].as_str().unwrap();
        let program = format!("untaint-{VERSION}-linux-{architecture}");
        assert!(scene.checksums().contains(&(hash.to_owned(), program)));

        let mut references = BTreeSet::new();
        for component in list(&bill["components"]).iter().chain([root]) {
            assert!(["library", "application"].contains(&component["type"].as_str().unwrap()));
            assert!(!component["name"].as_str().unwrap().is_empty());
            // An expression must be alone.
            assert_eq!(list(&component["licenses"]).len(), 1);
            assert!(
                component["licenses"][0]["expression"].is_string(),
                "{component}"
            );
            assert!(
                references.insert(component["bom-ref"].as_str().unwrap()),
                "twice: {component}"
            );
        }
        let mut described = BTreeSet::new();
        for dependency in list(&bill["dependencies"]) {
            assert!(described.insert(dependency["ref"].as_str().unwrap()));
            let uses: Vec<_> = list(&dependency["dependsOn"])
                .iter()
                .map(|on| on.as_str().unwrap())
                .collect();
            let unique: BTreeSet<_> = uses.iter().copied().collect();
            assert_eq!(unique.len(), uses.len(), "{dependency}");
            assert!(unique.is_subset(&references), "{dependency}");
        }
        assert_eq!(described, references);
    }
}

#[test]
fn the_bill_of_materials_names_what_is_in_the_program_and_what_only_built_it() {
    let scene = Scene::new();
    scene.make();
    let bill = scene.released_json(&format!("untaint-{VERSION}-linux-amd64.cdx.json"));
    let components = list(&bill["components"]).iter().map(|component| {
        let text = |field: &str| component[field].as_str().unwrap_or("");
        let license = component["licenses"][0]["expression"].as_str().unwrap();
        (
            text("name"),
            text("version"),
            text("purl"),
            license,
            text("scope"),
        )
    });
    assert_eq!(
        components.collect::<Vec<_>>(),
        [
            (
                "adler2",
                "2.0.1",
                "pkg:cargo/adler2@2.0.1",
                "0BSD OR MIT OR Apache-2.0",
                ""
            ),
            (
                "cc",
                "1.2.3+four",
                "pkg:cargo/cc@1.2.3%2Bfour",
                "MIT",
                "excluded"
            ),
            (
                "glibc",
                "2.36-9+deb12u14",
                "pkg:deb/debian/glibc@2.36-9%2Bdeb12u14?arch=source",
                "LGPL-2.1-or-later",
                ""
            ),
            (
                "rust",
                "1.95.0",
                "pkg:generic/rust@1.95.0",
                "MIT OR Apache-2.0",
                ""
            ),
        ]
    );
}

/// The fields that the in-toto Statement v1 and the provenance of SLSA v1 require.
#[test]
fn the_provenance_names_every_file_the_source_and_the_compilers() {
    let scene = Scene::new();
    scene.make();
    let name = format!("untaint-{VERSION}.intoto.json");
    let statement = scene.released_json(&name);
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let subjects = list(&statement["subject"]).iter().map(|subject| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&subject["digest"]["sha256"]), text(&subject["name"]))
    });
    let others = scene
        .checksums()
        .into_iter()
        .filter(|(_, path)| *path != name);
    assert_eq!(subjects.collect::<Vec<_>>(), others.collect::<Vec<_>>());

    let build = &statement["predicate"]["buildDefinition"];
    assert!(build["buildType"].as_str().unwrap().starts_with("https://"));
    assert_eq!(
        build["externalParameters"],
        json!({"ARCHITECTURES": "amd64 arm64"})
    );
    assert_eq!(
        build["internalParameters"],
        json!({"SOURCE_DATE_EPOCH": "1000000000"})
    );
    let source = json!({"name": "source", "digest": {"gitCommit": REVISION}});
    assert_eq!(build["resolvedDependencies"][0], source);
    let builder = &statement["predicate"]["runDetails"]["builder"];
    assert_eq!(builder["id"], "https://untaint.dev/unsigned");
    assert_eq!(
        builder["version"]["rustc for arm64"],
        "1.95.0 (59807616e 2026-04-14)"
    );
    assert_eq!(
        builder["version"]["gcc for amd64"],
        "(Debian 12.2.0-14+deb12u1) 12.2.0"
    );
    assert_eq!(
        builder["version"]["libc for amd64"],
        "Debian GLIBC 2.36-9+deb12u14"
    );
}
