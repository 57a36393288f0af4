//! Whether a client wants a page or JSON. Pure.

use http::HeaderMap;
use http::header::ACCEPT;

/// Whether the client is a browser: its `Accept` names `text/html` and not `application/json`. Weights are ignored.
pub(super) fn prefers_html(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let ranges: Vec<_> = lines
        .flat_map(|line| line.split(','))
        .filter_map(|item| item.split(';').next())
        .collect();
    let names = |wanted: &str| {
        let mut ranges = ranges.iter().map(|range| range.trim());
        ranges.any(|range| range.eq_ignore_ascii_case(wanted))
    };
    names("text/html") && !names("application/json")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn prefers_html_by(lines: &[&'static str]) -> bool {
        let lines = lines
            .iter()
            .map(|line| (ACCEPT, HeaderValue::from_static(line)));
        prefers_html(&lines.collect())
    }

    #[test]
    fn a_browser_gets_a_page_and_a_program_gets_json() {
        const FIREFOX: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        const CHROMIUM: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,\
            image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7";
        for (accept, html) in [
            (&[][..], false),
            (&[""], false),
            (&["*/*"], false),
            (&["application/json"], false),
            (&["application/json, */*;q=0.5"], false),
            (&[FIREFOX], true),
            (&[CHROMIUM], true),
            (&["text/html"], true),
            (&["TEXT/HTML ; Q=0.1"], true),
            (&["text/html;charset=utf-8"], true),
            (&["text/html;q=0.9, */*"], true),
            (&["text/html, application/json"], false),
            (&["application/json;q=0.4,text/html;q=0.5"], false),
            (&["text/*, application/*"], false),
            (&["image/png"], false),
            // Several lines are one list.
            (&["image/png", "text/html"], true),
            (&["text/html", "Application/JSON;q=0.5"], false),
            (&["application/json", "text/html;q=0.5"], false),
            // These are not media ranges.
            (&["html"], false),
            (&["text/html-like"], false),
            (&[";q=1,,;"], false),
        ] {
            assert_eq!(prefers_html_by(accept), html, "{accept:?}");
        }
    }

    #[test]
    fn a_header_that_is_not_text_is_ignored() {
        let value = HeaderValue::from_bytes(b"text/html;q=1\xff").unwrap();
        assert!(!prefers_html(&HeaderMap::from_iter([(ACCEPT, value)])));
    }
}
