//! Doubts about object stores, each a test: the traces of a killed, a slow or a late holder harm no other
//! run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use state::conformance::snapshot;
use state::{Store, StoreError};

use super::faulty::{TTL, drive_out, faulty, initialised, locked, names};

/// A lock that is released during a heartbeat is free afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_let_go_is_free_also_during_a_beat() {
    // Without a state nothing is noted before the last write.
    let (service, store) = faulty();
    for round in 0..4 {
        let held = locked(&store, &format!("r{round}")).await;
        service.late_ms.store(120, Ordering::SeqCst);
        tokio::time::sleep(TTL / 3 + Duration::from_millis(60)).await;
        held.release().await.unwrap();
        service.late_ms.store(0, Ordering::SeqCst);
        let holder = store.load().await.unwrap().holder;
        assert_eq!(holder, None, "round {round}");
    }
}

/// A run that was killed between its snapshot and the frame that names it leaves a snapshot that never
/// counted. It is not part of the history.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_never_counted_is_not_in_the_history() {
    let (service, store) = faulty();
    let store = store.patience(Duration::ZERO);
    let first = initialised(&store).await;
    let mut killed = locked(&store, "killed").await;
    service.mute.store(true, Ordering::SeqCst);
    let mut other = snapshot(1);
    other.next_call = 77;
    assert!(killed.save(&other, &first).await.is_err());
    service.mute.store(false, Ordering::SeqCst);
    drop(killed);
    let mut held = locked(&store, "next").await;
    let second = held.save(&snapshot(1), &first).await.unwrap();
    held.save(&snapshot(2), &second).await.unwrap();
    held.release().await.unwrap();
    assert_eq!(store.serials().await.unwrap(), [0, 1]);
    assert_eq!(store.past(1).await.unwrap(), Some(snapshot(1)));
    let names = names(&service.inner).await;
    let snapshots = names.iter().filter(|name| name.contains("snapshots/")).count();
    assert_eq!(snapshots, 3, "{names:?}");
}

/// A run that was driven out during a save leaves a snapshot that is not part of the history either.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_late_holder_saves_is_not_in_the_history() {
    let (service, store) = faulty();
    let first = initialised(&store).await;
    let mut late = locked(&store, "late").await;
    drive_out(&service).await;
    let mut held = locked(&store, "next").await;
    let second = held.save(&snapshot(1), &first).await.unwrap();
    for serial in [1, 7] {
        let mut other = snapshot(serial);
        other.next_call = 77;
        assert!(matches!(late.save(&other, &first).await, Err(StoreError::Fenced(_))));
    }
    held.save(&snapshot(2), &second).await.unwrap();
    held.release().await.unwrap();
    assert_eq!(store.serials().await.unwrap(), [0, 1]);
    assert_eq!(store.past(1).await.unwrap(), Some(snapshot(1)));
}

/// However often a first run is killed before its state counts, the next one is a first run.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_run_may_be_killed_more_than_once() {
    let (service, store) = faulty();
    let store = store.patience(Duration::ZERO);
    for round in 0..3 {
        service.mute.store(true, Ordering::SeqCst);
        let mut held = locked(&store, &format!("r{round}")).await;
        let mut initial = snapshot(0);
        initial.next_call = round + 1;
        assert!(held.initialise(&initial).await.is_err());
        service.mute.store(false, Ordering::SeqCst);
        drop(held);
        assert!(store.load().await.unwrap().snapshot.is_none(), "round {round}");
    }
    initialised(&store).await;
    assert_eq!(store.load().await.unwrap().snapshot, Some(snapshot(0)));
}
