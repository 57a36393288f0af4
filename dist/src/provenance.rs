//! Of what and with what a release is made: an in-toto statement, version 1, with the predicate of SLSA provenance, version 1.
//!
//! Nobody signs it here. It says how to make the same files again, which anybody can check.

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::files::{Files, sha256};
use crate::program::Program;
use crate::{Release, read};

/// The statement about `files`.
pub(crate) fn statement(release: &Release, programs: &[Program], files: &Files) -> Result<String> {
    let subjects = files.digests();
    let subjects =
        subjects.map(|(path, digest)| json!({"name": path, "digest": {"sha256": digest}}));
    let mut versions = Map::new();
    for program in programs {
        let mut add = |tool: &str, version: &str| {
            versions.insert(
                format!("{tool} for {}", program.architecture),
                Value::from(version),
            );
        };
        add("rustc", program.compiler()?);
        add("gcc", program.c_compiler()?);
        add("libc", program.c_library()?);
    }
    let mut sources = vec![json!({"name": "source", "digest": {"gitCommit": release.revision}})];
    for path in ["Cargo.lock", "rust-toolchain.toml"] {
        let digest = sha256(read(path)?.as_bytes());
        sources.push(json!({"name": path, "digest": {"sha256": digest}}));
    }
    let architectures = programs.iter().map(|program| program.architecture);
    let architectures = architectures.collect::<Vec<_>>().join(" ");
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects.collect::<Vec<_>>(),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://untaint.dev/make-dist/v1",
                "externalParameters": {"ARCHITECTURES": architectures},
                "internalParameters": {"SOURCE_DATE_EPOCH": release.time.as_second().to_string()},
                "resolvedDependencies": sources,
            },
            "runDetails": {
                // The name for whoever runs `make dist` and signs nothing.
                "builder": {"id": "https://untaint.dev/unsigned", "version": versions},
            },
        },
    });
    Ok(format!("{statement:#}\n"))
}
