//! The worker that a request names in `X-Runpod-Worker-Id`.

use axum::http::{HeaderMap, HeaderName};

use super::refusal::Refusal;
use crate::problem::Problem;

/// The header that names a worker: the wanted one in requests, the one that answered in answers.
pub(super) const WORKER_ID: HeaderName = HeaderName::from_static("x-runpod-worker-id");

/// The worker that a request should go to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Affinity {
    /// Any worker.
    None,
    /// This worker if it takes requests, else any.
    Soft(String),
    /// This worker only. `strict-resume` means the same, because a worker that was scaled down
    /// cannot be resumed.
    Strict(String),
}

impl Affinity {
    /// Reads the header of a request.
    pub(super) fn of(headers: &HeaderMap) -> Result<Affinity, Refusal> {
        let Some(value) = headers.get(WORKER_ID) else { return Ok(Affinity::None) };
        let mut words = value.to_str().unwrap_or("?").split_ascii_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None, _, _) => Ok(Affinity::None),
            (Some("strict" | "strict-resume"), Some(id), None) => {
                Ok(Affinity::Strict(id.to_owned()))
            }
            (Some(id), None, _) => Ok(Affinity::Soft(id.to_owned())),
            _ => Err(Refusal::from(Problem::invalid(
                "X-Runpod-Worker-Id must be `WORKER`, `strict WORKER` or `strict-resume WORKER`",
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Option<Affinity> {
        let headers = HeaderMap::from_iter([(WORKER_ID, value.parse().unwrap())]);
        Affinity::of(&headers).ok()
    }

    #[test]
    fn a_request_may_prefer_a_worker_or_insist_on_it() {
        assert_eq!(Affinity::of(&HeaderMap::new()).unwrap(), Affinity::None);
        assert_eq!(of(" "), Some(Affinity::None));
        assert_eq!(of("w1"), Some(Affinity::Soft("w1".to_owned())));
        assert_eq!(of("strict  w1"), Some(Affinity::Strict("w1".to_owned())));
        assert_eq!(of("strict-resume w1"), Some(Affinity::Strict("w1".to_owned())));
        assert_eq!(of("loose w1"), None);
        assert_eq!(of("strict w1 w2"), None);
    }
}
