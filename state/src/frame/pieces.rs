//! A journal that is stored frame by frame, each in its own row or object.
//!
//! Such a place stores a frame completely or not at all, so no frame is torn here: a truncated or missing
//! frame is damage. A base in the middle marks the save of a snapshot: the frames before it are folded in,
//! and only wait to be removed.

use engine::journal::Record;

use super::{Chain, Damage, End, FrameView, Journal, SnapshotRef, damage, follows, next, parse};
use crate::cipher::{Cipher, CipherError};

/// The content of one frame.
enum Content {
    Base(SnapshotRef),
    Records(Vec<Record>),
}

/// One frame, opened.
struct Piece {
    content: Content,
    prev: Chain,
    end: End,
}

/// A journal that was assembled from frames.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assembled {
    /// The journal from its last base on.
    pub(crate) journal: Journal,
    /// The numbers of the first frames of their epochs.
    pub(crate) epoch_starts: Vec<u64>,
}

/// Assembles frames, each with the number under which it is stored. Returns none if there is no base.
pub(crate) fn assemble<'a>(
    frames: impl IntoIterator<Item = (u64, &'a [u8])>,
    cipher: &Cipher,
) -> Result<Option<Assembled>, String> {
    let mut state: Option<Assembled> = None;
    let mut last: Option<End> = None;
    let mut epoch_starts = Vec::new();
    for (number, bytes) in frames {
        let said = |damage: Damage| format!("frame {number} of the journal: {}", damage.what);
        let piece = open(number, bytes, last, cipher).map_err(said)?;
        if last.is_some_and(|last| last.epoch != piece.end.epoch) {
            epoch_starts.push(number);
        }
        last = Some(piece.end);
        state = add(state, piece, bytes.len()).map_err(said)?;
    }
    Ok(state.map(|state| Assembled { epoch_starts, ..state }))
}

/// Returns the error of the first frame that cannot be opened because the key is missing or wrong; none if
/// all can be opened.
#[cfg_attr(not(feature = "object-store"), allow(dead_code))]
pub(crate) fn lacking_key<'a>(
    frames: impl IntoIterator<Item = &'a [u8]>,
    cipher: &Cipher,
) -> Option<CipherError> {
    let unopened = |bytes| {
        let frame = next(bytes, 0).ok().flatten()?;
        cipher.open(frame.context, frame.payload).err()
    };
    let mut errors = frames.into_iter().filter_map(unopened);
    errors.find(|error| matches!(error, CipherError::NoKey | CipherError::OtherKey))
}

/// Returns the position after a frame; none if the bytes are no frame.
#[cfg_attr(not(feature = "object-store"), allow(dead_code))]
pub(crate) fn end(bytes: &[u8]) -> Option<End> {
    let frame = next(bytes, 0).ok().flatten()?;
    (frame.after == bytes.len()).then_some(frame.end)
}

fn open(number: u64, bytes: &[u8], last: Option<End>, cipher: &Cipher) -> Result<Piece, Damage> {
    let frame = match next(bytes, 0)? {
        Some(frame) if frame.after == bytes.len() => frame,
        Some(frame) => return damage(frame.after, "there are bytes behind it"),
        None => return damage(0, "it is cut"),
    };
    if frame.end.lsn != number {
        let what = format!("frame {} stands in its place", frame.end.lsn);
        return damage(0, what);
    }
    if let Some(last) = last {
        follows(&frame, last)?;
    }
    Ok(Piece { content: content(&frame, cipher)?, prev: frame.prev, end: frame.end })
}

/// Returns the content of a frame. A base is a JSON object, and records are a list, so the first byte
/// distinguishes them.
fn content(frame: &FrameView<'_>, cipher: &Cipher) -> Result<Content, Damage> {
    let plain = cipher
        .open(frame.context, frame.payload)
        .map_err(|error| Damage { at: frame.at, what: error.to_string() })?;
    let is_base = plain.first() == Some(&b'{');
    drop(plain);
    Ok(if is_base {
        Content::Base(parse(frame, cipher)?)
    } else {
        Content::Records(parse(frame, cipher)?)
    })
}

fn add(state: Option<Assembled>, piece: Piece, bytes: usize) -> Result<Option<Assembled>, Damage> {
    let Piece { content, prev, end } = piece;
    match (content, state) {
        (Content::Base(base), before) => {
            if let Some(Assembled { journal, .. }) = before
                && (journal.base.lineage != base.lineage || journal.base.serial >= base.serial)
            {
                return damage(0, "it begins anew behind another state");
            }
            let start = End { lsn: end.lsn - 1, chain: prev, epoch: end.epoch };
            let journal = Journal { base, start, records: Vec::new(), end, whole: bytes };
            Ok(Some(Assembled { journal, epoch_starts: Vec::new() }))
        }
        // Frames before the first base belong to a journal that was removed.
        (Content::Records(_), None) => Ok(None),
        (Content::Records(mut records), Some(mut state)) => {
            state.journal.records.append(&mut records);
            state.journal.end = end;
            state.journal.whole += bytes;
            Ok(Some(state))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{encode_base, encode_records};
    use super::*;
    use crate::conformance::records;

    fn base(serial: u64) -> SnapshotRef {
        SnapshotRef { lineage: "l".to_owned(), serial, digest: format!("d{serial}") }
    }

    /// Returns a base, three appends of two epochs, a base, and one append.
    fn journal() -> Vec<(u64, Vec<u8>)> {
        let (first, end) = encode_base(&base(0), End::default(), 1).unwrap();
        let (a, end) = encode_records(&records(0..2), end, 1).unwrap();
        let (seal, end) = encode_records(&[], end, 2).unwrap();
        let (b, end) = encode_records(&records(2..3), end, 2).unwrap();
        let (second, end) = encode_base(&base(1), end, 2).unwrap();
        let (c, _) = encode_records(&records(3..4), end, 2).unwrap();
        (1..).zip([first, a, seal, b, second, c]).collect()
    }

    fn put_together(frames: &[(u64, Vec<u8>)]) -> Result<Option<Assembled>, String> {
        assemble(frames.iter().map(|(n, bytes)| (*n, &bytes[..])), &Cipher::off())
    }

    #[test]
    fn the_last_base_counts() {
        let frames = journal();
        let found = put_together(&frames[..4]).unwrap().unwrap();
        assert_eq!((found.journal.base.serial, found.journal.records.len()), (0, 3));
        assert_eq!(found.epoch_starts, [3]);
        let found = put_together(&frames).unwrap().unwrap();
        assert_eq!((found.journal.base.serial, found.journal.records), (1, records(3..4)));
        assert_eq!((found.journal.start.lsn, found.journal.end.lsn), (4, 6));
        // All or some of the frames before the base may be gone.
        for from in 1..5 {
            let found = put_together(&frames[from..]).unwrap().unwrap();
            assert_eq!(found.journal.end.lsn, 6);
        }
        assert_eq!(put_together(&frames[1..4]).unwrap(), None, "no base");
    }

    #[test]
    fn nothing_may_be_missing_cut_or_in_anothers_place() {
        let frames = journal();
        for missing in 1..5 {
            let mut frames = frames.clone();
            frames.remove(missing);
            assert!(put_together(&frames).is_err(), "{missing}");
        }
        for cut in 0..frames[1].1.len() {
            let mut frames = frames.clone();
            frames[1].1.truncate(cut);
            let error = put_together(&frames).unwrap_err();
            assert!(error.contains("frame 2"), "{error}");
        }
        for place in 0..frames[1].1.len() {
            let mut frames = frames.clone();
            frames[1].1[place] ^= 1;
            put_together(&frames).unwrap_err();
        }
        let mut swapped = frames.clone();
        swapped[1].1 = frames[3].1.clone();
        put_together(&swapped).unwrap_err();
        let mut longer = frames;
        longer[1].1.push(0);
        put_together(&longer).unwrap_err();
    }
}
