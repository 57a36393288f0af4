//! Words for reasons: errors in plain language, and text from elsewhere made short and safe to print. Pure.

use std::io;

/// Longest excerpt of foreign text, in characters.
const EXCERPT: usize = 200;

/// An I/O error in the operating system's words, without its capital and number: "connection refused".
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    if error.raw_os_error().is_none() {
        return text;
    }
    let words = text
        .split_once(" (os error")
        .map_or(text.as_str(), |(words, _)| words);
    let mut characters = words.chars();
    characters
        .next()
        .map(|first| first.to_ascii_lowercase())
        .into_iter()
        .chain(characters)
        .collect()
}

/// The beginning of a text that others wrote. Whatever would not be visible is escaped, so that it can neither forge
/// log lines nor drive a terminal.
pub(super) fn excerpt(text: &str) -> String {
    let mut excerpt = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == EXCERPT {
            excerpt.push('…');
            break;
        }
        match character {
            '"' | '\'' | '\\' => excerpt.push(character),
            other => excerpt.extend(other.escape_debug()),
        }
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_operating_system_reads_as_plain_words() {
        let refused = io::Error::from(rustix::io::Errno::CONNREFUSED);
        assert_eq!(plain(&refused), "connection refused");
        assert_eq!(plain(&io::Error::other("Own words")), "Own words");
    }

    #[test]
    fn an_excerpt_is_bounded_and_shows_what_would_be_invisible() {
        assert_eq!(
            excerpt("a\n\u{1b}[31m \"ö\" \u{202e}"),
            "a\\n\\u{1b}[31m \"ö\" \\u{202e}"
        );
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), EXCERPT + 1);
    }
}
