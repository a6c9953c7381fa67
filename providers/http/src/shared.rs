//! One list for all callers that need it at the same time.
//!
//! A killed run leaves many creates to look up, as many as it had in flight, and each is looked up in the
//! list of its type. So is an object that no read shows by its id alone. A caller that comes while a list is
//! under way waits, and then shares the next list with all others that wait, because a list that began before
//! may not show its object.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use engine::state::ObjectId;
use tokio::sync::Mutex;

use crate::classify::Failure;
use crate::listing::Listing;

/// The lists of one type.
#[derive(Default)]
pub(crate) struct SharedLists {
    whole: Shared,
    /// The lists below single parents, by the parent's id.
    below: std::sync::Mutex<BTreeMap<ObjectId, Arc<Shared>>>,
}

impl SharedLists {
    /// Returns the list of all objects.
    pub(crate) fn whole(&self) -> &Shared {
        &self.whole
    }

    /// Returns the list below one parent.
    pub(crate) fn below(&self, parent: &ObjectId) -> Arc<Shared> {
        let mut below = self.below.lock().unwrap_or_else(PoisonError::into_inner);
        below.entry(parent.clone()).or_default().clone()
    }
}

/// One list for all callers at the same time.
#[derive(Default)]
pub(crate) struct Shared {
    /// The number of callers that have come so far.
    came: AtomicU64,
    last: Mutex<Last>,
}

type Listed = Result<Arc<Listing>, Failure>;

#[derive(Default)]
struct Last {
    /// The number of callers that had come when the last list began: it is new enough for them.
    covers: u64,
    /// The result of the last list, as long as a caller waits for it.
    listed: Option<Listed>,
}

impl Shared {
    /// Returns the objects of a list that began after this call.
    pub(crate) async fn list(&self, ask: impl Future<Output = Result<Listing, Failure>>) -> Listed {
        let mine = self.came.fetch_add(1, Ordering::SeqCst) + 1;
        let mut last = self.last.lock().await;
        if last.covers >= mine
            && let Some(listed) = &last.listed
        {
            let listed = listed.clone();
            if last.covers == mine {
                // The attributes contain secrets in clear, so the result is dropped as soon as possible.
                last.listed = None;
            }
            return listed;
        }
        let covers = self.came.load(Ordering::SeqCst);
        let listed = ask.await.map(Arc::new);
        last.covers = covers;
        last.listed = (covers > mine).then(|| listed.clone());
        listed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn who_waits_shares_the_next_list() {
        let (shared, asked) = (Shared::default(), AtomicUsize::new(0));
        let ask = || async {
            asked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(Listing::default())
        };
        let all = (0..32).map(|_| shared.list(ask()));
        let all = futures_util::future::join_all(all).await;
        assert!(all.iter().all(Result::is_ok));
        // All callers came before the first list began, except for the first poll of each: two lists at most.
        assert!(asked.load(Ordering::SeqCst) <= 2, "{asked:?}");
        shared.list(ask()).await.unwrap();
        assert!(asked.load(Ordering::SeqCst) >= 2, "an old list is never taken");
        assert!(shared.last.lock().await.listed.is_none());
    }

    #[tokio::test]
    async fn who_gives_up_does_not_take_the_others_along() {
        let shared = Shared::default();
        let never = shared.list(std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(20), never).await.is_err());
        shared.list(async { Ok(Listing::default()) }).await.unwrap();
    }
}
