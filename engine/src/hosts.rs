//! Hosts to which a secret may be sent although only a spec names them: this machine, and those that the user
//! allows. This module decides it for keys of providers, credentials of stores, leases and the requests of
//! checks.
//!
//! It only compares texts: no name is resolved.

use std::net::IpAddr;

/// Returns true if a host, as it is written in a URL, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let host = bare(host);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The hosts that a user allows: names separated by commas, in upper or lower case. A host with `http://`
/// before it is allowed without encryption, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<Allowed>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    host: String,
    in_clear: bool,
}

impl AllowedHosts {
    /// Reads a list. An empty entry allows nothing.
    pub fn parse(text: &str) -> Self {
        let hosts = text.split(',').map(|entry| {
            let entry = entry.trim().to_ascii_lowercase();
            let in_clear = entry.strip_prefix("http://");
            let host = bare(in_clear.unwrap_or(&entry)).to_owned();
            Allowed { host, in_clear: in_clear.is_some() }
        });
        Self(hosts.filter(|allowed| !allowed.host.is_empty()).collect())
    }

    /// Returns true if an address of this scheme and host may get a secret. Without encryption the user must
    /// have allowed it explicitly, because a spec that somebody else wrote may choose the scheme.
    pub fn allows_at(&self, scheme: &str, host: &str) -> bool {
        let is_safe = scheme.eq_ignore_ascii_case("https");
        self.named(host).any(|allowed| is_safe || allowed.in_clear)
    }

    /// Returns true if a host is in the list. Only the whole name counts: an entry does not allow the hosts
    /// below it.
    pub fn allows(&self, host: &str) -> bool {
        self.named(host).next().is_some()
    }

    fn named(&self, host: &str) -> impl Iterator<Item = &Allowed> {
        self.0.iter().filter(move |allowed| allowed.host.eq_ignore_ascii_case(bare(host)))
    }
}

/// Returns a host without the brackets that an IPv6 address has in a URL.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_this_machine_alone() {
        for host in ["127.0.0.1", "127.9.9.9", "[::1]", "::1", "localhost", "LocalHost"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "0.0.0.0", "10.0.0.1", "localhost.evil.example", "127.0.0.1.evil.example"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn hosts_are_allowed_as_a_whole() {
        let allowed = AllowedHosts::parse(" a.example, Evil.Example ,,[2001:db8::1]");
        for host in ["a.example", "A.Example", "evil.example", "[2001:db8::1]", "2001:db8::1"] {
            assert!(allowed.allows(host), "{host}");
        }
        for host in ["", "b.a.example", "a.example.evil", "example", " a.example"] {
            assert!(!allowed.allows(host), "{host}");
        }
        assert!(!AllowedHosts::parse("").allows(""));
    }

    #[test]
    fn a_host_is_allowed_in_clear_where_that_is_said() {
        let allowed = AllowedHosts::parse("a.example, HTTP://b.example,http://[2001:db8::1]");
        for (scheme, host, expected) in [
            ("https", "a.example", true),
            ("http", "a.example", false),
            ("HTTPS", "b.example", true),
            ("http", "B.example", true),
            ("http", "[2001:db8::1]", true),
            ("http", "c.example", false),
        ] {
            assert_eq!(allowed.allows_at(scheme, host), expected, "{scheme}://{host}");
        }
        assert!(allowed.allows("b.example"));
    }
}
