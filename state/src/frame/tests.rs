use super::*;

pub(super) fn encode_base(
    base: &SnapshotRef,
    after: End,
    epoch: u64,
) -> Result<(Vec<u8>, End), serde_json::Error> {
    Frame::base(base, after, epoch, &Cipher::off()).map(|frame| (frame.bytes, frame.end))
}

pub(super) fn encode_records(
    records: &[Record],
    after: End,
    epoch: u64,
) -> Result<(Vec<u8>, End), serde_json::Error> {
    Frame::records(records, after, epoch, &Cipher::off()).map(|frame| (frame.bytes, frame.end))
}

fn read(bytes: &[u8]) -> Result<Journal, Damage> {
    super::read(bytes, &Cipher::off())
}

#[test]
fn a_number_that_ends_is_damage() {
    let base = SnapshotRef { lineage: "l".to_owned(), serial: 1, digest: "d".to_owned() };
    let high = End { lsn: NUMBER_MAX, ..End::default() };
    for (start, epoch) in [(high, 1), (End::default(), NUMBER_MAX + 1)] {
        let (bytes, _) = encode_base(&base, start, epoch).unwrap();
        assert!(read(&bytes).unwrap_err().what.contains("too high"));
    }
    let (bytes, _) = encode_base(&base, End::default(), NUMBER_MAX).unwrap();
    read(&bytes).unwrap();
}

use crate::conformance::records;

fn base() -> SnapshotRef {
    SnapshotRef { lineage: "l".to_owned(), serial: 3, digest: "d".to_owned() }
}

/// Returns a journal after the frame 10, with one append of each length, and the positions of the ends of its
/// frames.
fn journal(appends: &[u64]) -> (Vec<u8>, Vec<usize>) {
    let start = End { lsn: 10, chain: [9; 16], epoch: 4 };
    let (mut bytes, mut end) = encode_base(&base(), start, 5).unwrap();
    let mut ends = vec![bytes.len()];
    let mut n = 0;
    for count in appends {
        let (frame, next) = encode_records(&records(n..n + count), end, 5).unwrap();
        bytes.extend(frame);
        ends.push(bytes.len());
        (end, n) = (next, n + count);
    }
    (bytes, ends)
}

#[test]
fn what_was_written_is_read() {
    let (bytes, _) = journal(&[1, 2, 300]);
    let read = read(&bytes).unwrap();
    assert_eq!(read.base, base());
    assert_eq!((read.start.lsn, read.start.chain), (10, [9; 16]));
    assert_eq!(read.records, records(0..303));
    assert_eq!((read.end.lsn, read.end.epoch, read.whole), (14, 5, bytes.len()));
}

#[test]
fn a_torn_last_frame_is_dropped_whole_at_every_byte() {
    let (bytes, ends) = journal(&[2, 1, 9]);
    for pair in ends.windows(2).skip(1) {
        for cut in pair[0]..pair[1] {
            let read = read(&bytes[..cut]).unwrap();
            assert_eq!(read.whole, pair[0], "cut at {cut}");
            let kept = if pair[0] == ends[1] { 2 } else { 3 };
            assert_eq!(read.records, records(0..kept), "cut at {cut}");
        }
    }
}

#[test]
fn a_journal_has_a_beginning() {
    let (bytes, ends) = journal(&[]);
    for cut in 0..ends[0] {
        assert_eq!(read(&bytes[..cut]).unwrap_err().what, "it has no beginning");
    }
}

#[test]
fn sectors_that_were_never_written_are_a_torn_end() {
    let (bytes, ends) = journal(&[1, 40]);
    let sectors = ends[1] / SECTOR..=(bytes.len() - 1) / SECTOR;
    for sector in sectors {
        let mut torn = bytes.clone();
        let from = (sector * SECTOR).max(ends[1]);
        let to = ((sector + 1) * SECTOR).min(bytes.len());
        torn[from..to].fill(0);
        let read = read(&torn).unwrap();
        assert_eq!((read.whole, read.records.len()), (ends[1], 1), "sector {sector}");
    }
    let mut behind = bytes.clone();
    behind.extend([0; 3000]);
    assert_eq!(read(&behind).unwrap().whole, bytes.len());
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (bytes, _) = journal(&[1, 2, 1]);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let read = read(&flipped);
            assert!(read.is_err(), "bit {bit} of byte {at}: {read:?}");
        }
    }
}

#[test]
fn every_flipped_bit_before_a_torn_end_is_noticed() {
    let (bytes, ends) = journal(&[1, 1, 1]);
    let torn = &bytes[..bytes.len() - 7];
    for at in 0..ends[2] {
        let mut flipped = torn.to_vec();
        flipped[at] ^= 4;
        assert!(read(&flipped).is_err(), "byte {at}");
    }
}

#[test]
fn a_hole_before_a_whole_frame_is_damage() {
    let (bytes, ends) = journal(&[40, 40, 1]);
    for (from, to) in [(ends[0], ends[1]), (ends[1], ends[2]), (ends[0], ends[2])] {
        let mut holed = bytes.clone();
        holed[from..to].fill(0);
        let damage = read(&holed).unwrap_err();
        assert_eq!(damage.at, from);
        assert_eq!(damage.what, format!("it is cut off there, and goes on at byte {to}"));
    }
    // The bytes are removed here: the length of a frame then includes its successor.
    let cut = [&bytes[..ends[1] + 100], &bytes[ends[2]..]].concat();
    assert_eq!(read(&cut).unwrap_err().at, ends[1]);
}

#[test]
fn frames_in_the_wrong_place_are_damage() {
    let (bytes, ends) = journal(&[1, 1, 1]);
    let frame = |n: usize| &bytes[ends[n]..ends[n + 1]];
    let check = |frames: &[&[u8]], expected: &str| {
        let bytes = [&[&bytes[..ends[0]]], frames].concat().concat();
        assert_eq!(read(&bytes).unwrap_err().what, expected);
    };
    check(&[frame(1)], "frame 13 stands where frame 12 is due");
    check(&[frame(0), frame(0)], "frame 12 stands where frame 13 is due");
    check(&[frame(0), frame(2)], "frame 14 stands where frame 13 is due");

    let end = read(&bytes[..ends[1]]).unwrap().end;
    let (old, _) = encode_records(&records(0..1), end, 4).unwrap();
    check(&[frame(0), &old], "frame 13 was written in epoch 4, after epoch 5");
    let other = End { chain: [0; 16], ..end };
    let (other, _) = encode_records(&records(0..1), other, 5).unwrap();
    check(&[frame(0), &other], "frame 13 does not continue the frame before it");
}

#[test]
fn what_is_no_journal_is_refused_without_reading_past_it() {
    let json =
        br#"{"format":1,"engine":"0.1.0","lineage":"a quite long text, longer than a header"}"#;
    for bytes in [&b"x"[..], b"PLX", json, &[0xff; 5000], &[0; 5000]] {
        assert!(read(bytes).is_err());
    }
    let (mut newer, _) = journal(&[]);
    newer[3] = b'2';
    let checksum = crc32fast::hash(&newer[..40]);
    newer[40..44].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(
        read(&newer).unwrap_err().to_string(),
        "it is damaged at byte 0: a frame has a format that this version of Plumb does not know"
    );
}

#[test]
fn content_that_is_not_understood_is_not_quoted() {
    let (mut bytes, end) = encode_base(&base(), End::default(), 1).unwrap();
    let at = bytes.len();
    bytes.extend(encode(&["hunter2"], end, 1, &Cipher::off()).unwrap().bytes);
    let damage = read(&bytes).unwrap_err();
    assert_eq!(damage.at, at);
    assert!(!damage.what.contains("hunter2"), "{damage}");
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, cut in 0_usize..2000, at in 0_usize..2000) {
        read(&bytes).ok();
        let (mut journal, _) = journal(&[1, 3]);
        journal.truncate(cut);
        let at = at.min(journal.len());
        journal.splice(at..at, bytes);
        if let Ok(read) = read(&journal) {
            // Whatever was inserted, only records that were written are read, from the first one on.
            proptest::prop_assert!(records(0..4).starts_with(&read.records));
        }
    }
}
