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

/// Reports the test as skipped, because the version of Kubernetes in `KUBEBUILDER_ASSETS` lacks something. The test must
/// then return. This is no failure with `CI=true`. The newest version, without `KUBEBUILDER_ASSETS`, runs every test.
pub fn skip_for_version(reason: &str) {
    match std::env::var("KUBEBUILDER_ASSETS").as_deref() {
        Ok("") | Err(_) => skip(reason),
        Ok(_) => say(&format!("skipped: {reason}")),
    }
}

/// Prints a line. `eprintln!` would show it only if the test fails.
pub(crate) fn say(text: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}
