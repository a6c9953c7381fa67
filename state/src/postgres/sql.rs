//! The tables, and every statement on them.
//!
//! ```text
//! store      one row a state: the epoch of the last holder, which snapshot counts, how long its
//!            journal is, who holds the lock
//! snapshot   snapshots as they are in files (`format`), in parts; the last 20 and the one that counts
//! journal    the records since: one frame (`frame`) a row
//! ```

use crate::environment::Refusal;

/// The largest part of a snapshot, in bytes: a row has a limit, and a statement needs memory for it.
pub(super) const PART: usize = 1 << 20;
/// The number of older snapshots that are kept.
pub(super) const KEPT: i64 = 20;

/// The statements on the tables of one schema.
#[derive(Clone)]
pub(super) struct Sql {
    /// The name of the schema, quoted.
    schema: String,
}

impl Sql {
    pub(super) fn new(schema: &str) -> Result<Self, Refusal> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if schema.is_empty() || schema.len() > 60 || !schema.chars().all(is_plain) {
            return Err(Refusal::new("the `schema` of `[state]` is not a name")
                .help("use up to 60 letters, digits, - and _"));
        }
        Ok(Self { schema: format!("\"{schema}\"") })
    }

    pub(super) fn create(&self) -> String {
        let schema = &self.schema;
        format!(
            "CREATE SCHEMA IF NOT EXISTS {schema};
             CREATE TABLE IF NOT EXISTS {schema}.store (
                 name text PRIMARY KEY, epoch bigint NOT NULL, lsn bigint NOT NULL,
                 lineage text, serial bigint, digest text, holder text, moved text);
             CREATE TABLE IF NOT EXISTS {schema}.snapshot (
                 name text NOT NULL, serial bigint NOT NULL, part integer NOT NULL,
                 body bytea NOT NULL, saved_at timestamptz NOT NULL DEFAULT now(),
                 PRIMARY KEY (name, serial, part));
             CREATE TABLE IF NOT EXISTS {schema}.journal (
                 name text NOT NULL, lsn bigint NOT NULL, frame bytea NOT NULL,
                 PRIMARY KEY (name, lsn));"
        )
    }

    /// Counts the tables that exist.
    pub(super) fn tables(&self) -> String {
        let exists = |table| format!("(to_regclass('{}.{table}') IS NOT NULL)::int", self.schema);
        format!("SELECT {} + {} + {}", exists("store"), exists("snapshot"), exists("journal"))
    }

    pub(super) fn row(&self) -> String {
        format!(
            "SELECT epoch, lsn, lineage, serial, digest, holder, moved FROM {}.store WHERE name = $1",
            self.schema
        )
    }

    pub(super) fn parts(&self) -> String {
        format!(
            "SELECT body FROM {}.snapshot WHERE name = $1 AND serial = $2 ORDER BY part",
            self.schema
        )
    }

    pub(super) fn serials(&self) -> String {
        format!(
            "SELECT DISTINCT serial FROM {}.snapshot WHERE name = $1 ORDER BY serial",
            self.schema
        )
    }

    pub(super) fn frames(&self) -> String {
        format!("SELECT lsn, frame FROM {}.journal WHERE name = $1 ORDER BY lsn", self.schema)
    }

    pub(super) fn last_frame(&self) -> String {
        format!("SELECT max(lsn) FROM {}.journal WHERE name = $1", self.schema)
    }

    pub(super) fn frame(&self) -> String {
        format!("SELECT frame FROM {}.journal WHERE name = $1 AND lsn = $2", self.schema)
    }

    /// Drives out every earlier holder: their writes do not match the new epoch.
    pub(super) fn take(&self) -> String {
        format!(
            "INSERT INTO {0}.store AS s (name, epoch, lsn, holder) VALUES ($1, $2, 0, $3)
             ON CONFLICT (name) DO UPDATE SET epoch = greatest(s.epoch + 1, $2), holder = $3
             RETURNING epoch",
            self.schema
        )
    }

    pub(super) fn sign_off(&self) -> String {
        format!("UPDATE {}.store SET holder = NULL WHERE name = $1 AND epoch = $2", self.schema)
    }

    /// Returns one row, or none if another run holds the lock by now.
    pub(super) fn drive_out(&self) -> String {
        format!(
            "UPDATE {}.store SET epoch = epoch + 1
             WHERE name = $1 AND epoch = $2 AND holder IS NOT NULL",
            self.schema
        )
    }

    /// Returns one row, or none if this run lost the lock.
    pub(super) fn mark(&self) -> String {
        format!("UPDATE {}.store SET moved = $3 WHERE name = $1 AND epoch = $2", self.schema)
    }

    /// Returns one row, or none if this run lost the lock.
    pub(super) fn append(&self) -> String {
        format!(
            "WITH held AS (UPDATE {0}.store SET lsn = $3
                 WHERE name = $1 AND epoch = $2 AND lsn = $3 - 1 RETURNING 1)
             INSERT INTO {0}.journal (name, lsn, frame) SELECT $1, $3, $4 FROM held",
            self.schema
        )
    }

    /// Returns one row, or none if this run lost the lock: then the rest of the save has no effect.
    pub(super) fn replace(&self) -> String {
        format!(
            "UPDATE {}.store SET lsn = $3, lineage = $4, serial = $5, digest = $6
             WHERE name = $1 AND epoch = $2",
            self.schema
        )
    }

    pub(super) fn add_part(&self) -> String {
        format!(
            "INSERT INTO {}.snapshot (name, serial, part, body) VALUES ($1, $2, $3, $4)",
            self.schema
        )
    }

    pub(super) fn drop_frames(&self) -> String {
        format!("DELETE FROM {}.journal WHERE name = $1", self.schema)
    }

    pub(super) fn add_frame(&self) -> String {
        format!("INSERT INTO {}.journal (name, lsn, frame) VALUES ($1, $2, $3)", self.schema)
    }

    /// Reads the first bytes of the current snapshot.
    pub(super) fn first_bytes(&self) -> String {
        format!(
            "SELECT substr(p.body, 1, 4) FROM {0}.store s JOIN {0}.snapshot p USING (name, serial)
             WHERE s.name = $1 AND p.part = 0",
            self.schema
        )
    }

    /// Removes older snapshots that do not begin with $3: they are from before there was a key.
    pub(super) fn prune_plain(&self) -> String {
        format!(
            "DELETE FROM {0}.snapshot WHERE name = $1 AND serial <> $2 AND serial IN (
                 SELECT serial FROM {0}.snapshot
                 WHERE name = $1 AND part = 0 AND substr(body, 1, 4) <> $3)",
            self.schema
        )
    }

    /// Removes all snapshots but the newest ones.
    pub(super) fn prune(&self) -> String {
        format!(
            "DELETE FROM {0}.snapshot WHERE name = $1 AND serial < (
                 SELECT min(serial) FROM (SELECT DISTINCT serial FROM {0}.snapshot
                     WHERE name = $1 ORDER BY serial DESC LIMIT $2) newest)",
            self.schema
        )
    }
}

/// Reads the process that holds an advisory lock of this database.
pub(super) const HOLDER: &str = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted
     AND classid::bigint = $1 AND objid::bigint = $2 AND objsubid = 1
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Ends a session if it still holds the lock.
pub(super) const END_HOLDER: &str = "SELECT pg_terminate_backend(pid) FROM pg_locks
     WHERE locktype = 'advisory' AND granted
     AND classid::bigint = $1 AND objid::bigint = $2 AND objsubid = 1 AND pid = $3
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Changes the settings of the session: only its end ends it, it notices if a machine is gone, and its
/// commits return only when they are durable, even if the settings of the database or of the user differ.
pub(super) const SETTINGS: &str = "SELECT set_config(name, CASE name
         WHEN 'tcp_keepalives_idle' THEN '10' WHEN 'tcp_keepalives_interval' THEN '5'
         WHEN 'tcp_keepalives_count' THEN '3'
         WHEN 'synchronous_commit' THEN CASE setting WHEN 'off' THEN 'on' ELSE setting END
         ELSE '0' END, false)
     FROM pg_settings WHERE name IN ('tcp_keepalives_idle', 'tcp_keepalives_interval',
         'tcp_keepalives_count', 'statement_timeout', 'lock_timeout', 'idle_session_timeout',
         'idle_in_transaction_session_timeout', 'synchronous_commit')";

/// Reads the properties that a server must have.
pub(super) const NATURE: &str = "SELECT current_setting('synchronous_commit'), pg_is_in_recovery(),
     current_setting('transaction_read_only'), pg_backend_pid(), current_setting('fsync'),
     current_setting('synchronous_standby_names')";
