//! The check of the origin of a request to the console: only the console's own page may call it.

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method};

use crate::problem::{Kind, Problem};

/// Refuses a request to a foreign host name, or from the page of another site.
///
/// An attacker's host name can point to this machine; an IP address and `localhost` cannot be made
/// to point elsewhere. A browser names the page that sends a request, in `Origin` and
/// `Sec-Fetch-Site`. Other programs send neither header.
pub(super) fn check(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(HOST.as_str()).and_then(|host| host.parse::<Authority>().ok());
    let Some(host) = host.filter(|host| is_own(host.host())) else {
        return Err(refused(
            "The console answers only at an IP address or at localhost. Open it at the address \
             that `plumb serve` printed.",
        ));
    };
    if let Some(origin) = text(ORIGIN.as_str()) {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        if authority != Some(host.as_str()) {
            return Err(refused("The console takes calls from its own page only."));
        }
    }
    // A link on another site may open the page, but nothing more.
    let allowed: &[&str] = match *method {
        Method::GET | Method::HEAD => &["same-origin", "none", "same-site", "cross-site"],
        _ => &["same-origin", "none"],
    };
    match text("sec-fetch-site") {
        Some(site) if !allowed.contains(&site) => {
            Err(refused("The console takes calls from its own page only."))
        }
        _ => Ok(()),
    }
}

fn refused(message: &str) -> Problem {
    Problem::new(Kind::Forbidden, message)
}

/// Returns true if a host is an IP address or `localhost`, and so not a foreign name.
fn is_own(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(method: &Method, headers: &[(&'static str, &'static str)]) -> bool {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        check(method, &headers.collect()).is_ok()
    }

    #[test]
    fn only_addresses_that_nobody_can_own_are_answered() {
        for host in ["127.0.0.1:1", "localhost", "LOCALHOST:80", "[::1]:80", "10.0.0.7:8080"] {
            assert!(allowed(&Method::GET, &[("host", host)]), "{host}");
        }
        for host in
            ["evil.example:1", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b"]
        {
            assert!(!allowed(&Method::GET, &[("host", host)]), "{host}");
        }
        assert!(!allowed(&Method::GET, &[]));
    }

    #[test]
    fn calls_of_other_pages_are_refused() {
        let own = ("host", "127.0.0.1:80");
        let post = Method::POST;
        assert!(allowed(&post, &[own, ("origin", "http://127.0.0.1:80")]));
        for origin in ["http://evil.example", "http://127.0.0.1:81", "null"] {
            assert!(!allowed(&post, &[own, ("origin", origin)]), "{origin}");
            assert!(!allowed(&Method::GET, &[own, ("origin", origin)]), "{origin}");
        }
        assert!(allowed(&post, &[own, ("sec-fetch-site", "same-origin")]));
        for site in ["cross-site", "same-site"] {
            assert!(!allowed(&post, &[own, ("sec-fetch-site", site)]), "{site}");
        }
        assert!(allowed(&Method::GET, &[own, ("sec-fetch-site", "cross-site")]), "a link");
    }
}
