//! Why a request failed, as far as callers distinguish the cases.

use std::error::Error;
use std::time::Duration;

use kube::core::Status;

use super::{page, transport};
use crate::text::printable;

/// The longest message that is kept, in characters.
const MAX_MESSAGE: usize = 1024;
/// The longest wait that a server, or a proxy before it, can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Instead of the message of an answer that has none.
const NO_TEXT: &str = "the answer has no text";

#[derive(Debug, Clone, thiserror::Error)]
pub enum ApiError {
    /// The credentials or the address could not be read.
    #[error("credentials: {0}")]
    Credentials(String),
    /// The server's certificate was not accepted; nothing was sent.
    #[error("{0}")]
    Certificate(String),
    /// There was no connection, or it broke or went silent. It is unknown whether the request took effect.
    #[error("{0}")]
    Transport(String),
    /// The server accepted a streaming list and did not complete it.
    #[error(
        "the server accepted a streaming list but did not complete it: {0}; using list and watch instead"
    )]
    IncompleteStreamingList(String),
    /// Something else than an API server answered, such as the login page of a proxy.
    #[error("{message}")]
    Foreign {
        /// The HTTP status.
        code: u16,
        /// What is known of the answer, with a remedy.
        message: String,
    },
    /// The request or the answer does not conform to the API.
    #[error("untaint does not understand the answer: {0}")]
    Malformed(String),
    /// The server refused the request.
    #[error("{code}: {message}")]
    Refused {
        /// The HTTP status, 400 or more.
        code: u16,
        /// The message of the `Status` object, with a remedy if there is a known one. Otherwise the title of the page, or
        /// the beginning of the text.
        message: String,
        /// Whether the `Status` names an object or causes. A denial by an admission policy and a failed validation do; a
        /// failed `test` of a JSON Patch does not.
        detailed: bool,
        /// How long the server asks clients to wait.
        retry_after: Option<Duration>,
    },
}

impl ApiError {
    /// The HTTP status, if the server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The HTTP status of the answer, also of one that does not come from the API server.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Foreign { code, .. } => Some(*code),
            _ => self.code(),
        }
    }

    /// Whether a server answered.
    pub fn is_answer(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. } | Self::Foreign { .. } | Self::Malformed(_)
        )
    }

    /// Whether the server has decided against the request itself, so that the same request is refused again.
    ///
    /// A 409 is a conflict, and so is a 422 without details: a failed `test` of a JSON Patch. A policy refuses with the
    /// code that it names, such as 401, and with details (apiserver `plugin/policy/validating/dispatcher.go`). A webhook
    /// refuses with any code.
    pub fn is_denial(&self) -> bool {
        let Self::Refused {
            code,
            message,
            detailed,
            ..
        } = self
        else {
            return false;
        };
        match code {
            _ if is_of_webhook(message) => true,
            401 | 422 => *detailed,
            404 | 408 | 409 | 429 => false,
            _ => (400..500).contains(code),
        }
    }

    /// Whether the server refused the client's credentials, or the client the server's certificate. Other credentials may
    /// work.
    pub fn refuses_credentials(&self) -> bool {
        match self {
            Self::Certificate(_) => true,
            Self::Refused { code: 401, .. } => !self.is_denial(),
            _ => false,
        }
    }

    /// Whether the server does not support streaming lists: a 422 that names the parameter.
    pub fn refuses_streaming_list(&self) -> bool {
        matches!(self, Self::Refused { code: 422, message, .. } if message.contains("sendInitialEvents"))
    }

    /// Whether the object does not exist. A 404 that names no object may come from a proxy that does not know the path.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                code: 404,
                detailed: true,
                ..
            }
        )
    }

    /// Whether the request may have taken effect.
    pub fn leaves_outcome_unknown(&self) -> bool {
        match self {
            Self::Credentials(_) | Self::Certificate(_) => false,
            Self::Transport(_)
            | Self::IncompleteStreamingList(_)
            | Self::Foreign { .. }
            | Self::Malformed(_) => true,
            Self::Refused { code, .. } => *code >= 500 && !self.is_denial(),
        }
    }

    /// How long the server asks clients to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// From an answer with a status code of 400 or more. Its body is a `Status`, or the text of a proxy.
    pub(super) fn refused(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        if let Ok(status) = serde_json::from_slice::<Status>(body)
            && !(status.message.is_empty() && status.reason.is_empty())
        {
            return Self::from_status(&Status { code, ..status }, retry_after);
        }
        Self::Refused {
            code,
            message: page::words(body).unwrap_or_else(|| NO_TEXT.into()),
            detailed: false,
            retry_after: retry_after.map(|wait| wait.min(MAX_RETRY_AFTER)),
        }
    }

    /// From a `Status` in a body or in an `ERROR` event of a watch.
    pub(super) fn from_status(status: &Status, retry_after: Option<Duration>) -> Self {
        let details = status.details.as_ref();
        let asked = details
            .map(|details| details.retry_after_seconds)
            .filter(|seconds| *seconds > 0);
        Self::Refused {
            code: status.code,
            message: match (status.message.as_str(), status.reason.as_str()) {
                ("", "") => NO_TEXT.into(),
                ("", reason) => printable(reason, MAX_MESSAGE),
                (message, _) => explained(message),
            },
            detailed: details
                .is_some_and(|details| !details.name.is_empty() || !details.causes.is_empty()),
            retry_after: retry_after
                .or(asked.map(|seconds| Duration::from_secs(seconds.into())))
                .map(|wait| wait.min(MAX_RETRY_AFTER)),
        }
    }

    /// From a failure of the connection. All causes are in one line.
    pub(super) fn transport(error: &(dyn Error + 'static)) -> Self {
        let message = printable(&transport::describe(error), MAX_MESSAGE);
        if transport::is_certificate_error(error) {
            Self::Certificate(message)
        } else {
            Self::Transport(message)
        }
    }
}

/// Whether an admission webhook has decided (apiserver `admission/plugin/webhook/errors/statuserror.go`).
fn is_of_webhook(message: &str) -> bool {
    message
        .strip_prefix("admission webhook \"")
        .is_some_and(|rest| rest.contains("\" denied the request"))
}

/// The server's message, with a remedy where it has none.
fn explained(message: &str) -> String {
    let mut words = printable(message, MAX_MESSAGE);
    // The admission plugin NodeRestriction sends this to every kubelet.
    if words.ends_with("is not allowed to modify taints") {
        words += ": Kubernetes does not allow this for the credentials of a kubelet; use those of a ServiceAccount";
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_long_retry_after_is_limited() {
        for asked in [Duration::from_hours(24), Duration::from_secs(u64::MAX)] {
            let error = ApiError::refused(429, Some(asked), b"too many requests");
            assert_eq!(error.retry_after(), Some(MAX_RETRY_AFTER));
        }
        let status =
            br#"{"code": 503, "message": "later", "details": {"retryAfterSeconds": 4000000000}}"#;
        assert_eq!(
            ApiError::refused(503, None, status).retry_after(),
            Some(MAX_RETRY_AFTER)
        );
        assert_eq!(ApiError::refused(503, None, b"").retry_after(), None);
    }

    #[test]
    fn a_refusal_has_the_message_of_its_status_or_what_a_proxy_wrote() {
        for (body, message) in [
            (r#"{"message": "no", "reason": "Forbidden"}"#, "no"),
            (
                r#"{"message": "", "reason": "TooManyRequests"}"#,
                "TooManyRequests",
            ),
            ("{}", "{}"),
            (r#"{"error": "no upstream"}"#, r#"{"error": "no upstream"}"#),
            ("", NO_TEXT),
            (
                "<html><head><title>502 Bad Gateway</title></head></html>",
                "502 Bad Gateway",
            ),
            ("no healthy upstream\n", "no healthy upstream"),
        ] {
            let error = ApiError::refused(509, None, body.as_bytes());
            assert_eq!(error.to_string(), format!("509: {message}"));
        }
    }

    #[test]
    fn whoever_decides_against_a_change_is_believed_whatever_the_code_is() {
        let answer = |code: u16, details: &str, message: &str| {
            let status = serde_json::json!({"message": message, "details": {"name": details}});
            ApiError::refused(code, None, status.to_string().as_bytes())
        };
        for code in 400..600 {
            let by_webhook = answer(code, "", "admission webhook \"w\" denied the request: no");
            assert!(by_webhook.is_denial(), "{code}");
            assert!(!by_webhook.refuses_credentials() && !by_webhook.leaves_outcome_unknown());
            let failing = "Internal error occurred: failed calling webhook \"w\": no";
            assert_eq!(
                answer(code, "node", failing).is_denial(),
                ![404, 408, 409, 429].contains(&code) && code < 500
            );
        }
        for (code, details, is_denial) in [
            (401, "", false),
            (401, "node", true),
            (403, "", true),
            (404, "node", false),
            (408, "", false),
            (409, "node", false),
            (413, "", true),
            (422, "", false),
            (422, "node", true),
            (429, "", false),
            (500, "node", false),
        ] {
            let error = answer(code, details, "somebody denied the request");
            assert_eq!(error.is_denial(), is_denial, "{code} {details}");
            assert_eq!(error.refuses_credentials(), code == 401 && !is_denial);
        }
        assert!(
            !ApiError::Transport("admission webhook \"w\" denied the request".into()).is_denial()
        );
    }

    #[test]
    fn a_refusal_is_detailed_if_it_names_what_it_is_about() {
        let detailed = |status: &[u8]| match ApiError::refused(422, None, status) {
            ApiError::Refused { detailed, .. } => detailed,
            other => panic!("{other}"),
        };
        assert!(!detailed(
            br#"{"message": "the server rejected our request", "details": {}}"#
        ));
        assert!(detailed(
            br#"{"message": "denied", "details": {"name": "node", "kind": "nodes"}}"#
        ));
        assert!(!detailed(b"<html>a proxy's page</html>"));
    }
}
