//! The body of a request, read within bounds of size and time.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};

use crate::problem::{Kind, Problem};

/// The largest body that the management APIs take.
pub(crate) const BODY_MAX: usize = 1 << 20;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(2);

/// Reads a body up to a limit. One that announces more is refused without being read.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let size = match limit >> 20 {
            0 => format!("{limit} bytes"),
            megabytes => format!("{megabytes} MB"),
        };
        Problem::new(Kind::TooLarge, format!("the request body is larger than {size}"))
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_limit(&error) => Err(too_large()),
        Ok(Err(_)) => Err(Problem::invalid("the request body could not be read")),
        Err(_) => Err(Problem::invalid("the request body did not arrive in time")),
    }
}

fn is_limit(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.and_then(|source| source.downcast_ref::<http_body_util::LengthLimitError>()).is_some()
}
