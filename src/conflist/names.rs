//! Names from other people's files in messages.

use std::fmt::Write;

use crate::text::printable;

/// Characters of one name in a message, so that it leaves room for the rest.
const MAX_CHARS: usize = 64;
const MAX_NAMES: usize = 8;

pub(super) fn printable_name(name: &str) -> String {
    printable(name, MAX_CHARS)
}

pub(super) fn printable_names<S: AsRef<str>>(names: &[S]) -> String {
    let mut text = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| printable_name(name.as_ref()))
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(MAX_NAMES) {
        // Writing to a String cannot fail.
        _ = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_says_how_much_more_there_is() {
        assert_eq!(printable_names(&["a", "b"]), "a, b");
        assert_eq!(printable_names(&["x"; 8]), "x, x, x, x, x, x, x, x");
        assert!(printable_names(&["x"; 10]).ends_with("x and 2 more"));
    }
}
