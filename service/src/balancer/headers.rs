//! The headers that concern one connection only, and those that only this service reads.

use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

use super::affinity::WORKER_ID;

/// The headers that concern one connection only, beside those that `Connection` names.
const OF_CONNECTION: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes the headers of a request that the worker must not get, among them the key of the client.
pub(super) fn keep_those_of_worker(headers: &mut HeaderMap) {
    let protocol = upgrade(headers);
    remove_those_of_connection(headers);
    headers.remove(AUTHORIZATION);
    headers.remove(WORKER_ID);
    headers.remove(EXPECT);
    set_upgrade(headers, protocol);
}

/// Removes the headers of an answer that concern the connection to the worker, and adds the
/// worker's id.
pub(super) fn keep_those_of_client(headers: &mut HeaderMap, worker: &str, switches: bool) {
    let protocol = upgrade(headers).filter(|_| switches);
    remove_those_of_connection(headers);
    set_upgrade(headers, protocol);
    if let Ok(id) = HeaderValue::from_str(worker) {
        headers.insert(WORKER_ID, id);
    }
}

/// Returns the protocol that a message switches to; `None` if it names none.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let names_it = named_by_connection(headers).contains(&UPGRADE);
    headers.get(UPGRADE).filter(|_| names_it).cloned()
}

/// Returns the length in bytes that a message announces for its body; `None` if it announces none.
pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn set_upgrade(headers: &mut HeaderMap, protocol: Option<HeaderValue>) {
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

fn remove_those_of_connection(headers: &mut HeaderMap) {
    for name in named_by_connection(headers).iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}

fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        all.iter().map(pair).collect()
    }

    #[test]
    fn a_worker_sees_neither_the_key_nor_what_is_about_the_connection() {
        let mut all = headers(&[
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("authorization", "Bearer key"),
            ("x-runpod-worker-id", "w"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("accept", "a"),
        ]);
        keep_those_of_worker(&mut all);
        assert_eq!(all, headers(&[("accept", "a")]));
    }

    #[test]
    fn an_upgrade_is_passed_on() {
        let asked = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
        let mut all = headers(&asked);
        keep_those_of_worker(&mut all);
        assert_eq!(all, headers(&[("connection", "upgrade"), ("upgrade", "websocket")]));
        let mut refused = headers(&asked);
        keep_those_of_client(&mut refused, "w", false);
        assert_eq!(refused, headers(&[("x-runpod-worker-id", "w")]));
    }
}
