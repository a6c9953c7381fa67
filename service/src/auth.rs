//! Authentication: the keys that a request shows, and the rights of these keys.
//!
//! REST takes `Authorization: Bearer KEY`; the job API takes `authorization: KEY` or the bearer
//! form; GraphQL takes `?api_key=KEY` or the bearer form. The key of the account has every right.
//! The other keys, of [`crate::keys`], have the rights in their records.

use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, Uri, header::AUTHORIZATION};

use crate::keys::{self, Access, Interface, Rights};
use crate::problem::{Kind, Problem};

/// The keys of a running service. It has no `Debug` and no `Display`.
pub(crate) struct Keys {
    account: String,
    /// The data folder, with the records of the other keys.
    data: PathBuf,
}

/// The holder of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Principal {
    /// The account itself, with every right.
    Account,
    /// The holder of a key with fewer rights.
    Limited {
        /// The name of the key.
        name: String,
        /// The rights of the key.
        rights: Rights,
    },
}

impl Keys {
    /// Returns the keys: this one of the account, and those whose records are in the data folder.
    pub(crate) fn new(account: String, data: &Path) -> Keys {
        Keys { account, data: data.to_owned() }
    }

    /// Returns the account's key in clear, for `serve.json` and for the addresses that the caller
    /// asked for.
    pub(crate) fn account(&self) -> &str {
        &self.account
    }

    /// Returns the holder of a key; `None` if there is no such key, or if the key was revoked.
    pub(crate) fn principal(&self, key: &str) -> Option<Principal> {
        if same(self.account.as_bytes(), key.as_bytes()) {
            return Some(Principal::Account);
        }
        let record = keys::find(&self.data, key)?;
        Some(Principal::Limited { name: record.name, rights: record.rights })
    }

    /// Returns the holder of the key that a request shows in a form that the interface takes.
    /// Refuses a request without a known key.
    pub(crate) fn authenticate(
        &self,
        interface: Interface,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Principal, Problem> {
        let mut shown = vec![bearer(headers).map(str::to_owned)];
        match interface {
            Interface::Rest => {}
            Interface::Jobs => shown.push(authorization(headers).map(str::to_owned)),
            Interface::Graphql => shown.push(query(uri, "api_key")),
        }
        let mut known = shown.iter().flatten().filter_map(|key| self.principal(key));
        known.next().ok_or_else(Problem::unauthorized)
    }
}

impl Principal {
    /// Refuses a request that this principal has no right to, and names the right.
    pub(crate) fn permit(&self, access: Access<'_>) -> Result<(), Problem> {
        let Principal::Limited { name, rights } = self else { return Ok(()) };
        match rights.missing(access) {
            None => Ok(()),
            Some(missing) => {
                let why = format!("the key `{name}` does not allow this: {missing}");
                Err(Problem::new(Kind::Unauthorized, why))
            }
        }
    }
}

/// Returns true if two texts are equal, in a time that does not depend on where they differ.
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    let difference = left.iter().zip(right).fold(0u8, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0 && left.len() == right.len()
}

/// Returns the value of the authorization header, without blanks around it.
pub(crate) fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok().map(str::trim)
}

/// Returns the key of `Authorization: Bearer KEY`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = authorization(headers)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Returns the first value of a parameter of the query string, decoded.
pub(crate) fn query(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&');
    let found = pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
    found.map(|(_, value)| decode(value))
}

/// Returns every value of a parameter of the query string, decoded.
pub(crate) fn query_all(uri: &Uri, name: &str) -> Vec<String> {
    let pairs = uri.query().unwrap_or("").split('&');
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(|(key, _)| decode(key) == name).map(|(_, value)| decode(value)).collect()
}

/// Undoes percent encoding. Bytes that are not valid UTF-8 afterwards are replaced.
pub(crate) fn decode(text: &str) -> String {
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
    fn each_interface_takes_its_own_forms() {
        let data = tempfile::tempdir().unwrap();
        let keys = Keys::new("k+1".to_owned(), data.path());
        let limited = keys::create_key(data.path(), "a", Rights::default()).unwrap();
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        let knows = |interface, headers: &HeaderMap, at: &str| {
            keys.authenticate(interface, headers, &uri(at)).is_ok()
        };
        let none = HeaderMap::new();
        for key in ["k+1", limited.as_str()] {
            let (bearer, raw) = (headers(&format!("bearer {key}")), headers(key));
            for interface in [Interface::Rest, Interface::Jobs, Interface::Graphql] {
                assert!(knows(interface, &bearer, "/"));
                assert!(!knows(interface, &none, "/"));
                assert!(!knows(interface, &headers(&format!("Bearer {key}x")), "/"));
                assert_eq!(knows(interface, &raw, "/"), interface == Interface::Jobs);
                let at = format!("/graphql?a=b&api_key={}", key.replace('+', "%2B"));
                assert_eq!(knows(interface, &none, &at), interface == Interface::Graphql);
            }
        }
        assert!(!knows(Interface::Graphql, &none, "/graphql?api_key=k%2"));
        assert!(!knows(Interface::Graphql, &none, "/graphql?api_key="));
    }

    #[test]
    fn a_principal_is_refused_with_the_missing_right() {
        let access = Access { interface: Interface::Rest, changes: true, endpoint: None };
        assert_eq!(Principal::Account.permit(access), Ok(()));
        let rights = Rights { interface: Some(Interface::Jobs), ..Rights::default() };
        let problem = Principal::Limited { name: "ci".to_owned(), rights }.permit(access);
        let problem = problem.unwrap_err();
        assert_eq!(problem.kind, Kind::Unauthorized);
        assert_eq!(problem.message, "the key `ci` does not allow this: it is for the job API only");
    }
}
