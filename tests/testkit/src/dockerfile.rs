//! The Dockerfile of untaint.

use std::fs;
use std::path::Path;

/// The instructions of that name, each without it.
///
/// # Panics
///
/// If the file cannot be read.
#[expect(clippy::expect_used, reason = "for tests")]
#[must_use]
pub fn instructions(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Dockerfile");
    let dockerfile = fs::read_to_string(path)
        .expect("the Dockerfile")
        .replace("\\\n", " ");
    let lines = dockerfile.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(instruction, _)| instruction.eq_ignore_ascii_case(name))
        .map(|(_, rest)| rest.trim().to_owned())
        .collect()
}
