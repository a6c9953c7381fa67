//! The entries for the files that the state store reads: snapshots, journals, and both encrypted.

use engine::digest::SealKey;
use engine::journal::Record;
use engine::state::Snapshot;
use render::Colour;
use render::journal;
use render::state::{StateView, list, text};
use serde_json::Value;
use state::cipher::Cipher;
use state::format::{decode, encode};
use state::frame::{self, End, Frame, SnapshotRef};

use super::harmless;

const START: End = End { lsn: 0, chain: [0; 16], epoch: 1 };

/// Reads a snapshot as it is in a file. Random bytes never have the right digest, so other inputs are read as
/// the lines after a header that fits.
pub(crate) fn state(data: &[u8]) {
    match data.strip_prefix(b"{\"format\"") {
        Some(_) => read_state(data),
        None => read_state(&with_header(data)),
    }
}

fn read_state(bytes: &[u8]) {
    let Ok((header, snapshot)) = decode(bytes) else { return };
    assert_eq!(header.serial, snapshot.serial);
    show(&snapshot);
    keep(&snapshot);
}

/// Writes a snapshot and reads it back. A write fails only for values that are too deep to be read, and these
/// were read.
fn keep(snapshot: &Snapshot) {
    let (_, bytes) = encode(snapshot, 1, START).expect("what was read can be written");
    let (_, back) = decode(&bytes).expect("what was written can be read");
    assert_eq!(&back, snapshot);
}

fn show(snapshot: &Snapshot) {
    harmless(&list(snapshot));
    let Ok(view) = StateView::new(snapshot) else { return };
    harmless(&text(&view, Colour::Off));
    harmless(&render::json::pretty(&view));
}

/// Returns the lines of a snapshot after a header with their lineage, serial and digest.
fn with_header(body: &[u8]) -> Vec<u8> {
    let first = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first: Value = serde_json::from_slice(first).unwrap_or_default();
    let head = format!(
        "{{\"format\":1,\"engine\":\"0\",\"lineage\":{},\"serial\":{},\"epoch\":1,\
         \"checkpoint\":{{\"lsn\":0,\"epoch\":1,\"chain\":\"{:032}\"}}",
        Value::from(first["lineage"].as_str().unwrap_or_default()),
        first["serial"].as_u64().unwrap_or_default(),
        0
    );
    let mut hasher = blake3::Hasher::new();
    hasher.update(head.as_bytes()).update(body);
    let mut bytes =
        format!("{head},\"digest\":\"{}\"}}\n", hasher.finalize().to_hex()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Reads a journal as it is in a file. Other inputs are read as lines of records, which are put into frames
/// and folded.
pub(crate) fn journal(data: &[u8]) {
    if data.starts_with(b"PLJ") {
        if let Ok(journal) = frame::read(data, &Cipher::off()) {
            assert!(journal.whole <= data.len());
        }
        return;
    }
    let mut snapshot = Snapshot::new("lineage".to_owned(), SealKey::from_random([7; 32]));
    let base = SnapshotRef { lineage: "lineage".to_owned(), serial: 0, digest: String::new() };
    let Frame { mut bytes, mut end } =
        Frame::base(&base, START, 1, &Cipher::off()).expect("a base can be written");
    let mut records = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<Record>(line) else { continue };
        harmless(&journal::text(&record));
        if snapshot.fold(&record).is_err() {
            break;
        }
        let one = std::slice::from_ref(&record);
        let Ok(frame) = Frame::records(one, end, 1, &Cipher::off()) else { break };
        bytes.extend(frame.bytes);
        end = frame.end;
        records.push(record);
    }
    let journal = frame::read(&bytes, &Cipher::off()).expect("what was written can be read");
    assert_eq!(journal.records, records);
    show(&snapshot);
    keep(&snapshot);
}

/// Opens a forged encrypted text, which must fail, and a real one.
pub(crate) fn envelope(data: &[u8]) {
    let cipher = Cipher::new(&"5a".repeat(32)).expect("a key");
    let mut sealed = b"PLX1".to_vec();
    sealed.extend_from_slice(data);
    assert!(cipher.open(b"state", &sealed).is_err(), "a forged piece was opened");
    let sealed = cipher.seal(b"state", data).expect("it is sealed").into_owned();
    assert_eq!(&*cipher.open(b"state", &sealed).expect("it is ours"), data);
    assert!(cipher.open(b"plan", &sealed).is_err(), "another piece was opened");
}
