//! Texts for messages: errors in plain words, and foreign text that is short and safe to print. Pure.

use std::fmt::Write;
use std::io;
use std::path::Path;

use http::StatusCode;
use ring::digest::{SHA256, digest};

/// The longest [`excerpt`], in characters.
const EXCERPT: usize = 200;
/// The longest text that is [`quoted`], in characters.
const QUOTED: usize = 80;

/// An I/O error in the operating system's words, without its capital and number: "connection refused". The words of
/// libraries lose the URLs of their documentation, which is for programmers.
pub(crate) fn io_message(error: &io::Error) -> String {
    let text = error.to_string();
    if error.raw_os_error().is_none() {
        let words = text
            .split_once("https://docs.rs/")
            .map_or(text.as_str(), |(words, _)| words);
        return words.trim_end_matches([' ', ':']).to_owned();
    }
    let words = text
        .split_once(" (os error")
        .map_or(text.as_str(), |(words, _)| words);
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// The status of an HTTP answer: "503 Service Unavailable", or the number alone if it has no name.
pub(crate) fn http_status(status: StatusCode) -> String {
    let code = status.as_u16();
    match status.canonical_reason() {
        Some(reason) => format!("{code} {reason}"),
        None => code.to_string(),
    }
}

/// `text`, which may contain a URL, without the parts of it that may be secret: a user, a query, a fragment.
pub(crate) fn without_secrets(text: &str) -> String {
    let mark = |text: &str| text.find(['?', '#']);
    let (user, rest) = match text.rsplit_once('@') {
        Some((user, rest)) => {
            let start = user.find("//").map_or("", |slashes| &user[..slashes + 2]);
            if mark(user).is_some() {
                // The mark may be in the user or begin the query, so what follows may be secret too.
                return format!("{start}…");
            }
            (format!("{start}…@"), rest)
        }
        None => (String::new(), text),
    };
    match mark(rest) {
        Some(mark) => format!("{user}{}…", &rest[..=mark]),
        None => user + rest,
    }
}

/// The beginning of a text that others wrote.
pub(crate) fn excerpt(text: &str) -> String {
    printable(text, EXCERPT)
}

/// The beginning of `text` in quotes, without the secrets of a URL.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", printable(&without_secrets(text), QUOTED))
}

/// A host without the brackets of an IPv6 address.
pub(crate) fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

/// At most `max` characters of `text`. Escapes invisible characters, which could forge log lines or control a terminal.
pub(crate) fn printable(text: &str, max: usize) -> String {
    let mut escaped = text.chars().flat_map(|c| {
        let quoted = matches!(c, '"' | '\'' | '\\');
        let plain = quoted.then_some(c);
        let other = (!quoted).then(|| c.escape_debug());
        plain.into_iter().chain(other.into_iter().flatten())
    });
    let mut line: String = escaped.by_ref().take(max).collect();
    if escaped.next().is_some() {
        line.push('…');
    }
    line
}

/// [`printable`] of a path, which may have line breaks.
pub(crate) fn printable_path(path: &Path) -> String {
    /// The longest path that Linux accepts, in bytes.
    const LONGEST: usize = 4096;
    printable(&path.to_string_lossy(), LONGEST)
}

/// [`printable`] with a limit in bytes.
pub(crate) fn printable_bytes(text: &str, max: usize) -> String {
    let mut line = printable(text, max);
    if line.len() > max {
        let room = max.saturating_sub('…'.len_utf8());
        line.truncate(line.floor_char_boundary(room));
        line.push('…');
    }
    line
}

/// The SHA-256 in hexadecimal, as `sha256sum` prints it.
pub(crate) fn sha256(text: &str) -> String {
    let mut hexadecimal = String::new();
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        // Writing to a String cannot fail.
        _ = write!(hexadecimal, "{byte:02x}");
    }
    hexadecimal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_operating_system_reads_as_plain_words() {
        let refused = io::Error::from(rustix::io::Errno::CONNREFUSED);
        assert_eq!(io_message(&refused), "connection refused");
        assert_eq!(io_message(&io::Error::other("Own words")), "Own words");
        let with_url = "peer closed connection: https://docs.rs/rustls/latest/x.html#eof";
        let with_url = io::Error::other(with_url);
        assert_eq!(io_message(&with_url), "peer closed connection");
    }

    #[test]
    fn a_status_without_a_name_is_its_number() {
        for (code, words) in [(503, "503 Service Unavailable"), (509, "509"), (999, "999")] {
            assert_eq!(http_status(StatusCode::from_u16(code).unwrap()), words);
        }
    }

    #[test]
    fn foreign_text_is_bounded_and_shows_what_would_be_invisible() {
        assert_eq!(
            excerpt("a\n\u{1b}[31m \"ö\" \u{202e}"),
            "a\\n\\u{1b}[31m \"ö\" \\u{202e}"
        );
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), EXCERPT + 1);
        assert_eq!(excerpt(&"x".repeat(EXCERPT)), "x".repeat(EXCERPT));
    }

    #[test]
    fn a_url_loses_its_user_its_query_and_its_fragment() {
        for (text, shown) in [
            ("", ""),
            ("/healthz", "/healthz"),
            ("http://host:1/path", "http://host:1/path"),
            ("http://user:secret@host/path", "http://…@host/path"),
            ("user:secret@host", "…@host"),
            ("http://user:secret@host/?token=secret", "http://…@host/?…"),
            ("http://user:se?c#ret@host/path", "http://…"),
            ("/path?token=secret#secret", "/path?…"),
            ("/path#access_token=secret?", "/path#…"),
            ("http://host/?token=sec@ret", "http://…"),
            ("curl http://user:secret@host", "curl http://…@host"),
            ("secret@?", "…@?…"),
        ] {
            assert_eq!(without_secrets(text), shown, "{text}");
        }
    }

    #[test]
    fn a_limit_in_bytes_cuts_between_characters() {
        assert_eq!(printable_bytes("12345", 5), "12345");
        assert_eq!(printable_bytes("123456", 5), "12…");
        assert_eq!(printable_bytes("ööö", 6), "ööö");
        assert_eq!(printable_bytes("ööööö", 8), "öö…");
        for text in ["\n".repeat(2000), "😀".repeat(2000)] {
            let line = printable_bytes(&text, 1024);
            assert!((1020..=1024).contains(&line.len()), "{}", line.len());
        }
    }
}
