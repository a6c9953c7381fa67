//! The origins whose pages may call the service from a browser.

use std::str::FromStr;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, Uri};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use crate::request_id;

/// The time for which browsers remember an answer about an origin.
const REMEMBERED: Duration = Duration::from_hours(1);

/// An origin: `https://app.example.com`, or `*` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl FromStr for Origin {
    type Err = String;

    /// Refuses a text that no browser sends as an origin: it would never match, and so allow no
    /// page.
    fn from_str(text: &str) -> Result<Origin, String> {
        let refused = || {
            format!(
                "`{text}` is no origin: write scheme and host, and a port where there is one, such as \
                 https://app.example.com or http://localhost:3000, or `*` for all"
            )
        };
        let value = HeaderValue::from_str(text).map_err(|_| refused())?;
        if text == "*" {
            return Ok(Origin(value));
        }
        let uri: Uri = text.parse().map_err(|_| refused())?;
        let host = uri.host().filter(|host| !host.contains('*'));
        let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        let whole = match (uri.scheme_str(), host) {
            (Some(scheme @ ("http" | "https")), Some(host)) => format!("{scheme}://{host}{port}"),
            _ => return Err(refused()),
        };
        // Browsers write hosts in lower case and leave the usual port away.
        let usual = if whole.starts_with("https") { ":443" } else { ":80" };
        let is_sent = whole == text && whole == text.to_lowercase() && !whole.ends_with(usual);
        if is_sent { Ok(Origin(value)) } else { Err(refused()) }
    }
}

/// Returns the layer that answers the preflight requests of browsers, and names the origins that
/// may read answers. Keys are sent in headers, so cookies are not allowed.
pub(crate) fn layer(origins: &[Origin]) -> CorsLayer {
    let allowed = if origins.iter().any(|origin| origin.0 == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().map(|origin| origin.0.clone()))
    };
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([request_id::HEADER, RETRY_AFTER])
        .max_age(REMEMBERED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_browsers_send() {
        for text in ["*", "https://app.example.com", "http://localhost:3000", "http://[::1]:8080"] {
            assert!(text.parse::<Origin>().is_ok(), "{text}");
        }
        for text in [
            "",
            "app.example.com",
            "https://app.example.com/",
            "https://App.example.com",
            "https://app.example.com:443",
            "http://a:80",
            "ftp://a",
            "https://u@a",
            "null",
            "https://*.a",
            "https://a/b",
            "https://a?b",
            "http://a:80a",
            "https://é",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
