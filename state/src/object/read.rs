//! The reader of a journal of objects: it decides which combinations of objects are a state, which are no
//! state yet, and which are damaged.

use engine::state::Snapshot;

use super::lock::{self, Body};
use super::objects::Objects;
use crate::cipher::{Cipher, STATE};
use crate::error::StoreError;
use crate::fenced_log::{self, Position};
use crate::format::{self, Header};
use crate::frame::pieces::{Assembled, assemble, lacking_key};
use crate::frame::{NUMBER_MAX, SnapshotRef};
use crate::store::Loaded;

/// The number of times that objects are looked for again if they are removed during the read.
const ATTEMPTS: u32 = 20;
/// The least size, in bytes, that an object counts as: reading one costs a request, however small it is.
pub(super) const FRAME_BYTES_MIN: u64 = 4096;

/// A state that was found.
pub(super) struct Found {
    pub(super) loaded: Loaded,
    pub(super) position: Position,
    /// The number of the journal's first frame.
    pub(super) base: u64,
    /// The first frames of their epochs, which block earlier holders.
    pub(super) epoch_starts: Vec<u64>,
}

/// Returns the name of a frame.
pub(super) fn frame_name(lsn: u64) -> String {
    format!("journal/{lsn:020}")
}

/// Returns the name of a snapshot. Its digest is part of it, so that a run that lost the lock cannot write
/// another snapshot under the name of the current one.
pub(super) fn snapshot_name(SnapshotRef { serial, digest, .. }: &SnapshotRef) -> String {
    format!("snapshots/{serial:020}-{}", digest.get(..16).unwrap_or(digest))
}

/// Returns the serial in the name of a snapshot; none for other names.
pub(super) fn serial_of(name: &str) -> Option<u64> {
    name.split_once('-')?.0.parse().ok()
}

/// Returns the serials of the stored snapshots with their names, in order.
pub(super) async fn serials(objects: &Objects) -> Result<Vec<(u64, String)>, StoreError> {
    let listed = objects.list("snapshots", None).await?;
    Ok(listed.into_iter().filter_map(|(name, _)| Some((serial_of(&name)?, name))).collect())
}

/// Reads the state as of one moment; none means a first run. `lock_body` is the content of the lock object,
/// which is read again if objects were removed meanwhile.
pub(super) async fn read(
    objects: &Objects,
    cipher: &Cipher,
    lock_body: Option<Body>,
) -> Result<Option<Found>, StoreError> {
    let mut lock_body = lock_body.unwrap_or_default();
    let mut missing = String::new();
    for _ in 0..ATTEMPTS {
        match attempt(objects, cipher, &lock_body).await? {
            Read::Found(found) => return Ok(found.map(|found| *found)),
            Read::Gone(name) => missing = name,
        }
        let now = lock::read(objects).await?.map(|(body, _)| body).unwrap_or_default();
        if now.base == lock_body.base {
            break;
        }
        lock_body = now;
    }
    Err(suspicious(objects, format!("is incomplete: {missing} is missing")).await)
}

/// The result of an attempt to read.
enum Read {
    Found(Option<Box<Found>>),
    /// This object is missing: it was removed, or is lost.
    Gone(String),
}

async fn attempt(objects: &Objects, cipher: &Cipher, lock_body: &Body) -> Result<Read, StoreError> {
    let numbers = numbers(objects, lock_body).await?;
    let (Some(first), Some(last)) = (numbers.first().copied(), numbers.last().copied()) else {
        return nothing(objects, lock_body).await;
    };
    if lock_body.base > 0 && first != lock_body.base {
        return Ok(Read::Gone(frame_name(lock_body.base)));
    }
    if let Some(gap) = (first..=last).zip(&numbers).find(|(due, number)| due != *number) {
        return Ok(Read::Gone(frame_name(gap.0)));
    }
    if last < lock_body.lsn {
        return Ok(Read::Gone(frame_name(lock_body.lsn)));
    }
    let names = numbers.iter().copied().map(frame_name).collect();
    let Some(frames) = objects.get_all(names).await? else {
        return Ok(Read::Gone(frame_name(first)));
    };
    let pieces = numbers.iter().copied().zip(frames.iter().map(Vec::as_slice));
    let assembled = match assemble(pieces, cipher) {
        Ok(Some(assembled)) => assembled,
        Ok(None) => return Ok(Read::Gone("the beginning of the journal".to_owned())),
        Err(what) => {
            return Err(match lacking_key(frames.iter().map(Vec::as_slice), cipher) {
                Some(error) => error.of(&format!("the journal in {}", objects.place)),
                None => suspicious(objects, format!("cannot be read: {what}")).await,
            });
        }
    };
    let bytes = frames.iter().map(|frame| FRAME_BYTES_MIN.max(frame.len() as u64)).sum();
    found(objects, cipher, lock_body, assembled, bytes).await
}

/// Returns the numbers of the frames that count: all from the one that the lock object names, or else the
/// last ones without a gap.
async fn numbers(objects: &Objects, lock_body: &Body) -> Result<Vec<u64>, StoreError> {
    let after = (lock_body.base > 0).then(|| format!("{:020}", lock_body.base - 1));
    let listed = objects.list("journal", after.as_deref()).await?;
    let mut numbers: Vec<u64> = listed.iter().filter_map(|(name, _)| number(name)).collect();
    if lock_body.base == 0 {
        let gap = numbers.windows(2).rposition(|pair| pair[0] + 1 != pair[1]);
        numbers.drain(..gap.map_or(0, |gap| gap + 1));
    }
    Ok(numbers)
}

/// Returns the number of a frame; none for a name that no frame has.
pub(super) fn number(name: &str) -> Option<u64> {
    name.parse().ok().filter(|number| *number <= NUMBER_MAX)
}

/// Returns the result without a journal: no state, or an error if something shows that there was one.
async fn nothing(objects: &Objects, lock_body: &Body) -> Result<Read, StoreError> {
    if let Some(seen) = &lock_body.seen {
        let what = format!("is missing, but serial {} was seen here", seen.serial);
        return Err(suspicious(objects, what).await);
    }
    // First runs that were killed at once leave their first snapshots, and nothing else.
    let kept = objects.list("snapshots", None).await?;
    let serials: Vec<Option<u64>> = kept.iter().map(|(name, _)| serial_of(name)).collect();
    match &serials[..] {
        [] => Ok(Read::Found(None)),
        [first, others @ ..] if others.iter().all(|other| other == first) => Ok(Read::Found(None)),
        [.., last] => {
            let serial = last.unwrap_or_default();
            let what = format!("is missing, but there is a snapshot of serial {serial}");
            Err(suspicious(objects, what).await)
        }
    }
}

async fn found(
    objects: &Objects,
    cipher: &Cipher,
    lock_body: &Body,
    assembled: Assembled,
    journal_bytes: u64,
) -> Result<Read, StoreError> {
    let Assembled { journal, epoch_starts } = assembled;
    let name = snapshot_name(&journal.base);
    let Some(object) = objects.get(&name).await? else { return Ok(Read::Gone(name)) };
    let (header, snapshot) = open(objects, cipher, &name, &object.bytes).await?;
    let base = journal.start.lsn + 1;
    let contradiction = lock_body.seen.as_ref().and_then(|seen| header.contradiction(seen));
    let Some((loaded, position)) = fenced_log::join(header, snapshot, journal) else {
        return Err(suspicious(objects, "does not belong to its journal".to_owned()).await);
    };
    if let Some(what) = contradiction {
        return Err(suspicious(objects, what).await);
    }
    let position = Position { journal_bytes, ..position };
    Ok(Read::Found(Some(Box::new(Found { loaded, position, base, epoch_starts }))))
}

/// Opens the bytes of a snapshot.
pub(super) async fn open(
    objects: &Objects,
    cipher: &Cipher,
    name: &str,
    bytes: &[u8],
) -> Result<(Header, Snapshot), StoreError> {
    let place = format!("{name} in {}", objects.place);
    let plain = cipher.open(STATE, bytes).map_err(|error| error.of(&place))?;
    match format::decode(&plain) {
        Ok(opened) => Ok(opened),
        Err(error) => Err(suspicious(objects, format!("cannot be read: {name}: {error}")).await),
    }
}

/// Returns the error with the command that restores the newest kept snapshot.
async fn suspicious(objects: &Objects, what: String) -> StoreError {
    let kept = objects.list("snapshots", None).await.unwrap_or_default();
    let help = match kept.iter().rev().find_map(|(name, _)| serial_of(name)) {
        Some(serial) => format!(
            "nothing was changed; restore the objects if you can; otherwise `plumb state pull \
             --serial {serial} > state.json` and `plumb state push --force state.json` put back \
             the newest snapshot that is kept"
        ),
        None => {
            "nothing was changed; restore the objects from a backup, or from an older version of \
             the bucket"
                .to_owned()
        }
    };
    StoreError::suspicious(format!("the state in {} {what}", objects.place), help)
}
