//! The tables of the store and their version.

use std::time::Duration;

use rusqlite::Connection;

use super::StoreError;

/// Raised with every change of the tables; each step from an older version is a statement below.
const VERSION: i64 = 1;

const TABLES: &str = "
create table objects (
    seq         integer primary key autoincrement,
    kind        text not null,
    id          text not null unique,
    name        text not null,
    body        text not null,
    previous    text,
    written_at  integer not null
) strict;
create index objects_kind on objects(kind, seq);
create index objects_name on objects(kind, name);

create table links (
    holder  text not null,
    held    text not null,
    primary key (holder, held)
) strict, without rowid;
create index links_held on links(held);

create table last_use (
    id  text primary key,
    at  integer not null
) strict, without rowid;
";

/// Sets the connection up for durable group commits and brings the tables to this version.
pub(super) fn prepare(conn: &Connection) -> Result<(), StoreError> {
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(128);
    let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Err(StoreError::Newer { found, known: VERSION });
    }
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", "ON")?;
    if found == 0 {
        conn.execute_batch(&format!("begin; {TABLES} pragma user_version = {VERSION}; commit;"))?;
    }
    Ok(())
}
