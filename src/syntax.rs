//! The forms that strings of the file must have.

use std::net::IpAddr;

use http::{HeaderName, HeaderValue};
use schemars::transform::Transform;
use schemars::{Schema, json_schema};
use serde_json::Value;

use crate::text::quoted;

/// A form of strings.
pub(crate) struct Syntax {
    /// Completes "must be …".
    pub(crate) expected: &'static str,
    /// In bytes.
    pub(crate) longest: Option<usize>,
    /// For the schema: matches every string that has the form and, as far as a regular expression can, no other. Has no
    /// look-around, and only escapes that every dialect has.
    pub(crate) pattern: &'static str,
    pub(crate) holds: fn(&str) -> bool,
}

impl Syntax {
    /// The error is a whole message: `must be …, not "…"`.
    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        if self.longest.is_none_or(|longest| text.len() <= longest) && (self.holds)(text) {
            Ok(())
        } else {
            Err(self.refusal(text))
        }
    }

    /// [`Syntax::check`] that returns the text.
    pub(crate) fn parse(&self, text: &str) -> Result<String, String> {
        self.check(text).map(|()| text.to_owned())
    }

    /// The message for a text that is not of this form.
    pub(crate) fn refusal(&self, text: &str) -> String {
        format!("must be {}, not {}", self.expected, quoted(text))
    }

    /// A string of this form, for the schema.
    pub(crate) fn schema(&self) -> Schema {
        let mut schema = json_schema!({"type": "string", "pattern": self.pattern});
        if let Some(longest) = self.longest {
            schema.insert("maxLength".into(), longest.into());
        }
        schema
    }
}

/// Describes a string of a form.
pub(crate) struct Form(pub(crate) &'static Syntax);

impl Transform for Form {
    fn transform(&mut self, schema: &mut Schema) {
        add_words(schema, &format!("Must be {}.", self.0.expected));
        for (keyword, value) in self.0.schema().as_object().into_iter().flatten() {
            schema.insert(keyword.clone(), value.clone());
        }
    }
}

/// Describes a list of strings of a form.
pub(crate) struct Each(pub(crate) &'static Syntax);

impl Transform for Each {
    fn transform(&mut self, schema: &mut Schema) {
        add_words(schema, &format!("Each must be {}.", self.0.expected));
        schema.insert("items".into(), self.0.schema().into());
    }
}

fn add_words(schema: &mut Schema, words: &str) {
    let doc_comment = schema.get("description").and_then(Value::as_str);
    let all = doc_comment.map_or_else(|| words.into(), |comment| format!("{comment} {words}"));
    schema.insert("description".into(), all.into());
}

/// Names of rules and gates; `IsDNS1123Label` in k8s.io/apimachinery/pkg/util/validation.
pub(crate) const DNS_LABEL: Syntax = Syntax {
    expected: "at most 63 lower-case letters, digits or '-', beginning and ending with a letter or digit",
    longest: Some(63),
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    holds: is_dns_label,
};

/// Names of Nodes; `IsDNS1123Subdomain` there.
pub(crate) const DNS_SUBDOMAIN: Syntax = Syntax {
    expected: "at most 253 lower-case letters, digits, '-' or '.', each part beginning and ending with a letter or digit",
    longest: Some(253),
    pattern: r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    holds: is_dns_subdomain,
};

/// Keys of taints and labels; `IsQualifiedName` there.
pub(crate) const QUALIFIED_NAME: Syntax = Syntax {
    expected: "a qualified name ([DNS-DOMAIN/]NAME, NAME at most 63 letters, digits, '-', '_' or '.', \
               beginning and ending with a letter or digit)",
    longest: Some(253 + 1 + 63),
    pattern: r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$",
    holds: |text| match text.split_once('/') {
        Some((prefix, name)) => {
            prefix.len() <= 253 && is_dns_subdomain(prefix) && is_label_name(name)
        }
        None => is_label_name(text),
    },
};

/// Values of taints and labels; `IsValidLabelValue` there.
pub(crate) const LABEL_VALUE: Syntax = Syntax {
    expected: "empty or at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit",
    longest: Some(63),
    pattern: "^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$",
    holds: |text| text.is_empty() || is_label_name(text),
};

/// Names of CSI drivers; `ValidateCSIDriverName` in k8s.io/kubernetes/pkg/apis/core/validation.
pub(crate) const CSI_DRIVER_NAME: Syntax = Syntax {
    expected: "the name of a CSI driver (at most 63 letters, digits, '-' or '.', each part beginning and ending with \
               a letter or digit)",
    longest: Some(63),
    pattern: r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$",
    holds: |text| is_dns_subdomain(&text.to_ascii_lowercase()),
};

pub(crate) const ABSOLUTE_PATH: Syntax = Syntax {
    expected: "an absolute path",
    longest: None,
    pattern: r"^/[^\x00]*$",
    holds: |text| text.starts_with('/') && !text.contains('\0'),
};

/// `sun_path` has 108 bytes, the last of them NUL: unix(7).
pub(crate) const SOCKET_PATH: Syntax = Syntax {
    expected: "an absolute path of at most 107 bytes",
    longest: Some(107),
    ..ABSOLUTE_PATH
};

pub(crate) const HOST: Syntax = Syntax {
    expected: "a host name or an address without port (IPv6 without brackets)",
    longest: None,
    pattern: "^([-_.A-Za-z0-9]+|[.0-9A-Fa-f]*:[.0-9A-Fa-f]*:[.:0-9A-Fa-f]*)$",
    holds: |text| text.parse::<IpAddr>().is_ok() || (!text.is_empty() && is_words(text)),
};

/// The target in a request line: RFC 9112 section 3.2.1, origin-form.
pub(crate) const REQUEST_PATH: Syntax = Syntax {
    expected: "a path that begins with '/', with an optional query, percent-encoded and without '#'",
    longest: None,
    pattern: "^/[!\"$-~]*$",
    holds: |text| {
        text.starts_with('/')
            && text.chars().all(|c| c.is_ascii_graphic() && c != '#')
            && text.parse::<http::uri::PathAndQuery>().is_ok()
    },
};

pub(crate) const HEADER_NAME: Syntax = Syntax {
    expected: "a header name",
    longest: None,
    pattern: "^[-!#$%&'*+.^_`|~0-9A-Za-z]+$",
    holds: |text| HeaderName::from_bytes(text.as_bytes()).is_ok(),
};

pub(crate) const HEADER_VALUE: Syntax = Syntax {
    expected: "a header value without control characters",
    longest: None,
    pattern: r"^[^\x00-\x08\x0a-\x1f\x7f]*$",
    holds: |text| HeaderValue::from_str(text).is_ok(),
};

/// RFC 6901 section 3.
pub(crate) const JSON_POINTER: Syntax = Syntax {
    expected: "a JSON pointer such as /status/0/state (with ~0 for '~' and ~1 for '/' in a name)",
    longest: None,
    pattern: "^(/([^~]|~[01])*)?$",
    holds: |text| {
        let escapes = text.split('~').skip(1);
        (text.is_empty() || text.starts_with('/'))
            && escapes
                .map(|rest| rest.chars().next())
                .all(|escape| matches!(escape, Some('0' | '1')))
    },
};

/// The `name` of a network (CNI specification, section 1).
pub(crate) const NETWORK_NAME: Syntax = Syntax {
    expected: "a network name (a letter or digit, then letters, digits, '_', '.' or '-')",
    longest: None,
    pattern: "^[A-Za-z0-9][-_.A-Za-z0-9]*$",
    holds: |text| text.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_words(text),
};

/// The `type` of a plugin, which is the name of its program.
pub(crate) const PLUGIN_TYPE: Syntax = Syntax {
    expected: "the name of a plugin's program, without a directory",
    longest: None,
    pattern: r"^[^/\x00]+$",
    holds: |text| !text.is_empty() && !text.contains(['/', '\0']),
};

/// An argument that execve(2) can pass to a program.
pub(crate) const ARGUMENT: Syntax = Syntax {
    expected: "a string without NUL",
    longest: None,
    pattern: r"^[^\x00]*$",
    holds: |text| !text.contains('\0'),
};

/// A container image. The container runtime reports everything else that is wrong with one.
pub(crate) const IMAGE: Syntax = Syntax {
    expected: "the name of an image, such as registry.example.com/untaint:1.0",
    longest: None,
    pattern: "^[!-~]+$",
    holds: |text| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()),
};

pub(crate) const SELINUX_TYPE: Syntax = Syntax {
    expected: "an SELinux type (letters, digits, '_' or '.'), such as spc_t",
    longest: None,
    pattern: "^[_.A-Za-z0-9]+$",
    holds: |text| !text.is_empty() && is_words(text) && !text.contains('-'),
};

/// Text that a body must contain. Every body contains the empty text.
pub(crate) const SEARCHED_TEXT: Syntax = Syntax {
    expected: "some text",
    longest: None,
    pattern: r"^[\s\S]+$",
    holds: |text| !text.is_empty(),
};

fn is_dns_label(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Its labels may be longer than 63 characters: upstream checks only the whole.
fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Whether there are only letters, digits, `-`, `_` and `.`.
fn is_words(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.chars().all(is_inner)
}

fn is_label_name(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    (1..=63).contains(&text.len())
        && is_words(text)
        && text.starts_with(is_end)
        && text.ends_with(is_end)
}

#[cfg(test)]
mod tests;
