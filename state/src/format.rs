//! The stored snapshot: one line with a header, and the lines with the content.
//!
//! The first line is a JSON object with the format's number, the version of Plumb that wrote it, lineage,
//! serial, epoch, the end of the journal that is folded in, and last the digest: BLAKE3 over the header up to
//! the digest and everything after the header. The second line is the [`Snapshot`] as a JSON object, without
//! its entries. Each further line is one entry: a list of address and content. So the bytes are serialised
//! once and hashed once, and accepted only if every one of them is unchanged; and several threads read and
//! write large states.
//!
//! Files, and the question if this snapshot is the right one, do not belong here.

mod entries;

use std::collections::BTreeMap;

use engine::state::Snapshot;
use serde::{Deserialize, Serialize};

use crate::frame::{End, Journal, NUMBER_MAX, SnapshotRef};
use crate::json;
use crate::store::Version;

/// The format that this version writes. It reads this format and every older one.
pub const FORMAT: u64 = 1;

const DIGEST_LEN: usize = 64;
const BEFORE_DIGEST: &[u8] = b",\"digest\":\"";
const AFTER_DIGEST: &[u8] = b"\"}\n";

/// The first line of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of Plumb that wrote it.
    pub engine: String,
    /// The lineage.
    pub lineage: String,
    /// The serial.
    pub serial: u64,
    /// The epoch of the holder that wrote it.
    pub epoch: u64,
    /// The end of the journal that is folded in.
    pub checkpoint: End,
    /// The digest of the whole snapshot, in hexadecimal digits.
    pub digest: String,
}

impl Header {
    /// Returns the reference to this snapshot.
    pub fn snapshot_ref(&self) -> SnapshotRef {
        let Self { lineage, serial, digest, .. } = self.clone();
        SnapshotRef { lineage, serial, digest }
    }

    /// Returns the newest epoch in which this snapshot, or the journal up to `end`, was written.
    pub(crate) fn newest_epoch(&self, end: Option<End>) -> u64 {
        end.map_or(0, |end| end.epoch).max(self.epoch)
    }

    /// Returns the contradiction if this snapshot is older than one that was seen in its place, or is from
    /// another history; else none.
    pub(crate) fn contradiction(&self, seen: &SnapshotRef) -> Option<String> {
        let (found, due) = (self.serial, seen.serial);
        if seen.lineage != self.lineage {
            let (found, due) = (&self.lineage, &seen.lineage);
            return Some(format!("has lineage {found}, and the state here had lineage {due}"));
        }
        if due > found {
            return Some(format!("is older than it should be: it has serial {found}, after {due}"));
        }
        (due == found && seen.digest != self.digest)
            .then(|| format!("is not the one that was saved here as serial {due}"))
    }

    /// Returns true if the journal is the one that follows this snapshot.
    pub(crate) fn is_followed_by(&self, journal: &Journal) -> bool {
        let (start, checkpoint) = (journal.start, self.checkpoint);
        journal.base == self.snapshot_ref()
            && (start.lsn, start.chain) == (checkpoint.lsn, checkpoint.chain)
    }

    /// Returns the version for compare-and-swap.
    pub fn version(&self) -> Version {
        Version(format!("{}-{}", self.serial, self.digest))
    }
}

/// The header as JSON, without the digest. The order of the fields is the order in the file.
#[derive(Serialize, Deserialize)]
struct Head {
    format: u64,
    engine: String,
    lineage: String,
    serial: u64,
    epoch: u64,
    checkpoint: Checkpoint,
}

#[derive(Serialize, Deserialize)]
struct Checkpoint {
    lsn: u64,
    epoch: u64,
    chain: String,
}

/// The reason that a snapshot cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The file is empty.
    #[error("it is empty")]
    Empty,
    /// A newer version of Plumb wrote it.
    #[error("it has format {found}, and this version of Plumb reads formats up to {known}")]
    Newer {
        /// The format of the snapshot.
        found: u64,
        /// The newest format that this version knows.
        known: u64,
    },
    /// The file is something else, or a part of a snapshot.
    #[error("it is not a state that Plumb wrote: {0}")]
    Foreign(&'static str),
    /// Bytes were changed, or are missing.
    #[error("its digest is wrong: it was damaged, truncated or edited")]
    Damaged,
    /// The digest is right, and the content is not a snapshot.
    #[error("this version of Plumb cannot read its content ({0})")]
    Content(String),
}

/// Encodes a snapshot. Fails only for values that are nested too deep to be read back.
pub fn encode(
    snapshot: &Snapshot,
    epoch: u64,
    checkpoint: End,
) -> Result<(Header, Vec<u8>), serde_json::Error> {
    let head = Head {
        format: FORMAT,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        lineage: snapshot.lineage.clone(),
        serial: snapshot.serial,
        epoch,
        checkpoint: Checkpoint {
            lsn: checkpoint.lsn,
            epoch: checkpoint.epoch,
            chain: hex(&checkpoint.chain),
        },
    };
    let mut bytes = Vec::with_capacity(1024 + snapshot.entries.len() * 512);
    json::write(&head, &mut bytes)?;
    bytes.pop(); // The brace that closes the header comes behind the digest.
    let digested = bytes.len();
    bytes.extend_from_slice(BEFORE_DIGEST);
    bytes.extend_from_slice(&[b'0'; DIGEST_LEN]);
    bytes.extend_from_slice(AFTER_DIGEST);
    let body = bytes.len();
    json::write(&without_entries(snapshot), &mut bytes)?;
    bytes.push(b'\n');
    entries::write(&snapshot.entries, &mut bytes)?;
    let digest = digest_of(&bytes[..digested], &bytes[body..]);
    let place = digested + BEFORE_DIGEST.len();
    bytes[place..place + DIGEST_LEN].copy_from_slice(digest.as_bytes());
    Ok((header(head, checkpoint, digest), bytes))
}

/// Returns the snapshot without the entries. Each field is named here, so that a new one cannot be forgotten.
fn without_entries(snapshot: &Snapshot) -> Snapshot {
    let Snapshot {
        lineage,
        serial,
        seal_key,
        entries: _,
        pending,
        watched,
        taken_over,
        outputs,
        next_call,
        locations,
    } = snapshot;
    Snapshot {
        lineage: lineage.clone(),
        serial: *serial,
        seal_key: seal_key.clone(),
        entries: BTreeMap::new(),
        pending: pending.clone(),
        watched: watched.clone(),
        taken_over: taken_over.clone(),
        outputs: outputs.clone(),
        next_call: *next_call,
        locations: locations.clone(),
    }
}

fn header(head: Head, checkpoint: End, digest: String) -> Header {
    let Head { engine, lineage, serial, epoch, .. } = head;
    Header { engine, lineage, serial, epoch, checkpoint, digest }
}

/// Decodes a snapshot, and accepts it only if every byte is unchanged.
pub fn decode(bytes: &[u8]) -> Result<(Header, Snapshot), Unreadable> {
    let (header, head, body) = parts(bytes)?;
    if digest_of(head, body) != header.digest {
        return Err(Unreadable::Damaged);
    }
    let (first, rest) = split_line(body);
    let mut snapshot: Snapshot = serde_json::from_slice(first).map_err(content)?;
    snapshot.entries = entries::read(rest).map_err(content)?;
    check_numbers(&snapshot)?;
    if header.epoch.max(header.checkpoint.lsn).max(header.checkpoint.epoch) > NUMBER_MAX {
        return Err(TOO_HIGH);
    }
    if snapshot.lineage != header.lineage || snapshot.serial != header.serial {
        return Err(Unreadable::Foreign("its header belongs to another state"));
    }
    Ok((header, snapshot))
}

const TOO_HIGH: Unreadable = Unreadable::Foreign("a number in it is too high to count up from");

/// Refuses a snapshot with numbers that are too large to be counted up, whatever its source.
pub fn check_numbers(snapshot: &Snapshot) -> Result<(), Unreadable> {
    let highest = snapshot.serial.max(snapshot.next_call);
    if highest > NUMBER_MAX { Err(TOO_HIGH) } else { Ok(()) }
}

/// Returns the error without its text, because the text of a parse error may quote the content, which a
/// terminal must not show.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` passes")]
fn content(error: serde_json::Error) -> Unreadable {
    Unreadable::Content(format!("{:?} error in column {}", error.classify(), error.column()))
}

/// Returns the first line, with its end, and the rest.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    bytes.split_at(end)
}

/// Reads the first line of a snapshot, without checking the rest.
pub fn peek(bytes: &[u8]) -> Result<Header, Unreadable> {
    parts(bytes).map(|(header, _, _)| header)
}

/// Returns the header, the bytes of it that are digested, and the body.
fn parts(bytes: &[u8]) -> Result<(Header, &[u8], &[u8]), Unreadable> {
    if bytes.is_empty() {
        return Err(Unreadable::Empty);
    }
    refuse_newer(bytes)?;
    let (line, body) = split_line(bytes);
    let (head, digest) = split_header(line)
        .ok_or(Unreadable::Foreign("its first line does not end with a digest"))?;
    let mut closed = head.to_vec();
    closed.push(b'}');
    let parsed: Head = serde_json::from_slice(&closed)
        .map_err(|_| Unreadable::Foreign("its first line is not the header of a state"))?;
    let chain = unhex(&parsed.checkpoint.chain)
        .ok_or(Unreadable::Foreign("its first line has a wrong checkpoint"))?;
    let checkpoint = End { lsn: parsed.checkpoint.lsn, chain, epoch: parsed.checkpoint.epoch };
    Ok((header(parsed, checkpoint, digest), head, body))
}

/// Refuses a newer format. It may differ in everything but its first number.
fn refuse_newer(bytes: &[u8]) -> Result<(), Unreadable> {
    #[derive(Deserialize)]
    struct Any {
        format: u64,
    }
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Any>();
    match values.next() {
        Some(Ok(Any { format })) if format > FORMAT => {
            Err(Unreadable::Newer { found: format, known: FORMAT })
        }
        _ => Ok(()),
    }
}

fn split_header(line: &[u8]) -> Option<(&[u8], String)> {
    let line = line.strip_suffix(AFTER_DIGEST)?;
    let (rest, digest) = line.split_at_checked(line.len().checked_sub(DIGEST_LEN)?)?;
    let head = rest.strip_suffix(BEFORE_DIGEST)?;
    Some((head, String::from_utf8(digest.to_vec()).ok()?))
}

fn digest_of(head: &[u8], body: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head);
    hasher.update(body);
    hasher.finalize().to_hex().to_string()
}

fn hex(chain: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*chain))
}

fn unhex(text: &str) -> Option<[u8; 16]> {
    let number = u128::from_str_radix(text, 16).ok()?;
    (text.len() == 32).then(|| number.to_be_bytes())
}

#[cfg(test)]
mod tests;
