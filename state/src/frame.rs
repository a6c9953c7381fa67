//! The journal's bytes: frames with checksums, numbers and a hash chain.
//!
//! One frame is one append, so an append is stored completely or not at all. The first frame of a journal is
//! its base: it names the snapshot that the journal follows. This module checks everything that it reads; it
//! does not know the meaning of the records. Little-endian:
//!
//! ```text
//!  0   4  magic "PLJ1"
//!  4   4  length of the payload
//!  8   8  lsn: one more than the frame before, over the life of a lineage
//! 16   8  epoch of the writer: never less than the frame before
//! 24  16  the first half of the frame before's BLAKE3 hash (of the last journal's, for a base)
//! 40   4  CRC-32 of the 40 bytes before
//! 44   n  payload: JSON, a base or a list of records
//!      4  CRC-32 of everything before
//! ```
//!
//! The checksum is CRC-32 of IEEE 802.3: it finds torn and damaged frames, and the chain finds whole frames
//! in the wrong place. The header has its own checksum, so that a length is checked before it is used.
//!
//! With a key the payload is sealed ([`crate::cipher`]) and bound to bytes 8 to 40 of its header, so that a
//! frame opens only in its own place.
//!
//! A frame that a crash left unfinished can only be the last one. It is too short, or has sectors that were
//! never written and read as zeros. Such a torn end was never acknowledged as durable, and it is dropped.
//! Everything else that is wrong is damage. A damaged last frame is damage, too, because a record in it may
//! be all that is known of an object.

pub(crate) mod pieces;

use engine::journal::Record;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cipher::{Cipher, CipherError};
use crate::json;

/// The highest accepted serial, and number of a call, a frame or a run. A run counts up from the numbers that
/// it reads, so a number near the limit of its type (in a database: 63 bits) would overflow. No state reaches
/// this number by itself.
pub const NUMBER_MAX: u64 = i64::MAX as u64 / 2;

const MAGIC: [u8; 4] = *b"PLJ1";
const HEADER: usize = 44;
const TRAILER: usize = 4;
/// The unit, in bytes, that a disk writes completely or not at all.
const SECTOR: usize = 512;

/// The first half of a BLAKE3 hash.
pub type Chain = [u8; 16];

/// The position after a frame, which the next frame must follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The frame's number; 0 before the first.
    pub lsn: u64,
    /// The frame's hash.
    pub chain: Chain,
    /// The frame's epoch.
    pub epoch: u64,
}

/// A reference to one snapshot, for the journal that follows it or as the newest one that was seen of a
/// store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRef {
    /// The lineage of the state.
    pub lineage: String,
    /// The serial of the snapshot.
    pub serial: u64,
    /// The digest of the snapshot.
    pub digest: String,
}

/// A journal that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// The snapshot that it follows.
    pub base: SnapshotRef,
    /// The position before its base, which is the end of the journal before.
    pub start: End,
    /// Its records, in order.
    pub records: Vec<Record>,
    /// The position after its last whole frame.
    pub end: End,
    /// The length of its whole frames, in bytes. The rest is torn.
    pub whole: usize,
}

/// The damage in a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is damaged at byte {at}: {what}")]
pub struct Damage {
    /// The offset in bytes.
    pub at: usize,
    /// A description of the damage at that offset.
    pub what: String,
}

fn damage<T>(at: usize, what: impl Into<String>) -> Result<T, Damage> {
    Err(Damage { at, what: what.into() })
}

/// One frame in its stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The position after the frame.
    pub end: End,
}

impl Frame {
    /// Encodes the first frame of a journal, which names the snapshot that the journal follows. It comes
    /// after the end of the journal before.
    pub fn base(
        base: &SnapshotRef,
        after: End,
        epoch: u64,
        cipher: &Cipher,
    ) -> Result<Self, serde_json::Error> {
        encode(base, after, epoch, cipher)
    }

    /// Encodes one append, which follows `after`.
    pub fn records(
        records: &[Record],
        after: End,
        epoch: u64,
        cipher: &Cipher,
    ) -> Result<Self, serde_json::Error> {
        encode(&records, after, epoch, cipher)
    }
}

fn encode(
    payload: &impl Serialize,
    after: End,
    epoch: u64,
    cipher: &Cipher,
) -> Result<Frame, serde_json::Error> {
    let mut plain = Vec::new();
    json::write(payload, &mut plain)?;
    let lsn = after.lsn + 1;
    let mut frame = vec![0; HEADER];
    frame[0..4].copy_from_slice(&MAGIC);
    frame[8..16].copy_from_slice(&lsn.to_le_bytes());
    frame[16..24].copy_from_slice(&epoch.to_le_bytes());
    frame[24..40].copy_from_slice(&after.chain);
    let sealed = cipher.seal(&frame[8..40], &plain).map_err(serde::ser::Error::custom)?;
    frame.extend_from_slice(&sealed);
    let length = u32::try_from(frame.len() - HEADER).map_err(|_| {
        serde::ser::Error::custom("what is to be written at once is larger than 4 GiB")
    })?;
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32fast::hash(&frame[..40]);
    frame[40..44].copy_from_slice(&checksum.to_le_bytes());
    let checksum = crc32fast::hash(&frame);
    frame.extend_from_slice(&checksum.to_le_bytes());
    let end = End { lsn, chain: chain_of(&frame), epoch };
    Ok(Frame { bytes: frame, end })
}

fn chain_of(frame: &[u8]) -> Chain {
    let mut chain = Chain::default();
    chain.copy_from_slice(&blake3::hash(frame).as_bytes()[..16]);
    chain
}

/// Reads a journal, whose frames may be sealed. A torn end is left out, see [`Journal::whole`].
pub fn read(bytes: &[u8], cipher: &Cipher) -> Result<Journal, Damage> {
    let Some(first) = next(bytes, 0)? else {
        return damage(0, "it has no beginning");
    };
    let base: SnapshotRef = parse(&first, cipher)?;
    let start = End { lsn: first.end.lsn - 1, chain: first.prev, epoch: first.end.epoch };
    let mut journal =
        Journal { base, start, records: Vec::new(), end: first.end, whole: first.after };
    while let Some(frame) = next(bytes, journal.whole)? {
        follows(&frame, journal.end)?;
        journal.records.append(&mut parse::<Vec<Record>>(&frame, cipher)?);
        journal.end = frame.end;
        journal.whole = frame.after;
    }
    Ok(journal)
}

fn parse<T: DeserializeOwned>(frame: &FrameView<'_>, cipher: &Cipher) -> Result<T, Damage> {
    let refused = |error: CipherError| Damage { at: frame.at, what: error.to_string() };
    let payload = cipher.open(frame.context, frame.payload).map_err(refused)?;
    // The text of a parse error may quote the payload, which a terminal must not show.
    serde_json::from_slice(&payload).or_else(|error| {
        let place = format!("{:?} error in column {}", error.classify(), error.column());
        damage(frame.at, format!("this version of Plumb cannot read it ({place})"))
    })
}

fn follows(frame: &FrameView<'_>, end: End) -> Result<(), Damage> {
    let at = frame.at;
    let (lsn, epoch) = (frame.end.lsn, frame.end.epoch);
    if lsn != end.lsn + 1 {
        return damage(at, format!("frame {lsn} stands where frame {} is due", end.lsn + 1));
    }
    if epoch < end.epoch {
        return damage(
            at,
            format!("frame {lsn} was written in epoch {epoch}, after epoch {}", end.epoch),
        );
    }
    if frame.prev != end.chain {
        return damage(at, format!("frame {lsn} does not continue the frame before it"));
    }
    Ok(())
}

/// A frame with correct checksums.
struct FrameView<'a> {
    at: usize,
    after: usize,
    prev: Chain,
    /// The bytes of the header to which a sealed payload is bound.
    context: &'a [u8],
    payload: &'a [u8],
    end: End,
}

/// Returns the frame at `at`; none at the end of the journal and at a torn end.
fn next(bytes: &[u8], at: usize) -> Result<Option<FrameView<'_>>, Damage> {
    if at == bytes.len() {
        return Ok(None);
    }
    match frame_at(bytes, at) {
        Ok(frame) => Ok(Some(frame)),
        Err(Flaw::Rotten(what)) => damage(at, what),
        Err(Flaw::Torn) => match find_frame(bytes, at + 1) {
            Some(later) => damage(at, format!("it is cut off there, and goes on at byte {later}")),
            None => Ok(None),
        },
    }
}

enum Flaw {
    /// A crash during an append may leave the frame so.
    Torn,
    /// No crash leaves the frame so.
    Rotten(&'static str),
}

fn frame_at(bytes: &[u8], at: usize) -> Result<FrameView<'_>, Flaw> {
    let rest = &bytes[at..];
    let Some(header) = rest.get(..HEADER) else {
        return Err(short_header(bytes, at));
    };
    if crc32fast::hash(&header[..40]) != u32_at(header, 40) {
        return Err(torn_or(bytes, at, bytes.len(), "no frame begins there"));
    }
    if header[..4] != MAGIC {
        return Err(Flaw::Rotten("a frame has a format that this version of Plumb does not know"));
    }
    let length = usize::try_from(u32_at(header, 4)).map_err(|_| Flaw::Torn)?;
    let Some(size) = length.checked_add(HEADER + TRAILER).filter(|size| *size <= rest.len()) else {
        return Err(Flaw::Torn);
    };
    let frame = &rest[..size];
    if crc32fast::hash(&frame[..size - TRAILER]) != u32_at(frame, size - TRAILER) {
        return Err(torn_or(bytes, at, at + size, "the checksum of a frame is wrong"));
    }
    let (lsn, epoch) = (u64_at(header, 8), u64_at(header, 16));
    if lsn == 0 {
        return Err(Flaw::Rotten("a frame has the number 0"));
    }
    if lsn.max(epoch) > NUMBER_MAX {
        return Err(Flaw::Rotten("a frame has a number that is too high"));
    }
    let mut prev = Chain::default();
    prev.copy_from_slice(&header[24..40]);
    Ok(FrameView {
        at,
        after: at + size,
        prev,
        context: &frame[8..40],
        payload: &frame[HEADER..size - TRAILER],
        end: End { lsn, chain: chain_of(frame), epoch },
    })
}

fn short_header(bytes: &[u8], at: usize) -> Flaw {
    let rest = &bytes[at..];
    let begins = rest.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
    if begins { Flaw::Torn } else { torn_or(bytes, at, bytes.len(), "no frame begins there") }
}

/// Returns `Torn` if a sector between `from` and `to` was never written.
fn torn_or(bytes: &[u8], from: usize, to: usize, what: &'static str) -> Flaw {
    let mut start = from;
    while start < to {
        let end = to.min((start / SECTOR + 1) * SECTOR);
        if bytes[start..end].iter().all(|byte| *byte == 0) {
            return Flaw::Torn;
        }
        start = end;
    }
    Flaw::Rotten(what)
}

/// Finds a whole frame from `from` on. Payloads are JSON and have no zero bytes, so no text inside one can
/// look like a frame; in a sealed one, two checksums would have to match by accident.
fn find_frame(bytes: &[u8], from: usize) -> Option<usize> {
    (from..bytes.len().saturating_sub(HEADER))
        .find(|at| bytes[*at..].starts_with(&MAGIC) && frame_at(bytes, *at).is_ok())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests;
