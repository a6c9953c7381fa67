//! Runs the corpora of the fuzz targets through the same entries, so that faults that were found once stay
//! fixed, also where the fuzzer is not installed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "../fuzz/entries/mod.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets are another crate")]
mod entries;

/// The maximum size of all corpora together, in bytes.
const BYTES_MAX: u64 = 200 * 1024;
/// The longest time for one input, in a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
}

fn inputs(target: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(corpora().join(target));
    let entries = entries.unwrap_or_else(|error| panic!("no corpus of {target}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_kept_input_does_no_harm() {
    for (target, _) in entries::ENTRIES {
        let inputs = inputs(target);
        assert!(!inputs.is_empty(), "{target} keeps nothing");
        for path in inputs {
            let data = std::fs::read(&path).expect("an input");
            let begin = Instant::now();
            // The panic is caught so that the message of the test names the input.
            let caught = std::panic::catch_unwind(|| entries::run(target, &data));
            assert!(caught.is_ok(), "{} panicked", path.display());
            assert!(begin.elapsed() < PATIENCE, "{}: {:?}", path.display(), begin.elapsed());
        }
    }
    entries::end();
}

#[test]
fn targets_entries_and_corpora_are_the_same() {
    let names: Vec<&str> = entries::ENTRIES.iter().map(|(name, _)| *name).collect();
    let manifest = include_str!("../fuzz/Cargo.toml");
    let targets: Vec<&str> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""))
        .collect();
    assert_eq!(targets, names);
    for name in &names {
        let file = format!("fuzz/fuzz_targets/{name}.rs");
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file));
        assert!(text.is_ok_and(|text| text.contains(&format!("run(\"{name}\""))), "{file}");
    }
    let mut bytes = 0;
    for entry in std::fs::read_dir(corpora()).expect("the corpora").flatten() {
        let name = entry.file_name().into_string().expect("a name");
        assert!(names.contains(&&*name), "there is no target {name}");
        let sizes = inputs(&name).into_iter().map(|path| path.metadata().expect("a file").len());
        bytes += sizes.sum::<u64>();
    }
    assert!(bytes <= BYTES_MAX, "the corpora have {bytes} bytes");
}
