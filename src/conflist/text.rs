//! Names from other people's files in messages.

use std::fmt::Write;

use crate::text::printable;

/// Characters of a message. Kubernetes allows 1024 bytes in an Event's note.
const MAX_CHARS: usize = 900;
/// Characters of one name in a message, so that it leaves room for the rest.
const MAX_NAME_CHARS: usize = 64;
const MAX_NAMES: usize = 8;

/// `message` as one line of bounded length, in which only printable characters are left as they are.
pub fn one_line(message: &str) -> String {
    printable(message, MAX_CHARS)
}

pub(super) fn name(name: &str) -> String {
    printable(name, MAX_NAME_CHARS)
}

pub(super) fn names<S: AsRef<str>>(names: &[S]) -> String {
    let mut text = names
        .iter()
        .take(MAX_NAMES)
        .map(|each| name(each.as_ref()))
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
    fn a_message_is_one_line_of_bounded_length() {
        assert_eq!(
            one_line("a \"b\"\n\u{1b}[31m\u{202e}é"),
            "a \"b\"\\n\\u{1b}[31m\\u{202e}é"
        );
        let long = one_line(&"\0x".repeat(1_000_000));
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_long_list_says_how_much_more_there_is() {
        assert_eq!(names(&["a", "b"]), "a, b");
        assert_eq!(names(&["x"; 8]), "x, x, x, x, x, x, x, x");
        assert!(names(&["x"; 10]).ends_with("x and 2 more"));
    }
}
