//! PostgreSQL.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use state::cipher::Cipher;
use state::conformance::{self, OpenStore, records, snapshot};
use state::postgres::PostgresStore;
use state::{Environment, Store, StoreError, Version};

use super::servers::{PASSWORD, Postgres, pgbouncer};
use super::{holder, name, settings};

fn server() -> Option<&'static Postgres> {
    static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
    SERVER.get_or_init(Postgres::start).as_ref()
}

fn store_at(url: &str, name: &str) -> PostgresStore {
    let look = |variable: &str| (variable == "PLUMB_STATE_URL").then(|| url.to_owned());
    let settings = settings("postgres", &[("name", name)]);
    PostgresStore::open(&settings, &Environment::new(&look), Cipher::off()).unwrap()
}

/// Returns a new state in the database that all tests share.
fn place() -> Option<(&'static Postgres, String, String)> {
    let server = server()?;
    Some((server, server.url("postgres"), name("state-")))
}

fn is_fenced<T: std::fmt::Debug>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Fenced(_)))
}

/// Ends all sessions of a database, as a restart of the server does.
fn end_connections(server: &Postgres, database: &str) -> String {
    server.sql(
        "postgres",
        &format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{database}'"
        ),
    )
}

async fn initialised(store: &PostgresStore) -> Version {
    let mut held = store.lock(&holder("first"), Duration::ZERO).await.unwrap();
    let version = held.initialise(&snapshot(0)).await.unwrap();
    held.release().await.unwrap();
    version
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    let Some(server) = server() else { return };
    let url = server.url("postgres");
    conformance::run(|| -> OpenStore {
        let (url, name) = (url.clone(), name("conforms-"));
        Box::new(move || Box::new(store_at(&url, &name)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_with_a_key() {
    let Some(server) = server() else { return };
    let url = server.url("postgres");
    conformance::run(|| -> OpenStore {
        let (url, name) = (url.clone(), name("sealed-"));
        Box::new(move || {
            let look = |variable: &str| (variable == "PLUMB_STATE_URL").then(|| url.clone());
            let settings = settings("postgres", &[("name", &name)]);
            let cipher = Cipher::new(&"a".repeat(64)).unwrap();
            Box::new(PostgresStore::open(&settings, &Environment::new(&look), cipher).unwrap())
        })
    })
    .await;
    let bodies = server.sql(
        "postgres",
        "SELECT count(*) FROM plumb.snapshot WHERE name LIKE 'sealed-%' AND position('lineage' in encode(body, 'escape')) > 0",
    );
    assert_eq!(bodies, "0", "a snapshot is not encrypted");
}

/// A holder that was driven out writes nothing: it is suspended, the server drops its connection, a second
/// run takes over and works, and then the first one continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_was_driven_out_writes_nothing() {
    let Some(server) = server() else { return };
    let store = store_at(&server.database("zombie"), "x");
    let first = initialised(&store).await;
    let mut zombie = store.lock(&holder("zombie"), Duration::ZERO).await.unwrap();
    zombie.append(&records(0..1)).await.unwrap();
    assert_eq!(end_connections(server, "zombie"), "1");
    let mut other = store.lock(&holder("other"), Duration::from_secs(5)).await.unwrap();
    assert_eq!(other.loaded().records, records(0..1));
    other.append(&records(1..2)).await.unwrap();
    assert!(is_fenced(&zombie.append(&records(7..8)).await));
    assert!(is_fenced(&zombie.save(&snapshot(3), &first).await));
    other.append(&records(2..3)).await.unwrap();
    let second = other.save(&snapshot(4), &first).await.unwrap();
    assert!(is_fenced(&zombie.append(&records(7..8)).await));
    drop(zombie);
    other.append(&records(3..4)).await.unwrap();
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.version), (Some(snapshot(4)), second));
    assert_eq!(loaded.records, records(3..4));
}

/// A connected holder is suspended; a person takes the lock from it, and it continues later.
#[tokio::test(flavor = "multi_thread")]
async fn a_living_holder_is_driven_out_by_name_only() {
    let Some((_, url, name)) = place() else { return };
    let store = store_at(&url, &name);
    assert!(!store.drive_out("zombie").await.unwrap(), "there is nothing yet");
    let first = initialised(&store).await;
    assert!(!store.drive_out("first").await.unwrap(), "it let go");
    let mut zombie = store.lock(&holder("zombie"), Duration::ZERO).await.unwrap();
    zombie.append(&records(0..1)).await.unwrap();
    assert!(!store.drive_out("other").await.unwrap(), "another run holds the lock");
    zombie.append(&records(1..2)).await.unwrap();
    assert!(store.drive_out("zombie").await.unwrap());
    assert_eq!(store.load().await.unwrap().holder, None);
    assert!(!store.drive_out("zombie").await.unwrap(), "it holds nothing any more");
    let mut other = store.lock(&holder("other"), Duration::ZERO).await.unwrap();
    assert_eq!(other.loaded().records, records(0..2));
    assert!(is_fenced(&zombie.append(&records(7..8)).await));
    assert!(is_fenced(&zombie.save(&snapshot(3), &first).await));
    other.append(&records(2..3)).await.unwrap();
    drop(zombie);
    other.save(&snapshot(4), &first).await.unwrap();
    other.release().await.unwrap();
    assert_eq!(store.load().await.unwrap().snapshot, Some(snapshot(4)));
}

/// The state of a run may be unreadable because of the run itself: the holder of the lock is returned all the
/// same.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_is_driven_out_of_what_cannot_be_read() {
    let Some((server, url, name)) = place() else { return };
    let store = store_at(&url, &name);
    initialised(&store).await;
    let zombie = store.lock(&holder("zombie"), Duration::ZERO).await.unwrap();
    let set = |what: &str| {
        server.sql("postgres", &format!("UPDATE plumb.store SET {what} WHERE name = '{name}'"))
    };
    set("digest = 'another'");
    assert!(store.load().await.is_err());
    assert_eq!(store.holder().await.unwrap().unwrap().run, "zombie");
    assert!(store.drive_out("zombie").await.unwrap());
    assert_eq!(store.holder().await.unwrap(), None);
    drop(zombie);
}

/// A run that was driven out must not get the lock back and write, even if no other run has taken it yet.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_driven_out_does_not_come_back() {
    let Some((_, url, name)) = place() else { return };
    let store = store_at(&url, &name);
    let first = initialised(&store).await;
    let mut zombie = store.lock(&holder("zombie"), Duration::ZERO).await.unwrap();
    zombie.append(&records(0..1)).await.unwrap();
    assert!(store.drive_out("zombie").await.unwrap());
    assert!(is_fenced(&zombie.save(&snapshot(3), &first).await));
    assert!(is_fenced(&zombie.append(&records(7..8)).await));
    drop(zombie);
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.records), (Some(snapshot(0)), records(0..1)));
}

/// A user may be able to write the tables and not to end sessions. Then the run is shut out at once, and its
/// lock ends when it notices. Until then the error explains that.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_another_user_is_said() {
    let Some((server, url, name)) = place() else { return };
    let store = store_at(&url, &name);
    initialised(&store).await;
    server.try_sql("postgres", "CREATE ROLE guest LOGIN PASSWORD 'guest-canary'").unwrap();
    server.sql(
        "postgres",
        "GRANT USAGE ON SCHEMA plumb TO guest; GRANT ALL ON ALL TABLES IN SCHEMA plumb TO guest",
    );
    let port = server.server.port;
    let guest =
        store_at(&format!("postgres://guest:guest-canary@127.0.0.1:{port}/postgres"), &name);
    let mut zombie = store.lock(&holder("zombie"), Duration::ZERO).await.unwrap();
    let error = guest.drive_out("zombie").await.unwrap_err().to_string();
    assert!(error.contains("can no longer write"), "{error}");
    assert!(error.contains("does not let this user end session"), "{error}");
    // As long as the session exists, the same error comes again, and not one that no run holds the lock.
    let again = guest.drive_out("zombie").await.unwrap_err().to_string();
    assert_eq!(again, error);
    assert!(is_fenced(&zombie.append(&records(7..8)).await));
    drop(zombie);
    guest.lock(&holder("guest"), Duration::from_secs(5)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_connection_is_made_again() {
    let Some(server) = server() else { return };
    let store = store_at(&server.database("dropped"), "x");
    let first = initialised(&store).await;
    let mut held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
    for n in 0..3 {
        assert_eq!(end_connections(server, "dropped"), "1");
        held.append(&records(n..n + 1)).await.unwrap();
    }
    assert_eq!(end_connections(server, "dropped"), "1");
    held.save(&snapshot(1), &first).await.unwrap();
    held.append(&records(9..10)).await.unwrap();
    held.release().await.unwrap();
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.records), (Some(snapshot(1)), records(9..10)));
}

/// The server failed over to a copy without the newest record: the run must not continue after a gap. A
/// snapshot contains the missing record, so it may be saved.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_lags_behind_gets_no_gap() {
    let Some(server) = server() else { return };
    let store = store_at(&server.database("lagging"), "x");
    let first = initialised(&store).await;
    for saves in [false, true] {
        let mut held = store.lock(&holder("a"), Duration::from_secs(5)).await.unwrap();
        held.append(&records(0..1)).await.unwrap();
        held.append(&records(1..2)).await.unwrap();
        server.sql(
            "lagging",
            "DELETE FROM plumb.journal WHERE lsn = (SELECT max(lsn) FROM plumb.journal);
             UPDATE plumb.store SET lsn = lsn - 1",
        );
        assert_eq!(end_connections(server, "lagging"), "1");
        if saves {
            held.save(&snapshot(3), &first).await.unwrap();
        } else {
            assert!(is_fenced(&held.append(&records(2..3)).await));
        }
        drop(held);
        let loaded = store.load().await.unwrap();
        let expected = if saves { Vec::new() } else { records(0..1) };
        assert_eq!(loaded.records, expected, "{saves}");
        assert_eq!(loaded.snapshot.unwrap().serial, if saves { 3 } else { 0 });
    }
}

/// A proxy between client and server that can drop the server's answers.
struct Wire {
    port: u16,
    deaf: Arc<AtomicBool>,
}

impl Wire {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let deaf = Arc::new(AtomicBool::new(false));
        let wire = Self { port: listener.local_addr().unwrap().port(), deaf: deaf.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let deaf = deaf.clone();
                std::thread::spawn(move || pass(client, server, None));
                std::thread::spawn(move || pass(back.0, back.1, Some(&deaf)));
            }
        });
        wire
    }
}

/// Passes bytes on; if `deaf` is set, the next ones are lost together with the connection.
fn pass(mut from: TcpStream, mut to: TcpStream, deaf: Option<&AtomicBool>) {
    use std::io::{Read as _, Write as _};
    let mut bytes = vec![0; 65536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if deaf.is_some_and(|deaf| deaf.swap(false, Ordering::SeqCst)) {
            break;
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    from.shutdown(std::net::Shutdown::Both).ok();
    to.shutdown(std::net::Shutdown::Both).ok();
}

/// After a lost answer of the server, no record is written twice, and none is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_read_back() {
    let Some((server, _, name)) = place() else { return };
    let wire = Wire::to(server.server.port);
    let url = format!("postgres://plumb:{PASSWORD}@127.0.0.1:{}/postgres", wire.port);
    let store = store_at(&url, &name);
    let first = initialised(&store).await;
    let mut held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
    for n in 0..5 {
        wire.deaf.store(true, Ordering::SeqCst);
        held.append(&records(n..n + 1)).await.unwrap();
    }
    wire.deaf.store(true, Ordering::SeqCst);
    held.save(&snapshot(2), &first).await.unwrap();
    held.append(&records(8..9)).await.unwrap();
    held.release().await.unwrap();
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.records), (Some(snapshot(2)), records(8..9)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_gone_is_an_error_in_time() {
    let Some((server, _, name)) = place() else { return };
    let wire = Wire::to(server.server.port);
    let url = format!("postgres://plumb:{PASSWORD}@127.0.0.1:{}/postgres", wire.port);
    let store = store_at(&url, &name).patience(Duration::from_millis(300));
    initialised(&store).await;
    let mut held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
    // A run must not continue either if another run holds the lock meanwhile and has not raised the epoch
    // yet.
    server.sql(
        "postgres",
        &format!("UPDATE plumb.store SET epoch = epoch + 1 WHERE name = '{name}'"),
    );
    wire.deaf.store(true, Ordering::SeqCst);
    assert!(is_fenced(&held.append(&records(0..1)).await));
    assert!(is_fenced(&held.append(&records(0..1)).await), "it stays so");
}

/// A proxy between client and server that forgets connections: old ones stay open and silent, and new ones
/// work.
fn forgetful(port: u16) -> (u16, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let front = listener.local_addr().unwrap().port();
    let age = Arc::new(AtomicU32::new(0));
    let now = age.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let born = now.load(Ordering::SeqCst);
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                let now = now.clone();
                std::thread::spawn(move || {
                    use std::io::{Read as _, Write as _};
                    let mut bytes = vec![0; 65536];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        if now.load(Ordering::SeqCst) == born {
                            to.write_all(&bytes[..count]).ok();
                        }
                    }
                    if now.load(Ordering::SeqCst) == born {
                        to.shutdown(std::net::Shutdown::Both).ok();
                    }
                });
            }
        }
    });
    (front, age)
}

/// A connection that the proxy has forgotten is made again, and the run continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_went_silent_is_made_again() {
    let Some((server, _, name)) = place() else { return };
    let (port, age) = forgetful(server.server.port);
    let url = format!("postgres://plumb:{PASSWORD}@127.0.0.1:{port}/postgres");
    // The time of patience is counted from the moment when silence was noticed; it is shorter than the time
    // until then.
    let store = store_at(&url, &name).answer(Duration::from_secs(3));
    let store = store.patience(Duration::from_secs(2));
    let first = initialised(&store).await;
    let mut held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
    held.append(&records(0..1)).await.unwrap();
    age.fetch_add(1, Ordering::SeqCst);
    let begun = Instant::now();
    held.append(&records(1..2)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    age.fetch_add(1, Ordering::SeqCst);
    held.save(&snapshot(1), &first).await.unwrap();
    held.append(&records(2..3)).await.unwrap();
    age.fetch_add(1, Ordering::SeqCst);
    held.release().await.unwrap();
    let loaded = store.load().await.unwrap();
    assert_eq!((loaded.snapshot, loaded.records), (Some(snapshot(1)), records(2..3)));
}

/// A server that accepts connections and is suspended is an error in time, even for a read.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_is_an_error_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let store = store_at(&format!("postgres://plumb:{PASSWORD}@127.0.0.1:{port}/postgres"), "x");
    let store = store.answer(Duration::from_millis(1500));
    let begun = Instant::now();
    for result in [
        store.load().await.map(drop),
        store.lock(&holder("a"), Duration::ZERO).await.map(drop),
        store.past(1).await.map(drop),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("it did not answer within 2 seconds"), "{error}");
        assert!(!error.contains("canary"), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_gets_the_lock() {
    let Some((_, url, name)) = place() else { return };
    let store = store_at(&url, &name);
    initialised(&store).await;
    for round in 0..25 {
        let runs = (0..4).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                store.lock(&holder(&format!("{round}-{n}")), Duration::ZERO).await
            })
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
        let held = won.pop().unwrap();
        held.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_runs_at_once_make_one_state() {
    let Some(server) = server() else { return };
    let url = server.database("atonce");
    let runs = (0..4).map(|n| {
        let store = store_at(&url, "x");
        tokio::spawn(async move {
            let mut held = store.lock(&holder(&n.to_string()), Duration::from_secs(30)).await?;
            let made = held.initialise(&snapshot(0)).await.is_ok();
            held.release().await?;
            Ok::<bool, StoreError>(made)
        })
    });
    let mut made = 0;
    for run in runs.collect::<Vec<_>>() {
        made += usize::from(run.await.unwrap().unwrap());
    }
    assert_eq!(made, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_or_changed_is_never_a_first_run() {
    let Some(server) = server() else { return };
    let url = server.database("damage");
    let cases = [
        ("DELETE FROM plumb.snapshot", "is missing: there is no snapshot of serial 2"),
        ("DELETE FROM plumb.store", "is missing, but parts of it are there"),
        ("DELETE FROM plumb.journal", "has lost its journal"),
        (
            "DELETE FROM plumb.journal WHERE lsn = (SELECT max(lsn) FROM plumb.journal)",
            "has lost the end of its journal",
        ),
        (
            "DELETE FROM plumb.journal WHERE lsn = (SELECT max(lsn) - 1 FROM plumb.journal)",
            "frame 5 of the journal",
        ),
        (
            "DELETE FROM plumb.journal WHERE lsn = (SELECT min(lsn) FROM plumb.journal)",
            "has lost its journal",
        ),
        (
            "UPDATE plumb.journal SET frame = substr(frame, 1, 60) WHERE lsn = 4",
            "frame 4 of the journal: it is cut",
        ),
        (
            "UPDATE plumb.journal SET frame = set_byte(frame, 70, get_byte(frame, 70) # 1) WHERE lsn = 4",
            "frame 4 of the journal",
        ),
        (
            "UPDATE plumb.snapshot SET body = set_byte(body, 200, get_byte(body, 200) # 1) WHERE serial = 2",
            "cannot be read",
        ),
        ("UPDATE plumb.snapshot SET body = '' WHERE serial = 2", "is missing"),
        (
            "UPDATE plumb.store SET serial = 0, digest = 'x'",
            "is not the one that was saved as serial 0",
        ),
        (
            "UPDATE plumb.store SET lineage = NULL, serial = NULL, digest = NULL",
            "is missing, but parts of it",
        ),
    ];
    for (statement, expected) in cases {
        server.sql("damage", "DROP SCHEMA IF EXISTS plumb CASCADE");
        let store = store_at(&url, "x");
        let first = initialised(&store).await;
        let mut held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
        held.append(&records(0..1)).await.unwrap();
        held.save(&snapshot(2), &first).await.unwrap();
        held.append(&records(1..2)).await.unwrap();
        held.append(&records(2..3)).await.unwrap();
        held.release().await.unwrap();
        server.sql("damage", statement);
        for result in
            [store.load().await.map(drop), store.lock(&holder("b"), Duration::ZERO).await.map(drop)]
        {
            let Err(StoreError::Suspicious { what, .. }) = result else {
                panic!("{statement}: {result:?}");
            };
            assert!(what.contains(expected), "{statement}: {what}");
        }
        // The way out works from all of them.
        store.restore(&holder("c"), &snapshot(1)).await.unwrap();
        let loaded = store.load().await.unwrap();
        assert!(loaded.snapshot.unwrap().serial > 1, "{statement}");
        let mut held = store.lock(&holder("d"), Duration::ZERO).await.unwrap();
        held.append(&records(5..6)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_older_snapshots_are_kept() {
    let Some((_, url, name)) = place() else { return };
    let store = store_at(&url, &name);
    let mut version = initialised(&store).await;
    let mut held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
    for serial in 1..=25 {
        version = held.save(&snapshot(serial), &version).await.unwrap();
    }
    assert_eq!(store.serials().await.unwrap(), (5..25).collect::<Vec<u64>>());
    assert_eq!(store.past(7).await.unwrap(), Some(snapshot(7)));
    assert_eq!(store.past(3).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_waited_for_where_others_do_not() {
    let Some(server) = server() else { return };
    let url = server.database("hasty");
    server.sql("postgres", "ALTER DATABASE hasty SET synchronous_commit = off");
    let store = store_at(&url, "x");
    initialised(&store).await;
    server.sql(
        "hasty",
        "CREATE TABLE public.seen (how text);
         CREATE FUNCTION public.look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO public.seen VALUES (current_setting('synchronous_commit')); RETURN NEW;
         END $$;
         CREATE TRIGGER look BEFORE INSERT ON plumb.journal FOR EACH ROW EXECUTE FUNCTION public.look()",
    );
    assert_eq!(server.sql("hasty", "SHOW synchronous_commit"), "off");
    let mut held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
    held.append(&records(0..1)).await.unwrap();
    assert_eq!(server.sql("hasty", "SELECT * FROM public.seen"), "on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_wait_for_its_disk_is_refused() {
    let Some(server) = Postgres::start_with("fsync = off") else { return };
    let store = store_at(&server.url("postgres"), "x");
    let results = [
        store.lock(&holder("a"), Duration::ZERO).await.map(drop),
        store.restore(&holder("a"), &snapshot(1)).await.map(drop),
    ];
    for result in results {
        let Err(StoreError::Unfit { what, help }) = result else { panic!("{result:?}") };
        assert!(
            what.contains("`fsync` is off") && help.contains("pg_reload_conf"),
            "{what}: {help}"
        );
    }
    // The advice in the message works, and the stored state can be read.
    server.sql("postgres", "ALTER SYSTEM SET fsync = on");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let until = Instant::now() + Duration::from_secs(20);
    while server.sql("postgres", "SHOW fsync") != "on" && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    initialised(&store).await;
    server.sql("postgres", "ALTER SYSTEM SET fsync = off");
    server.sql("postgres", "SELECT pg_reload_conf()");
    while server.sql("postgres", "SHOW fsync") != "off" && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(store.load().await.unwrap().snapshot, Some(snapshot(0)));
    assert!(store.lock(&holder("a"), Duration::ZERO).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_can_only_be_read_is_refused() {
    let Some(server) = server() else { return };
    let url = server.database("readonly");
    server.sql("postgres", "ALTER DATABASE readonly SET default_transaction_read_only = on");
    let result = store_at(&url, "x").load().await.map(drop);
    assert!(matches!(result, Err(StoreError::Unfit { .. })), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_shares_sessions_is_refused() {
    let Some(server) = server() else { return };
    for (mode, fits) in [("transaction", false), ("session", true)] {
        let Some(pooler) = pgbouncer(server, mode) else { return };
        let url = format!("postgres://plumb:{PASSWORD}@127.0.0.1:{}/postgres", pooler.port);
        let store = store_at(&url, &name("pooled-"));
        let result = store.lock(&holder("a"), Duration::ZERO).await;
        assert_eq!(result.is_ok(), fits, "{mode}: {:?} {}", result.as_ref().err(), pooler.log());
        if let Err(error) = result {
            assert!(matches!(error, StoreError::Unfit { .. }), "{error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_password_is_shown() {
    let Some(server) = server() else { return };
    let port = server.server.port;
    let urls = [
        format!("postgres://plumb:wrong-canary@127.0.0.1:{port}/postgres"),
        format!("postgres://plumb:{PASSWORD}@127.0.0.1:{port}/nothing"),
        format!("postgres://plumb:{PASSWORD}@127.0.0.1:1/postgres"),
        format!("postgres://plumb:{PASSWORD}@127.0.0.1:{port}/postgres?sslmode=verify-full"),
    ];
    for url in urls {
        let store = store_at(&url, "x");
        let error = store.load().await.map(drop).unwrap_err();
        let mut text = format!("{error:?} {} {}", CommandText(&error), store.place());
        text.retain(|c| c != '\n');
        assert!(!text.contains("canary"), "{text}");
    }
}

/// An error with its causes, as text.
struct CommandText<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for CommandText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut next = Some(self.0);
        while let Some(error) = next {
            write!(f, "{error}: ")?;
            next = error.source();
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_checks_who_answers() {
    let Some(server) = server() else { return };
    let url = server.url("postgres") + "?sslmode=require";
    let roots = server.server.dir.path().join("cert.pem");
    let with = |roots: Option<&std::path::Path>| {
        let look = |variable: &str| match variable {
            "PLUMB_STATE_URL" => Some(url.clone()),
            "PGSSLROOTCERT" => roots.map(|path| path.display().to_string()),
            _ => None,
        };
        let settings = settings("postgres", &[("name", "tls")]);
        PostgresStore::open(&settings, &Environment::new(&look), Cipher::off())
    };
    let trusted = with(Some(&roots)).unwrap().lock(&holder("a"), Duration::ZERO).await;
    trusted.unwrap().release().await.unwrap();
    // If the system has no certificates at all, that is another error.
    if let Ok(store) = with(None) {
        assert!(store.load().await.is_err(), "nobody knows that certificate");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_lock_ends_with_its_holder() {
    let Some((_, url, name)) = place() else { return };
    let store = store_at(&url, &name);
    let held = store.lock(&holder("a"), Duration::ZERO).await.unwrap();
    let Err(StoreError::Locked(other)) = store.lock(&holder("b"), Duration::ZERO).await.map(drop)
    else {
        panic!("two hold the lock");
    };
    assert_eq!(*other, holder("a"));
    drop(held);
    let started = Instant::now();
    store.lock(&holder("b"), Duration::ZERO).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2));
}
