//! The writes of a run that holds the lock of a state: no other code writes its rows.
//!
//! A lost connection takes the answer of the last statement with it, and the lock. Then the run connects
//! again and takes the lock again. If no other run was here in between, the rows show if the statement took
//! effect.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;

use super::connection::{
    Connection, SqlError, batch, bytea, connect, execute, int4, int8, query, text,
};
use super::setup::{POLL, Setup};
use super::{read, sql};
use crate::cipher::{Cipher, MAGIC};
use crate::error::StoreError;
use crate::fenced_log::{EncodedSnapshot, FencedLog, Replaced, lock_lost};
use crate::frame::Frame;
use crate::mark::Mark;

/// The log of a state in a database.
pub(super) struct PostgresLog {
    pub(super) setup: Arc<Setup>,
    pub(super) connection: Connection,
    pub(super) epoch: u64,
}

/// One write, which happens completely or not at all.
enum Change<'a> {
    Frame(&'a Frame),
    Snapshot(&'a EncodedSnapshot, &'a Replaced),
}

impl PostgresLog {
    /// Writes, and finds out if the write took effect after a lost answer.
    async fn persist(&mut self, change: Change<'_>) -> Result<(), StoreError> {
        // The time of patience begins when something is lost: finding that out may have taken long.
        let mut lost: Option<Instant> = None;
        loop {
            if let Some(lost) = lost {
                self.reconnect(lost + self.setup.patience).await?;
            }
            match self.attempt(&change, lost.is_none()).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(lock_lost()),
                Err(error) if error.is_in_doubt() => {
                    lost.get_or_insert_with(Instant::now);
                }
                Err(error) => return Err(error.into_store_error(&self.setup.place)),
            }
        }
    }

    /// Writes, unless it was written already. Returns false if this run lost the lock.
    async fn attempt(&self, change: &Change<'_>, is_known: bool) -> Result<bool, SqlError> {
        if !is_known && self.is_written(change).await? {
            return Ok(true);
        }
        match change {
            Change::Frame(frame) => self.append_frame(frame).await,
            Change::Snapshot(new, replaced) => self.put_snapshot(new, replaced).await,
        }
    }

    async fn is_written(&self, change: &Change<'_>) -> Result<bool, SqlError> {
        let names = &self.setup.names;
        match change {
            Change::Frame(Frame { bytes, end }) => {
                let lsn = end.lsn.cast_signed();
                let given = [text(&names.name), int8(&lsn)];
                let rows = query(&self.connection.client, &names.sql.frame(), &given).await?;
                Ok(rows.first().is_some_and(|row| row.get::<_, &[u8]>(0) == bytes))
            }
            Change::Snapshot(EncodedSnapshot { header, base, .. }, _) => {
                let row = read::row(&self.connection.client, names).await?.unwrap_or_default();
                let is_ours = row.saved.is_some_and(|saved| saved.digest == header.digest);
                Ok(is_ours && row.lsn.cast_unsigned() == base.end.lsn)
            }
        }
    }

    async fn append_frame(&self, Frame { bytes, end }: &Frame) -> Result<bool, SqlError> {
        let names = &self.setup.names;
        let (epoch, lsn) = (self.epoch.cast_signed(), end.lsn.cast_signed());
        let given = [text(&names.name), int8(&epoch), int8(&lsn), bytea(bytes)];
        Ok(execute(&self.connection.client, &names.sql.append(), &given).await? == 1)
    }

    async fn put_snapshot(
        &self,
        new: &EncodedSnapshot,
        replaced: &Replaced,
    ) -> Result<bool, SqlError> {
        let client = &self.connection.client;
        batch(client, "BEGIN").await?;
        let done = self.put_in_transaction(new, replaced).await;
        let end = if matches!(done, Ok(true)) { "COMMIT" } else { "ROLLBACK" };
        batch(client, end).await?;
        done
    }

    /// Writes the mark. Returns false if the row belongs to another holder by now.
    async fn put_mark(&self, mark: Option<&Mark>) -> Result<bool, SqlError> {
        let names = &self.setup.names;
        let (epoch, stored) = (self.epoch.cast_signed(), mark.map(Mark::text));
        let given = [text(&names.name), int8(&epoch), text(&stored)];
        Ok(execute(&self.connection.client, &names.sql.mark(), &given).await? == 1)
    }

    async fn put_in_transaction(
        &self,
        EncodedSnapshot { header, bytes, base }: &EncodedSnapshot,
        replaced: &Replaced,
    ) -> Result<bool, SqlError> {
        let (client, names) = (&self.connection.client, &self.setup.names);
        let name = text(&names.name);
        let row = read::row_for_update(client, names).await?;
        let is_expected = row.is_some_and(|row| match replaced {
            Replaced::Nothing => row.saved.is_none(),
            Replaced::Snapshot(old) => row.saved.as_ref() == Some(old),
            Replaced::Anything => true,
        });
        if !is_expected {
            return Ok(false);
        }
        let (epoch, lsn) = (self.epoch.cast_signed(), base.end.lsn.cast_signed());
        let serial = header.serial.cast_signed();
        let given = [
            name.clone(),
            int8(&epoch),
            int8(&lsn),
            text(&header.lineage),
            int8(&serial),
            text(&header.digest),
        ];
        if execute(client, &names.sql.replace(), &given).await? != 1 {
            return Ok(false);
        }
        if matches!(replaced, Replaced::Anything) && !self.put_mark(None).await? {
            return Ok(false);
        }
        for (part, bytes) in (0_i32..).zip(bytes.chunks(sql::PART)) {
            let given = [name.clone(), int8(&serial), int4(&part), bytea(&bytes)];
            execute(client, &names.sql.add_part(), &given).await?;
        }
        execute(client, &names.sql.drop_frames(), std::slice::from_ref(&name)).await?;
        let given = [name.clone(), int8(&lsn), bytea(&base.bytes)];
        execute(client, &names.sql.add_frame(), &given).await?;
        let kept = sql::KEPT + 1;
        execute(client, &names.sql.prune(), &[name.clone(), int8(&kept)]).await?;
        if self.setup.cipher.is_on() {
            let magic: &[u8] = &MAGIC;
            let given = [name, int8(&serial), bytea(&magic)];
            execute(client, &names.sql.prune_plain(), &given).await?;
        }
        Ok(true)
    }

    /// Connects again, and takes the lock again, unless another run was here.
    async fn reconnect(&mut self, until: Instant) -> Result<(), StoreError> {
        let mut why = "the connection was lost".to_owned();
        while Instant::now() < until {
            match self.try_reconnect().await {
                Ok(Reconnected::Locked(connection)) => {
                    self.connection = connection;
                    return Ok(());
                }
                Ok(Reconnected::Fenced) => return Err(lock_lost()),
                Ok(Reconnected::NotYet) => {}
                Err(SqlError::Unfit { what, help }) => {
                    return Err(StoreError::Unfit { what, help });
                }
                Err(error) => why = error.to_string(),
            }
            tokio::time::sleep(POLL).await;
        }
        let place = &self.setup.place;
        Err(StoreError::refused(format!("cannot reconnect to the database {place}: {why}")))
    }

    async fn try_reconnect(&self) -> Result<Reconnected, SqlError> {
        let names = &self.setup.names;
        let connection = connect(&self.setup.address).await?;
        if !connection.try_lock(names.key).await? {
            // The server may not have noticed yet that the old connection is gone.
            if connection.holder(names.key).await? == Some(self.connection.pid) {
                let given = [int4(&self.connection.pid)];
                query(&connection.client, "SELECT pg_terminate_backend($1)", &given).await?;
            }
        }
        let row = read::row(&connection.client, names).await?.unwrap_or_default();
        if row.epoch.cast_unsigned() != self.epoch {
            return Ok(Reconnected::Fenced);
        }
        let is_ours = connection.holder(names.key).await? == Some(connection.pid);
        Ok(if is_ours { Reconnected::Locked(connection) } else { Reconnected::NotYet })
    }

    async fn sign_off(&self) -> Result<(), SqlError> {
        let names = &self.setup.names;
        let epoch = self.epoch.cast_signed();
        let given = [text(&names.name), int8(&epoch)];
        execute(&self.connection.client, &names.sql.sign_off(), &given).await?;
        let given = [int8(&names.key)];
        query(&self.connection.client, "SELECT pg_advisory_unlock($1)", &given).await?;
        Ok(())
    }
}

/// The result of an attempt to reconnect.
enum Reconnected {
    Locked(Connection),
    NotYet,
    Fenced,
}

#[async_trait]
impl FencedLog for PostgresLog {
    fn cipher(&self) -> &Cipher {
        &self.setup.cipher
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    async fn append(&mut self, frame: &Frame) -> Result<(), StoreError> {
        self.persist(Change::Frame(frame)).await
    }

    async fn replace(
        &mut self,
        new: &EncodedSnapshot,
        replaced: &Replaced,
    ) -> Result<(), StoreError> {
        self.persist(Change::Snapshot(new, replaced)).await
    }

    async fn mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        match self.put_mark(mark).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(lock_lost()),
            Err(error) => Err(error.into_store_error(&self.setup.place)),
        }
    }

    async fn release(self) -> Result<(), StoreError> {
        match self.sign_off().await {
            Ok(()) => Ok(()),
            // The lock ends with the connection.
            Err(error) if error.is_in_doubt() => Ok(()),
            Err(error) => Err(error.into_store_error(&self.setup.place)),
        }
    }
}
