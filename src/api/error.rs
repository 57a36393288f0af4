//! Why a request failed, as far as callers distinguish the cases.

use std::error::Error;
use std::io;
use std::time::Duration;

use kube::core::Status;
use tokio_rustls::rustls;

use crate::text::printable;

/// The longest message that is kept, in characters.
const MAX_MESSAGE: usize = 1024;
/// The longest wait that a server, or a proxy before it, can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

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
    /// The request or the answer does not conform to the API.
    #[error("untaint does not understand the answer: {0}")]
    Malformed(String),
    /// The server refused the request.
    #[error("{code}: {message}")]
    Refused {
        /// The HTTP status, 400 or more.
        code: u16,
        /// The message of the `Status` object, with a remedy if there is a known one. Otherwise the text of the body.
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

    /// Whether the server refused the client's credentials, or the client the server's certificate. Other credentials may
    /// work.
    pub fn refuses_credentials(&self) -> bool {
        matches!(self, Self::Certificate(_) | Self::Refused { code: 401, .. })
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
            Self::Transport(_) | Self::IncompleteStreamingList(_) | Self::Malformed(_) => true,
            Self::Refused { code, .. } => *code >= 500,
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
        if let Ok(status) = serde_json::from_slice::<Status>(body) {
            return Self::from_status(&Status { code, ..status }, retry_after);
        }
        let message = printable(String::from_utf8_lossy(body).trim(), MAX_MESSAGE);
        Self::Refused {
            code,
            message,
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
            message: explained(&status.message),
            detailed: details
                .is_some_and(|details| !details.name.is_empty() || !details.causes.is_empty()),
            retry_after: retry_after
                .or(asked.map(|seconds| Duration::from_secs(seconds.into())))
                .map(|wait| wait.min(MAX_RETRY_AFTER)),
        }
    }

    /// From a failure of the connection. All causes are in one line.
    pub(super) fn transport(error: &(dyn Error + 'static)) -> Self {
        let chain: Vec<&(dyn Error + 'static)> =
            std::iter::successors(Some(error), |error| (*error).source()).collect();
        let mut causes: Vec<String> = Vec::new();
        for cause in chain.iter().map(ToString::to_string) {
            // Some wrappers repeat the error that they wrap.
            if causes.last().is_none_or(|last| !last.contains(&cause)) {
                causes.push(cause);
            }
        }
        let message = printable(&causes.join(": "), MAX_MESSAGE);
        if chain.iter().any(|cause| is_certificate_error(*cause)) {
            Self::Certificate(message)
        } else {
            Self::Transport(message)
        }
    }
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

fn is_certificate_error(mut error: &(dyn Error + 'static)) -> bool {
    // The error inside an `io::Error` is not its source, and may be another `io::Error`.
    while let Some(inner) = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        error = inner;
    }
    matches!(
        error.downcast_ref(),
        Some(rustls::Error::InvalidCertificate(_))
    )
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
