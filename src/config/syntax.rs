//! The forms that strings of the file must have.

use std::net::IpAddr;

use http::{HeaderName, HeaderValue};

/// A form, and the words for it.
pub(super) struct Syntax {
    /// Completes "must be …".
    expected: &'static str,
    holds: fn(&str) -> bool,
}

impl Syntax {
    /// The error is a whole message: `must be …, not "…"`.
    pub(super) fn check(&self, text: &str) -> Result<(), String> {
        if (self.holds)(text) {
            Ok(())
        } else {
            Err(format!("must be {}, not {}", self.expected, shown(text)))
        }
    }
}

/// Names of rules and gates; `IsDNS1123Label` in k8s.io/apimachinery/pkg/util/validation.
pub(super) const DNS_LABEL: Syntax = Syntax {
    expected: "at most 63 lower-case letters, digits or '-', beginning and ending with a letter or digit",
    holds: |text| text.len() <= 63 && is_dns_label(text),
};

/// Names of Nodes; `IsDNS1123Subdomain` there.
pub(super) const DNS_SUBDOMAIN: Syntax = Syntax {
    expected: "at most 253 lower-case letters, digits, '-' or '.', each part beginning and ending with a letter or digit",
    holds: is_dns_subdomain,
};

/// Keys of taints and labels; `IsQualifiedName` there.
pub(super) const QUALIFIED_NAME: Syntax = Syntax {
    expected: "a qualified name ([DNS-DOMAIN/]NAME, NAME at most 63 letters, digits, '-', '_' or '.', \
               beginning and ending with a letter or digit)",
    holds: |text| match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_label_name(name),
        None => is_label_name(text),
    },
};

/// Values of taints and labels; `IsValidLabelValue` there.
pub(super) const LABEL_VALUE: Syntax = Syntax {
    expected: "empty or at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit",
    holds: |text| text.is_empty() || is_label_name(text),
};

/// Names of CSI drivers; `ValidateCSIDriverName` in k8s.io/kubernetes/pkg/apis/core/validation.
pub(super) const CSI_DRIVER_NAME: Syntax = Syntax {
    expected: "the name of a CSI driver (at most 63 letters, digits, '-' or '.', each part beginning and ending with \
               a letter or digit)",
    holds: |text| text.len() <= 63 && is_dns_subdomain(&text.to_ascii_lowercase()),
};

pub(super) const ABSOLUTE_PATH: Syntax = Syntax {
    expected: "an absolute path",
    holds: is_absolute_path,
};

/// `sun_path` has 108 bytes, the last of them NUL: unix(7).
pub(super) const SOCKET_PATH: Syntax = Syntax {
    expected: "an absolute path of at most 107 bytes",
    holds: |text| is_absolute_path(text) && text.len() <= 107,
};

pub(super) const HOST: Syntax = Syntax {
    expected: "a host name or an address without port (IPv6 without brackets)",
    holds: |text| {
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        text.parse::<IpAddr>().is_ok() || (!text.is_empty() && text.chars().all(is_name_char))
    },
};

/// What stands in a request line: RFC 9112 section 3.2.1, origin-form.
pub(super) const REQUEST_PATH: Syntax = Syntax {
    expected: "a path that begins with '/', with an optional query, percent-encoded and without '#'",
    holds: |text| {
        text.starts_with('/')
            && text.chars().all(|c| c.is_ascii_graphic() && c != '#')
            && text.parse::<http::uri::PathAndQuery>().is_ok()
    },
};

pub(super) const HEADER_NAME: Syntax = Syntax {
    expected: "a header name",
    holds: |text| HeaderName::from_bytes(text.as_bytes()).is_ok(),
};

pub(super) const HEADER_VALUE: Syntax = Syntax {
    expected: "a header value without control characters",
    holds: |text| HeaderValue::from_str(text).is_ok(),
};

/// RFC 6901 section 3.
pub(super) const JSON_POINTER: Syntax = Syntax {
    expected: "a JSON pointer such as /status/0/state (with ~0 for '~' and ~1 for '/' in a name)",
    holds: |text| {
        let escapes = text.split('~').skip(1);
        (text.is_empty() || text.starts_with('/'))
            && escapes
                .map(|rest| rest.chars().next())
                .all(|escape| matches!(escape, Some('0' | '1')))
    },
};

/// The `name` of a network: letters and digits, then also `_`, `.`, `-` (CNI specification, section 1).
pub(super) const NETWORK_NAME: Syntax = Syntax {
    expected: "a network name (a letter or digit, then letters, digits, '_', '.' or '-')",
    holds: |text| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    },
};

/// The `type` of a plugin, which is the name of its program.
pub(super) const PLUGIN_TYPE: Syntax = Syntax {
    expected: "the name of a plugin's program, without a directory",
    holds: |text| !text.is_empty() && !text.contains(['/', '\0']),
};

/// An argument of a program, as execve(2) can pass it.
pub(super) const ARGUMENT: Syntax = Syntax {
    expected: "a string without NUL",
    holds: |text| !text.contains('\0'),
};

/// Text that a body must contain: the empty one always is there.
pub(super) const SEARCHED_TEXT: Syntax = Syntax {
    expected: "some text",
    holds: |text| !text.is_empty(),
};

/// `text` in quotes, on one line, cut if it is long.
pub(super) fn shown(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// The beginning of `text`.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    let mut start: String = text.chars().take(MOST).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

fn is_absolute_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains('\0')
}

fn is_dns_label(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Its labels may be longer than 63 characters: upstream checks only the whole.
fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

fn is_label_name(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let is_inner = |c: char| is_end(c) || "-_.".contains(c);
    (1..=63).contains(&text.len())
        && text.chars().all(is_inner)
        && text.starts_with(is_end)
        && text.ends_with(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(syntax: &Syntax, valid: &[&str], invalid: &[&str]) {
        for text in valid {
            assert_eq!(syntax.check(text), Ok(()));
        }
        for text in invalid {
            assert!(syntax.check(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn names_are_checked_as_the_api_server_does() {
        let (most, more) = ("a".repeat(63), "a".repeat(64));
        table(
            &DNS_LABEL,
            &["a", "a-1", "1", &most],
            &["", "A", "-a", "a-", "a.b", "a_b", "ä", &more],
        );
        table(
            &LABEL_VALUE,
            &["", "a", "A_b.c-1", &most],
            &["-a", "a-", "a b", "a/b", "ä", &more],
        );
        table(
            &CSI_DRIVER_NAME,
            &["a", "ebs.csi.aws.com", "Disk.CSI.azure.com", &most],
            &["", "a/b", "a_b", "-a", "a..b", "ä", &more],
        );
        let domain = format!("{}.io/x", "a".repeat(251));
        table(
            &QUALIFIED_NAME,
            &[
                "a",
                "A_b",
                "startup-taint.cluster-autoscaler.kubernetes.io/x",
                &format!("{}/{most}", "a".repeat(64)),
            ],
            &[
                "", "/", "a/", "/a", "a/b/c", "A.io/x", "a..b/x", "x=y", &more, &domain,
            ],
        );
    }

    #[test]
    fn paths_and_hosts_are_checked_as_the_kernel_and_the_resolver_take_them() {
        let socket = format!("/{}", "s".repeat(107));
        table(
            &ABSOLUTE_PATH,
            &["/", "/a b", &socket],
            &["", "a", "./a", "/a\0"],
        );
        table(
            &SOCKET_PATH,
            &["/run/x.sock", &socket[1..].replacen('s', "/", 1)],
            &["x", &socket],
        );
        table(
            &HOST,
            &["localhost", "127.0.0.1", "::1", "a_b.example.com"],
            &["", "[::1]", "a:80", "a b", "http://a", "fe80::1%eth0"],
        );
        table(&PLUGIN_TYPE, &["cilium-cni"], &["", "bin/x", "a\0"]);
        table(
            &NETWORK_NAME,
            &["cilium", "k8s-pod_network.1"],
            &["", "-a", "a b", "a/b"],
        );
    }

    #[test]
    fn requests_are_checked_as_http_writes_them() {
        table(
            &REQUEST_PATH,
            &["/", "/healthz?full=1&x=%20", "/v1/a:b"],
            &[
                "",
                "healthz",
                "/a b",
                "/a#b",
                "/ä",
                "/\r\n",
                "*",
                "http://a/",
            ],
        );
        table(&HEADER_NAME, &["Host", "x-1"], &["", "a b", "a:", "ä"]);
        table(&HEADER_VALUE, &["", "a b", "é"], &["a\r\nb", "a\0"]);
        table(
            &JSON_POINTER,
            &["", "/", "/a/0", "/a~0b~1c"],
            &["a", "/~", "/~2", "#/a"],
        );
    }

    #[test]
    fn a_long_text_is_cut_in_a_message() {
        let message = DNS_LABEL.check(&"é".repeat(1_000_000)).unwrap_err();
        assert!(message.chars().count() < 250, "{message}");
    }
}
