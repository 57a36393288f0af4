//! Other programs.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Runs a program, and returns its standard output. An error contains its standard error.
pub(crate) fn run(program: &str, arguments: &[impl AsRef<OsStr>]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("run {program}"))?;
    let shown = || {
        let words = arguments.iter().map(|word| word.as_ref().to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    };
    ensure!(
        output.status.success(),
        "{program} {}: {}{}",
        shown(),
        String::from_utf8_lossy(&output.stderr),
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same for a line of words without spaces in them.
pub(crate) fn line(line: &str) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    run(words[0], &words[1..])
}
