//! Tests that cannot run on this machine.

use std::io::Write as _;

/// Reports the test as skipped. The test must then return. With `CI=true`, this panics instead.
pub fn skip(reason: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "no test may be skipped with CI=true, but: {reason}"
    );
    say(&format!("skipped: {reason}"));
}

/// Prints a line. `eprintln!` would show it only if the test fails.
pub(crate) fn say(text: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}
