//! The reader of the tables: it decides which combinations of rows are a state, which are no state yet, and
//! which are damaged. [`judge`] decides that from rows alone.

use engine::state::Snapshot;

use super::connection::{Session, SqlError, batch, int8, query, text};
use super::setup::Names;
use crate::cipher::{Cipher, STATE};
use crate::error::StoreError;
use crate::fenced_log::{self, Position};
use crate::format::{self, Header};
use crate::frame::SnapshotRef;
use crate::frame::pieces::assemble;
use crate::holder::Holder;
use crate::mark::Mark;
use crate::store::Loaded;

/// The row of the table `store`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) epoch: i64,
    pub(super) lsn: i64,
    /// The current snapshot; none until a first run has made one.
    pub(super) saved: Option<SnapshotRef>,
    pub(super) holder: Option<String>,
    pub(super) mark: Option<Mark>,
}

/// All rows of one state, as of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub(super) row: Option<Row>,
    pub(super) body: Vec<u8>,
    pub(super) serials: Vec<i64>,
    pub(super) frames: Vec<(i64, Vec<u8>)>,
}

impl Rows {
    /// Returns the mark of the location.
    pub(super) fn mark(&self) -> Option<&Mark> {
        self.row.as_ref()?.mark.as_ref()
    }
}

/// Reads everything as of one moment. Tables that do not exist count as empty.
pub(super) async fn rows(client: &Session, names: &Names) -> Result<Rows, SqlError> {
    let tables: i32 = match query(client, &names.sql.tables(), &[]).await?.first() {
        Some(row) => row.get(0),
        None => 0,
    };
    match tables {
        0 => return Ok(Rows::default()),
        3 => {}
        _ => return Err(SqlError::Refused("some of Plumb's tables are missing".to_owned())),
    }
    batch(client, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let read = read(client, names).await;
    batch(client, "COMMIT").await?;
    read
}

/// Returns the row of the table `store`.
pub(super) async fn row(client: &Session, names: &Names) -> Result<Option<Row>, SqlError> {
    row_by(client, names, &names.sql.row()).await
}

/// Returns the row of the table `store`, locked until the transaction ends.
pub(super) async fn row_for_update(
    client: &Session,
    names: &Names,
) -> Result<Option<Row>, SqlError> {
    row_by(client, names, &(names.sql.row() + " FOR UPDATE")).await
}

async fn row_by(client: &Session, names: &Names, statement: &str) -> Result<Option<Row>, SqlError> {
    let rows = query(client, statement, &[text(&names.name)]).await?;
    let row = rows.first().map(|row| {
        let saved = match (row.get(2), row.get(3), row.get(4)) {
            (Some(lineage), Some(serial), Some(digest)) => {
                let serial = i64::cast_unsigned(serial);
                Some(SnapshotRef { lineage, serial, digest })
            }
            _ => None,
        };
        let mark = row.get::<_, Option<&str>>(6).map(Mark::parse);
        Row { epoch: row.get(0), lsn: row.get(1), saved, holder: row.get(5), mark }
    });
    Ok(row)
}

/// Returns the highest stored serial and the highest stored number of a frame.
pub(super) async fn highest(client: &Session, names: &Names) -> Result<(i64, i64), SqlError> {
    let name = text(&names.name);
    let serials = query(client, &names.sql.serials(), std::slice::from_ref(&name)).await?;
    let lsns = query(client, &names.sql.last_frame(), &[name]).await?;
    let lsn: Option<i64> = lsns.first().and_then(|row| row.get(0));
    Ok((serials.last().map_or(0, |row| row.get(0)), lsn.unwrap_or(0)))
}

async fn read(client: &Session, names: &Names) -> Result<Rows, SqlError> {
    let name = text(&names.name);
    let mut rows = Rows { row: row(client, names).await?, ..Rows::default() };
    let found = query(client, &names.sql.serials(), std::slice::from_ref(&name)).await?;
    rows.serials = found.iter().map(|row| row.get(0)).collect();
    if let Some(Row { saved: Some(saved), .. }) = &rows.row {
        rows.body = body(client, names, saved.serial).await?;
    }
    let frames = query(client, &names.sql.frames(), &[name]).await?;
    rows.frames = frames.iter().map(|row| (row.get(0), row.get(1))).collect();
    Ok(rows)
}

/// Returns the bytes of a snapshot; none if there is none with that serial.
pub(super) async fn body(
    client: &Session,
    names: &Names,
    serial: u64,
) -> Result<Vec<u8>, SqlError> {
    let serial = serial.cast_signed();
    let given = [text(&names.name), int8(&serial)];
    let parts = query(client, &names.sql.parts(), &given).await?;
    Ok(parts.iter().flat_map(|part| part.get::<_, &[u8]>(0)).copied().collect())
}

/// Judges the rows. None means a first run.
pub(super) fn judge(
    rows: &Rows,
    place: &str,
    cipher: &Cipher,
) -> Result<Option<(Loaded, Position)>, StoreError> {
    let suspicious = |what: String| {
        let help = match rows.serials.last() {
            Some(serial) => format!(
                "nothing was changed; `plumb state pull --serial {serial} > state.json` and \
                 `plumb state push --force state.json` put back the newest snapshot that is kept"
            ),
            None => "nothing was changed; restore the database from a backup".to_owned(),
        };
        StoreError::suspicious(format!("the state in {place} {what}"), help)
    };
    let saved = match &rows.row {
        Some(Row { saved: Some(saved), .. }) => saved,
        _ if rows.serials.is_empty() && rows.frames.is_empty() => return Ok(None),
        _ => return Err(suspicious("is missing, but parts of it are there".to_owned())),
    };
    let (header, snapshot) = open(rows, saved, place, cipher, &suspicious)?;
    let frames = rows.frames.iter().map(|(lsn, frame)| (lsn.cast_unsigned(), &frame[..]));
    let journal = assemble(frames, cipher)
        .map_err(|what| suspicious(format!("cannot be read: {what}")))?
        .ok_or_else(|| suspicious("has lost its journal".to_owned()))?
        .journal;
    let found = fenced_log::join(header, snapshot, journal);
    let (loaded, position) =
        found.ok_or_else(|| suspicious("does not belong to the journal beside it".to_owned()))?;
    if rows.row.as_ref().is_some_and(|row| row.lsn.cast_unsigned() != position.end.lsn) {
        return Err(suspicious("has lost the end of its journal".to_owned()));
    }
    Ok(Some((loaded, position)))
}

fn open(
    rows: &Rows,
    saved: &SnapshotRef,
    place: &str,
    cipher: &Cipher,
    suspicious: &dyn Fn(String) -> StoreError,
) -> Result<(Header, Snapshot), StoreError> {
    if rows.body.is_empty() {
        let serial = saved.serial;
        return Err(suspicious(format!("is missing: there is no snapshot of serial {serial}")));
    }
    let plain = cipher.open(STATE, &rows.body).map_err(|error| error.of(place))?;
    let (header, snapshot) =
        format::decode(&plain).map_err(|error| suspicious(format!("cannot be read: {error}")))?;
    if header.snapshot_ref() != *saved {
        return Err(suspicious(format!(
            "is not the one that was saved as serial {}",
            saved.serial
        )));
    }
    Ok((header, snapshot))
}

/// Returns the holder of the lock by the row.
pub(super) fn holder(row: Option<&Row>) -> Holder {
    let text = row.and_then(|row| row.holder.as_deref()).unwrap_or_default();
    serde_json::from_str(text).map(|holder: Holder| holder.sanitised()).unwrap_or_default()
}
