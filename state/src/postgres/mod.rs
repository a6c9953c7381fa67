//! State in a PostgreSQL database: one row for a state, with its snapshots and its journal.
//!
//! An advisory lock of a separate connection shows who is alive. The server drops it when the connection
//! ends, so the lock of a killed holder is free at once, and that of a machine that is gone after half a
//! minute. Safety does not depend on the lock: every holder raises the epoch of the row, and every append and
//! save checks it, in one transaction. A holder that lost the lock without noticing writes nothing more.
//!
//! Two setups would break that and are refused: a pooler that lends one session to several clients, and a
//! server that reports a commit before it is durable.

mod address;
mod connection;
mod log;
mod read;
mod setup;
mod sql;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::config::settings::StateSettings;
use engine::state::Snapshot;
use tokio::time::Instant;

use self::connection::{
    Connection, SqlError, batch, connect, execute, halves, int4, int8, one, query, text,
};
use self::log::PostgresLog;
use self::setup::{Names, POLL, Setup};
use crate::cipher::{Cipher, STATE};
use crate::environment::{Environment, Refusal};
use crate::error::StoreError;
use crate::fenced_log::{self, FencedStore, Position};
use crate::format;
use crate::frame::End;
use crate::holder::Holder;
use crate::mark::{Purpose, refuse_left};
use crate::store::{Loaded, LockedStore, Store, Version};

/// The shortest wait for the lock, even with a `wait` of zero: a server needs a moment to notice that a
/// holder has ended.
const GRACE: Duration = Duration::from_millis(400);
/// The longest wait for a session that was asked to end.
const ENDING: Duration = Duration::from_secs(10);

/// A store in a database.
#[derive(Clone)]
pub struct PostgresStore {
    setup: Arc<Setup>,
}

impl PostgresStore {
    /// Returns the store that `[state]` and the environment describe. Nothing is called yet.
    pub fn open(
        settings: &StateSettings,
        environment: &Environment<'_>,
        cipher: Cipher,
    ) -> Result<Self, Refusal> {
        Ok(Self { setup: Arc::new(Setup::new(settings, environment, cipher)?) })
    }

    /// Sets another time during which a lost connection is made again.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { setup: Arc::new(Setup { patience, ..(*self.setup).clone() }) }
    }

    /// Sets another time for which an answer is waited for.
    #[must_use]
    pub fn answer(self, answer: Duration) -> Self {
        let mut setup = (*self.setup).clone();
        setup.address.answer = answer;
        Self { setup: Arc::new(setup) }
    }

    async fn connect(&self) -> Result<Connection, StoreError> {
        let Setup { address, place, .. } = &*self.setup;
        connect(address).await.map_err(|error| match error {
            SqlError::Refused(why) => {
                StoreError::refused(format!("cannot connect to the database {place}: {why}"))
            }
            other => other.into_store_error(place),
        })
    }

    fn failed(&self, error: SqlError) -> StoreError {
        error.into_store_error(&self.setup.place)
    }

    /// Waits for the lock, and makes sure that it is exclusive.
    async fn take(&self, wait: Duration) -> Result<Connection, StoreError> {
        let connection = self.connect().await?;
        refuse_volatile(&connection)?;
        let until = Instant::now() + wait.max(GRACE);
        let key = self.setup.names.key;
        loop {
            match connection.try_lock(key).await.map_err(|error| self.failed(error))? {
                true => break,
                false if Instant::now() >= until => {
                    return Err(StoreError::Locked(Box::new(
                        self.recorded_holder(&connection).await,
                    )));
                }
                false => tokio::time::sleep(POLL).await,
            }
        }
        self.refuse_pooler(&connection).await?;
        Ok(connection)
    }

    /// Returns the holder in the row if its lock is taken; else none.
    async fn living_holder(
        &self,
        connection: &Connection,
        row: Option<&read::Row>,
    ) -> Result<Option<Holder>, StoreError> {
        let key = self.setup.names.key;
        let is_held = async || {
            let pid = connection.holder(key).await.map_err(|error| self.failed(error))?;
            Ok::<_, StoreError>(pid.is_some())
        };
        if row.is_none_or(|row| row.holder.is_none()) || !is_held().await? {
            return Ok(None);
        }
        // The server may not have noticed yet that a holder has ended.
        tokio::time::sleep(GRACE / 4).await;
        Ok(is_held().await?.then(|| read::holder(row)))
    }

    async fn recorded_holder(&self, connection: &Connection) -> Holder {
        let rows = read::row(&connection.client, &self.setup.names).await.ok().flatten();
        read::holder(rows.as_ref())
    }

    /// Ends the session `pid`, which held the lock of a run that was driven out, and waits until the server
    /// has noticed it.
    async fn end_session(&self, connection: &Connection, pid: i32) -> Result<(), StoreError> {
        let key = self.setup.names.key;
        let (high, low) = halves(key);
        let given = [int8(&high), int8(&low), int4(&pid)];
        let ended = query(&connection.client, sql::END_HOLDER, &given).await;
        ended.map_err(|error| match error {
            SqlError::Refused(why) => StoreError::refused(format!(
                "the run can no longer write, but its session keeps the lock until its process \
                 ends: the database {} does not let this user end session {pid}: {why}",
                self.setup.place
            )),
            other => self.failed(other),
        })?;
        let until = Instant::now() + ENDING;
        while connection.holder(key).await.map_err(|error| self.failed(error))? == Some(pid) {
            if Instant::now() >= until {
                return Err(StoreError::refused(format!(
                    "the run can no longer write, but session {pid} of the database {} does not \
                     end",
                    self.setup.place
                )));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Refuses a pooler that lends one session of the server to several clients, because it lends the lock
    /// with it. While this connection holds the lock, no other one may get it, and its session must stay the
    /// same.
    async fn refuse_pooler(&self, connection: &Connection) -> Result<(), StoreError> {
        let other = self.connect().await?;
        let failed = |error| self.failed(error);
        batch(&other.client, "BEGIN").await.map_err(failed)?;
        let shares = other.try_lock(self.setup.names.key).await.map_err(failed)?;
        if shares {
            query(&other.client, "SELECT pg_advisory_unlock_all()", &[]).await.map_err(failed)?;
        }
        batch(&other.client, "ROLLBACK").await.map_err(failed)?;
        let holder = connection.holder(self.setup.names.key).await.map_err(failed)?;
        if !shares && holder == Some(connection.pid) {
            return Ok(());
        }
        Err(StoreError::Unfit {
            what: "a connection pooler between Plumb and the database shares sessions".to_owned(),
            help: "locks do not work there: connect to the database itself, or to a pooler in \
                   session mode"
                .to_owned(),
        })
    }

    async fn prepare(&self, connection: &Connection) -> Result<(), StoreError> {
        let Names { sql, .. } = &self.setup.names;
        let failed = |error| self.failed(error);
        for attempt in 0.. {
            let tables = one(&connection.client, &sql.tables(), &[]).await.map_err(failed)?;
            if tables.get::<_, i32>(0) == 3 {
                return Ok(());
            }
            match batch(&connection.client, &sql.create()).await {
                Ok(()) => return Ok(()),
                // Another run makes the tables at this moment.
                Err(SqlError::Refused(_)) if attempt < 5 => tokio::time::sleep(POLL).await,
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// Drives out every earlier holder.
    async fn raise_epoch(
        &self,
        connection: &Connection,
        holder: &Holder,
        least: i64,
    ) -> Result<u64, StoreError> {
        let said = serde_json::to_string(&holder.sanitised()).unwrap_or_default();
        let name = &self.setup.names.name;
        let given = [text(name), int8(&least), text(&said)];
        let row = one(&connection.client, &self.setup.names.sql.take(), &given).await;
        let epoch: i64 = row.map_err(|error| self.failed(error))?.get(0);
        Ok(epoch.cast_unsigned())
    }
}

impl PostgresStore {
    async fn read(
        &self,
        connection: &Connection,
        purpose: Purpose,
    ) -> Result<(Loaded, Option<Position>), StoreError> {
        let Setup { names, cipher, place, .. } = &*self.setup;
        let rows =
            read::rows(&connection.client, names).await.map_err(|error| self.failed(error))?;
        purpose.check(rows.mark(), place)?;
        let mark = rows.mark().cloned();
        Ok(match read::judge(&rows, place, cipher)? {
            Some((loaded, position)) => (Loaded { mark, ..loaded }, Some(position)),
            None => (Loaded { mark, ..Loaded::nothing() }, None),
        })
    }
}

/// Refuses to start on a server whose machine may lose commits. The stored state can still be read, and so
/// moved elsewhere.
fn refuse_volatile(connection: &Connection) -> Result<(), StoreError> {
    if !connection.is_volatile {
        return Ok(());
    }
    Err(StoreError::Unfit {
        what: "the database does not flush commits to its disk (`fsync` is off)".to_owned(),
        help: "a power cut could lose or damage the state there: set it to `on`, as with `ALTER \
               SYSTEM SET fsync = on` and `SELECT pg_reload_conf()`; `plumb state pull` still \
               reads a state, to bring it elsewhere"
            .to_owned(),
    })
}

#[async_trait]
impl Store for PostgresStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        let Setup { names, cipher, place, .. } = &*self.setup;
        let connection = self.connect().await?;
        let failed = |error| self.failed(error);
        let rows = read::rows(&connection.client, names).await.map_err(failed)?;
        refuse_left(rows.mark(), place)?;
        let found = read::judge(&rows, place, cipher)?;
        let holder = self.living_holder(&connection, rows.row.as_ref()).await?;
        let loaded = found.map_or_else(Loaded::nothing, |(loaded, _)| loaded);
        loaded.seen_with(holder, rows.mark().cloned(), place)
    }

    async fn holder(&self) -> Result<Option<Holder>, StoreError> {
        let connection = self.connect().await?;
        let rows = read::rows(&connection.client, &self.setup.names).await;
        let rows = rows.map_err(|error| self.failed(error))?;
        self.living_holder(&connection, rows.row.as_ref()).await
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        let connection = self.take(wait).await?;
        self.prepare(&connection).await?;
        // First, errors are refused; then earlier holders are driven out; and only then is the state read,
        // because until then one of them may have written.
        self.read(&connection, purpose).await?;
        let mut epoch = self.raise_epoch(&connection, holder, 1).await?;
        let (loaded, position) = self.read(&connection, purpose).await?;
        let newest = position.as_ref().map_or(0, |at| at.header.newest_epoch(Some(at.end)));
        if newest >= epoch {
            epoch = self.raise_epoch(&connection, holder, (newest + 1).cast_signed()).await?;
        }
        let log = PostgresLog { setup: self.setup.clone(), connection, epoch };
        Ok(Box::new(FencedStore::new(log, loaded, position)))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        let connection = self.take(Duration::ZERO).await?;
        self.prepare(&connection).await?;
        let names = &self.setup.names;
        let failed = |error| self.failed(error);
        let row = read::row(&connection.client, names).await.map_err(failed)?.unwrap_or_default();
        let epoch = self.raise_epoch(&connection, holder, 1).await?;
        let (serial, lsn) = read::highest(&connection.client, names).await.map_err(failed)?;
        let known = row.saved.map_or(0, |saved| saved.serial).max(serial.cast_unsigned());
        let snapshot = Snapshot { serial: known.max(snapshot.serial) + 1, ..snapshot.clone() };
        let checkpoint = End { lsn: lsn.max(row.lsn).cast_unsigned(), ..End::default() };
        let log = PostgresLog { setup: self.setup.clone(), connection, epoch };
        fenced_log::restore(log, &snapshot, checkpoint).await
    }

    /// First the epoch rises, so that no write of that run takes effect any more; then its session is ended.
    /// In between it may try to write. A run that takes the lock raises the epoch again.
    async fn drive_out(&self, run: &str) -> Result<bool, StoreError> {
        let connection = self.connect().await?;
        let names = &self.setup.names;
        let failed = |error| self.failed(error);
        let pid = connection.holder(names.key).await.map_err(failed)?;
        let row = read::rows(&connection.client, names).await.map_err(failed)?.row;
        let (Some(pid), Some(row)) = (pid, row) else { return Ok(false) };
        if read::holder(Some(&row)).run != run {
            return Ok(false);
        }
        let given = [text(&names.name), int8(&row.epoch)];
        let done =
            execute(&connection.client, &names.sql.drive_out(), &given).await.map_err(failed)?;
        if done != 1 {
            return Ok(false);
        }
        // The row names the holder until it does not hold the lock any more, so a session that this user may
        // not end is reported again.
        self.end_session(&connection, pid).await?;
        let raised = row.epoch + 1;
        let given = [text(&names.name), int8(&raised)];
        execute(&connection.client, &names.sql.sign_off(), &given).await.map_err(failed)?;
        Ok(true)
    }

    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        let connection = self.connect().await?;
        let rows = read::rows(&connection.client, &self.setup.names).await;
        let rows = rows.map_err(|error| self.failed(error))?;
        let current = rows.row.and_then(|row| row.saved).map(|saved| saved.serial);
        let kept = rows.serials.into_iter().map(i64::cast_unsigned);
        Ok(kept.filter(|serial| Some(*serial) != current).collect())
    }

    async fn past(&self, serial: u64) -> Result<Option<Snapshot>, StoreError> {
        let Setup { names, cipher, place, .. } = &*self.setup;
        let connection = self.connect().await?;
        let body = read::body(&connection.client, names, serial).await;
        let body = body.map_err(|error| self.failed(error))?;
        if body.is_empty() {
            return Ok(None);
        }
        let plain = cipher.open(STATE, &body).map_err(|error| error.of(place))?;
        format::decode(&plain).map(|(_, snapshot)| Some(snapshot)).map_err(|error| {
            let what = format!("serial {serial} in {place} cannot be read: {error}");
            StoreError::suspicious(what, "nothing was changed; choose another serial")
        })
    }

    async fn is_plain(&self) -> Result<bool, StoreError> {
        let connection = self.connect().await?;
        let names = &self.setup.names;
        let given = [text(&names.name)];
        let rows = query(&connection.client, &names.sql.first_bytes(), &given).await;
        let rows = rows.map_err(|error| self.failed(error))?;
        Ok(rows.first().is_some_and(|row| !crate::cipher::is_sealed(row.get(0))))
    }

    fn place(&self) -> String {
        self.setup.place.clone()
    }
}
