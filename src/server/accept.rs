//! Which of two forms of an answer a client asks for. Pure.

use http::HeaderMap;
use http::header::ACCEPT;

/// The ranges that a form of the answer is in, the most specific first: that one counts.
type Ranges = [&'static str; 3];

const HTML: Ranges = ["text/html", "text/*", "*/*"];
const JSON: Ranges = ["application/json", "application/*", "*/*"];

/// Whether a page is wanted more than JSON. Who has no preference is a program: a person's browser names HTML.
pub(super) fn prefers_html(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let accepted: Vec<_> = lines
        .flat_map(|line| line.split(','))
        .filter_map(weighted)
        .collect();
    weight(&accepted, HTML) > weight(&accepted, JSON)
}

/// How much is wanted what is in `ranges`; 0: not at all.
fn weight(accepted: &[(&str, f32)], ranges: Ranges) -> f32 {
    let of = |range: &str| {
        let mut same = accepted
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(range));
        same.next().map(|(_, weight)| *weight)
    };
    ranges.into_iter().find_map(of).unwrap_or_default()
}

/// A media range and its weight. `None`: the weight is none. Parameters of the media type do not matter here.
fn weighted(item: &str) -> Option<(&str, f32)> {
    let mut parts = item.split(';').map(str::trim);
    let range = parts.next()?;
    let weight = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.eq_ignore_ascii_case("q").then_some(value)
    });
    let weight = weight.map_or(Ok(1.0), str::parse).ok()?;
    (0.0..=1.0).contains(&weight).then_some((range, weight))
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
    fn a_browser_is_given_a_page_and_a_program_json() {
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
            (&["text/*"], true),
            (&["text/html, application/json"], false),
            (&["text/html;q=0.5, application/json;q=0.4"], true),
            (&["text/html;q=0.4, application/json;q=0.5"], false),
            (&["text/html;q=0.9, */*"], false),
            // The most specific range counts, wherever it stands.
            (&["*/*, application/json;q=0.2"], true),
            (&["text/*, text/html;q=0.2, application/json;q=0.3"], false),
            // 0 is a no; who wants neither is given JSON.
            (&["text/html;q=0"], false),
            (&["*/*, application/json;q=0"], true),
            (&["text/html;q=0, application/json;q=0.0"], false),
            (&["image/png"], false),
            // Several lines are one list.
            (&["text/html", "application/json;q=0.5"], true),
            (&["application/json", "text/html;q=0.5"], false),
            // What is no weight, or no media range, is as if it were not there.
            (&["text/html;q=2"], false),
            (&["text/html;q=nan"], false),
            (&["text/html;q=-1"], false),
            (&["text/html;q="], false),
            (&["html"], false),
            (&[";q=1,,;"], false),
        ] {
            assert_eq!(prefers_html_by(accept), html, "{accept:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_no_preference() {
        let value = HeaderValue::from_bytes(b"text/html;q=1\xff").unwrap();
        assert!(!prefers_html(&HeaderMap::from_iter([(ACCEPT, value)])));
    }
}
