//! A request that changes something and whose command may end before the answer comes: its result says what
//! is known of the request then. This module prints nothing; its callers do.

use std::pin::pin;
use std::time::Duration;

use provider_port::Error;
use provider_serverless::jobs::Sending;

use crate::jobs::{Bounds, Early};

/// The longest wait for the answer to a request that is under way when its command is to end. Without the
/// answer, the id of a new job would be unknown, and the job of no use.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The result of a request.
pub(crate) enum Sent<T> {
    /// The answer came, in time or within [`GRACE`]. Also an error that proves the outcome of the request.
    Answered(Result<T, Error>),
    /// A bound was reached first, and the request was not sent.
    Not(Early),
    /// A bound was reached first, and the service may or may not have the request.
    Perhaps(Early),
}

/// Makes `call` within `bounds`. Calls `waits` once a bound is reached and only the answer is still waited
/// for.
pub(crate) async fn within<T>(
    call: impl Future<Output = Result<T, Error>>,
    sending: &Sending,
    bounds: &Bounds,
    waits: impl FnOnce(),
) -> Sent<T> {
    let mut call = pin!(call);
    let early = tokio::select! {
        biased;
        answered = &mut call => return Sent::Answered(answered),
        early = bounds.reached() => early,
    };
    sending.close();
    if !sending.is_out() {
        return Sent::Not(early);
    }
    waits();
    match tokio::time::timeout(GRACE, call).await {
        Ok(Ok(answer)) => Sent::Answered(Ok(answer)),
        Ok(Err(error)) if sending.is_out() => Sent::Answered(Err(error)),
        Err(_) if sending.is_out() => Sent::Perhaps(early),
        Ok(Err(_)) | Err(_) => Sent::Not(early),
    }
}
