//! A folder with a key: no part of it can be read without the key, and each mistake has its message.

use super::*;

pub(super) fn key(digit: char) -> Cipher {
    Cipher::new(&digit.to_string().repeat(64)).unwrap()
}

/// Texts that are in every snapshot and every record of these tests.
const CANARIES: [&[u8]; 4] = [b"value.", b"entries", b"record", b"lineage"];

fn sealed(folder: &Folder, digit: char) -> FileStore {
    folder.store().sealed(key(digit))
}

/// Returns the bytes of all files but the lock, whose note is no secret.
fn everything(folder: &Folder) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut open = vec![folder.path()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if !path.ends_with("lock") {
            bytes.extend(std::fs::read(path).unwrap());
        }
    }
    bytes
}

fn readable(folder: &Folder) -> Vec<String> {
    let bytes = everything(folder);
    let found = |canary: &&[u8]| bytes.windows(canary.len()).any(|part| part == *canary);
    let found = CANARIES.into_iter().filter(found);
    found.map(|canary| String::from_utf8_lossy(canary).into_owned()).collect()
}

/// Returns a folder with a history without a key.
async fn plain() -> Folder {
    Folder::lived().await
}

/// Returns a folder with the same history with a key.
async fn lived() -> Folder {
    let folder = Folder::new();
    let mut held = sealed(&folder, 'a').lock(&holder(), Duration::ZERO).await.unwrap();
    let first = held.initialise(&snapshot(0)).await.unwrap();
    held.append(&records(0..2)).await.unwrap();
    let second = held.save(&snapshot(1), &first).await.unwrap();
    held.append(&records(2..3)).await.unwrap();
    held.save(&snapshot(2), &second).await.unwrap();
    held.append(&records(3..4)).await.unwrap();
    held.append(&records(4..5)).await.unwrap();
    held.release().await.unwrap();
    folder
}

async fn refused(store: &FileStore, folder: &Folder) -> String {
    let StoreError::Suspicious { what, help } = store.load().await.unwrap_err() else {
        panic!("it is another kind of error")
    };
    let locked = store.lock(&holder(), Duration::ZERO).await.map(|_| ()).unwrap_err();
    assert!(matches!(locked, StoreError::Suspicious { .. }), "{locked:?}");
    format!("{what}\n{help}").replace(&folder.path().display().to_string(), ".plumb")
}

#[tokio::test]
async fn nothing_can_be_read_and_all_comes_back() {
    assert!(!readable(&plain().await).is_empty(), "the canaries are worth something");
    let folder = lived().await;
    assert_eq!(readable(&folder), Vec::<String>::new());
    let loaded = sealed(&folder, 'a').load().await.unwrap();
    assert_eq!(content(loaded), content(plain().await.load().await));
}

#[tokio::test]
async fn another_key_and_none_are_told_apart_and_change_nothing() {
    let folder = lived().await;
    let before = everything(&folder);
    assert_eq!(
        refused(&folder.store(), &folder).await,
        ".plumb/state.json cannot be read: it is encrypted, but PLUMB_STATE_KEY is not set\n\
         nothing was changed; set it to the key that the state was written with"
    );
    assert_eq!(
        refused(&sealed(&folder, 'b'), &folder).await,
        ".plumb/state.json cannot be read: it is encrypted with another key than PLUMB_STATE_KEY\n\
         nothing was changed; without the right key nothing can be read"
    );
    assert!(everything(&folder) == before);
}

#[tokio::test]
async fn a_plain_state_is_sealed_when_it_is_written_next() {
    let folder = plain().await;
    let store = sealed(&folder, 'a');
    assert!(store.is_plain().await.unwrap());
    let before = store.load().await.unwrap();
    let mut held = store.lock(&holder(), Duration::ZERO).await.unwrap();
    held.append(&records(5..6)).await.unwrap();
    let between = store.load().await.unwrap();
    assert_eq!(between.records.len(), before.records.len() + 1, "a journal of both kinds is read");
    held.save(&snapshot(3), &before.version).await.unwrap();
    held.release().await.unwrap();
    assert!(!store.is_plain().await.unwrap());
    assert_eq!(readable(&folder), Vec::<String>::new(), "backups, too");
    assert_eq!(store.load().await.unwrap().snapshot, Some(snapshot(3)));
}

#[tokio::test]
async fn an_older_sealed_state_put_back_is_noticed() {
    let folder = lived().await;
    let store = sealed(&folder, 'a');
    folder.write("state.json", folder.read("backups/1.json"));
    let said = refused(&store, &folder).await;
    assert!(said.contains("is older than it should be"), "{said}");
    let journal = folder.read("journal");
    let other = lived().await;
    folder.write("state.json", other.read("state.json"));
    folder.write("journal", journal);
    let said = refused(&store, &folder).await;
    assert!(said.contains("state.json"), "{said}");
}

#[tokio::test]
async fn a_frame_opens_in_its_own_place_only() {
    let folder = lived().await;
    let store = sealed(&folder, 'a');
    let mut journal = folder.read("journal");
    for place in 0..journal.len() {
        journal[place] ^= 0x55;
        folder.write("journal", &journal);
        let read = store.load().await;
        assert!(read.is_err() || read.unwrap().records.len() < 2, "byte {place}");
        journal[place] ^= 0x55;
    }
}

#[tokio::test]
async fn what_cannot_be_read_can_be_restored_with_a_new_key() {
    let folder = lived().await;
    let store = sealed(&folder, 'b');
    store.restore(&holder(), &snapshot(2)).await.unwrap();
    let loaded = store.load().await.unwrap();
    assert!(loaded.snapshot.unwrap().serial > 2, "it is newer than all that was seen");
}

#[tokio::test]
async fn a_torn_sealed_end_is_dropped_and_nothing_else() {
    let folder = lived().await;
    let store = sealed(&folder, 'a');
    let journal = folder.read("journal");
    let all = store.load().await.unwrap().records;
    let mut counts = Vec::new();
    for end in 1..=journal.len() {
        folder.write("journal", &journal[..end]);
        match store.load().await {
            Ok(loaded) => {
                let count = loaded.records.len();
                assert_eq!(loaded.records[..], all[..count], "cut at {end}");
                counts.push(count);
            }
            // Without its base it is no journal.
            Err(StoreError::Suspicious { .. }) => assert!(counts.is_empty(), "cut at {end}"),
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(counts.is_sorted(), "a longer journal never holds less");
    assert_eq!(counts.last(), Some(&all.len()));
}
