//! A request that changes something, from before it is sent to its answer, and what is known of it
//! where its command has to end between. It says nothing: what people are told, callers know.

use std::pin::pin;
use std::time::Duration;

use provider_port::Error;
use provider_serverless::jobs::Sending;

use crate::jobs::{Bounds, Early};

/// The longest wait for the answer to a request that is on its way after the command should have ended. A job whose
/// id is not known is of no use.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The result of a request.
pub(crate) enum Sent<T> {
    /// An answer, in time or in [`GRACE`]; or an error that says what it means.
    Answered(Result<T, Error>),
    /// A bound was reached first: the service cannot have it, and does not get it.
    Not(Early),
    /// A bound was reached first: the service may have it or not.
    Perhaps(Early),
}

/// Makes `call` within `bounds`; `waits` is called where only its answer is waited for.
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
