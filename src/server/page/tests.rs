use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use html5gum::{Token, Tokenizer};
use ring::digest::{SHA256, digest};

use super::*;
use crate::status::tests::status;

/// Each is a way out of some place in a page.
const HOSTILE: [&str; 5] = [
    "</td><script>alert(1)</script>",
    "</title></style><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)\" x='",
    "<!-- &lt;b&gt; &#60;script&#62; ]]>",
    "\0\u{1b}[31m\r\u{202e}\u{2028}\u{feff}",
];

fn now() -> Timestamp {
    "2026-01-02T03:08:35Z".parse().unwrap()
}

/// A page as a browser's tokenizer sees it. Fails where it finds a fault.
struct Seen {
    /// The text and, without its values, each tag.
    shape: Vec<String>,
    text: String,
}

fn look_at(page: &str) -> Seen {
    const WITHOUT_END: [&str; 2] = ["meta", "br"];
    let (mut open, mut shape, mut text) = (Vec::new(), Vec::new(), String::new());
    for token in Tokenizer::new(page) {
        match token.unwrap() {
            Token::StartTag(tag) => {
                let name = String::from_utf8(tag.name.0).unwrap();
                let attributes = tag.attributes.keys();
                let attributes: Vec<_> = attributes
                    .map(|name| String::from_utf8_lossy(name).into_owned())
                    .collect();
                shape.push(format!("<{name} {}>", attributes.join(" ")));
                if !WITHOUT_END.contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8(tag.name.0).unwrap();
                assert_eq!(open.pop(), Some(name), "of {page}");
            }
            Token::String(piece) => text += std::str::from_utf8(&piece).unwrap(),
            Token::Doctype(_) => assert!(shape.is_empty(), "{page}"),
            Token::Comment(comment) => panic!("{comment:?} in {page}"),
            Token::Error(error) => panic!("{error:?} in {page}"),
        }
    }
    assert_eq!(open, [""; 0], "not closed in {page}");
    Seen { shape, text }
}

fn hostile(with: &str) -> Status {
    let mut status = status(1);
    status.node.name = with.into();
    status.api.last_error.as_mut().unwrap().message = with.into();
    status.policy.message = with.into();
    status.configuration.source = with.into();
    status.configuration.last_failure.as_mut().unwrap().message = with.into();
    let rule = &mut status.rules[0];
    rule.name = with.into();
    rule.taint = with.into();
    rule.retaint_taint = Some(with.into());
    rule.denied = Some(with.into());
    rule.write_failure = Some(with.into());
    rule.publish_failure = Some(with.into());
    for gate in &mut rule.gates {
        gate.name = with.into();
        gate.message = with.into();
    }
    status.left_taints = vec![LeftTaintStatus {
        taint: with.into(),
        rule: with.into(),
        reason: "",
        message: "",
        denied: Some(with.into()),
    }];
    status
}

#[test]
fn text_from_outside_cannot_change_the_page() {
    let harmless = look_at(&render(Some(&hostile("x")), now(), false));
    assert!(!harmless.shape.iter().any(|tag| tag.starts_with("<script")));
    for words in HOSTILE {
        let page = render(Some(&hostile(words)), now(), false);
        let seen = look_at(&page);
        assert_eq!(seen.shape, harmless.shape, "{words:?}: {page}");
        let count = seen.text.matches(&printable(words, usize::MAX)).count();
        assert_eq!(count, harmless_places(), "{words:?}: {}", seen.text);
        let invisible =
            |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2028}\u{feff}".contains(c);
        assert!(!page.contains(invisible), "{words:?}: {page}");
    }
}

/// Title, heading, configuration, its failure, last error, policy, "look at", the rule's heading, two taints, denial,
/// failures to write and to publish, the table's caption, three of a left taint, three gates twice.
fn harmless_places() -> usize {
    14 + 3 + 3 * 2
}

#[test]
fn a_very_long_text_is_cut_visibly() {
    let endless = "x".repeat(1_000_000);
    let page = render(Some(&hostile(&endless)), now(), false);
    assert!(page.len() < 100_000, "{}", page.len());
    assert!(page.contains(&format!("{}…", "x".repeat(MAX_TEXT))));
}

#[test]
fn every_page_is_well_formed_and_complete() {
    let starting = look_at(&render(None, now(), false));
    assert!(starting.text.contains("nothing is known yet"));
    for rules in [1, 3] {
        let seen = look_at(&render(Some(&status(rules)), now(), false));
        for words in [
            "worker-1 · untaint",
            concat!(
                "untaint ",
                env!("CARGO_PKG_VERSION"),
                " at 2026-01-02T03:08:35Z"
            ),
            &format!("0 of {rules} rules done"),
            "Look at rule-0",
            "seen, resourceVersion 4711",
            "/etc/untaint/config.yaml, since 2026-01-02T03:04:05Z (4 min ago), reloads: 2",
            &"0f".repeat(32),
            "invalid now",
            "1:1: must be a mapping2:1: unknown",
            "not watching",
            "connection refused — 2026-01-02T03:04:05Z (4 min ago)",
            "Admission policynot-held apply it",
            "rule-0 waiting overdue denied not published dry run",
            "example.com/not-ready:NoExecute",
            "waiting: some gate is not open — since 2026-01-02T03:04:05Z (4 min ago)",
            "longer than the rule's deadline",
            "403: not allowed",
            "Last try failed409: conflict",
            "Not published403: no condition",
            "Last removal2026-01-02T03:04:05Z (4 min ago), after 12.3 s; gate \"agent\" was the last to open",
            "Last put-back2026-01-02T03:04:05Z (4 min ago)",
            "Gates of rule-0",
            "conflistopen 4 min ago10-demo.conflist",
            "agentclosed 4 min agostatus 503",
            "driverunknown 4 min agonot evaluated yet",
        ] {
            assert!(seen.text.contains(words), "{words:?} in {}", seen.text);
        }
    }
}

#[test]
fn a_page_without_trouble_links_to_no_rule() {
    let mut status = status(2);
    let rule = &mut status.rules[0];
    (rule.decision, rule.done, rule.overdue, rule.dry_run) = ("absent", true, false, false);
    (rule.denied, rule.publish_failure) = (None, None);
    (rule.last_removal, rule.last_put_back) = (None, None);
    rule.gates.clear();
    status.api = ApiStatus {
        watching: true,
        last_error: None,
    };
    status.node.resource_version = None;
    let text = look_at(&render(Some(&status), now(), false)).text;
    for words in [
        "1 of 2 rules done. Look at rule-1Node",
        "rule-0 absentTaint",
        "none since this process started",
        "The rule has no gates",
        "API serverwatching",
        "seen before",
    ] {
        assert!(text.contains(words), "{words:?} in {text}");
    }
    assert!(
        !text.contains("Look at rule-0") && !text.contains("Last API error"),
        "{text}"
    );
    status.rules[0].publish_failure = Some("403".into());
    let text = look_at(&render(Some(&status), now(), false)).text;
    assert!(text.contains("Look at rule-0, rule-1"), "{text}");
    status.node.seen = false;
    let text = look_at(&render(Some(&status), now(), false)).text;
    assert!(text.contains("not seen yet"), "{text}");
}

#[test]
fn a_page_reloads_itself_only_on_request_and_shows_that() {
    for reloads in [false, true] {
        let page = render(Some(&status(1)), now(), reloads);
        let seen = look_at(&page);
        assert_eq!(
            page.contains(r#"<meta http-equiv="refresh" content="5">"#),
            reloads,
            "{page}"
        );
        assert_eq!(seen.text.contains("reloads itself every 5 s"), reloads);
        assert_eq!(page.contains(r#"href="?reload""#), !reloads);
    }
}

#[test]
fn the_policy_allows_the_style_of_the_page_and_nothing_else() {
    let page = render(Some(&status(1)), now(), false);
    let (_, style) = page.split_once("<style>").unwrap();
    let (style, _) = style.split_once("</style>").unwrap();
    let hash = BASE64_STANDARD.encode(digest(&SHA256, style.as_bytes()));
    let sources: BTreeSet<_> = POLICY.split("; ").collect();
    let style = format!("style-src 'sha256-{hash}'");
    let wanted = [
        "base-uri 'none'",
        "default-src 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        &style,
    ];
    assert_eq!(sources, BTreeSet::from(wanted));
}

#[test]
fn an_age_has_one_unit() {
    for (seconds, words) in [
        (-90, "0 s ago"),
        (0, "0 s ago"),
        (119, "119 s ago"),
        (120, "2 min ago"),
        (7_199, "119 min ago"),
        (7_200, "2 h ago"),
        (172_799, "47 h ago"),
        (172_800, "2 d ago"),
        (86_400 * 400, "400 d ago"),
    ] {
        let at = now() - jiff::SignedDuration::from_secs(seconds);
        assert_eq!(ago(at, now()), words);
    }
}
