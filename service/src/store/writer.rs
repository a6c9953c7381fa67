//! The writer's thread: it takes all waiting writes, runs them in one transaction, and commits
//! once.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rusqlite::Connection;

use super::{Effect, Tx};
use crate::histogram::Histogram;
use crate::problem::Problem;

/// The most writes in a transaction, so that the first of them need not wait for long.
const BATCH: usize = 512;

/// A write with any result type, and the function that receives its result.
pub(super) struct Op {
    run: Box<dyn Run>,
    /// True if the write must survive a power cut once it is answered.
    durable: bool,
}

trait Run: Send {
    /// Runs the write. Returns its effects, which run after the commit; `None` means that the write
    /// must be undone.
    fn run(&mut self, conn: &Connection) -> Option<Vec<Effect>>;
    /// Answers the write. `undone` is the reason for which the transaction was not committed;
    /// `None` if it was.
    fn finish(self: Box<Self>, undone: Option<&Problem>);
}

struct Typed<W, T, A> {
    work: Option<W>,
    result: Option<Result<T, Problem>>,
    answer: A,
}

impl<W, T, A> Run for Typed<W, T, A>
where
    W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send,
    T: Send,
    A: FnOnce(Result<T, Problem>) + Send,
{
    fn run(&mut self, conn: &Connection) -> Option<Vec<Effect>> {
        let work = self.work.take()?;
        let tx = Tx { conn, effects: RefCell::default() };
        // A bug in one write must not end the writer for all.
        let result = catch_unwind(AssertUnwindSafe(|| work(&tx)));
        let result = result.unwrap_or_else(|_| Err(Problem::because("a write panicked")));
        let done = result.is_ok();
        self.result = Some(result);
        done.then(|| tx.effects.into_inner())
    }

    fn finish(self: Box<Self>, undone: Option<&Problem>) {
        let result = match (self.result, undone) {
            (Some(Ok(_)) | None, Some(why)) => Err(why.clone()),
            (Some(result), _) => result,
            (None, None) => Err(Problem::because("a write did not run")),
        };
        (self.answer)(result);
    }
}

impl Op {
    pub(super) fn new<W, T, A>(work: W, durable: bool, answer: A) -> Op
    where
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
        T: Send + 'static,
        A: FnOnce(Result<T, Problem>) + Send + 'static,
    {
        Op { run: Box::new(Typed { work: Some(work), result: None, answer }), durable }
    }
}

enum Message {
    Write(Op),
    Stop,
}

/// The handle of the writer's thread.
pub(super) struct Writer {
    messages: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread, which adds the time of each commit to `commits`.
    pub(super) fn start(conn: Connection, commits: Arc<Histogram>) -> std::io::Result<Writer> {
        let (messages, inbox) = channel();
        let thread = std::thread::Builder::new().name("store".to_owned());
        let thread = thread.spawn(move || serve(conn, &inbox, &commits))?;
        Ok(Writer { messages, thread: Mutex::new(Some(thread)) })
    }

    /// Queues a write. If the writer has stopped, the write is dropped, which ends the wait for its
    /// answer.
    pub(super) fn send(&self, op: Op) {
        drop(self.messages.send(Message::Write(op)));
    }

    /// Waits until everything that was queued is durable, then ends the thread.
    pub(super) fn stop(&self) {
        drop(self.messages.send(Message::Stop));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }
}

fn serve(conn: Connection, inbox: &Receiver<Message>, commits: &Histogram) {
    // New connections sync every commit.
    let mut log = Log { conn, is_synced: true };
    while let Ok(Message::Write(first)) = inbox.recv() {
        let mut batch = vec![first];
        let mut stop = false;
        while batch.len() < BATCH {
            match inbox.try_recv() {
                Ok(Message::Write(op)) => batch.push(op),
                Ok(Message::Stop) => {
                    stop = true;
                    break;
                }
                Err(_) => break,
            }
        }
        let began = Instant::now();
        log.commit(batch);
        commits.observe(began.elapsed());
        if stop {
            return;
        }
    }
}

/// The connection that makes all writes.
struct Log {
    conn: Connection,
    /// True if the connection syncs at each commit.
    is_synced: bool,
}

impl Log {
    /// Runs a batch in one transaction, and then its effects and answers.
    fn commit(&mut self, mut batch: Vec<Op>) {
        let undone = match self.transaction(&mut batch) {
            Ok(effects) => {
                for effect in effects {
                    effect();
                }
                None
            }
            Err(error) => Some(Problem::from(error)),
        };
        for op in batch {
            op.run.finish(undone.as_ref());
        }
    }

    /// Commits a batch, and returns its effects. An error means that no write of the batch is kept.
    fn transaction(&mut self, batch: &mut [Op]) -> rusqlite::Result<Vec<Effect>> {
        self.set_synced(batch.iter().any(|op| op.durable))?;
        let conn = &self.conn;
        execute(conn, "begin immediate")?;
        let effects = match batch {
            [op] => alone(conn, op),
            _ => together(conn, batch),
        };
        if effects.is_err() {
            // A full disk may have ended the transaction already. Then this fails, and nothing is
            // left to undo.
            let _undone = execute(conn, "rollback");
        }
        effects
    }

    /// Turns the sync at each commit on or off. Commits without a sync are still written in order,
    /// so the next sync makes all of them durable.
    fn set_synced(&mut self, is_synced: bool) -> rusqlite::Result<()> {
        if self.is_synced != is_synced {
            let mode = if is_synced { "full" } else { "normal" };
            self.conn.pragma_update(None, "synchronous", mode)?;
            self.is_synced = is_synced;
        }
        Ok(())
    }
}

/// Runs the only write of a transaction, and commits it. If it fails, the transaction is undone.
fn alone(conn: &Connection, op: &mut Op) -> rusqlite::Result<Vec<Effect>> {
    let effects = op.run.run(conn);
    execute(conn, if effects.is_some() { "commit" } else { "rollback" })?;
    Ok(effects.unwrap_or_default())
}

/// Runs and commits the writes of a transaction.
fn together(conn: &Connection, batch: &mut [Op]) -> rusqlite::Result<Vec<Effect>> {
    let mut effects = Vec::new();
    for op in batch {
        effects.extend(within_savepoint(conn, op)?);
    }
    execute(conn, "commit")?;
    Ok(effects)
}

/// Runs one write. A failed write is undone alone. An error of this function ends the whole
/// transaction: writes after it would be committed on their own, but answered as undone.
fn within_savepoint(conn: &Connection, op: &mut Op) -> rusqlite::Result<Vec<Effect>> {
    execute(conn, "savepoint one")?;
    let effects = op.run.run(conn);
    if effects.is_none() {
        execute(conn, "rollback to one")?;
    }
    execute(conn, "release one")?;
    Ok(effects.unwrap_or_default())
}

fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}
