//! Why a connection failed, in words for operators. Pure.

use std::error::Error;
use std::io;

use hyper_util::client::legacy;
use tokio_rustls::rustls;

use crate::text::io_message;

const NOT_HTTP: &str = "the answer is not HTTP";
/// The system's words follow.
const TCP: &str = "tcp connect error";

/// All causes in one line, the outermost first, without those that only say that something failed.
pub(super) fn describe(error: &(dyn Error + 'static)) -> String {
    let mut causes: Vec<String> = Vec::new();
    for cause in chain(error) {
        let Some(words) = words(cause) else { continue };
        // Some wrappers repeat the error that they wrap.
        if causes.last().is_none_or(|last| !last.contains(&words)) {
            causes.push(words);
        }
    }
    if causes.is_empty() {
        return "the connection was closed".into();
    }
    causes.join(": ")
}

pub(super) fn is_certificate_error(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|cause| {
        let inner = innermost(cause).downcast_ref();
        matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
    })
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// The error inside an `io::Error` is not its source, and may be another `io::Error`.
fn innermost<'a>(mut error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    while let Some(inner) = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        error = inner;
    }
    error
}

/// What this cause adds; `None` if that is in the next one.
fn words(cause: &(dyn Error + 'static)) -> Option<String> {
    let is_last = cause.source().is_none();
    if let Some(kube::Error::Service(_)) = cause.downcast_ref() {
        return None;
    }
    if let Some(error) = cause.downcast_ref::<legacy::Error>() {
        return error.is_connect().then(|| "cannot connect".into());
    }
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return match error {
            _ if error.is_incomplete_message() => {
                Some("the connection was closed before the answer was complete".into())
            }
            _ if error.is_parse() => Some(NOT_HTTP.into()),
            _ => is_last.then(|| in_plain_words(error.to_string())),
        };
    }
    if let Some(rustls::Error::InvalidMessage(_)) = innermost(cause).downcast_ref() {
        return Some("the answer is not TLS".into());
    }
    match cause.downcast_ref::<io::Error>() {
        // An error that wraps another one has that one's number in its words.
        Some(error) => {
            let error = innermost(cause).downcast_ref().unwrap_or(error);
            Some(in_plain_words(io_message(error)))
        }
        None => Some(in_plain_words(cause.to_string())).filter(|words| words != TCP || is_last),
    }
}

/// Errors of libraries that only their text identifies.
fn in_plain_words(words: String) -> String {
    match words.as_str() {
        "tls handshake eof" => "the connection was closed in the TLS handshake".into(),
        // What comes before the request, such as the greeting of an SSH server.
        "received unexpected message from connection" => NOT_HTTP.into(),
        // The code of a GOAWAY that is no error, in the words of h2.
        _ if words.ends_with("not a result of an error") => {
            "the server closed the connection".into()
        }
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_operating_system_has_no_number_also_inside_another_error() {
        let reset = || io::Error::from_raw_os_error(104);
        for error in [reset(), io::Error::other(reset())] {
            assert_eq!(describe(&error), "connection reset by peer");
        }
    }
}
