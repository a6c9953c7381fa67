//! The embedded durable store: one `SQLite` file, one writer, any number of readers.
//!
//! Every write is a closure that runs in the writer's thread. It runs inside a savepoint of a
//! transaction that it shares with other waiting writes, so concurrent writes share one `fsync`.
//! The answer of a write comes only after the commit, so everything that was answered is durable.
//! Effects that others may see (waking a worker, sending a webhook) are registered with
//! [`Tx::after`]. They run after the commit too, whether or not the client still waits.
//!
//! Reads see committed data only, each in its own snapshot.

pub(crate) mod error_class;
pub(crate) mod objects;
mod schema;
mod writer;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::histogram::{Bounds, Histogram};
use crate::log::{self, Log, LogLevel};
use crate::own_files::itself;
use crate::problem::Problem;
use error_class::ErrorClass;
use writer::{Op, Writer};

/// The error with which the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no room on the disk.
    #[error("the disk is full")]
    Full(#[source] rusqlite::Error),
    /// The file was not written by `SQLite`, or has been damaged.
    #[error("service.db is damaged")]
    Damaged(#[source] rusqlite::Error),
    /// `SQLite` returned another error.
    #[error("service.db cannot be used")]
    Sqlite(#[source] rusqlite::Error),
    /// The file was written by a newer version.
    #[error("the store has format {found}, this version knows {known}; use a newer version")]
    Newer {
        /// The format of the file.
        found: i64,
        /// The newest format that this version knows.
        known: i64,
    },
    /// The file could not be made, or the writer's thread could not start.
    #[error("cannot make the store")]
    System(#[from] std::io::Error),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        match error_class::of(&error) {
            ErrorClass::Full => StoreError::Full(error),
            ErrorClass::Damaged => StoreError::Damaged(error),
            ErrorClass::Other => StoreError::Sqlite(error),
        }
    }
}

/// One write that is running.
pub(crate) struct Tx<'c> {
    pub(crate) conn: &'c Connection,
    effects: RefCell<Vec<Effect>>,
}

type Effect = Box<dyn FnOnce() + Send>;

impl Tx<'_> {
    /// Runs `effect` after the commit of this write, and never if there is none. It must not block.
    pub(crate) fn after(&self, effect: impl FnOnce() + Send + 'static) {
        self.effects.borrow_mut().push(Box::new(effect));
    }
}

/// The open store.
pub(crate) struct Store {
    writer: Writer,
    commits: Arc<Histogram>,
    path: PathBuf,
    readers: Arc<Mutex<Vec<Connection>>>,
    reads: Trouble,
    writes: Trouble,
}

/// The pause before a failed write is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The bounds of the histogram of commit times, in seconds.
const COMMIT_BOUNDS: Bounds =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// The most idle readers that are kept open. More are opened under load, and closed after use.
const IDLE_READERS: usize = 8;

impl Store {
    /// Opens the store in this folder, and makes it if there is none.
    pub(crate) fn open(folder: &Path, log: &Log) -> Result<Store, StoreError> {
        let path = folder.join("service.db");
        // The file is for its owner only, because it contains jobs and environments. `SQLite` gives
        // its other files the same mode.
        itself().create(true).append(true).open(&path)?;
        let conn = Connection::open(&path)?;
        schema::prepare(&conn)?;
        let commits = Arc::new(Histogram::new(COMMIT_BOUNDS));
        Ok(Store {
            writer: Writer::start(conn, Arc::clone(&commits))?,
            commits,
            path,
            readers: Arc::default(),
            reads: Trouble::new(log, "read"),
            writes: Trouble::new(log, "written"),
        })
    }

    /// Runs a write and returns its answer once it is durable. An error undoes the write.
    pub(crate) async fn write<T, W>(&self, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
    {
        self.send(work, true).await
    }

    /// Runs a write that a power cut may undo, together with all later ones. It is for changes that
    /// a restart undoes anyway. A crash without a power cut does not undo the write.
    pub(crate) async fn write_soon<T, W>(&self, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
    {
        self.send(work, false).await
    }

    /// Makes all earlier writes durable, including those of [`Store::write_soon`].
    pub(crate) async fn sync(&self) -> Result<(), Problem> {
        let log = self.path.with_extension("db-wal");
        // Changes that are not in the log any more were synced before they were removed from it.
        let sync = move || std::fs::File::open(log)?.sync_data();
        let failed = |error| Problem::because(format!("the store cannot be synced: {error}"));
        match tokio::task::spawn_blocking(sync).await {
            Ok(synced) => synced.map_err(failed),
            Err(error) => Err(failed(std::io::Error::other(error))),
        }
    }

    /// Runs a write that must happen and that no client would repeat. If the store fails, for
    /// example on a full disk, the write is tried again and again. Returns `None` if `ending` fires
    /// before it succeeds; the next start must then make up for it.
    pub(crate) async fn write_at_last<T, W>(&self, ending: &CancellationToken, work: W) -> Option<T>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Clone + Send + 'static,
    {
        loop {
            if let Ok(done) = self.write(work.clone()).await {
                return Some(done);
            }
            tokio::select! {
                () = ending.cancelled() => return None,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    async fn send<T, W>(&self, work: W, durable: bool) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        self.writer.send(Op::new(work, durable, move |result| {
            // A client that has left receives no answer; the write remains.
            drop(answer.send(result));
        }));
        let stopped = || Err(Problem::because("the store is closed"));
        self.writes.noted(answered.await.unwrap_or_else(|_| stopped()))
    }

    /// Runs a read over the last committed data.
    pub(crate) async fn read<T, W>(&self, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Problem> + Send + 'static,
    {
        let (readers, path) = (Arc::clone(&self.readers), self.path.clone());
        let task = tokio::task::spawn_blocking(move || {
            let idle = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let conn = match idle {
                Some(conn) => conn,
                None => open_reader(&path)?,
            };
            let result = work(&conn);
            let mut idle = readers.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_READERS {
                idle.push(conn);
            }
            result
        });
        self.reads.noted(task.await.unwrap_or_else(|_| Err(Problem::because("a read panicked"))))
    }

    /// Makes a write that changes no data, to test whether the disk accepts it.
    pub(crate) async fn touch(&self) -> Result<(), Problem> {
        let touch = |tx: &Tx<'_>| {
            let version: i64 =
                tx.conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
            Ok(tx.conn.pragma_update(None, "user_version", version)?)
        };
        self.write(touch).await
    }

    /// Returns the times of the commits so far.
    pub(crate) fn commits(&self) -> &Histogram {
        &self.commits
    }

    /// Ends the writer after the writes that it has received. Later writes fail.
    pub(crate) fn close(&self) {
        // The last connection to close moves everything from the log into the database file.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.writer.stop();
    }
}

/// Logs the causes of failures, which clients are not told. The same cause is logged only once
/// until the store works again: the sweep uses the store ten times a second and would fill the log.
struct Trouble {
    log: Log,
    what: &'static str,
    last: Mutex<Option<String>>,
}

impl Trouble {
    fn new(log: &Log, what: &'static str) -> Trouble {
        Trouble { log: Arc::clone(log), what, last: Mutex::default() }
    }

    /// Passes a result on, and logs the cause of a failure.
    fn noted<T>(&self, result: Result<T, Problem>) -> Result<T, Problem> {
        let cause = match &result {
            Ok(_) => None,
            // A problem without a cause is a mistake of the client, not of the store.
            Err(problem) if problem.cause().is_none() => return result,
            Err(problem) => problem.cause().map(str::to_owned),
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != cause {
            if let Some(cause) = &cause {
                let text = format!("the store cannot be {}: {cause}", self.what);
                log::write(&self.log, LogLevel::Error, &text);
            }
            *last = cause;
        }
        result
    }
}

fn open_reader(path: &Path) -> Result<Connection, Problem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    // A read needs only a job or a list, so a small cache (in KiB) is enough for each of many
    // readers.
    conn.pragma_update(None, "cache_size", -512)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Kind;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn silent() -> Log {
        Arc::new(|_| {})
    }

    fn insert(tx: &Tx<'_>, id: &str) -> Result<(), Problem> {
        tx.conn.execute(
            "insert into objects(kind, id, name, body, written_at) values('t', ?1, '', '{}', 0)",
            [id],
        )?;
        Ok(())
    }

    async fn count(store: &Store) -> i64 {
        let sql = "select count(*) from objects";
        store.read(move |conn| Ok(conn.query_row(sql, [], |row| row.get(0))?)).await.unwrap()
    }

    #[tokio::test]
    async fn a_failed_write_undoes_itself_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path(), &silent()).unwrap());
        let ran = Arc::new(AtomicUsize::new(0));
        let writes = (0..100).map(|number| {
            let (store, ran) = (Arc::clone(&store), Arc::clone(&ran));
            tokio::spawn(async move {
                let write = move |tx: &Tx<'_>| {
                    insert(tx, &format!("id{number}"))?;
                    tx.after(move || {
                        ran.fetch_add(1, SeqCst);
                    });
                    assert!(number % 10 != 3, "a bug");
                    if number % 10 == 7 { Err(Problem::invalid("no")) } else { Ok(number) }
                };
                store.write(write).await
            })
        });
        let mut failed = Vec::new();
        for write in writes.collect::<Vec<_>>() {
            failed.extend(write.await.unwrap().err().map(|problem| problem.kind));
        }
        let of = |kind| failed.iter().filter(|failed| **failed == kind).count();
        assert_eq!((of(Kind::Invalid), of(Kind::Internal)), (10, 10));
        assert_eq!((count(&store).await, ran.load(SeqCst)), (80, 80));
        store.close();
        assert!(store.write(|_| Ok(())).await.is_err());
        let again = Store::open(folder.path(), &silent()).unwrap();
        assert_eq!(count(&again).await, 80);
    }

    #[tokio::test]
    async fn causes_are_logged_once_until_all_is_well_again() {
        let folder = tempfile::tempdir().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let log: Log = Arc::new(move |line| kept.lock().unwrap().push(line.text.to_owned()));
        let store = Store::open(folder.path(), &log).unwrap();
        let broken = |tx: &Tx<'_>| {
            tx.conn.execute("insert into nowhere values (1)", [])?;
            Ok(())
        };
        for _ in 0..3 {
            assert_eq!(store.write(broken).await.unwrap_err().kind, Kind::Internal);
        }
        let said = "the store cannot be written: no such table: nowhere";
        assert!(lines.lock().unwrap()[0].starts_with(said), "{lines:?}");
        store.write(|_| Err::<(), _>(Problem::invalid("no"))).await.unwrap_err();
        assert_eq!(lines.lock().unwrap().len(), 1, "{lines:?}");
        store.write(|_| Ok(())).await.unwrap();
        store.write(broken).await.unwrap_err();
        assert_eq!(lines.lock().unwrap().len(), 2, "{lines:?}");
        // The transaction ends in the middle of a batch, as on a full disk.
        let ended = |tx: &Tx<'_>| {
            insert(tx, "lost")?;
            tx.conn.execute_batch("rollback")?;
            Err::<(), _>(Problem::invalid("no"))
        };
        store.write(ended).await.unwrap_err();
        assert_eq!(count(&store).await, 0);
        store.write(|tx| insert(tx, "kept")).await.unwrap();
        assert_eq!(count(&store).await, 1);
    }

    #[tokio::test]
    async fn what_must_be_written_is_kept_until_the_store_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &silent()).unwrap();
        let (tries, ending) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let counted = Arc::clone(&tries);
        let write = move |tx: &Tx<'_>| {
            let nth = counted.fetch_add(1, SeqCst);
            insert(tx, "late")?;
            if nth < 1 { Err(Problem::because("no room")) } else { Ok(nth) }
        };
        assert_eq!(store.write_at_last(&ending, write).await, Some(1));
        assert_eq!((count(&store).await, tries.load(SeqCst)), (1, 2));
        ending.cancel();
        let never = |_: &Tx<'_>| Err::<(), _>(Problem::because("no room"));
        assert_eq!(store.write_at_last(&ending, never).await, None);
        assert_eq!(store.write_at_last(&ending, |_| Ok(1)).await, Some(1), "it is tried once");
    }

    #[tokio::test]
    async fn only_writes_that_may_be_lost_are_not_synced() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &silent()).unwrap();
        let mode = |tx: &Tx<'_>| {
            let mode: i64 = tx.conn.pragma_query_value(None, "synchronous", |row| row.get(0))?;
            Ok(mode)
        };
        let (full, normal) = (2, 1);
        assert_eq!(store.write(mode).await, Ok(full));
        assert_eq!(store.write_soon(mode).await, Ok(normal));
        assert_eq!(store.write(mode).await, Ok(full));
        store.write_soon(|tx| insert(tx, "soon")).await.unwrap();
        assert_eq!(store.sync().await, Ok(()));
    }

    #[tokio::test]
    async fn a_full_disk_is_called_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &silent()).unwrap();
        let fill = |tx: &Tx<'_>| {
            // No more pages can be added.
            let sql = "pragma max_page_count = 1";
            Ok(tx.conn.query_row(sql, [], |row| row.get::<_, i64>(0))?)
        };
        store.write(fill).await.unwrap();
        let large = |tx: &Tx<'_>| insert(tx, &"x".repeat(1 << 20));
        let problem = store.write(large).await.unwrap_err();
        assert_eq!((problem.kind, &problem.message), (Kind::Internal, &Problem::full("").message));
        assert!(problem.cause().unwrap().starts_with("the disk is full"));
    }

    #[tokio::test]
    async fn a_damaged_file_is_called_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("service.db"), "no store ".repeat(1000)).unwrap();
        let error = Store::open(folder.path(), &silent()).err().unwrap();
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    }

    #[tokio::test]
    async fn a_newer_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let conn = Connection::open(folder.path().join("service.db")).unwrap();
        conn.pragma_update(None, "user_version", 99).unwrap();
        drop(conn);
        let error = Store::open(folder.path(), &silent()).err().unwrap().to_string();
        assert!(error.contains("99") && error.contains("newer"), "{error}");
    }
}
