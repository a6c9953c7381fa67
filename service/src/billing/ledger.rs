//! The ledger in the store: the time that each object was used in each hour, and its cost.

use rusqlite::{Connection, params};

use super::BilledKind;
use crate::problem::Problem;
use crate::store::Tx;

/// The use of one object in one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) what: BilledKind,
    /// The id of the endpoint, pod or volume.
    pub(crate) object: String,
    /// The beginning of the hour, in milliseconds since 1970.
    pub(crate) hour: i64,
    pub(crate) ms: i64,
    pub(crate) nanos: i64,
}

/// Adds entries to the ledger. An entry for an hour that the object already has adds to that entry.
pub(super) fn add(tx: &Tx<'_>, entries: &[Entry]) -> Result<(), Problem> {
    let sql = "insert into usage(what, object, hour, ms, nanos) values(?1, ?2, ?3, ?4, ?5) \
               on conflict(hour, what, object) \
               do update set ms = ms + excluded.ms, nanos = nanos + excluded.nanos";
    let mut statement = tx.conn.prepare_cached(sql)?;
    for entry in entries {
        let values = params![entry.what.name(), entry.object, entry.hour, entry.ms, entry.nanos];
        statement.execute(values)?;
    }
    Ok(())
}

/// Returns the entries between two times, which are both the beginning of an hour in milliseconds
/// since 1970. The end is excluded.
pub(crate) fn between(conn: &Connection, from: i64, to: i64) -> Result<Vec<Entry>, Problem> {
    let sql = "select what, object, hour, ms, nanos from usage \
               where hour >= ?1 and hour < ?2 order by hour, what, object";
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map([from, to], |row| {
        let what: String = row.get(0)?;
        Ok((BilledKind::named(&what), row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })?;
    let mut entries = Vec::new();
    for row in rows {
        let (what, object, hour, ms, nanos) = row?;
        entries.extend(what.map(|what| Entry { what, object, hour, ms, nanos }));
    }
    Ok(entries)
}
