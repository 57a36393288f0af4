//! The words of a page that a proxy sends. Pure.

use crate::text::excerpt;

/// How much of a page is looked at, in bytes.
pub(super) const PAGE: usize = 4096;

/// The title of a page, or the beginning of its text; `None` if there is no text.
pub(super) fn words(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(PAGE)]);
    // Of the same length as the text.
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|start| {
        let begin = start + lower[start..].find('>')? + 1;
        let length = lower[begin..].find('<')?;
        plain(&text[begin..begin + length])
    });
    let is_page = lower.trim_start().starts_with('<');
    title.or_else(|| {
        if is_page {
            plain(&without_tags(&text))
        } else {
            plain(&text)
        }
    })
}

fn without_tags(page: &str) -> String {
    let mut parts = page.split('<');
    let first = parts.next().unwrap_or_default();
    let texts = parts.filter_map(|part| part.split_once('>').map(|(_, text)| text));
    std::iter::once(first)
        .chain(texts)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The beginning of the text in one line.
fn plain(text: &str) -> Option<String> {
    let words: Vec<_> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| excerpt(&words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_page_its_title_is_shown_or_the_beginning_of_its_text() {
        for (body, shown) in [
            ("", None),
            (" \r\n\t", None),
            ("<html></html>", None),
            (
                "upstream connect error\nor reset",
                Some("upstream connect error or reset"),
            ),
            ("{\"error\": \"<b>\"}", Some("{\"error\": \"<b>\"}")),
            (
                "<html><TITLE lang=en>\n Sign\nin </TITLE><body>x",
                Some("Sign in"),
            ),
            (
                "<title></title><p>502 Bad<br>Gateway</p>",
                Some("502 Bad Gateway"),
            ),
            ("<title>never ends", Some("never ends")),
            ("<html <broken", None),
            ("\u{1b}[31mred\u{202e}", Some("\\u{1b}[31mred\\u{202e}")),
        ] {
            assert_eq!(words(body.as_bytes()).as_deref(), shown, "{body:?}");
        }
        let long = words("ö".repeat(10_000).as_bytes()).unwrap();
        assert!(long.chars().count() <= 201, "{long}");
        assert_eq!(words(b"\xff\xfe"), Some("\u{fffd}\u{fffd}".into()));
    }
}
