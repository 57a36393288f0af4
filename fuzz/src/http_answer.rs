//! What an HTTP server answers.
//!
//! The first byte chooses what is expected, the second how much arrives at a time. The answers to one connection after
//! another follow, each ended by [`END`].

use untaint::config::{Endpoint, Expect, HttpGet, Scheme, StatusRange};
use untaint::gate::probe::http_get::{self, Target};

use super::assert_printable;
use super::server::{Answer, ends};

const END: u8 = 0xff;

pub fn check(input: &[u8]) -> bool {
    let [choice, chunk, answers @ ..] = input else {
        return false;
    };
    let expect = expectation(*choice);
    let spec = HttpGet {
        endpoint: Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: 80,
        },
        scheme: Scheme::Http,
        path: "/healthz".into(),
        http_headers: Vec::new(),
        expect: expect.clone(),
    };
    let mut target = Target::new(&spec).unwrap();
    for answer in answers.split(|byte| *byte == END) {
        let stream = Box::new(Answer::new(answer, *chunk, is_request));
        match ends(http_get::exchange(&spec, &target, stream)) {
            Ok(http_get::Answer::Redirect(next)) => target = next,
            Ok(http_get::Answer::Accepted(seen)) => {
                assert_printable(&seen);
                assert_accepted(&expect, answer, &seen);
                return true;
            }
            Err(reason) => {
                assert_printable(&reason);
                return false;
            }
        }
    }
    false
}

fn assert_accepted(expect: &Expect, answer: &[u8], seen: &str) {
    let code = status(answer).unwrap_or_else(|| panic!("{seen}: no status line"));
    assert!(
        expect.status.iter().any(|range| range.contains(code)),
        "{code}"
    );
    assert!(seen.starts_with(&code.to_string()), "{seen}: {code}");
    if let Some(text) = &expect.text {
        // In between there may be the sizes of chunks.
        let mut rest = answer.iter();
        assert!(
            text.bytes().all(|byte| rest.any(|other| *other == byte)),
            "{seen}"
        );
    }
}

/// Of HTTP, or the beginning of TLS: a handshake record (RFC 8446, section 5.1).
fn is_request(written: &[u8]) -> bool {
    written.ends_with(b"\r\n\r\n") || written.starts_with(b"\x16")
}

fn expectation(choice: u8) -> Expect {
    let mut expect = Expect::default();
    match choice % 4 {
        1 => {
            let (first, last) = (301, 404);
            expect.status = vec![
                StatusRange { first, last },
                StatusRange {
                    first: 302,
                    last: 302,
                },
            ];
        }
        2 => expect.text = Some("ready".into()),
        3 => expect.json = [("/a/0".into(), "ok".into())].into(),
        _ => {}
    }
    expect
}

/// The status of the first answer that is not an interim one.
fn status(answer: &[u8]) -> Option<u16> {
    let mut lines = answer
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii_end);
    loop {
        // Empty lines before a status line are let pass, as RFC 9112 has it for requests.
        let line = lines.find(|line| !line.is_empty())?;
        let rest = line.strip_prefix(b"HTTP/1.")?;
        let code = str::from_utf8(rest.get(2..5)?).ok()?.parse().ok()?;
        if code >= 200 || code == 101 {
            return Some(code);
        }
        lines.find(|line| line.is_empty())?;
    }
}
