//! Whether a request names this server as only those do who mean it. Pure.
//!
//! Against DNS rebinding: a page in a browser on the node may read what a name of its own site answers, and its owner
//! can have that name lead to 127.0.0.1. The request then still carries the name. An address cannot be led elsewhere,
//! and `localhost` is in nobody's hand, so these are let through, whatever the address: a proxy on the node may pass on
//! the one that it was asked by.

use std::net::IpAddr;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

use crate::text::unbracketed;

/// Whether whatever the request names is `localhost` or an address. A request that names nothing is no browser's.
pub(super) fn is_own(uri: &Uri, headers: &HeaderMap) -> bool {
    let target = uri.authority();
    target.is_none_or(is_unmistakable) && headers.get_all(HOST).iter().all(is_unmistakable_text)
}

fn is_unmistakable_text(host: &HeaderValue) -> bool {
    let authority = Authority::try_from(host.as_bytes());
    authority.is_ok_and(|authority| is_unmistakable(&authority))
}

fn is_unmistakable(authority: &Authority) -> bool {
    let host = authority.host();
    unbracketed(host).parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own_by(target: &str, hosts: &[&'static str]) -> bool {
        let lines = hosts
            .iter()
            .map(|host| (HOST, HeaderValue::from_static(host)));
        is_own(&target.parse().unwrap(), &lines.collect())
    }

    #[test]
    fn only_localhost_and_addresses_are_no_names_of_others() {
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
