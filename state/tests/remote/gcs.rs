//! Google Cloud Storage through its own client: over the XML API, with generations as conditions. An S3
//! server behind a translator (`gcs.py`) stores the objects and enforces the conditions.

use std::sync::OnceLock;
use std::time::Duration;

use state::cipher::Cipher;
use state::conformance::{self, OpenStore, records, snapshot};
use state::object::BucketStore;
use state::{Environment, Store, StoreError};

use super::servers::{Gcs, gcp_storage_emulator, gcs, gcs_account, http};
use super::{holder, name, settings};

const SECRET: &str = "secret-canary";

fn server() -> Option<&'static Gcs> {
    static SERVER: OnceLock<Option<Gcs>> = OnceLock::new();
    SERVER.get_or_init(|| gcs("")).as_ref()
}

fn store_in(bucket: &str, port: u16, prefix: &str) -> BucketStore {
    let look = |name: &str| (name == "GOOGLE_SERVICE_ACCOUNT_KEY").then(|| gcs_account(SECRET));
    let url = format!("http://127.0.0.1:{port}");
    let values = [("bucket", bucket), ("prefix", prefix), ("url", &url)];
    let settings = settings("gcs", &values);
    let store = BucketStore::open(&settings, &Environment::new(&look), Cipher::off());
    store.unwrap().unwrap()
}

fn store(port: u16, prefix: &str) -> BucketStore {
    store_in("bucket", port, prefix)
}

#[tokio::test(flavor = "multi_thread")]
async fn gcs_conforms() {
    let Some(gcs) = server() else { return };
    conformance::run(|| -> OpenStore {
        let prefix = name("conforms/");
        Box::new(move || Box::new(store(gcs.server.port, &prefix).ttl(Duration::from_secs(3))))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gcs_shuts_out_a_holder_that_stood_still() {
    let Some(gcs) = server() else { return };
    let prefix = name("zombie/");
    let store = store(gcs.server.port, &prefix).ttl(Duration::from_secs(1));
    let mut held = store.lock(&holder("first"), Duration::ZERO).await.unwrap();
    let first = held.initialise(&snapshot(0)).await.unwrap();
    held.release().await.unwrap();
    let mut zombie = store.lock(&holder("zombie"), Duration::ZERO).await.unwrap();
    zombie.append(&records(0..1)).await.unwrap();
    // This does by hand the same as a takeover, without waiting for silence.
    let lock = format!("/bucket/{prefix}/lock");
    assert_eq!(http(gcs.server.port, "DELETE", &lock), 204);
    let mut other = store.lock(&holder("other"), Duration::ZERO).await.unwrap();
    assert_eq!(other.loaded().records, records(0..1));
    let refused = zombie.append(&records(7..8)).await;
    assert!(matches!(refused, Err(StoreError::Fenced(_))), "{refused:?}");
    let refused = zombie.save(&snapshot(3), &first).await;
    assert!(matches!(refused, Err(StoreError::Fenced(_))), "{refused:?}");
    drop(zombie);
    other.append(&records(1..2)).await.unwrap();
    drop(other);
    assert_eq!(store.load().await.unwrap().records, records(0..2));
}

/// GCS accepts one write of an object for each second; the lock is written more often than that.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_written_too_often_is_written_later() {
    let Some(gcs) = gcs("--slow") else { return };
    let store = store(gcs.server.port, "slow");
    let mut held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
    let first = held.initialise(&snapshot(0)).await.unwrap();
    held.append(&records(0..1)).await.unwrap();
    held.save(&snapshot(1), &first).await.unwrap();
    held.append(&records(1..2)).await.unwrap();
    held.release().await.unwrap();
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.records), (Some(snapshot(1)), records(1..2)));
    assert_eq!(loaded.holder, None, "it was released");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gcs_that_ignores_conditions_is_refused() {
    let Some(gcs) = gcs("--deaf") else { return };
    let result = store(gcs.server.port, "x").lock(&holder("a"), Duration::ZERO).await.map(drop);
    let Err(StoreError::Unfit { what, .. }) = result else { panic!("{result:?}") };
    assert!(what.contains("ignores conditional writes"), "{what}");
}

/// This server ignores them, too, and already its first answer differs from GCS's: it has no `ETag`.
#[tokio::test(flavor = "multi_thread")]
async fn a_gcs_that_answers_like_no_gcs_is_refused() {
    let Some(server) = gcp_storage_emulator() else { return };
    let store = store(server.port, "x").patience(Duration::from_secs(1));
    let error = store.lock(&holder("a"), Duration::ZERO).await.map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Failed { .. }), "{error:?}");
    assert!(error.to_string().contains("(no ETag)"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gcs_without_a_bucket_or_a_server_shows_no_secret() {
    let Some(gcs) = server() else { return };
    for (bucket, port) in [("nothing", gcs.server.port), ("bucket", 1)] {
        let store = store_in(bucket, port, "x").patience(Duration::ZERO);
        let error = store.lock(&holder("a"), Duration::ZERO).await.map(drop).unwrap_err();
        let text = format!("{error} {error:?}");
        // The location shows its address; the message about the call does not show the request.
        let called = format!("127.0.0.1:{port}/");
        assert!(!text.contains("canary") && !text.contains(&called), "{text}");
        assert!(matches!(error, StoreError::Failed { .. }), "{text}");
    }
}
