//! The lines of a snapshot with the entries, shared among threads if there are many.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use engine::address::Address;
use engine::state::Entry;

use crate::json;

/// With fewer entries, a thread costs more than it saves.
const ENTRIES_PER_THREAD: usize = 2000;
const BYTES_PER_THREAD: usize = 1 << 20;
/// The most threads; more would only wait for memory.
const THREADS: usize = 8;

type Line = (Address, Entry);

/// Appends a line for each entry.
pub(super) fn write(
    entries: &BTreeMap<Address, Entry>,
    bytes: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let lines: Vec<(&Address, &Entry)> = entries.iter().collect();
    let shares = lines.chunks(share(lines.len(), ENTRIES_PER_THREAD));
    let written = among_threads(shares.collect(), |share: &[(&Address, &Entry)]| {
        let mut bytes = Vec::with_capacity(share.len() * 512);
        for line in share {
            json::write(line, &mut bytes)?;
            bytes.push(b'\n');
        }
        Ok(bytes)
    });
    for share in written {
        bytes.append(&mut share?);
    }
    Ok(())
}

/// Reads the lines back.
pub(super) fn read(bytes: &[u8]) -> Result<BTreeMap<Address, Entry>, serde_json::Error> {
    let shares = split(bytes, share(bytes.len(), BYTES_PER_THREAD));
    let read = among_threads(shares, |share: &[u8]| {
        let lines = share.split_inclusive(|byte| *byte == b'\n');
        lines.map(serde_json::from_slice::<Line>).collect::<Result<Vec<Line>, _>>()
    });
    let shares = read.into_iter().collect::<Result<Vec<Vec<Line>>, _>>()?;
    // The map is built at once from sorted entries, which is faster than line by line.
    Ok(shares.into_iter().flatten().collect())
}

/// Returns the number of items for each thread.
fn share(whole: usize, least: usize) -> usize {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS);
    whole.div_ceil(threads).max(least)
}

/// Cuts into pieces of about `size` bytes, at ends of lines.
fn split(mut bytes: &[u8], size: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while bytes.len() > size {
        let end = bytes[size..].iter().position(|byte| *byte == b'\n');
        let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| size + end + 1));
        pieces.push(piece);
        bytes = rest;
    }
    if !bytes.is_empty() {
        pieces.push(bytes);
    }
    pieces
}

/// Works on each share in a thread of its own, except the last one, and those for which the system gives no
/// thread. The results are in order.
fn among_threads<S: Send, T: Send>(shares: Vec<S>, work: impl Fn(S) -> T + Sync) -> Vec<T> {
    let shares: Vec<_> = shares.into_iter().map(|share| Mutex::new(Some(share))).collect();
    let work = |share: &Mutex<Option<S>>| {
        let share = share.lock().unwrap_or_else(PoisonError::into_inner).take();
        share.map(&work)
    };
    let Some((last, others)) = shares.split_last() else { return Vec::new() };
    let results: Vec<Option<T>> = thread::scope(|scope| {
        let begin = |share| thread::Builder::new().spawn_scoped(scope, move || work(share));
        let others: Vec<_> = others.iter().map(|share| (share, begin(share))).collect();
        let last = work(last);
        let results =
            others.into_iter().map(|(share, thread)| match thread.map(ScopedJoinHandle::join) {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(_) => work(share),
            });
        results.chain([last]).collect()
    });
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_lines_and_make_the_whole() {
        let text = b"a\nbb\n\nccc\ndddd\ne";
        for size in 1..text.len() + 2 {
            let pieces = split(text, size);
            assert_eq!(pieces.concat(), text);
            let (last, others) = pieces.split_last().unwrap();
            assert!(!last.is_empty());
            assert!(others.iter().all(|piece| piece.ends_with(b"\n") && piece.len() > size));
        }
        assert!(split(b"", 5).is_empty());
    }

    #[test]
    fn many_entries_come_back_in_order() {
        let one = crate::conformance::snapshot(1).entries.into_values().next().unwrap();
        let count = 3 * ENTRIES_PER_THREAD + 1;
        let address = |n| format!("value.v[\"{n}\"]").parse::<Address>().unwrap();
        let entries: BTreeMap<_, _> = (0..count).map(|n| (address(n), one.clone())).collect();
        let mut bytes = Vec::new();
        write(&entries, &mut bytes).unwrap();
        assert!(bytes.len() > BYTES_PER_THREAD);
        assert_eq!(bytes.split_inclusive(|byte| *byte == b'\n').count(), count);
        assert_eq!(read(&bytes).unwrap(), entries);
    }

    #[test]
    fn a_share_that_fails_fails_the_whole() {
        let results = among_threads(vec![1, 2, 3], |n| if n == 2 { Err(n) } else { Ok(n) });
        assert_eq!(results, [Ok(1), Err(2), Ok(3)]);
    }
}
