//! What must hold of whatever others may send: one module a fuzz target, whose `check` panics where it does not hold and says
//! whether the input was accepted: a configuration that is valid, a gate that is open, a watch that told of something.
//!
//! `tests/fuzz_corpus.rs` compiles this too and gives it the files of `fuzz/corpus`.

pub mod configuration;
pub mod conflist;
pub mod grpc_answer;
pub mod http_answer;
mod server;
pub mod watch_line;
