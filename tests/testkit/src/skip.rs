//! Tests that cannot run on this machine.

use std::io::Write as _;

/// Reports the test as skipped; it is to return. With `CI=true` it panics instead.
pub fn skip(reason: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "no test may be skipped with CI=true, but: {reason}"
    );
    say(&format!("skipped: {reason}"));
}

/// The test harness shows what a passing test prints to nobody; this it does not catch.
pub(crate) fn say(text: &str) {
    // A closed standard error is nobody's concern.
    let _ = writeln!(std::io::stderr(), "{text}");
}
