//! States and journals that released versions of Plumb wrote, and that every later version reads.
//!
//! `vN-CASE.json` is a state and `vN-CASE.journal` a journal as version N of the format has them;
//! `vN-CASE.snapshot.json` and `vN-CASE.records.json` say what is in them. Once released, a fixture
//! is never changed. For a new one, write what is in it and run
//! `cargo test -p state --test main -- --ignored write_missing_fixtures`.

use std::path::PathBuf;

use engine::journal::Record;
use engine::state::Snapshot;
use serde_json::Value;
use state::cipher::Cipher;
use state::format;
use state::frame::{self, End, Frame, SnapshotRef};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Returns the names of all files with this ending, without the ending.
fn cases(end: &str) -> Vec<String> {
    let names = std::fs::read_dir(folder()).unwrap();
    let mut cases: Vec<String> = names
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(end).map(str::to_owned)
        })
        .collect();
    cases.sort();
    cases
}

fn bytes(case: &str, end: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{case}{end}"))).unwrap()
}

fn expected<T: serde::de::DeserializeOwned>(case: &str, end: &str) -> (T, Value) {
    let bytes = bytes(case, end);
    (serde_json::from_slice(&bytes).unwrap(), serde_json::from_slice(&bytes).unwrap())
}

/// Checks that everything in a fixture is still in the value that was read. Later versions may add values.
fn check_nothing_is_lost(said: &Value, kept: &Value, place: &str) {
    match (said, kept) {
        (Value::Object(said), Value::Object(kept)) => {
            for (name, value) in said {
                let place = format!("{place}.{name}");
                let kept = kept.get(name).unwrap_or_else(|| panic!("{place} is lost"));
                check_nothing_is_lost(value, kept, &place);
            }
        }
        (Value::Array(said), Value::Array(kept)) if said.len() == kept.len() => {
            for (index, (said, kept)) in said.iter().zip(kept).enumerate() {
                check_nothing_is_lost(said, kept, &format!("{place}[{index}]"));
            }
        }
        _ => assert_eq!(said, kept, "{place}"),
    }
}

#[test]
fn states_of_released_versions_are_read() {
    let cases = cases(".snapshot.json");
    assert_eq!(cases, ["v1-empty", "v1-full"]);
    for case in cases {
        let (snapshot, said) = expected::<Snapshot>(&case, ".snapshot.json");
        let (header, read) = format::decode(&bytes(&case, ".json")).unwrap();
        assert_eq!(read, snapshot, "{case}");
        assert_eq!((&header.lineage, header.serial), (&read.lineage, read.serial), "{case}");
        check_nothing_is_lost(&said, &serde_json::to_value(&read).unwrap(), &case);
    }
}

#[test]
fn journals_of_released_versions_are_read() {
    let cases = cases(".records.json");
    assert_eq!(cases, ["v1-full"]);
    for case in cases {
        let (records, said) = expected::<Vec<Record>>(&case, ".records.json");
        let bytes = bytes(&case, ".journal");
        let journal = frame::read(&bytes, &Cipher::off()).unwrap();
        assert_eq!(journal.records, records, "{case}");
        assert_eq!((journal.base, journal.whole), (base(), bytes.len()), "{case}");
        check_nothing_is_lost(&said, &serde_json::to_value(&journal.records).unwrap(), &case);
    }
}

fn base() -> SnapshotRef {
    SnapshotRef { lineage: "5d6a1f0e".to_owned(), serial: 42, digest: "d".to_owned() }
}

fn encode_journal(records: &[Record]) -> Vec<u8> {
    let Frame { mut bytes, mut end } =
        Frame::base(&base(), End::default(), 3, &Cipher::off()).unwrap();
    for records in records.chunks(2) {
        let frame = Frame::records(records, end, 3, &Cipher::off()).unwrap();
        bytes.extend(frame.bytes);
        end = frame.end;
    }
    bytes
}

fn write_if_missing(case: &str, end: &str, bytes: &[u8]) {
    let path = folder().join(format!("{case}{end}"));
    if !path.exists() {
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
#[ignore = "it writes the fixtures that do not exist yet"]
fn write_missing_fixtures() {
    let checkpoint = End { lsn: 17, chain: [3; 16], epoch: 2 };
    for case in cases(".snapshot.json") {
        let (snapshot, _) = expected::<Snapshot>(&case, ".snapshot.json");
        let (_, bytes) = format::encode(&snapshot, 3, checkpoint).unwrap();
        write_if_missing(&case, ".json", &bytes);
    }
    for case in cases(".records.json") {
        let (records, _) = expected::<Vec<Record>>(&case, ".records.json");
        write_if_missing(&case, ".journal", &encode_journal(&records));
    }
}
