//! Hosts that a secret may be sent to although only a spec names them: this machine, and those
//! that the user allows. Said once for keys of providers, credentials of stores, leases and the
//! requests of checks.
//!
//! Only texts are looked at: no name is resolved.

use std::net::IpAddr;

/// Whether a host, as it stands in an address, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let host = bare(host);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The hosts that a user allows: names separated by commas, in whatever case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// Reads a list; what is empty in it allows nothing.
    pub fn parse(text: &str) -> Self {
        let hosts = text.split(',').map(|host| bare(host.trim()).to_ascii_lowercase());
        Self(hosts.filter(|host| !host.is_empty()).collect())
    }

    /// Whether a host is among them, as a whole: none allows those below it.
    pub fn allows(&self, host: &str) -> bool {
        self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(bare(host)))
    }
}

/// A host without the brackets that an IPv6 address has in a URL.
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
}
