//! Objects of the management APIs: one table for all kinds, bodies as JSON, links between them.
//!
//! This module knows no kind by name. The fields and references of each kind are defined with its
//! resource.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Tx;
use crate::clock::now_ms;
use crate::problem::Problem;

/// A kind of object.
pub(crate) trait Record: Serialize + DeserializeOwned + Send + 'static {
    /// The name of the kind in the store.
    const KIND: &'static str;
    /// The name of the kind for people.
    const NOUN: &'static str;

    fn id(&self) -> &str;
    fn name(&self) -> &str;

    /// Returns the ids of the objects that this one uses.
    fn uses(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Returns the object with this id, or the problem that there is none.
pub(crate) fn get<R: Record>(conn: &Connection, id: &str) -> Result<R, Problem> {
    find(conn, id)?.ok_or_else(|| Problem::not_found(R::NOUN))
}

/// Returns the object with this id; `None` if there is none.
pub(crate) fn find<R: Record>(conn: &Connection, id: &str) -> Result<Option<R>, Problem> {
    let sql = "select body from objects where id = ?1 and kind = ?2";
    let body: Option<String> =
        conn.prepare_cached(sql)?.query_row([id, R::KIND], |row| row.get(0)).optional()?;
    Ok(body.map(|body| serde_json::from_str(&body)).transpose()?)
}

/// Returns all objects of a kind in the order in which they were made. With `stale_ms`, returns the
/// list as it was so many milliseconds ago, as far as the store remembers: later objects are left
/// out, and objects that changed later have the state before their last change.
pub(crate) fn list<R: Record>(conn: &Connection, stale_ms: i64) -> Result<Vec<R>, Problem> {
    let sql = "select case when written_at > ?2 then previous else body end from objects \
               where kind = ?1 order by seq";
    let horizon = if stale_ms > 0 { now_ms() - stale_ms } else { i64::MAX };
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map(params![R::KIND, horizon], |row| row.get(0))?;
    let mut records = Vec::new();
    for body in rows {
        let body: Option<String> = body?;
        records.extend(body.map(|body| serde_json::from_str(&body)).transpose()?);
    }
    Ok(records)
}

/// Returns the id of the object of this kind with this name, of the oldest one if there are
/// several; `None` if there is none.
pub(crate) fn named<R: Record>(conn: &Connection, name: &str) -> Result<Option<String>, Problem> {
    let sql = "select id from objects where kind = ?1 and name = ?2 order by seq limit 1";
    Ok(conn.prepare_cached(sql)?.query_row([R::KIND, name], |row| row.get(0)).optional()?)
}

/// Returns all objects of a kind with this name, in the order in which they were made.
pub(crate) fn all_named<R: Record>(conn: &Connection, name: &str) -> Result<Vec<R>, Problem> {
    let sql = "select body from objects where kind = ?1 and name = ?2 order by seq";
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map([R::KIND, name], |row| row.get(0))?;
    let mut records = Vec::new();
    for body in rows {
        let body: String = body?;
        records.push(serde_json::from_str(&body)?);
    }
    Ok(records)
}

/// Forgets the state that an object had before its last change.
pub(crate) fn forget_previous(tx: &Tx<'_>, id: &str) -> Result<(), Problem> {
    let sql = "update objects set previous = body where id = ?1";
    tx.conn.prepare_cached(sql)?.execute([id])?;
    Ok(())
}

/// Adds an object with its links.
pub(crate) fn insert<R: Record>(tx: &Tx<'_>, record: &R) -> Result<(), Problem> {
    let sql = "insert into objects(kind, id, name, body, written_at) values(?1, ?2, ?3, ?4, ?5)";
    let body = serde_json::to_string(record)?;
    tx.conn.prepare_cached(sql)?.execute(params![
        R::KIND,
        record.id(),
        record.name(),
        body,
        now_ms()
    ])?;
    link(tx, record)
}

/// Replaces an object and its links.
pub(crate) fn update<R: Record>(tx: &Tx<'_>, record: &R) -> Result<(), Problem> {
    let sql = "update objects set previous = body, name = ?3, body = ?4, written_at = ?5 \
               where id = ?1 and kind = ?2";
    let body = serde_json::to_string(record)?;
    let now = now_ms();
    let changed = tx.conn.prepare_cached(sql)?.execute(params![
        record.id(),
        R::KIND,
        record.name(),
        body,
        now
    ])?;
    if changed == 0 {
        return Err(Problem::not_found(R::NOUN));
    }
    unlink(tx, record.id())?;
    link(tx, record)
}

/// Removes an object and its links. Returns the problem that there is none, if so.
pub(crate) fn delete<R: Record>(tx: &Tx<'_>, id: &str) -> Result<(), Problem> {
    let sql = "delete from objects where id = ?1 and kind = ?2";
    if tx.conn.prepare_cached(sql)?.execute([id, R::KIND])? == 0 {
        return Err(Problem::not_found(R::NOUN));
    }
    unlink(tx, id)?;
    tx.conn.prepare_cached("delete from last_use where id = ?1")?.execute([id])?;
    Ok(())
}

/// Returns true if any object uses this one.
pub(crate) fn in_use(conn: &Connection, id: &str) -> Result<bool, Problem> {
    let sql = "select exists(select 1 from links where held = ?1)";
    Ok(conn.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
}

/// Returns the ids of the objects that use this one.
pub(crate) fn users(conn: &Connection, id: &str) -> Result<Vec<String>, Problem> {
    let mut statement = conn.prepare_cached("select holder from links where held = ?1")?;
    let rows = statement.query_map([id], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the time when an object that used this one last stopped using it, in milliseconds since
/// 1970; `None` if that never happened.
pub(crate) fn last_use(conn: &Connection, id: &str) -> Result<Option<i64>, Problem> {
    let sql = "select at from last_use where id = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?)
}

fn link<R: Record>(tx: &Tx<'_>, record: &R) -> Result<(), Problem> {
    let sql = "insert or ignore into links(holder, held) values(?1, ?2)";
    for held in record.uses() {
        tx.conn.prepare_cached(sql)?.execute([record.id(), held])?;
    }
    Ok(())
}

fn unlink(tx: &Tx<'_>, id: &str) -> Result<(), Problem> {
    let sql =
        "insert or replace into last_use(id, at) select held, ?2 from links where holder = ?1";
    tx.conn.prepare_cached(sql)?.execute(params![id, now_ms()])?;
    tx.conn.prepare_cached("delete from links where holder = ?1")?.execute([id])?;
    Ok(())
}
