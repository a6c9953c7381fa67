//! State in a PostgreSQL database: one row a state, its snapshots and its journal beside it.
//!
//! Liveness comes from an advisory lock of a connection of its own: the server drops it when the
//! connection ends, so a killed holder's lock is free at once, and one on a machine that is gone
//! after half a minute. Safety does not rest on it: every holder raises the epoch of the row, and
//! every append and save is conditional on it, in one transaction. A holder that lost the lock
//! without knowing writes nothing more.
//!
//! Refused is what would break that: a pooler that lends one session to several clients, and a
//! server that says "committed" before it is.

mod address;
mod held;
mod link;
mod read;
mod sql;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::config::settings::StateSettings;
use engine::state::Snapshot;
use tokio::time::Instant;
use tokio_postgres::types::Type;

use self::address::Address;
use self::held::PostgresHeld;
use self::link::{Link, Trouble, batch, connect, execute, one, query};
use self::read::Found;
use self::sql::Sql;
use crate::cipher::{Cipher, STATE};
use crate::mark::{Mark, marked, refuse_any, refuse_left};
use crate::open::{Environment, Refusal};
use crate::{Held, Holder, Loaded, Store, StoreError, Version, format};

/// How often a waiting run looks whether the lock is free.
const POLL: Duration = Duration::from_millis(100);
/// Even who does not want to wait waits this long: a server takes a moment to see that a holder
/// has ended.
const GRACE: Duration = Duration::from_millis(400);
/// For how long a session is given to end that was told to.
const ENDING: Duration = Duration::from_secs(10);
/// For how long a lost connection is tried to be made again.
const PATIENCE: Duration = Duration::from_mins(1);

/// A store in a database.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

#[derive(Clone)]
struct Shared {
    address: Address,
    names: Names,
    cipher: Cipher,
    place: String,
    patience: Duration,
}

/// What the state is called there.
#[derive(Clone)]
struct Names {
    sql: Sql,
    name: String,
    /// The advisory lock's number.
    key: i64,
}

impl PostgresStore {
    /// The store that `[state]` and the environment describe. Nothing is called yet.
    pub fn open(
        settings: &StateSettings,
        environment: &Environment<'_>,
        cipher: Cipher,
    ) -> Result<Self, Refusal> {
        let name = settings.text("name").unwrap_or_default().to_owned();
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            return Err(Refusal::new("the `name` of `[state]` is empty, too long or no text"));
        }
        let schema = settings.text("schema").unwrap_or("plumb");
        let names = Names { sql: Sql::new(schema)?, key: lock_key(schema, &name), name };
        let address = Address::of(settings, environment)?;
        let place = format!("postgres://{}, {schema}, {}", address.shown(), names.name);
        let shared = Shared { address, names, cipher, place, patience: PATIENCE };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// With another bound on how long a lost connection is tried to be made again.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { shared: Arc::new(Shared { patience, ..(*self.shared).clone() }) }
    }

    /// With another bound on how long an answer is waited for.
    #[must_use]
    pub fn answer(self, answer: Duration) -> Self {
        let mut shared = (*self.shared).clone();
        shared.address.answer = answer;
        Self { shared: Arc::new(shared) }
    }

    async fn connect(&self) -> Result<Link, StoreError> {
        let Shared { address, place, .. } = &*self.shared;
        connect(address).await.map_err(|trouble| match trouble {
            Trouble::Said(why) => {
                StoreError::refused(format!("cannot connect to the database {place}: {why}"))
            }
            other => other.into_store_error(place),
        })
    }

    fn failed(&self, trouble: Trouble) -> StoreError {
        trouble.into_store_error(&self.shared.place)
    }

    /// Waits for the lock, and makes sure that it is one.
    async fn take(&self, wait: Duration) -> Result<Link, StoreError> {
        let link = self.connect().await?;
        refuse_forgetful(&link)?;
        let until = Instant::now() + wait.max(GRACE);
        let key = self.shared.names.key;
        loop {
            match link.try_lock(key).await.map_err(|trouble| self.failed(trouble))? {
                true => break,
                false if Instant::now() >= until => {
                    return Err(StoreError::Locked(Box::new(self.said_holder(&link).await)));
                }
                false => tokio::time::sleep(POLL).await,
            }
        }
        self.refuse_pooler(&link).await?;
        Ok(link)
    }

    /// Who the row says holds the lock, if somebody does.
    async fn living_holder(
        &self,
        link: &Link,
        row: Option<&read::Row>,
    ) -> Result<Option<Holder>, StoreError> {
        let key = self.shared.names.key;
        let is_held = async || {
            let pid = link.holder(key).await.map_err(|trouble| self.failed(trouble))?;
            Ok::<_, StoreError>(pid.is_some())
        };
        if row.is_none_or(|row| row.holder.is_none()) || !is_held().await? {
            return Ok(None);
        }
        // The server may not have seen yet that a holder has ended.
        tokio::time::sleep(GRACE / 4).await;
        Ok(is_held().await?.then(|| read::holder(row)))
    }

    async fn said_holder(&self, link: &Link) -> Holder {
        let rows = read::row(&link.client, &self.shared.names).await.ok().flatten();
        read::holder(rows.as_ref())
    }

    /// Ends the session `pid`, which held the lock of a run that was driven out, and waits until the
    /// server has seen it.
    async fn end_session(&self, link: &Link, pid: i32) -> Result<(), StoreError> {
        let key = self.shared.names.key;
        let (high, low) = halves(key);
        let given = [(&high as _, Type::INT8), (&low as _, Type::INT8), (&pid as _, Type::INT4)];
        let ended = query(&link.client, sql::END_HOLDER, &given).await;
        ended.map_err(|trouble| match trouble {
            Trouble::Said(why) => StoreError::refused(format!(
                "the run can write nothing any more, but its session keeps the lock until its \
                 process ends: the database {} does not let this user end session {pid}: {why}",
                self.shared.place
            )),
            other => self.failed(other),
        })?;
        let until = Instant::now() + ENDING;
        while link.holder(key).await.map_err(|trouble| self.failed(trouble))? == Some(pid) {
            if Instant::now() >= until {
                return Err(StoreError::refused(format!(
                    "the run can write nothing any more, but session {pid} of the database {} does \
                     not end",
                    self.shared.place
                )));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// A pooler that lends one session of the server to several clients lends the lock with it.
    /// While this connection holds the lock, no other may get it, and its session stays its own.
    async fn refuse_pooler(&self, link: &Link) -> Result<(), StoreError> {
        let other = self.connect().await?;
        let failed = |trouble| self.failed(trouble);
        batch(&other.client, "BEGIN").await.map_err(failed)?;
        let shares = other.try_lock(self.shared.names.key).await.map_err(failed)?;
        if shares {
            query(&other.client, "SELECT pg_advisory_unlock_all()", &[]).await.map_err(failed)?;
        }
        batch(&other.client, "ROLLBACK").await.map_err(failed)?;
        let holder = link.holder(self.shared.names.key).await.map_err(failed)?;
        if !shares && holder == Some(link.pid) {
            return Ok(());
        }
        Err(StoreError::Unfit {
            what: "between Plumb and the database is a pooler that shares sessions".to_owned(),
            help: "a lock is no lock there: connect to the database itself, or to a pooler in \
                   session mode"
                .to_owned(),
        })
    }

    async fn prepare(&self, link: &Link) -> Result<(), StoreError> {
        let Names { sql, .. } = &self.shared.names;
        let failed = |trouble| self.failed(trouble);
        for attempt in 0.. {
            let tables = one(&link.client, &sql.tables(), &[]).await.map_err(failed)?;
            if tables.get::<_, i32>(0) == 3 {
                return Ok(());
            }
            match batch(&link.client, &sql.create()).await {
                Ok(()) => return Ok(()),
                // Another run makes them at this moment.
                Err(Trouble::Said(_)) if attempt < 5 => tokio::time::sleep(POLL).await,
                Err(trouble) => return Err(failed(trouble)),
            }
        }
        Ok(())
    }

    /// Drives out every earlier holder.
    async fn raise_epoch(
        &self,
        link: &Link,
        holder: &Holder,
        least: i64,
    ) -> Result<u64, StoreError> {
        let text = serde_json::to_string(&crate::write::tamed(holder)).unwrap_or_default();
        let name = &self.shared.names.name;
        let given = [(name as _, Type::TEXT), (&least as _, Type::INT8), (&text as _, Type::TEXT)];
        let row = one(&link.client, &self.shared.names.sql.take(), &given).await;
        let epoch: i64 = row.map_err(|trouble| self.failed(trouble))?.get(0);
        Ok(epoch.cast_unsigned())
    }
}

/// Whether a place with this mark is refused.
type Check = fn(Option<&Mark>, &str) -> Result<(), StoreError>;

impl PostgresStore {
    async fn hold(
        &self,
        holder: &Holder,
        wait: Duration,
        check: Check,
    ) -> Result<Box<dyn Held>, StoreError> {
        let link = self.take(wait).await?;
        self.prepare(&link).await?;
        // First what is wrong is refused, then earlier holders are driven out, and then it is read:
        // until then one of them may have written.
        self.look(&link, check).await?;
        let mut epoch = self.raise_epoch(&link, holder, 1).await?;
        let (mark, found) = self.look(&link, check).await?;
        if let Some(found) = &found
            && found.end.epoch.max(found.header.epoch) >= epoch
        {
            let least = found.end.epoch.max(found.header.epoch) + 1;
            epoch = self.raise_epoch(&link, holder, least.cast_signed()).await?;
        }
        Ok(Box::new(PostgresHeld::new(self.shared.clone(), link, epoch, mark, found)))
    }

    async fn look(
        &self,
        link: &Link,
        check: Check,
    ) -> Result<(Option<Mark>, Option<Found>), StoreError> {
        let Shared { names, cipher, place, .. } = &*self.shared;
        let rows = read::rows(&link.client, names).await.map_err(|trouble| self.failed(trouble))?;
        check(rows.mark(), place)?;
        Ok((rows.mark().cloned(), read::judge(&rows, place, cipher)?))
    }
}

impl Link {
    async fn try_lock(&self, key: i64) -> Result<bool, Trouble> {
        let given = [(&key as _, Type::INT8)];
        Ok(one(&self.client, "SELECT pg_try_advisory_lock($1)", &given).await?.get(0))
    }

    /// The server's process that holds the lock.
    async fn holder(&self, key: i64) -> Result<Option<i32>, Trouble> {
        let (high, low) = halves(key);
        let given = [(&high as _, Type::INT8), (&low as _, Type::INT8)];
        let rows = query(&self.client, sql::HOLDER, &given).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// Nothing is begun on a server whose machine may forget it. What is there can still be read, and so
/// brought elsewhere.
fn refuse_forgetful(link: &Link) -> Result<(), StoreError> {
    if !link.is_forgetful {
        return Ok(());
    }
    Err(StoreError::Unfit {
        what: "the database does not wait for its disk (`fsync` is off)".to_owned(),
        help: "a state could be gone or damaged there after a power cut: set it to `on`, as with `ALTER \
               SYSTEM SET fsync = on` and `SELECT pg_reload_conf()`; `plumb state pull` reads a state that \
               is to go elsewhere"
            .to_owned(),
    })
}

/// A lock's number as the server shows it.
fn halves(key: i64) -> (i64, i64) {
    let (high, low) = (key.cast_unsigned() >> 32, key.cast_unsigned() & 0xffff_ffff);
    (high.cast_signed(), low.cast_signed())
}

/// The number of a state's lock. Two states whose numbers are equal would wait for each other.
fn lock_key(schema: &str, name: &str) -> i64 {
    let hash = blake3::hash(format!("plumb state\0{schema}\0{name}").as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}

#[async_trait]
impl Store for PostgresStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        let Shared { names, cipher, place, .. } = &*self.shared;
        let link = self.connect().await?;
        let failed = |trouble| self.failed(trouble);
        let rows = read::rows(&link.client, names).await.map_err(failed)?;
        refuse_left(rows.mark(), place)?;
        let found = read::judge(&rows, place, cipher)?;
        let holder = self.living_holder(&link, rows.row.as_ref()).await?;
        let loaded = found.map_or_else(Loaded::nothing, |found| found.loaded);
        marked(Loaded { holder, ..loaded }, rows.mark().cloned(), place)
    }

    async fn holder(&self) -> Result<Option<Holder>, StoreError> {
        let link = self.connect().await?;
        let rows = read::rows(&link.client, &self.shared.names).await;
        let rows = rows.map_err(|trouble| self.failed(trouble))?;
        self.living_holder(&link, rows.row.as_ref()).await
    }

    async fn lock(&self, holder: &Holder, wait: Duration) -> Result<Box<dyn Held>, StoreError> {
        self.hold(holder, wait, refuse_any).await
    }

    async fn lock_to_move(
        &self,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn Held>, StoreError> {
        self.hold(holder, wait, |_, _| Ok(())).await
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        let link = self.take(Duration::ZERO).await?;
        self.prepare(&link).await?;
        let row = read::row(&link.client, &self.shared.names).await;
        let row = row.map_err(|trouble| self.failed(trouble))?;
        let epoch = self.raise_epoch(&link, holder, 1).await?;
        held::restore(self.shared.clone(), link, epoch, row, snapshot).await
    }

    /// First nothing of that run fits any more, then its session is ended: between the two it may
    /// try what it likes. Who takes the lock finds the epoch raised, and raises it again.
    async fn drive_out(&self, run: &str) -> Result<bool, StoreError> {
        let link = self.connect().await?;
        let names = &self.shared.names;
        let failed = |trouble| self.failed(trouble);
        let pid = link.holder(names.key).await.map_err(failed)?;
        let row = read::rows(&link.client, names).await.map_err(failed)?.row;
        let (Some(pid), Some(row)) = (pid, row) else { return Ok(false) };
        if read::holder(Some(&row)).run != run {
            return Ok(false);
        }
        let given = [(&names.name as _, Type::TEXT), (&row.epoch as _, Type::INT8)];
        let done = execute(&link.client, &names.sql.drive_out(), &given).await.map_err(failed)?;
        if done != 1 {
            return Ok(false);
        }
        // Who it was stays said until it holds the lock no more: a session that this user may not end is
        // asked about again.
        self.end_session(&link, pid).await?;
        let given = [(&names.name as _, Type::TEXT), (&(row.epoch + 1) as _, Type::INT8)];
        execute(&link.client, &names.sql.sign_off(), &given).await.map_err(failed)?;
        Ok(true)
    }

    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        let link = self.connect().await?;
        let rows = read::rows(&link.client, &self.shared.names).await;
        let rows = rows.map_err(|trouble| self.failed(trouble))?;
        let current = rows.row.and_then(|row| row.saved).map(|(_, serial, _)| serial);
        let past = rows.serials.into_iter().filter(|serial| Some(*serial) != current);
        Ok(past.map(i64::cast_unsigned).collect())
    }

    async fn past(&self, serial: u64) -> Result<Option<Snapshot>, StoreError> {
        let Shared { names, cipher, place, .. } = &*self.shared;
        let link = self.connect().await?;
        let body = read::body(&link.client, names, serial.cast_signed()).await;
        let body = body.map_err(|trouble| self.failed(trouble))?;
        if body.is_empty() {
            return Ok(None);
        }
        let plain = cipher.open(STATE, &body).map_err(|error| error.of(place))?;
        format::decode(&plain).map(|(_, snapshot)| Some(snapshot)).map_err(|error| {
            let what = format!("serial {serial} in {place} cannot be read: {error}");
            StoreError::suspicious(what, "nothing was changed; take another one")
        })
    }

    async fn is_plain(&self) -> Result<bool, StoreError> {
        let link = self.connect().await?;
        let names = &self.shared.names;
        let given = [(&names.name as _, Type::TEXT)];
        let rows = query(&link.client, &names.sql.first_bytes(), &given).await;
        let rows = rows.map_err(|trouble| self.failed(trouble))?;
        Ok(rows.first().is_some_and(|row| !crate::cipher::is_sealed(row.get(0))))
    }

    fn place(&self) -> String {
        self.shared.place.clone()
    }
}
