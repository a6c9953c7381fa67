//! Folders with content that is there by accident, by a person or by an attack.

use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use super::*;

/// A restoration into an empty place loses nothing, so it needs no force.
fn check_missing(text: &str, what: &str) {
    check_with("plumb state push", text, what);
}

fn check(text: &str, what: &str) {
    check_with("plumb state push --force", text, what);
}

/// The state itself is newer than every backup.
fn check_journal(text: &str, what: &str) {
    let help = "nothing was changed; restore .plumb/journal if you can; otherwise \
                `plumb state push --force .plumb/state.json` goes on without it: what was done since that \
                state was saved is then unknown, and `plumb plan` shows what differs";
    assert_eq!(text, format!("{what}\n{help}"));
}

fn check_with(push: &str, text: &str, what: &str) {
    let help = format!(
        "nothing was changed; restore the files if you can; otherwise `{push} \
         .plumb/backups/1.json` puts the newest backup in place, and `plumb plan` shows what \
         differs from it"
    );
    assert_eq!(text, format!("{what}\n{help}"));
}

#[tokio::test]
async fn other_things_in_the_folder_are_no_state() {
    let folder = Folder::new();
    folder.write(".gitignore", "*\n");
    folder.write("lock", "");
    std::fs::create_dir_all(folder.file("service/data")).unwrap();
    std::fs::create_dir_all(folder.file("backups")).unwrap();
    assert!(folder.load().await.snapshot.is_none());
    assert!(folder.lock().await.loaded().snapshot.is_none());
}

#[tokio::test]
async fn a_missing_state_is_never_a_first_run() {
    let folder = Folder::lived().await;
    folder.remove("state.json");
    check(
        &folder.refused().await,
        ".plumb/state.json is missing, but .plumb/journal has records that follow it (2)",
    );
    folder.remove("journal");
    let what = ".plumb/state.json is missing, but .plumb/lock knows serial 2";
    check_missing(&folder.refused().await, what);
    folder.remove("lock");
    check_missing(
        &folder.refused().await,
        ".plumb/state.json is missing, but there is a backup of serial 1",
    );
    std::fs::remove_dir_all(folder.file("backups")).unwrap();
    folder.write("journal", "garbage, more than a header has, so that it is no torn one");
    let text = folder.refused().await;
    let what = ".plumb/state.json is missing, but there is .plumb/journal\n";
    assert!(text.starts_with(what), "{text}");
    assert!(text.contains("there is no backup in .plumb/backups"), "{text}");
}

#[tokio::test]
async fn a_folder_with_nothing_in_it_is_no_first_run() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path()).unwrap();
    let text = folder.refused().await;
    assert!(text.starts_with(".plumb exists and is empty\nnothing was changed; "), "{text}");
    assert!(text.ends_with("or, if it cannot be removed, create .plumb/backups"), "{text}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "a look changes nothing");
    // There are two ways out, and each of them works.
    std::fs::create_dir(folder.file("backups")).unwrap();
    folder.lock().await.initialise(&snapshot(0)).await.unwrap();
    std::fs::remove_dir_all(folder.path()).unwrap();
    folder.lock().await.initialise(&snapshot(0)).await.unwrap();
    std::fs::remove_dir_all(folder.path()).unwrap();
    std::fs::create_dir(folder.path()).unwrap();
    folder.store().restore(&holder(), &snapshot(1)).await.unwrap();
    assert!(folder.load().await.snapshot.is_some());
}

#[tokio::test]
async fn a_link_that_leads_nowhere_is_no_first_run() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("nowhere", folder.path()).unwrap();
    let text = folder.refused().await;
    assert!(text.starts_with(".plumb is a link to nowhere, which does not exist\n"), "{text}");
    let error = folder.store().restore(&holder(), &snapshot(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    // A link to a folder with a state works like the folder itself.
    let lived = Folder::lived().await;
    std::fs::remove_file(folder.path()).unwrap();
    std::os::unix::fs::symlink(lived.path(), folder.path()).unwrap();
    assert_eq!(folder.lock().await.loaded().records, records(3..5));
}

#[tokio::test]
async fn a_first_lock_leaves_no_folder_without_content() {
    let folder = Folder::new();
    // A run that is killed during this step leaves the folder so.
    std::fs::create_dir(folder.path().with_added_extension("tmp")).unwrap();
    drop(folder.lock().await);
    assert!(folder.file("backups").is_dir());
    let names = std::fs::read_dir(folder.root.path()).unwrap().map(|entry| entry.unwrap());
    assert_eq!(names.map(|entry| entry.file_name()).collect::<Vec<_>>(), [".plumb"]);
}

#[tokio::test]
async fn what_is_empty_hides_nothing_from_git() {
    let folder = Folder::lived().await;
    folder.write(".gitignore", "");
    drop(folder.lock().await);
    assert_eq!(folder.read(".gitignore"), b"*\n");
    folder.write(".gitignore", "/service\n");
    drop(folder.lock().await);
    assert_eq!(folder.read(".gitignore"), b"/service\n", "somebody wants it so");
}

#[tokio::test]
async fn what_a_save_could_not_write_is_refused_before_a_call() {
    for name in ["state.json.tmp", "journal.tmp", "backups/probe.tmp"] {
        for lived in [false, true] {
            let folder = if lived { Folder::lived().await } else { Folder::new() };
            std::fs::create_dir_all(folder.file(name)).unwrap();
            let error = folder.store().lock(&holder(), Duration::ZERO).await.map(drop).unwrap_err();
            assert!(matches!(error, StoreError::Failed { .. }), "{name}: {error:?}");
            std::fs::remove_dir(folder.file(name)).unwrap();
            drop(folder.lock().await);
            assert!(!folder.file(name).exists(), "what is tried leaves nothing");
        }
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_read_is_refused() {
    let folder = Folder::lived().await;
    let whole = folder.read("state.json");
    let damaged = ".plumb/state.json cannot be read: its digest is wrong: it was damaged, truncated or edited";
    folder.write("state.json", "");
    check(&folder.refused().await, ".plumb/state.json cannot be read: it is empty");
    folder.write("state.json", &whole[..whole.len() / 2]);
    check(&folder.refused().await, damaged);
    folder.write("state.json", br#"{"version":4,"serial":12,"resources":[]}"#);
    check(
        &folder.refused().await,
        ".plumb/state.json cannot be read: it is not a state that Plumb wrote: its first line \
         does not end with a digest",
    );
    folder.write("state.json", br#"{"format":9}"#);
    assert_eq!(
        folder.refused().await,
        ".plumb/state.json cannot be read: it has format 9, and this version of Plumb reads \
         formats up to 1\nnothing was changed; a newer version of Plumb wrote it: use that \
         version or a later one"
    );
    let edited = String::from_utf8(whole.clone()).unwrap().replacen("builtin", "other", 1);
    folder.write("state.json", edited);
    check(&folder.refused().await, damaged);
    folder.write("state.json", folder.read("journal"));
    assert!(folder.refused().await.contains("it is not a state that Plumb wrote"));
    folder.write("state.json", whole);
    assert_eq!(folder.load().await.records, records(3..5));
}

#[tokio::test]
async fn an_older_state_put_back_is_refused() {
    let folder = Folder::lived().await;
    let (journal, lock) = (folder.read("journal"), folder.read("lock"));
    folder.write("state.json", folder.read("backups/1.json"));
    check(
        &folder.refused().await,
        ".plumb/state.json is older than it should be: it has serial 1, after 2",
    );
    // Without the lock's note the journal still shows it.
    folder.remove("lock");
    check(
        &folder.refused().await,
        ".plumb/state.json is older than it should be: it has serial 1, and .plumb/journal follows serial 2",
    );
    // The note shows that both files are older.
    let older = Folder::lived().await;
    let mut held = older.lock().await;
    let version = held.loaded().version.clone();
    held.save(&snapshot(3), &version).await.unwrap();
    drop(held);
    older.write("state.json", older.read("backups/2.json"));
    older.write("journal", &journal);
    let text = older.refused().await;
    assert!(text.contains("it has serial 2, after 3"), "{text}");
    folder.write("lock", &lock);
}

#[tokio::test]
async fn an_older_state_beside_newer_backups_is_refused() {
    let folder = Folder::lived().await;
    let old = ["state.json", "journal", "lock"].map(|name| (name, folder.read(name)));
    let mut held = folder.lock().await;
    let mut version = held.loaded().version.clone();
    for serial in 3..6 {
        version = held.save(&snapshot(serial), &version).await.unwrap();
    }
    drop(held);
    for without_lock in [false, true] {
        for (name, bytes) in &old {
            folder.write(name, bytes);
        }
        if without_lock {
            folder.remove("lock");
        }
        let text = folder.refused().await;
        let what = ".plumb/state.json is older than it should be: it has serial 2, and there is a backup of serial 4\n";
        assert!(text.starts_with(what), "{text}");
        assert!(text.contains(".plumb/backups/4.json"), "{text}");
    }
}

#[tokio::test]
async fn a_backup_of_another_history_is_not_taken_for_ours() {
    for disk in with_and_without_links() {
        let folder = Folder::lived().await;
        folder.write("backups/2.json", "of another history");
        let store = FileStore::on(disk, folder.path());
        let mut held = store.lock(&holder(), Duration::ZERO).await.unwrap();
        let version = held.loaded().version.clone();
        held.save(&snapshot(3), &version).await.unwrap();
        drop(held);
        assert_eq!(folder.store().past(2).await.unwrap(), Some(snapshot(2)));
        assert_eq!(folder.read("backups/replaced-after-2-backup.json"), b"of another history");
    }
}

#[tokio::test]
async fn what_was_replaced_by_hand_is_kept_with_and_without_second_names() {
    for disk in with_and_without_links() {
        let folder = Folder::lived().await;
        folder.write("state.json", "garbage");
        let store = FileStore::on(disk, folder.path());
        store.restore(&holder(), &snapshot(1)).await.unwrap();
        assert_eq!(folder.read("backups/replaced-after-2-state.json"), b"garbage");
    }
}

#[tokio::test]
async fn a_foreign_state_is_refused() {
    let folder = Folder::lived().await;
    let foreign = Snapshot { lineage: "lineage-2".to_owned(), ..snapshot(9) };
    let (_, bytes) = crate::format::encode(&foreign, 1, crate::frame::End::default()).unwrap();
    folder.write("state.json", bytes);
    check(
        &folder.refused().await,
        ".plumb/state.json has lineage lineage-2, and the state here had lineage lineage-1",
    );
    folder.remove("lock");
    check(
        &folder.refused().await,
        ".plumb/state.json has lineage lineage-2, but .plumb/journal has lineage lineage-1",
    );
    let (_, bytes) = crate::format::encode(&snapshot(2), 77, crate::frame::End::default()).unwrap();
    folder.write("state.json", bytes);
    check(
        &folder.refused().await,
        ".plumb/journal does not belong to .plumb/state.json: it follows another state, of serial 2, and this one has serial 2",
    );
}

#[tokio::test]
async fn a_journal_that_is_missing_or_damaged_is_refused() {
    let folder = Folder::lived().await;
    let journal = folder.read("journal");
    folder.remove("journal");
    check_journal(
        &folder.refused().await,
        ".plumb/journal is missing, but .plumb/state.json exists",
    );
    folder.write("journal", "");
    check_journal(
        &folder.refused().await,
        ".plumb/journal cannot be read: it is damaged at byte 0: it has no beginning",
    );
    let mut flipped = journal.clone();
    flipped[50] ^= 1;
    folder.write("journal", flipped);
    check_journal(
        &folder.refused().await,
        ".plumb/journal cannot be read: it is damaged at byte 0: the checksum of a frame is wrong",
    );
    folder.write("journal", folder.read("state.json"));
    assert!(folder.refused().await.contains("no frame begins there"));
    folder.write("journal", journal);
    assert_eq!(folder.load().await.records, records(3..5));
}

#[tokio::test]
async fn a_torn_end_is_cut_off_and_the_journal_goes_on() {
    let folder = Folder::lived().await;
    let whole = folder.read("journal");
    folder.write("journal", &whole[..whole.len() - 3]);
    assert_eq!(folder.load().await.records, records(3..4));
    assert_eq!(folder.read("journal").len(), whole.len() - 3, "a look changes nothing");
    let mut held = folder.lock().await;
    assert_eq!(held.loaded().records, records(3..4));
    held.append(&records(8..9)).await.unwrap();
    drop(held);
    assert_eq!(folder.load().await.records, [records(3..4), records(8..9)].concat());
}

#[tokio::test]
async fn what_is_no_file_is_refused_at_once() {
    for name in ["state.json", "journal", "lock"] {
        let folder = Folder::lived().await;
        folder.remove(name);
        std::fs::create_dir(folder.file(name)).unwrap();
        let result = folder.store().lock(&holder(), Duration::ZERO).await.map(|_| ());
        assert!(matches!(result, Err(StoreError::Suspicious { .. })), "{name}: {result:?}");
        std::fs::remove_dir(folder.file(name)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.file(name)).status();
        assert!(made.unwrap().success());
        let result = folder.store().lock(&holder(), Duration::ZERO).await.map(|_| ());
        assert!(matches!(result, Err(StoreError::Suspicious { .. })), "{name}: {result:?}");
        folder.store().load().await.map(|_| ()).ok();
    }
}

#[tokio::test]
async fn an_enormous_file_is_refused_at_once() {
    for name in ["state.json", "journal"] {
        let folder = Folder::lived().await;
        File::create(folder.file(name)).unwrap().set_len(LARGEST + 1).unwrap();
        let text = folder.refused().await;
        assert!(text.starts_with(&format!(".plumb/{name} was not written by Plumb")), "{text}");
    }
}

#[tokio::test]
async fn a_folder_that_everybody_can_write_is_refused() {
    let folder = Folder::lived().await;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = folder.store().lock(&holder(), Duration::ZERO).await.map(|_| ()).unwrap_err();
    let StoreError::Suspicious { what, help } = error else { panic!("{error:?}") };
    assert!(what.starts_with("every user of this machine can write to "), "{what}");
    assert!(help.contains("chmod 700"), "{help}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_an_error() {
    let folder = Folder::new();
    std::fs::write(folder.path(), "a file").unwrap();
    let error = folder.store().lock(&holder(), Duration::ZERO).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Failed { source: Some(_), .. }), "{error:?}");
}

#[tokio::test]
async fn only_this_user_can_read() {
    let folder = Folder::lived().await;
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.path()), 0o700);
    assert_eq!(mode(folder.file("backups")), 0o700);
    for name in ["state.json", "journal", "lock", "backups/1.json", ".gitignore"] {
        assert_eq!(mode(folder.file(name)), 0o600, "{name}");
    }
    assert_eq!(folder.read(".gitignore"), b"*\n");
    let temporary = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().ends_with(".tmp")
    };
    assert!(!std::fs::read_dir(folder.path()).unwrap().any(temporary));
}

#[tokio::test]
async fn twenty_backups_are_kept() {
    let folder = Folder::new();
    let mut held = folder.lock().await;
    let mut version = held.initialise(&snapshot(0)).await.unwrap();
    for serial in 1..=30 {
        version = held.save(&snapshot(serial), &version).await.unwrap();
    }
    let serials = backups::serials(&folder.store().files);
    assert_eq!(serials, (10..30).collect::<Vec<u64>>());
    let (_, oldest) = crate::format::decode(&folder.read("backups/10.json")).unwrap();
    assert_eq!(oldest, snapshot(10));
}

#[tokio::test]
async fn who_lost_a_file_is_fenced() {
    for name in ["lock", "journal", "state.json"] {
        let folder = Folder::lived().await;
        let mut held = folder.lock().await;
        let version = held.loaded().version.clone();
        held.append(&records(5..6)).await.unwrap();
        let bytes = folder.read(name);
        folder.remove(name);
        folder.write(name, bytes);
        let error = held.append(&records(6..7)).await.unwrap_err();
        assert!(matches!(error, StoreError::Fenced(_)), "{name}: {error:?}");
        let error = held.save(&snapshot(3), &version).await.unwrap_err();
        assert!(matches!(error, StoreError::Fenced(_)), "{name}: {error:?}");
        drop(held);
        assert_eq!(folder.load().await.records, records(3..6), "{name}");
    }
}

#[tokio::test]
async fn deleting_the_lock_file_lets_nobody_in() {
    let folder = Folder::lived().await;
    let held = folder.lock().await;
    folder.remove("lock");
    let error = folder.store().lock(&holder(), Duration::ZERO).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Locked(_)), "{error:?}");
    let error = folder.store().restore(&holder(), &snapshot(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked(_)), "{error:?}");
    drop(held);
    assert_eq!(folder.lock().await.loaded().records, records(3..5));
}

#[tokio::test]
async fn what_others_wrote_into_the_lock_file_is_tamed() {
    let folder = Folder::lived().await;
    let hostile =
        Holder { user: "\u{1b}]0;x\u{7}root\r\n".to_owned(), host: "h".repeat(9000), ..holder() };
    let held = folder.store().lock(&hostile, Duration::ZERO).await.unwrap();
    let seen = folder.load().await.holder.unwrap();
    assert_eq!((&*seen.user, seen.host.len()), ("]0;xroot", 200));
    drop(held);
    for garbage in [&b"garbage"[..], b"\xff\xff", &[b'{'; 9000], &[0; 4096]] {
        folder.write("lock", garbage);
        assert!(folder.load().await.holder.is_none());
        assert_eq!(folder.lock().await.loaded().records, records(3..5));
    }
}

#[tokio::test]
async fn a_bad_state_can_be_replaced_by_a_backup() {
    for name in ["state.json", "journal"] {
        for is_missing in [false, true] {
            let folder = Folder::lived().await;
            folder.write(name, "garbage, more than a header has, so that it is no torn one");
            if is_missing {
                folder.remove(name);
            }
            folder.refused().await;
            let (_, backup) = crate::format::decode(&folder.read("backups/1.json")).unwrap();
            folder.store().restore(&holder(), &backup).await.unwrap();
            let loaded = folder.load().await;
            let serial = loaded.snapshot.as_ref().unwrap().serial;
            assert_eq!(serial, 3);
            assert_eq!(content(loaded), (Some(Snapshot { serial, ..backup }), Vec::new()));
            let aside = folder.file(&format!("backups/replaced-after-2-{name}"));
            assert_eq!(aside.exists(), !is_missing);
            // A readable file becomes an ordinary backup, under its own serial.
            let readable = name == "journal";
            assert_eq!(folder.store().past(2).await.unwrap().is_some(), readable);
            folder.lock().await.append(&records(0..1)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_was_replaced_is_kept_ten_times() {
    let folder = Folder::lived().await;
    folder.write("backups/replaced-after-notes.txt", "a stranger's");
    for _ in 0..13 {
        folder.store().restore(&holder(), &snapshot(1)).await.unwrap();
    }
    let names = std::fs::read_dir(folder.file("backups")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut aside: Vec<String> = names.filter(|name| name.starts_with("replaced-")).collect();
    aside.sort_by_key(|name| name.split('-').nth(2).unwrap().parse::<u64>().unwrap_or(0));
    // Serial 3 replaced serial 2, and so on up to 15.
    assert_eq!(aside.len(), 21, "{aside:?}");
    assert_eq!(aside[0], "replaced-after-notes.txt");
    assert!(aside[1].starts_with("replaced-after-5-"), "{aside:?}");
    assert!(aside[20].starts_with("replaced-after-14-"), "{aside:?}");
}

#[tokio::test]
async fn numbers_that_end_are_not_counted_up_from() {
    let folder = Folder::lived().await;
    let (state, whole) = (snapshot(2), folder.read("state.json"));
    let highest = crate::frame::End { lsn: u64::MAX, epoch: u64::MAX, ..Default::default() };
    let zero = crate::frame::End::default();
    for (snapshot, epoch, end) in [
        (Snapshot { serial: u64::MAX, ..state.clone() }, 1, zero),
        (Snapshot { next_call: u64::MAX, ..state.clone() }, 1, zero),
        (state.clone(), u64::MAX, zero),
        (state.clone(), 1, highest),
    ] {
        let (_, bytes) = crate::format::encode(&snapshot, epoch, end).unwrap();
        folder.write("state.json", bytes);
        let text = folder.refused().await;
        assert!(text.contains("too high to count up from"), "{text}");
    }
    folder.write("state.json", whole);
    // The other files are only hints, and are ignored if they are wrong.
    folder.write("backups/18446744073709551615.json", "");
    folder.write("lock", format!("{{\"epoch\":{}}}", u64::MAX));
    folder.lock().await.append(&records(5..6)).await.unwrap();
    folder.store().restore(&holder(), &state).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_looks_while_another_writes_sees_one_moment() {
    let folder = Folder::new();
    let mut held = folder.lock().await;
    let mut version = held.initialise(&snapshot(0)).await.unwrap();
    let writer = tokio::spawn(async move {
        for serial in 1..=60 {
            for n in 0..4 {
                held.append(&records(4 * serial + n..4 * serial + n + 1)).await.unwrap();
            }
            version = held.save(&snapshot(serial), &version).await.unwrap();
        }
        drop(held);
    });
    let (mut last, mut looks) = (0, 0);
    while !writer.is_finished() {
        let (state, seen) = content(folder.load().await);
        let state = state.unwrap();
        let first = 4 * (state.serial + 1);
        assert_eq!(seen, records(first..first + seen.len() as u64));
        assert!(4 * state.serial + seen.len() as u64 >= last, "it went back");
        assert_eq!(state, snapshot(state.serial));
        last = 4 * state.serial + seen.len() as u64;
        looks += 1;
    }
    writer.await.unwrap();
    assert!(looks > 20, "only {looks} looks");
    assert_eq!(content(folder.load().await), (Some(snapshot(60)), Vec::new()));
}

#[tokio::test]
async fn without_second_names_backups_are_copies() {
    for disk in with_and_without_links() {
        let folder = Folder::lived().await;
        let before = folder.read("state.json");
        let store = FileStore::on(disk, folder.path());
        let mut held = store.lock(&holder(), Duration::ZERO).await.unwrap();
        let version = held.loaded().version.clone();
        held.save(&snapshot(3), &version).await.unwrap();
        assert_eq!(folder.read("backups/2.json"), before);
    }
}

/// Returns an ordinary disk, and disks without second names, for each of the errors with which systems report
/// that: forbidden, on another device, one too many, not implemented, not supported.
fn with_and_without_links() -> Vec<Arc<dyn Disk>> {
    let without = [1, 18, 31, 38, 95]
        .map(|errno| Arc::new(NoLinks { errno, synced: Mutex::default() }) as Arc<dyn Disk>);
    [Arc::new(RealDisk) as Arc<dyn Disk>].into_iter().chain(without).collect()
}

/// A disk without second names, with its error. A file there must be synced before it gets its name, because
/// it may be the only copy.
struct NoLinks {
    errno: i32,
    synced: Mutex<Vec<Identity>>,
}

impl Disk for NoLinks {
    fn read(&self, path: &Path, most: u64) -> std::io::Result<Option<Vec<u8>>> {
        RealDisk.read(path, most)
    }

    fn make_folder(&self, path: &Path) -> std::io::Result<()> {
        RealDisk.make_folder(path)
    }

    fn create(&self, path: &Path) -> std::io::Result<File> {
        RealDisk.create(path)
    }

    fn open(&self, path: &Path) -> std::io::Result<File> {
        RealDisk.open(path)
    }

    fn write(&self, file: &File, bytes: &[u8]) -> std::io::Result<()> {
        RealDisk.write(file, bytes)
    }

    fn sync(&self, file: &File) -> std::io::Result<()> {
        self.synced.lock().unwrap().push(identity_of(file)?);
        RealDisk.sync(file)
    }

    fn link(&self, _: &Path, _: &Path) -> std::io::Result<()> {
        Err(std::io::Error::from_raw_os_error(self.errno))
    }

    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        let is_synced =
            identity_at(from).is_some_and(|it| self.synced.lock().unwrap().contains(&it));
        assert!(is_synced || from.extension().is_none_or(|it| it != "tmp"), "{}", from.display());
        RealDisk.rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> std::io::Result<()> {
        RealDisk.sync_folder(path)
    }
}
