//! What a server sends that is no Kubernetes API server: a page, a redirect, nothing. Pure.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderName, Response};

use super::ApiError;
use super::page::words;
use crate::text::{excerpt, without_secrets};

/// What the head of an answer says about a body that cannot be read.
#[derive(Debug, Default)]
pub(super) struct Origin {
    code: u16,
    location: Option<String>,
    content_type: Option<String>,
}

impl Origin {
    pub(super) fn of<B>(response: &Response<B>) -> Self {
        let text = |name: HeaderName| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            code: response.status().as_u16(),
            location: text(LOCATION),
            content_type: text(CONTENT_TYPE),
        }
    }

    /// Whether the API server may have sent an answer with this status code.
    pub(super) fn is_expected(&self) -> bool {
        (200..300).contains(&self.code) && self.code != 204
    }

    /// `body`, unless it is no object at all.
    pub(super) fn object(&self, body: Bytes) -> Result<Bytes, ApiError> {
        if is_object(&body) {
            Ok(body)
        } else {
            Err(self.foreign(&body))
        }
    }

    /// Why `body`, which begins so, is no object of the API. `why`: the words of the parser.
    pub(super) fn error(&self, body: &[u8], why: &serde_json::Error) -> ApiError {
        if is_object(body) {
            ApiError::Malformed(why.to_string())
        } else {
            self.foreign(body)
        }
    }

    /// Names the answer, whose body begins so.
    pub(super) fn foreign(&self, body: &[u8]) -> ApiError {
        let mut parts = vec![format!("status {}", self.code)];
        if let Some(location) = &self.location {
            parts.push(format!(
                "a redirect to {}",
                excerpt(&without_secrets(location))
            ));
        }
        if let Some(content_type) = &self.content_type {
            parts.push(excerpt(content_type));
        }
        parts
            .push(words(body).map_or_else(|| "no text".to_owned(), |words| format!("\"{words}\"")));
        let message = format!(
            "the answer does not come from a Kubernetes API server: {}; check the server's address, and whether a proxy or a load balancer in front of it answers",
            parts.join(", ")
        );
        ApiError::Foreign {
            code: self.code,
            message,
        }
    }
}

/// Whether it may be an object in JSON.
pub(super) fn is_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_named_with_its_status_its_redirect_and_its_type_but_without_secrets() {
        let response = Response::builder()
            .status(302)
            .header(LOCATION, "https://u:p@login.example.com/?token=s")
            .header(CONTENT_TYPE, "text/html");
        let origin = Origin::of(&response.body(()).unwrap());
        assert!(!origin.is_expected());
        let error = origin.foreign(b"<a>Found</a>").to_string();
        let expected =
            "status 302, a redirect to https://…@login.example.com/?…, text/html, \"Found\";";
        assert!(error.contains(expected), "{error}");
        assert!(
            Origin::default()
                .foreign(b"")
                .to_string()
                .contains("no text")
        );
    }

    #[test]
    fn json_that_is_no_object_of_the_api_is_not_said_to_come_from_elsewhere() {
        let origin = Origin::default();
        let error = |body: &str| {
            let why = serde_json::from_str::<u8>(body).unwrap_err();
            origin.error(body.as_bytes(), &why)
        };
        assert!(matches!(error("{\"kind\": 1}"), ApiError::Malformed(_)));
        assert!(matches!(error("\n {\"kind\""), ApiError::Malformed(_)));
        for body in ["", "<html>", "OK\n", "\"a\"", "[]"] {
            assert!(matches!(error(body), ApiError::Foreign { .. }), "{body}");
        }
    }
}
