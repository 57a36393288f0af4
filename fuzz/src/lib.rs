//! What must hold of any input from others: one module a fuzz target. Its `check` panics where that does not hold, and
//! returns whether the input was accepted: a valid configuration, an open gate, a watch with an event.
//!
//! `tests/fuzz_corpus.rs` compiles this too and checks the files of `fuzz/corpus`.

pub mod configuration;
pub mod conflist;
pub mod grpc_answer;
pub mod http_answer;
mod server;
pub mod watch_line;

/// What an open gate found, or the reason why a gate is closed, is short and printable.
fn assert_printable(message: &str) {
    assert!(message.len() <= 4096, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
}
