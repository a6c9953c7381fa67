//! The id of a request: in the header `x-request-id` of its answer, in the access log, and in the lines of
//! the log that are written while it is answered.

use std::sync::Arc;

use axum::http::header::HeaderName;
use axum::http::{HeaderMap, HeaderValue};

use crate::ids;

/// The header of the id.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The most bytes of an id that a client gives.
const GIVEN_MAX: usize = 128;

tokio::task_local! {
    static CURRENT: Arc<str>;
}

/// Returns the id that the client gives, if it can be one, else a new one.
pub(crate) fn of(headers: &HeaderMap) -> Arc<str> {
    let given = headers.get(HEADER).and_then(|value| value.to_str().ok());
    let is_usable = |id: &&str| {
        (1..=GIVEN_MAX).contains(&id.len()) && id.bytes().all(|it| it.is_ascii_graphic())
    };
    given.filter(is_usable).map_or_else(|| ids::request().into(), Arc::from)
}

/// Runs a request under its id.
pub(crate) async fn scope<F: Future>(id: Arc<str>, run: F) -> F::Output {
    CURRENT.scope(id, run).await
}

/// Returns the id of the request that this task answers; `None` outside of requests.
pub(crate) fn current() -> Option<Arc<str>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// Adds the id to an answer.
pub(crate) fn stamp(headers: &mut HeaderMap, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(HEADER, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_id_is_the_clients_if_it_can_be_one() {
        let id = |given: &[u8]| {
            of(&HeaderMap::from_iter([(HEADER, HeaderValue::from_bytes(given).unwrap())]))
        };
        assert_eq!(&*id(b"trace-1"), "trace-1");
        for wrong in [&b""[..], b"a b", "caf\u{e9}".as_bytes(), &[b'x'; 129]] {
            let made = id(wrong);
            assert!(
                made.len() == 20 && made.bytes().all(|it| it.is_ascii_alphanumeric()),
                "{made}"
            );
        }
        assert_eq!(current(), None);
        let found = scope("a".into(), async { current() }).await;
        assert_eq!(found.as_deref(), Some("a"));
    }
}
