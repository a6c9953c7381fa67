//! A body that passes through, up to a size and a time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// The reason for which a body was cut off.
#[derive(Debug, thiserror::Error)]
pub(super) enum CutOff {
    /// The body is larger than the limit.
    #[error("the body is too large")]
    TooLarge,
    /// The body was not complete in time.
    #[error("the body took too long")]
    TooLate,
    /// The sender of the body broke off.
    #[error("the body broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A body that is cut off when it is too large or too late. It owns `kept` until it is dropped. It
/// is also dropped when the client leaves, which releases `kept`.
pub(super) struct CappedBody<B, K> {
    body: B,
    left: u64,
    due: Pin<Box<Sleep>>,
    was_too_large: Arc<AtomicBool>,
    _kept: K,
}

impl<B, K> CappedBody<B, K> {
    pub(super) fn new(body: B, limit: u64, due: Instant, kept: K) -> CappedBody<B, K> {
        let (due, was_too_large) = (Box::pin(sleep_until(due)), Arc::default());
        CappedBody { body, left: limit, due, was_too_large, _kept: kept }
    }

    /// Returns a flag that becomes true when the body is cut off for its size.
    pub(super) fn was_too_large(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.was_too_large)
    }
}

impl<B, K> Body for CappedBody<B, K>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    K: Unpin,
{
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            return self.due.as_mut().poll(context).map(|()| Some(Err(CutOff::TooLate)));
        };
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(CutOff::Broken(error.into())))),
            None => return Poll::Ready(None),
        };
        let size = frame.data_ref().map_or(0, |data| u64::try_from(data.len()).unwrap_or(u64::MAX));
        let Some(left) = self.left.checked_sub(size) else {
            self.was_too_large.store(true, SeqCst);
            return Poll::Ready(Some(Err(CutOff::TooLarge)));
        };
        self.left = left;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    #[tokio::test]
    async fn a_body_is_cut_off_where_it_is_too_large() {
        let soon = Instant::now() + Duration::from_mins(1);
        let whole = CappedBody::new(Full::new(Bytes::from("12345")), 5, soon, ());
        assert_eq!(whole.collect().await.unwrap().to_bytes(), "12345");
        let more = CappedBody::new(Full::new(Bytes::from("123456")), 5, soon, ());
        let was_too_large = more.was_too_large();
        assert!(matches!(more.collect().await, Err(CutOff::TooLarge)));
        assert!(was_too_large.load(SeqCst));
    }

    #[tokio::test]
    async fn a_body_is_cut_off_where_it_is_too_late() {
        let never = futures_util::stream::pending::<Result<Frame<Bytes>, CutOff>>();
        let due = Instant::now() + Duration::from_millis(20);
        let body = CappedBody::new(StreamBody::new(never), 5, due, ());
        assert!(matches!(body.collect().await, Err(CutOff::TooLate)));
    }
}
