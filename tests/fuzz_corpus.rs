//! Runs the checks of the fuzz targets with every file of their corpus.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "what the targets demand fails as tests do; for those, it is public"
)]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::Path;

/// Calls `check` with every file of the corpus of `target`, and of `folder`.
#[expect(
    clippy::print_stdout,
    reason = "the last line before a failure is the file that failed"
)]
fn check_all(target: &str, folders: &[&str], check: fn(&[u8]) -> bool) {
    let corpus = format!("fuzz/corpus/{target}");
    let (mut accepted, mut refused) = (0, 0);
    for folder in folders.iter().copied().chain([corpus.as_str()]) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                println!("{}", path.display());
                let count = if check(&fs::read(path).unwrap()) {
                    &mut accepted
                } else {
                    &mut refused
                };
                *count += 1;
            }
        }
    }
    // The corpus must have inputs of both kinds.
    assert!(accepted > 2 && refused > 2, "{accepted}, {refused}");
}

#[test]
fn a_configuration_is_refused_with_a_place_or_is_the_same_when_shown_and_read_again() {
    let folders = [
        "examples",
        "tests/fixtures/config/valid",
        "tests/fixtures/config/invalid",
    ];
    check_all("configuration", &folders, targets::configuration::check);
}

#[test]
fn a_cni_directory_opens_only_by_a_file_that_bears_it_out() {
    check_all("conflist", &[], targets::conflist::check);
}

#[test]
fn an_http_answer_opens_only_by_its_status_line() {
    check_all("http_answer", &[], targets::http_answer::check);
}

#[test]
fn a_grpc_answer_opens_only_by_a_message_that_says_serving() {
    check_all("grpc_answer", &[], targets::grpc_answer::check);
}

#[test]
fn a_watch_tells_only_of_what_is_in_its_lines_however_they_arrive() {
    check_all("watch_line", &[], targets::watch_line::check);
}
