//! Whether the names in a request are those of this server. Pure.
//!
//! This prevents DNS rebinding: a page in a browser on the node can have a name of its own site lead to 127.0.0.1, and
//! then read the answers. Such a request still carries that name. Nobody can redirect `localhost` or an IP address, so these
//! pass. Any address passes, as a proxy on the node may forward the address that its client used.

use std::net::IpAddr;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri};

use crate::text::unbracketed;

/// Whether every name in the request is `localhost` or an IP address. Browsers always send a name.
pub(super) fn is_own(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    uri.authority().is_none_or(is_safe)
        && hosts.all(|host| {
            let authority = Authority::try_from(host.as_bytes());
            authority.is_ok_and(|authority| is_safe(&authority))
        })
}

fn is_safe(authority: &Authority) -> bool {
    let host = authority.host();
    unbracketed(host).parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn is_own_by(target: &str, hosts: &[&'static str]) -> bool {
        let lines = hosts
            .iter()
            .map(|host| (HOST, HeaderValue::from_static(host)));
        is_own(&target.parse().unwrap(), &lines.collect())
    }

    #[test]
    fn only_localhost_and_addresses_are_accepted_as_hosts() {
        for (host, own) in [
            ("localhost", true),
            ("LocalHost:9468", true),
            ("127.0.0.1", true),
            ("127.0.0.1:9468", true),
            ("[::1]:9468", true),
            ("[::ffff:127.0.0.1]", true),
            ("10.0.0.7:9468", true),
            ("evil.example", false),
            ("evil.example:9468", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("127.0.0.1@evil.example", false),
            ("evil.example@127.0.0.1.nip.io", false),
            // Resolvers may take these for 127.0.0.1, and search lists for a name.
            ("127.1", false),
            ("2130706433", false),
            ("localhost.", false),
            ("", false),
            ("[::1", false),
            ("a b", false),
        ] {
            assert_eq!(is_own_by("/statusz", &[host]), own, "{host:?}");
        }
    }

    #[test]
    fn every_name_in_the_request_counts() {
        assert!(is_own_by("/", &[]), "HTTP/1.0");
        assert!(is_own_by("http://localhost:1/", &["127.0.0.1:1"]));
        assert!(!is_own_by("http://evil.example/", &["127.0.0.1"]));
        assert!(!is_own_by("/", &["127.0.0.1", "evil.example"]));
    }
}
