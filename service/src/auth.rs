//! Three ways of authentication, one comparison.
//!
//! REST takes `Authorization: Bearer KEY`; the job API takes `authorization: KEY` or the bearer
//! form; GraphQL takes `?api_key=KEY` or the bearer form. There is one key with every right.

use axum::http::{HeaderMap, Uri, header::AUTHORIZATION};

/// The account's key. It has no `Debug` and no `Display`.
#[derive(Clone)]
pub(crate) struct Key(String);

impl Key {
    pub(crate) fn new(key: String) -> Key {
        Key(key)
    }

    /// The key in clear, for `serve.json` and for the addresses that the caller asked for.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// `Authorization: Bearer KEY`.
    pub(crate) fn bearer(&self, headers: &HeaderMap) -> bool {
        bearer_of(headers).is_some_and(|given| self.is(given))
    }

    /// `authorization: KEY` or `authorization: Bearer KEY`.
    pub(crate) fn raw_or_bearer(&self, headers: &HeaderMap) -> bool {
        self.bearer(headers) || authorization(headers).is_some_and(|given| self.is(given))
    }

    /// `?api_key=KEY` or `Authorization: Bearer KEY`.
    pub(crate) fn query_or_bearer(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        self.bearer(headers) || query(uri, "api_key").is_some_and(|given| self.is(&given))
    }

    /// Takes the same time for every wrong key of the right length.
    fn is(&self, given: &str) -> bool {
        same(self.0.as_bytes(), given.as_bytes())
    }
}

/// Returns true if two texts are equal, in a time that does not depend on where they differ.
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    let difference = left.iter().zip(right).fold(0u8, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0 && left.len() == right.len()
}

/// The value of the authorization header as it stands.
pub(crate) fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok().map(str::trim)
}

fn bearer_of(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = authorization(headers)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// A parameter of the query string, decoded.
pub(crate) fn query(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&');
    let found = pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
    found.map(|(_, value)| decode(value))
}

/// Every value of a parameter of the query string, decoded.
pub(crate) fn query_all(uri: &Uri, name: &str) -> Vec<String> {
    let pairs = uri.query().unwrap_or("").split('&');
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(|(key, _)| decode(key) == name).map(|(_, value)| decode(value)).collect()
}

/// Undoes percent encoding; what is not valid UTF-8 afterwards is replaced.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[at], hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn each_face_takes_its_own_forms() {
        let key = Key::new("k+1".to_owned());
        assert!(key.bearer(&headers("Bearer k+1")) && key.bearer(&headers("bearer k+1")));
        assert!(!key.bearer(&headers("k+1")) && !key.bearer(&headers("Bearer k+2")));
        assert!(key.raw_or_bearer(&headers("k+1")) && !key.raw_or_bearer(&headers("k+")));
        let none = HeaderMap::new();
        let uri = |text: &'static str| Uri::from_static(text);
        assert!(key.query_or_bearer(&none, &uri("/graphql?a=b&api_key=k%2B1")));
        assert!(!key.query_or_bearer(&none, &uri("/graphql?api_key=k")));
        assert!(!key.query_or_bearer(&none, &uri("/graphql?api_key=k%2")));
        assert!(!key.bearer(&none));
    }
}
