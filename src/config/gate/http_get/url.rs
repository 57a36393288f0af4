//! The form of `httpGet` that the command line has: a URL.

use std::str::FromStr;

use http::Uri;

use super::{Expect, HttpGet, Scheme};
use crate::config::Endpoint;
use crate::syntax::{HOST, REQUEST_PATH, SOCKET_PATH};
use crate::text::{quoted, unbracketed};

/// Reads `http://HOST[:PORT][/PATH][?QUERY]`, the same with `https`, or `unix:SOCKET[:/PATH]` for HTTP over a unix
/// socket: `unix:/run/agent.sock:/healthz`. The socket's own path cannot have `:/` in it.
///
/// The error is a sentence for the person who typed it.
impl FromStr for HttpGet {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let (scheme, endpoint, path) = match url.strip_prefix("unix:") {
            Some(rest) => unix_url(rest)?,
            None => tcp_url(url)?,
        };
        REQUEST_PATH
            .check(&path)
            .map_err(|message| format!("its path {message}"))?;
        Ok(Self {
            endpoint,
            scheme,
            path,
            http_headers: Vec::new(),
            expect: Expect::default(),
        })
    }
}

fn unix_url(rest: &str) -> Result<(Scheme, Endpoint, String), String> {
    let (socket, path) = match rest.find(":/") {
        Some(colon) => (&rest[..colon], &rest[colon + 1..]),
        None => (rest, "/"),
    };
    let socket = SOCKET_PATH
        .parse(socket)
        .map_err(|message| format!("its socket {message}"))?;
    let endpoint = Endpoint::Unix {
        path: socket.into(),
    };
    Ok((Scheme::Http, endpoint, path.to_owned()))
}

fn tcp_url(url: &str) -> Result<(Scheme, Endpoint, String), String> {
    let expected = || {
        format!(
            "must be http://HOST[:PORT][/PATH], https://… or unix:SOCKET[:/PATH], not {}",
            quoted(url)
        )
    };
    let uri: Uri = url.parse().map_err(|_| expected())?;
    if url.contains('#') {
        // The parser drops it and what follows.
        return Err(expected());
    }
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err(expected()),
    };
    let authority = uri.authority().ok_or_else(expected)?;
    let host = unbracketed(authority.host());
    let port = match authority.as_str().strip_prefix(authority.host()) {
        Some("") => scheme.default_port(),
        // The parser also reads "+80".
        Some(_) => authority
            .port()
            .filter(|port| port.as_str().starts_with(|c: char| c.is_ascii_digit()))
            .map(|port| port.as_u16())
            .filter(|port| *port > 0)
            .ok_or_else(expected)?,
        // A user name stands before the host.
        None => return Err(expected()),
    };
    let host = HOST
        .parse(host)
        .map_err(|message| format!("its host {message}"))?;
    let endpoint = Endpoint::Tcp { host, port };
    let path = match uri.query() {
        Some(query) => format!("{}?{query}", uri.path()),
        None => uri.path().to_owned(),
    };
    Ok((scheme, endpoint, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp {
            host: host.into(),
            port,
        }
    }

    fn unix(path: &str) -> Endpoint {
        Endpoint::Unix { path: path.into() }
    }

    #[test]
    fn a_url_names_scheme_endpoint_path_and_query() {
        for (url, scheme, endpoint, path) in [
            ("http://localhost", Scheme::Http, tcp("localhost", 80), "/"),
            (
                "https://a.example/x",
                Scheme::Https,
                tcp("a.example", 443),
                "/x",
            ),
            (
                "http://127.0.0.1:9879/healthz?a=1",
                Scheme::Http,
                tcp("127.0.0.1", 9879),
                "/healthz?a=1",
            ),
            ("http://[::1]:80/", Scheme::Http, tcp("::1", 80), "/"),
            ("http://[::1]?q", Scheme::Http, tcp("::1", 80), "/?q"),
            ("unix:/run/a.sock", Scheme::Http, unix("/run/a.sock"), "/"),
            (
                "unix:/run/a.sock:/healthz?a",
                Scheme::Http,
                unix("/run/a.sock"),
                "/healthz?a",
            ),
        ] {
            let check = url.parse::<HttpGet>().unwrap();
            assert_eq!(check.scheme, scheme, "{url}");
            assert_eq!(check.endpoint, endpoint, "{url}");
            assert_eq!(check.path, path, "{url}");
            assert_eq!(check.expect, Expect::default());
        }
    }

    #[test]
    fn any_other_text_is_an_error_that_says_what_is_expected() {
        for url in [
            "",
            "localhost",
            "/healthz",
            "localhost:9879/healthz",
            "ftp://a/",
            "http://",
            "http:///x",
            "http://:80/",
            "http://user@a/",
            "http://user:secret@a:80/",
            "http://a:0/",
            "http://a:70000/",
            "http://a:+80/",
            "http://[::1]:+80",
            "http://a:0x50/",
            "http://a:-1/",
            "http://a:/",
            "http://a/#top",
            "http://a/b c",
            "http://a%20b/",
            "unix:",
            "unix:a.sock",
            "unix:/a.sock:/b c",
            "unix://a.sock\0",
        ] {
            let message = url.parse::<HttpGet>().unwrap_err();
            assert!(message.contains("must be"), "{url}: {message}");
        }
    }
}
