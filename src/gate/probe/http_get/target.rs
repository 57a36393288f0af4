//! Where a request goes, and where a redirect leads. Pure.

use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Uri};

use crate::config::{Endpoint, HttpGet, Scheme};
use crate::gate::probe::connect::requested_host;
use crate::text::{excerpt, unbracketed};

/// The parts of a request that a redirect can change.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub(super) endpoint: Endpoint,
    pub(super) scheme: Scheme,
    pub(super) path: PathAndQuery,
    /// The `Host` header.
    host: String,
}

impl Target {
    /// The first request. `Host` is the configured one, else where the connection goes.
    pub fn new(spec: &HttpGet) -> Result<Self, String> {
        let mut headers = spec.http_headers.iter();
        let configured = headers.find(|header| header.name.eq_ignore_ascii_case("host"));
        Ok(Self {
            host: configured.map_or_else(
                || requested_host(&spec.endpoint),
                |header| header.value.clone(),
            ),
            endpoint: spec.endpoint.clone(),
            scheme: spec.scheme,
            path: path(&spec.path)?,
        })
    }

    pub(super) fn host_header(&self) -> Result<HeaderValue, String> {
        HeaderValue::try_from(&self.host)
            .map_err(|_| format!("Host {} cannot be sent", excerpt(&self.host)))
    }

    /// The name that TLS asks for: where the connection goes, and not the `Host` header, as in the kubelet.
    pub(super) fn tls_name(&self) -> &str {
        match &self.endpoint {
            Endpoint::Tcp { host, .. } => unbracketed(host),
            Endpoint::Unix { .. } => "localhost",
        }
    }

    /// The target of a redirect, or why it is not followed. Over TCP the host name must stay the same, and port and
    /// scheme may change (pkg/probe/http/http.go, `RedirectChecker`). A unix socket has no host: there an absolute location
    /// must name the `Host` header.
    pub(super) fn follow(&self, location: &str) -> Result<Self, String> {
        let location = location.split('#').next().unwrap_or_default();
        if let Some((scheme, rest)) = split_scheme(location) {
            let scheme = match scheme.to_ascii_lowercase().as_str() {
                "http" => Scheme::Http,
                "https" => Scheme::Https,
                other => return Err(format!("scheme {}", excerpt(other))),
            };
            let rest = rest.strip_prefix("//").ok_or("it is not a valid URL")?;
            return self.elsewhere(scheme, rest);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return self.elsewhere(self.scheme, rest);
        }
        Ok(Self {
            path: path(&resolve(&self.path, location))?,
            ..self.clone()
        })
    }

    /// `rest` is what follows `//` in an absolute location.
    fn elsewhere(&self, scheme: Scheme, rest: &str) -> Result<Self, String> {
        let location: Uri = format!("http://{rest}")
            .parse()
            .map_err(|_| "it is not a valid URL")?;
        let to = location.authority().ok_or("it is not a valid URL")?;
        let mut endpoint = self.endpoint.clone();
        let is_same_host = match &mut endpoint {
            Endpoint::Tcp { host, port } => {
                *port = port_of(to, scheme.default_port()).ok_or("it is not a valid URL")?;
                unbracketed(host).eq_ignore_ascii_case(unbracketed(to.host()))
            }
            Endpoint::Unix { .. } => self.host.eq_ignore_ascii_case(to.as_str()),
        };
        if !is_same_host {
            return Err("it names another host".into());
        }
        let path = location.path_and_query().cloned();
        Ok(Self {
            endpoint,
            scheme,
            path: path.unwrap_or(PathAndQuery::from_static("/")),
            host: without_user(to).to_owned(),
        })
    }
}

fn path(text: &str) -> Result<PathAndQuery, String> {
    text.starts_with('/')
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| format!("path {} cannot be sent", excerpt(text)))
}

fn without_user(authority: &Authority) -> &str {
    let text = authority.as_str();
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

/// The port, or `default` where there is none; `None` where it is not a number, which [`Authority::port`] ignores.
fn port_of(authority: &Authority, default: u16) -> Option<u16> {
    let port = without_user(authority).strip_prefix(authority.host())?;
    match port.trim_start_matches(':') {
        "" => Some(default),
        number => number.parse().ok(),
    }
}

/// The scheme of an absolute location and what follows its colon (RFC 3986, 3.1).
fn split_scheme(location: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = location.split_once(':')?;
    scheme
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        .then_some((scheme, rest))
}

/// A relative location as seen from `base` (RFC 3986, 5.2.2 and 5.2.4).
fn resolve(base: &PathAndQuery, location: &str) -> String {
    if location.is_empty() {
        return base.to_string();
    }
    let (path, query) = match location.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (location, String::new()),
    };
    if path.is_empty() {
        return format!("{}{query}", base.path());
    }
    let merged = match base.path().rsplit_once('/') {
        Some((directory, _)) if !path.starts_with('/') => format!("{directory}/{path}"),
        _ => path.to_owned(),
    };
    format!("{}{query}", without_dots(&merged))
}

/// `path`, which begins with a slash, without its `.` and `..` segments.
fn without_dots(path: &str) -> String {
    let mut kept = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            other => {
                kept.push(other);
                continue;
            }
        }
        if segments.peek().is_none() {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Expect;

    fn target(endpoint: Endpoint) -> Target {
        Target::new(&HttpGet {
            endpoint,
            scheme: Scheme::Http,
            path: "/a/b?c".into(),
            http_headers: Vec::new(),
            expect: Expect::default(),
        })
        .unwrap()
    }

    fn tcp(host: &str) -> Target {
        target(Endpoint::Tcp {
            host: host.into(),
            port: 8080,
        })
    }

    #[test]
    fn a_relative_location_stays_on_the_connection_target() {
        for (location, path) in [
            ("/x?y=http://z", "/x?y=http://z"),
            ("x", "/a/x"),
            ("x/../../y/.", "/y/"),
            ("../../..", "/"),
            ("..", "/"),
            (".", "/a/"),
            ("?q", "/a/b?q"),
            ("", "/a/b?c"),
            ("#fragment", "/a/b?c"),
            ("/x#fragment", "/x"),
        ] {
            let from = tcp("h");
            let to = from.follow(location).unwrap();
            assert_eq!(to.path.as_str(), path, "{location}");
            assert_eq!((to.endpoint, to.host), (from.endpoint, from.host));
        }
    }

    #[test]
    fn an_absolute_location_may_change_scheme_and_port_but_not_the_host_name() {
        for (host, location, port, sent) in [
            ("h", "http://h/", 80, "h"),
            ("h", "HTTPS://user@H", 443, "H"),
            ("h", "//h:1/x", 1, "h:1"),
            ("::1", "http://[::1]:9/", 9, "[::1]:9"),
        ] {
            let to = tcp(host).follow(location).unwrap();
            let endpoint = Endpoint::Tcp {
                host: host.into(),
                port,
            };
            assert_eq!((to.endpoint, to.host.as_str()), (endpoint, sent));
        }
        for location in ["http://other/", "//h.other/", "http://h@other/"] {
            assert_eq!(
                tcp("h").follow(location).unwrap_err(),
                "it names another host"
            );
        }
    }

    #[test]
    fn what_is_no_http_location_is_not_followed() {
        for location in [
            "ftp://h/",
            "mailto:h",
            "http:x",
            "http://",
            "http://h:x/",
            "/a b",
        ] {
            assert!(tcp("h").follow(location).is_err(), "{location}");
        }
    }

    #[test]
    fn over_a_unix_socket_an_absolute_location_must_name_the_same_authority() {
        let from = target(Endpoint::Unix {
            path: "/run/x.sock".into(),
        });
        let to = from.follow("http://localhost/y").unwrap();
        assert_eq!(
            (to.path.as_str(), to.endpoint),
            ("/y", from.endpoint.clone())
        );
        for location in ["http://localhost:80/y", "http://127.0.0.1/y"] {
            assert_eq!(from.follow(location).unwrap_err(), "it names another host");
        }
    }
}
