//! Object stores: in memory, with faults, and the services themselves.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use state::cipher::Cipher;
use state::conformance::{self, OpenStore, records, snapshot};
use state::object::BucketStore;
use state::{Environment, Holder, Store, StoreError};

use super::faulty::{TTL, drive_out, faulty, initialised, is_fenced, locked, names, on};
use super::servers::{Server, azurite, http, moto, s3rver};
use super::{holder, name, settings};

#[tokio::test(flavor = "multi_thread")]
async fn conforms_in_memory() {
    conformance::run(|| -> OpenStore {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        Box::new(move || Box::new(on(store.clone())))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_with_a_key() {
    let kept = Arc::new(std::sync::Mutex::new(Vec::new()));
    let made = kept.clone();
    conformance::run(move || -> OpenStore {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        made.lock().unwrap().push(store.clone());
        let cipher = Cipher::new(&"a".repeat(64)).unwrap();
        Box::new(move || Box::new(on(store.clone()).sealed(cipher.clone())))
    })
    .await;
    let stores = kept.lock().unwrap().clone();
    for store in stores {
        for name in names(&*store).await {
            let bytes = store.get(&Path::from(name.clone())).await.unwrap().bytes().await.unwrap();
            for word in [&b"value.v"[..], b"RunOpened", b"run_opened"] {
                assert!(!bytes.windows(word.len()).any(|part| part == word), "{name}");
            }
        }
    }
}

/// A wrong or a missing key is no damage, so the message does not advise to restore an older state.
#[tokio::test(flavor = "multi_thread")]
async fn another_key_and_none_are_no_damage() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let sealed = |digit: &str| on(objects.clone()).sealed(Cipher::new(&digit.repeat(64)).unwrap());
    initialised(&sealed("a")).await;
    let said = async |store: BucketStore| match store.load().await.unwrap_err() {
        StoreError::Suspicious { what, help } => format!("{what}; {help}"),
        other => panic!("{other}"),
    };
    let none = said(on(objects.clone())).await;
    assert!(none.contains("PLUMB_STATE_KEY is not set; nothing was changed; set it to"), "{none}");
    let other = said(sealed("b")).await;
    assert!(
        other.contains("with another key than PLUMB_STATE_KEY; nothing was changed"),
        "{other}"
    );
    assert!(![none, other].iter().any(|said| said.contains("push")));
}

/// The services themselves have the properties that the tests in memory assume.
async fn conforms(make: impl Fn() -> OpenStore) {
    conformance::run(make).await;
}

fn s3_server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || {
        let server = moto()?;
        assert_eq!(http(server.port, "PUT", "/bucket"), 200);
        Some(server)
    };
    SERVER.get_or_init(start).as_ref()
}

#[cfg(feature = "s3")]
fn s3(port: u16, prefix: &str) -> BucketStore {
    let look = |name: &str| match name {
        "AWS_ACCESS_KEY_ID" => Some("id".to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some("secret-canary".to_owned()),
        _ => None,
    };
    let url = format!("http://127.0.0.1:{port}");
    let values = [("bucket", "bucket"), ("prefix", prefix), ("url", &url), ("region", "eu-west-1")];
    let store =
        BucketStore::open(&settings("s3", &values), &Environment::new(&look), Cipher::off());
    store.unwrap().unwrap()
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn s3_conforms() {
    let Some(server) = s3_server() else { return };
    conforms(|| -> OpenStore {
        let prefix = name("conforms/");
        Box::new(move || Box::new(s3(server.port, &prefix).ttl(Duration::from_secs(3))))
    })
    .await;
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn s3_shuts_out_a_holder_that_stood_still() {
    let Some(server) = s3_server() else { return };
    let prefix = name("zombie/");
    let store = s3(server.port, &prefix).ttl(Duration::from_secs(1));
    let first = initialised(&store).await;
    let mut zombie = locked(&store, "zombie").await;
    zombie.append(&records(0..1)).await.unwrap();
    // This does by hand the same as a takeover, without waiting for silence.
    let client = object_store::aws::AmazonS3Builder::new()
        .with_bucket_name("bucket")
        .with_region("eu-west-1")
        .with_access_key_id("id")
        .with_secret_access_key("secret-canary")
        .with_config(
            "aws_endpoint_url".parse().unwrap(),
            format!("http://127.0.0.1:{}", server.port),
        )
        .with_allow_http(true)
        .build()
        .unwrap();
    client.delete(&Path::from(format!("{prefix}/lock"))).await.unwrap();
    let mut other = locked(&store, "other").await;
    assert_eq!(other.loaded().records, records(0..1));
    assert!(is_fenced(&zombie.append(&records(7..8)).await));
    assert!(is_fenced(&zombie.save(&snapshot(3), &first).await));
    drop(zombie);
    other.append(&records(1..2)).await.unwrap();
    drop(other);
    assert_eq!(store.load().await.unwrap().records, records(0..2));
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn an_s3_that_ignores_conditions_is_refused() {
    let Some(server) = s3rver() else { return };
    let look = |name: &str| match name {
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("S3RVER".to_owned()),
        _ => None,
    };
    let url = format!("http://127.0.0.1:{}", server.port);
    let values = [("bucket", "bucket"), ("prefix", "x"), ("url", &url), ("region", "us-east-1")];
    let store =
        BucketStore::open(&settings("s3", &values), &Environment::new(&look), Cipher::off());
    let store = store.unwrap().unwrap();
    let result = store.lock(&holder("a"), Duration::ZERO).await.map(drop);
    let Err(StoreError::Unfit { what, .. }) = result else { panic!("{result:?}") };
    assert!(what.contains("ignores conditional writes"), "{what}");
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn s3_without_a_bucket_or_a_server_shows_no_secret() {
    let Some(server) = s3_server() else { return };
    let look = |name: &str| name.contains("AWS").then(|| "secret-canary".to_owned());
    for (bucket, port) in [("nothing", server.port), ("bucket", 1)] {
        let url = format!("http://127.0.0.1:{port}");
        let values = [("bucket", bucket), ("prefix", "x"), ("url", &url), ("region", "eu-west-1")];
        let env = |name: &str| {
            let is_key = name == "AWS_ACCESS_KEY_ID" || name == "AWS_SECRET_ACCESS_KEY";
            is_key.then(|| look(name)).flatten()
        };
        let store =
            BucketStore::open(&settings("s3", &values), &Environment::new(&env), Cipher::off());
        let store = store.unwrap().unwrap().patience(Duration::ZERO);
        let error = store.lock(&holder("a"), Duration::ZERO).await.map(drop).unwrap_err();
        let text = format!("{error} {error:?}");
        // The location shows its address; the message about the call does not show the request.
        let called = format!("127.0.0.1:{port}/");
        assert!(!text.contains("canary") && !text.contains(&called), "{text}");
        assert!(matches!(error, StoreError::Failed { .. }), "{text}");
    }
}

#[cfg(feature = "azure")]
#[tokio::test(flavor = "multi_thread")]
async fn azure_conforms() {
    // These are the account and the key of every emulator.
    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let Some(server) = azurite() else { return };
    let url = format!("http://127.0.0.1:{}/devstoreaccount1", server.port);
    let look = |name: &str| match name {
        "AZURE_STORAGE_ACCOUNT_KEY" => Some(KEY.to_owned()),
        _ => None,
    };
    make_container(server.port, KEY);
    conforms(|| -> OpenStore {
        let (url, prefix) = (url.clone(), name("conforms/"));
        Box::new(move || {
            let values = [
                ("container", "container"),
                ("account", "devstoreaccount1"),
                ("prefix", &prefix),
                ("url", &url),
            ];
            let settings = settings("azure", &values);
            let store = BucketStore::open(&settings, &Environment::new(&look), Cipher::off());
            Box::new(store.unwrap().unwrap().ttl(Duration::from_secs(3)))
        })
    })
    .await;
}

/// The lock of a killed holder is free after its lifetime. Its container is started again: the next run has
/// the same host name and the same process number, and a process with that number exists.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_holders_lock_is_free_after_its_time() {
    let (_, store) = faulty();
    initialised(&store).await;
    let at =
        |run: &str| Holder { host: "container".to_owned(), pid: std::process::id(), ..holder(run) };
    let (killed, wanted) = (store.clone(), at("killed"));
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        std::mem::forget(runtime.block_on(killed.lock(&wanted, Duration::ZERO)).unwrap());
        runtime.shutdown_background();
    });
    process.join().unwrap();
    assert_eq!(store.load().await.unwrap().holder, Some(at("killed")));
    let begun = Instant::now();
    let mut held = store.lock(&at("next"), Duration::ZERO).await.unwrap();
    assert!(begun.elapsed() >= TTL + TTL / 2, "it was not waited out");
    assert!(begun.elapsed() < TTL * 4, "{:?}", begun.elapsed());
    held.append(&records(0..1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_alive_is_told_at_the_next_beat() {
    let (_, store) = faulty();
    initialised(&store).await;
    let held = locked(&store, "alive").await;
    let begun = Instant::now();
    for _ in 0..2 {
        let Err(StoreError::Locked(other)) =
            store.lock(&holder("b"), Duration::ZERO).await.map(drop)
        else {
            panic!("two hold the lock");
        };
        assert_eq!(*other, holder("alive"));
    }
    assert!(begun.elapsed() < TTL * 2, "{:?}", begun.elapsed());
    drop(held);
}

/// A suspended holder writes nothing: its lock is waited out, a second run takes over, and no further write
/// of the first one has any effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_stood_still_writes_nothing() {
    let (service, store) = faulty();
    let first = initialised(&store).await;
    let mut zombie = locked(&store, "zombie").await;
    zombie.append(&records(0..1)).await.unwrap();
    drive_out(&service).await;
    let mut other = locked(&store, "other").await;
    assert_eq!(other.loaded().records, records(0..1));
    other.append(&records(1..2)).await.unwrap();
    assert!(is_fenced(&zombie.append(&records(7..8)).await));
    assert!(is_fenced(&zombie.append(&records(7..8)).await), "it stays so");
    assert!(is_fenced(&zombie.save(&snapshot(3), &first).await));
    let second = other.save(&snapshot(4), &first).await.unwrap();
    other.append(&records(2..3)).await.unwrap();
    drop(zombie);
    other.release().await.unwrap();
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.version), (Some(snapshot(4)), second));
    assert_eq!((loaded.records, loaded.holder), (records(2..3), None));
}

/// The frames that shut out a suspended holder stay after objects are removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_is_shut_out_after_a_save_too() {
    let (service, store) = faulty();
    let first = initialised(&store).await;
    let mut zombie = locked(&store, "zombie").await;
    zombie.append(&records(0..2)).await.unwrap();
    drive_out(&service).await;
    let mut other = locked(&store, "other").await;
    let mut version = first.clone();
    for serial in 1..4 {
        other.append(&records(2..3)).await.unwrap();
        version = other.save(&snapshot(serial), &version).await.unwrap();
    }
    other.release().await.unwrap();
    assert!(is_fenced(&zombie.append(&records(7..8)).await));
    assert!(is_fenced(&zombie.save(&snapshot(9), &first).await));
    assert_eq!(store.load().await.unwrap().snapshot, Some(snapshot(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_and_conflicts_change_nothing() {
    let (service, store) = faulty();
    let mut version = initialised(&store).await;
    for round in 0..6 {
        service.lose.store(round % 3, Ordering::SeqCst);
        service.conflict.store(round / 2, Ordering::SeqCst);
        let mut held = locked(&store, &format!("r{round}")).await;
        for n in 0..3 {
            service.lose.store(1, Ordering::SeqCst);
            held.append(&records(n..n + 1)).await.unwrap();
            service.conflict.store(1, Ordering::SeqCst);
            held.append(&records(n + 10..n + 11)).await.unwrap();
        }
        service.lose.store(1, Ordering::SeqCst);
        version = held.save(&snapshot(u64::from(round) + 1), &version).await.unwrap();
        service.lose.store(1, Ordering::SeqCst);
        held.release().await.unwrap();
    }
    service.lose.store(0, Ordering::SeqCst);
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.holder), (Some(snapshot(6)), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_ignores_conditions_is_refused() {
    let (service, store) = faulty();
    service.deaf.store(true, Ordering::SeqCst);
    for result in [
        store.lock(&holder("a"), Duration::ZERO).await.map(drop),
        store.restore(&holder("a"), &snapshot(1)).await.map(drop),
    ] {
        let Err(StoreError::Unfit { what, .. }) = result else { panic!("{result:?}") };
        assert!(what.contains("ignores conditional writes"), "{what}");
    }
    assert_eq!(names(&service.inner).await, Vec::<String>::new(), "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_gets_the_lock() {
    let (_, store) = faulty();
    initialised(&store).await;
    for round in 0..100 {
        let runs = (0..2).map(|n| {
            let store = store.clone();
            let run = holder(&format!("{round}-{n}"));
            tokio::spawn(async move { store.lock(&run, Duration::ZERO).await })
        });
        let mut won = Vec::new();
        for run in runs.collect::<Vec<_>>() {
            match run.await.unwrap() {
                Ok(held) => won.push(held),
                Err(StoreError::Locked(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(won.len(), 1, "round {round}");
        won.pop().unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_or_changed_is_never_a_first_run() {
    /// A damage to the objects, and the expected error.
    type Case = (fn(&[String]) -> Vec<(String, Option<u8>)>, &'static str);
    let only = |names: &[String], part: &str| -> Vec<String> {
        names.iter().filter(|name| name.contains(part)).cloned().collect()
    };
    let cases: [Case; 7] = [
        (|names| remove(names, "snapshots/"), "is missing"),
        (|names| remove(names, "journal/"), "is missing, but serial 2 was seen here"),
        (|names| remove(&names[..names.len() - 1], "journal/"), "is missing"),
        (|names| remove(&last(names, "journal/", 0), ""), "is missing"),
        (|names| remove(&last(names, "journal/", 1), ""), "is missing"),
        (|names| flip(&last(names, "journal/", 1)), "cannot be read: frame"),
        (|names| flip(&last(names, "snapshots/", 0)), "cannot be read: snapshots/"),
    ];
    for (index, (damage, expected)) in cases.into_iter().enumerate() {
        for is_locked_anew in [false, true] {
            let (service, store) = faulty();
            let first = initialised(&store).await;
            let mut held = locked(&store, "a").await;
            held.append(&records(0..1)).await.unwrap();
            held.save(&snapshot(2), &first).await.unwrap();
            held.append(&records(1..2)).await.unwrap();
            held.append(&records(2..3)).await.unwrap();
            held.release().await.unwrap();
            let all = names(&service.inner).await;
            assert_eq!(only(&all, "lock").len(), 1);
            let all: Vec<String> = all.into_iter().filter(|name| !name.ends_with("lock")).collect();
            for (name, byte) in damage(&all) {
                let path = Path::from(name);
                if let Some(place) = byte {
                    let bytes = service.inner.get(&path).await.unwrap().bytes().await.unwrap();
                    let mut bytes = bytes.to_vec();
                    let place = usize::from(place).min(bytes.len() - 1);
                    bytes[place] ^= 1;
                    service.inner.put(&path, bytes.into()).await.unwrap();
                } else {
                    service.inner.delete(&path).await.unwrap();
                }
            }
            let result = if is_locked_anew {
                store.lock(&holder("b"), Duration::ZERO).await.map(drop)
            } else {
                store.load().await.map(drop)
            };
            let Err(StoreError::Suspicious { what, .. }) = result else {
                panic!("case {index}: {result:?}");
            };
            assert!(what.contains(expected), "case {index}: {what}");
            // A run that could not begin releases the lock.
            store.restore(&holder("c"), &snapshot(1)).await.unwrap();
            assert!(store.load().await.unwrap().snapshot.unwrap().serial > 1, "case {index}");
            locked(&store, "d").await.append(&records(5..6)).await.unwrap();
        }
    }
}

fn remove(names: &[String], part: &str) -> Vec<(String, Option<u8>)> {
    names.iter().filter(|name| name.contains(part)).map(|name| (name.clone(), None)).collect()
}

fn flip(names: &[String]) -> Vec<(String, Option<u8>)> {
    names.iter().map(|name| (name.clone(), Some(70))).collect()
}

fn last(names: &[String], part: &str, skipped: usize) -> Vec<String> {
    let found: Vec<String> = names.iter().filter(|name| name.contains(part)).cloned().collect();
    found.into_iter().rev().skip(skipped).take(1).collect()
}

/// A crash leaves the first writes of a run: they are always a state, the one before or the one after.
#[tokio::test(flavor = "multi_thread")]
async fn every_crash_leaves_a_state() {
    for cut in 0..14 {
        let (service, store) = faulty();
        let store = store.patience(Duration::ZERO);
        let first = initialised(&store).await;
        let mut held = locked(&store, "a").await;
        held.append(&records(0..1)).await.unwrap();
        // From some write on, all writes fail, as if the process were gone.
        let before = names(&service.inner).await;
        service.conflict.store(0, Ordering::SeqCst);
        let saved = if cut == 0 {
            held.save(&snapshot(2), &first).await.is_ok()
        } else {
            service.conflict.store(cut, Ordering::SeqCst);
            held.save(&snapshot(2), &first).await.is_ok()
        };
        service.conflict.store(0, Ordering::SeqCst);
        drop(held);
        let loaded = store.load().await.unwrap();
        let serial = loaded.snapshot.unwrap().serial;
        assert!(serial == 2 || (!saved && serial == 0), "cut {cut}: {before:?}");
        assert_eq!(loaded.records, if serial == 2 { Vec::new() } else { records(0..1) });
        locked(&store, "b").await.append(&records(1..2)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_older_snapshots_are_kept_and_the_journal_is_cleared() {
    let (service, store) = faulty();
    let mut version = initialised(&store).await;
    let mut held = locked(&store, "a").await;
    for serial in 1..=25 {
        held.append(&records(serial..serial + 1)).await.unwrap();
        version = held.save(&snapshot(serial), &version).await.unwrap();
    }
    held.release().await.unwrap();
    assert_eq!(store.serials().await.unwrap(), (5..25).collect::<Vec<u64>>());
    assert_eq!(store.past(7).await.unwrap(), Some(snapshot(7)));
    assert_eq!(store.past(3).await.unwrap(), None);
    let names = names(&service.inner).await;
    let frames = names.iter().filter(|name| name.contains("journal/")).count();
    // The frames are the current one, and the first one of its holder.
    assert_eq!(frames, 2, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_somebody_removed_is_no_loss() {
    let (service, store) = faulty();
    let first = initialised(&store).await;
    let mut held = locked(&store, "a").await;
    held.append(&records(0..2)).await.unwrap();
    held.save(&snapshot(1), &first).await.unwrap();
    held.append(&records(2..3)).await.unwrap();
    held.release().await.unwrap();
    drive_out(&service).await;
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.records), (Some(snapshot(1)), records(2..3)));
    let mut held = locked(&store, "b").await;
    held.append(&records(3..4)).await.unwrap();
    held.release().await.unwrap();
    assert_eq!(store.load().await.unwrap().records, records(2..4));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_shows_no_address() {
    let (service, store) = faulty();
    initialised(&store).await;
    service.still.store(true, Ordering::SeqCst);
    let store = store.patience(Duration::ZERO);
    let error = store.lock(&holder("a"), Duration::ZERO).await.map(drop).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(!text.contains("canary"), "{text}");
}

/// A service that answers everything with a redirect to another one, and the number of requests that the
/// other one gets.
#[cfg(feature = "s3")]
fn redirecting() -> (u16, Arc<AtomicU32>) {
    let (front, back) = (listener(), listener());
    let (port, to) = (front.local_addr().unwrap().port(), back.local_addr().unwrap().port());
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:{to}/elsewhere\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    std::thread::spawn(move || {
        for client in front.incoming().flatten() {
            answer_with(client, &answer);
        }
    });
    std::thread::spawn(move || {
        for client in back.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            answer_with(client, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (port, asked)
}

#[cfg(feature = "s3")]
fn listener() -> std::net::TcpListener {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap()
}

#[cfg(feature = "s3")]
fn answer_with(mut client: std::net::TcpStream, answer: &str) {
    use std::io::{Read as _, Write as _};
    let mut bytes = [0; 4096];
    if client.read(&mut bytes).is_ok_and(|count| count > 0) {
        client.write_all(answer.as_bytes()).ok();
    }
    client.shutdown(std::net::Shutdown::Both).ok();
}

/// No redirect is followed, because the signature and the token of a session would be sent to another host.
#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn no_redirect_is_followed() {
    let (port, elsewhere) = redirecting();
    let store = s3(port, "x");
    for result in [
        store.load().await.map(drop),
        store.lock(&holder("a"), Duration::ZERO).await.map(drop),
        store.restore(&holder("a"), &snapshot(1)).await.map(drop),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("redirects are not followed"), "{error}");
        assert!(error.contains("(status 307)"), "{error}");
    }
    assert_eq!(elsewhere.load(Ordering::SeqCst), 0);
}

/// A service that accepts a connection and says nothing is given up in time, with a message about its
/// silence.
#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_service_is_an_error_in_time() {
    let listener = listener();
    let store = s3(listener.local_addr().unwrap().port(), "x");
    let begun = Instant::now();
    let error = store.load().await.map(drop).unwrap_err().to_string();
    assert!(error.contains("(no answer in time)"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

/// No part of a host's name from a spec leads to another host.
#[test]
fn no_part_of_a_host_leads_elsewhere() {
    let right = [
        ("s3", [("bucket", "bucket"), ("prefix", "x"), ("region", "eu-west-1")]),
        ("azure", [("container", "container"), ("prefix", "x"), ("account", "account1")]),
        ("gcs", [("bucket", "bucket"), ("prefix", "x"), ("lock_ttl", "15")]),
    ];
    for (backend, values) in right {
        let open = |values: &[(&str, &str)]| {
            let look = |name: &str| match name {
                "AZURE_STORAGE_SAS_TOKEN" => Some("sig=canary".to_owned()),
                name if name.starts_with("AWS_") && name.contains("KEY") => {
                    (!name.contains("SSE")).then(|| "canary".to_owned())
                }
                "GOOGLE_SKIP_SIGNATURE" => Some("true".to_owned()),
                _ => None,
            };
            BucketStore::open(&settings(backend, values), &Environment::new(&look), Cipher::off())
                .map(|store| store.is_some())
        };
        match open(&values) {
            Ok(false) => continue,
            result => assert_eq!(result, Ok(true), "{backend}"),
        }
        for (index, (name, _)) in values.iter().enumerate() {
            if ["prefix", "lock_ttl"].contains(name) {
                continue;
            }
            for evil in ["evil.example/", "x@evil.example/", "evil.example#", "a:1@evil.example"] {
                let mut values = values;
                values[index].1 = evil;
                let refused = open(&values).unwrap_err();
                let expected = format!("the `{name}` of `[state]` is not the name of one");
                assert_eq!(refused.message, expected, "{backend}");
            }
        }
    }
}

/// Makes a container in the emulator, with a signature of the emulator's own tool: after a shared key was
/// computed for it, anybody may send the request.
#[cfg(feature = "azure")]
fn make_container(port: u16, key: &str) {
    let script = r#"
import base64, hashlib, hmac, http.client, sys, email.utils
port, key = int(sys.argv[1]), sys.argv[2]
date = email.utils.formatdate(usegmt=True)
headers = f"x-ms-date:{date}\nx-ms-version:2021-12-02\n"
text = "PUT\n\n\n\n\n\n\n\n\n\n\n\n" + headers + "/devstoreaccount1/devstoreaccount1/container\nrestype:container"
sig = base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()
c = http.client.HTTPConnection("127.0.0.1", port)
c.request("PUT", "/devstoreaccount1/container?restype=container", headers={
    "x-ms-date": date, "x-ms-version": "2021-12-02", "Content-Length": "0",
    "Authorization": f"SharedKey devstoreaccount1:{sig}"})
sys.exit(c.getresponse().status != 201)
"#;
    let status = std::process::Command::new("python3")
        .args(["-c", script, &port.to_string(), key])
        .status()
        .expect("python3 is here");
    assert!(status.success(), "the container cannot be made");
}
