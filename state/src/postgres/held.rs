//! A state whose lock this process holds: the only place that writes its rows.
//!
//! A connection that is lost takes the answer of what was asked last with it, and the lock. Then
//! another one is made, the lock is taken again, and if nobody else was here in between, the rows
//! say whether it happened.

use std::sync::Arc;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;
use tokio::time::Instant;
use tokio_postgres::types::Type;

use super::link::{Link, Trouble, batch, connect, execute, query};
use super::read::{self, Found, Row};
use super::{POLL, Shared, sql};
use crate::cipher::MAGIC;
use crate::format::Header;
use crate::frame::{self, Base, End};
use crate::mark::Mark;
use crate::standing::Standing;
use crate::{Held, Loaded, StoreError, Version, write};

/// See the module.
pub(super) struct PostgresHeld {
    shared: Arc<Shared>,
    link: Link,
    epoch: u64,
    loaded: Loaded,
    /// None until a first run has made its state.
    at: Option<At>,
    standing: Standing,
}

/// Where the store stands.
struct At {
    header: Header,
    end: End,
    bytes: u64,
}

/// What is to be written, all or nothing.
enum Change {
    Frame { bytes: Vec<u8>, end: End },
    Snapshot { header: Header, bytes: Vec<u8>, base: Vec<u8>, end: End, over: Over },
}

/// What a snapshot may be put in place of.
enum Over {
    /// The one with this serial and digest; none where there is none yet.
    Exactly(Option<(String, i64, String)>),
    /// Whatever is there, which bears no mark any more then.
    Anything,
}

impl PostgresHeld {
    pub(super) fn new(
        shared: Arc<Shared>,
        link: Link,
        epoch: u64,
        mark: Option<Mark>,
        found: Option<Found>,
    ) -> Self {
        let (loaded, at) = match found {
            Some(Found { loaded, header, end, bytes }) => (loaded, Some(At { header, end, bytes })),
            None => (Loaded::nothing(), None),
        };
        let loaded = Loaded { mark, ..loaded };
        Self { shared, link, epoch, loaded, at, standing: Standing::default() }
    }

    /// Writes, and finds out whether it was written where that is not known. An error poisons.
    async fn persist(&mut self, change: &Change) -> Result<(), StoreError> {
        let result = self.persist_now(change).await;
        self.standing.keep(result)
    }

    async fn persist_now(&mut self, change: &Change) -> Result<(), StoreError> {
        // Patience begins when something is lost: to find that out may have taken its time.
        let mut lost: Option<Instant> = None;
        loop {
            if let Some(lost) = lost {
                self.come_back(lost + self.shared.patience).await?;
            }
            match self.attempt(change, lost.is_none()).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(fenced()),
                Err(trouble) if trouble.is_in_doubt() => {
                    lost.get_or_insert_with(Instant::now);
                }
                Err(trouble) => return Err(trouble.into_store_error(&self.shared.place)),
            }
        }
    }

    /// Writes, unless it was written already. False is for who lost their place.
    async fn attempt(&mut self, change: &Change, is_known: bool) -> Result<bool, Trouble> {
        if !is_known && self.is_written(change).await? {
            return Ok(true);
        }
        match change {
            Change::Frame { bytes, end } => self.append_frame(bytes, *end).await,
            Change::Snapshot { .. } => self.put_snapshot(change).await,
        }
    }

    async fn is_written(&self, change: &Change) -> Result<bool, Trouble> {
        let names = &self.shared.names;
        match change {
            Change::Frame { bytes, end } => {
                let lsn = end.lsn.cast_signed();
                let given = [(&names.name as _, Type::TEXT), (&lsn as _, Type::INT8)];
                let rows = query(&self.link.client, &names.sql.frame(), &given).await?;
                Ok(rows.first().is_some_and(|row| row.get::<_, &[u8]>(0) == bytes))
            }
            Change::Snapshot { header, end, .. } => {
                let row = read::row(&self.link.client, names).await?.unwrap_or_default();
                let is_ours = row.saved.is_some_and(|(_, _, digest)| digest == header.digest);
                Ok(is_ours && row.lsn.cast_unsigned() == end.lsn)
            }
        }
    }

    async fn append_frame(&self, bytes: &[u8], end: End) -> Result<bool, Trouble> {
        let names = &self.shared.names;
        let (epoch, lsn) = (self.epoch.cast_signed(), end.lsn.cast_signed());
        let given = [
            (&names.name as _, Type::TEXT),
            (&epoch as _, Type::INT8),
            (&lsn as _, Type::INT8),
            (&bytes as _, Type::BYTEA),
        ];
        Ok(execute(&self.link.client, &names.sql.append(), &given).await? == 1)
    }

    async fn put_snapshot(&self, change: &Change) -> Result<bool, Trouble> {
        let client = &self.link.client;
        batch(client, "BEGIN").await?;
        let done = self.put_in_transaction(change).await;
        let end = if matches!(done, Ok(true)) { "COMMIT" } else { "ROLLBACK" };
        batch(client, end).await?;
        done
    }

    /// Says whether the row is still this holder's.
    async fn put_mark(&self, mark: Option<&Mark>) -> Result<bool, Trouble> {
        let names = &self.shared.names;
        let (epoch, text) = (self.epoch.cast_signed(), mark.map(Mark::text));
        let given =
            [(&names.name as _, Type::TEXT), (&epoch as _, Type::INT8), (&text as _, Type::TEXT)];
        Ok(execute(&self.link.client, &names.sql.mark(), &given).await? == 1)
    }

    async fn put_in_transaction(&self, change: &Change) -> Result<bool, Trouble> {
        let Change::Snapshot { header, bytes, base, end, over } = change else { return Ok(false) };
        let (client, names) = (&self.link.client, &self.shared.names);
        let name = (&names.name as _, Type::TEXT);
        let row = read::row_for_update(client, names).await?;
        if let Over::Exactly(saved) = over
            && row.is_none_or(|row| row.saved != *saved)
        {
            return Ok(false);
        }
        let (epoch, lsn) = (self.epoch.cast_signed(), end.lsn.cast_signed());
        let serial = header.serial.cast_signed();
        let given = [
            name.clone(),
            (&epoch as _, Type::INT8),
            (&lsn as _, Type::INT8),
            (&header.lineage as _, Type::TEXT),
            (&serial as _, Type::INT8),
            (&header.digest as _, Type::TEXT),
        ];
        if execute(client, &names.sql.replace(), &given).await? != 1 {
            return Ok(false);
        }
        if matches!(over, Over::Anything) && !self.put_mark(None).await? {
            return Ok(false);
        }
        for (part, bytes) in (0_i32..).zip(bytes.chunks(sql::PART)) {
            let given = [
                name.clone(),
                (&serial as _, Type::INT8),
                (&part as _, Type::INT4),
                (&bytes as _, Type::BYTEA),
            ];
            execute(client, &names.sql.add_part(), &given).await?;
        }
        execute(client, &names.sql.drop_frames(), std::slice::from_ref(&name)).await?;
        let given = [name.clone(), (&lsn as _, Type::INT8), (base as _, Type::BYTEA)];
        execute(client, &names.sql.add_frame(), &given).await?;
        let kept = sql::KEPT + 1;
        execute(client, &names.sql.prune(), &[name.clone(), (&kept as _, Type::INT8)]).await?;
        if self.shared.cipher.is_on() {
            let given = [name, (&serial as _, Type::INT8), (&&MAGIC[..] as _, Type::BYTEA)];
            execute(client, &names.sql.prune_plain(), &given).await?;
        }
        Ok(true)
    }

    /// Connects again, and takes the lock again, unless somebody else was here.
    async fn come_back(&mut self, until: Instant) -> Result<(), StoreError> {
        let mut why = "the connection was lost".to_owned();
        while Instant::now() < until {
            match self.try_come_back().await {
                Ok(Back::Here(link)) => {
                    self.link = link;
                    return Ok(());
                }
                Ok(Back::Fenced) => return Err(fenced()),
                Ok(Back::NotYet) => {}
                Err(Trouble::Unfit { what, help }) => return Err(StoreError::Unfit { what, help }),
                Err(trouble) => why = trouble.to_string(),
            }
            tokio::time::sleep(POLL).await;
        }
        let place = &self.shared.place;
        Err(StoreError::refused(format!("the database {place} does not come back: {why}")))
    }

    async fn try_come_back(&self) -> Result<Back, Trouble> {
        let names = &self.shared.names;
        let link = connect(&self.shared.address).await?;
        if !link.try_lock(names.key).await? {
            // The server may not know yet that the old connection is gone.
            if link.holder(names.key).await? == Some(self.link.pid) {
                let given = [(&self.link.pid as _, Type::INT4)];
                query(&link.client, "SELECT pg_terminate_backend($1)", &given).await?;
            }
        }
        let row = read::row(&link.client, names).await?.unwrap_or_default();
        if row.epoch.cast_unsigned() != self.epoch {
            return Ok(Back::Fenced);
        }
        let is_ours = link.holder(names.key).await? == Some(link.pid);
        Ok(if is_ours { Back::Here(link) } else { Back::NotYet })
    }

    fn stand_at(&mut self, header: Header, end: End, bytes: u64) -> Version {
        let version = header.version();
        self.at = Some(At { header, end, bytes });
        version
    }

    async fn put(
        &mut self,
        snapshot: &Snapshot,
        checkpoint: End,
        over: Over,
    ) -> Result<Version, StoreError> {
        let cipher = &self.shared.cipher;
        let (header, bytes) = write::encode(cipher, snapshot, self.epoch, checkpoint)?;
        let base = Base {
            lineage: header.lineage.clone(),
            serial: header.serial,
            digest: header.digest.clone(),
        };
        let (base, end) = frame::seal_base(&base, checkpoint, self.epoch, cipher)
            .map_err(|error| StoreError::failed("cannot write the journal", error))?;
        let size = base.len() as u64;
        let change = Change::Snapshot { header: header.clone(), bytes, base, end, over };
        self.persist(&change).await?;
        Ok(self.stand_at(header, end, size))
    }

    async fn sign_off(&self) -> Result<(), Trouble> {
        let names = &self.shared.names;
        let epoch = self.epoch.cast_signed();
        let given = [(&names.name as _, Type::TEXT), (&epoch as _, Type::INT8)];
        execute(&self.link.client, &names.sql.sign_off(), &given).await?;
        let given = [(&names.key as _, Type::INT8)];
        query(&self.link.client, "SELECT pg_advisory_unlock($1)", &given).await?;
        Ok(())
    }
}

/// How an attempt to come back ended.
enum Back {
    Here(Link),
    NotYet,
    Fenced,
}

fn fenced() -> StoreError {
    StoreError::Fenced("another run took the lock of the state".to_owned())
}

/// Puts a snapshot in place of whatever is there. See [`crate::Store::restore`].
pub(super) async fn restore(
    shared: Arc<Shared>,
    link: Link,
    epoch: u64,
    row: Option<Row>,
    snapshot: &Snapshot,
) -> Result<Version, StoreError> {
    let (names, place) = (&shared.names, &shared.place);
    let seen = read::highest(&link.client, names).await;
    let (serial, lsn) = seen.map_err(|trouble| trouble.into_store_error(place))?;
    let known = row.as_ref().and_then(|row| row.saved.as_ref()).map_or(0, |saved| saved.1);
    let serial = serial.max(known).cast_unsigned().max(snapshot.serial) + 1;
    let lsn = lsn.max(row.map_or(0, |row| row.lsn)).cast_unsigned();
    let checkpoint = End { lsn, ..End::default() };
    let mut held = PostgresHeld::new(shared, link, epoch, None, None);
    let snapshot = Snapshot { serial, ..snapshot.clone() };
    let version = held.put(&snapshot, checkpoint, Over::Anything).await?;
    Box::new(held).release().await?;
    Ok(version)
}

#[async_trait]
impl Held for PostgresHeld {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.standing.check()?;
        if self.at.is_some() {
            return Err(StoreError::Fenced("there is a state already".to_owned()));
        }
        self.put(snapshot, End::default(), Over::Exactly(None)).await
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.standing.check()?;
        let Some(at) = &self.at else {
            return Err(StoreError::refused("a record was written before the first state"));
        };
        if records.is_empty() {
            return Ok(());
        }
        let (bytes, end) = frame::seal_records(records, at.end, self.epoch, &self.shared.cipher)
            .map_err(|error| StoreError::failed("cannot write the journal", error))?;
        let size = bytes.len() as u64;
        self.persist(&Change::Frame { bytes, end }).await?;
        if let Some(at) = &mut self.at {
            at.end = end;
            at.bytes += size;
        }
        Ok(())
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        self.standing.check()?;
        let Some(At { header: old, end, .. }) = &self.at else {
            return Err(StoreError::refused("a state was saved before the first one"));
        };
        write::check_successor(old, expected, snapshot)?;
        let saved = (old.lineage.clone(), old.serial.cast_signed(), old.digest.clone());
        let end = *end;
        self.put(snapshot, end, Over::Exactly(Some(saved))).await
    }

    async fn set_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        self.standing.check()?;
        match self.put_mark(mark).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(fenced()),
            Err(trouble) => Err(trouble.into_store_error(&self.shared.place)),
        }
    }

    fn journal_bytes(&self) -> u64 {
        self.at.as_ref().map_or(0, |at| at.bytes)
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        match self.sign_off().await {
            Ok(()) => Ok(()),
            // The lock ends with the connection.
            Err(trouble) if trouble.is_in_doubt() => Ok(()),
            Err(trouble) => Err(trouble.into_store_error(&self.shared.place)),
        }
    }
}
