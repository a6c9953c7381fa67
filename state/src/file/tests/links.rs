//! Links in the folder, and files that are not Plumb's: no file elsewhere, or of another user, is read,
//! written or sealed.

use std::os::unix::fs::symlink;

use super::sealed::key;
use super::*;

/// A folder of somebody else, with a file that is no smaller than the file with which Plumb would overwrite
/// it.
struct Outside {
    root: tempfile::TempDir,
}

impl Outside {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("precious"), vec![b'P'; 6_000]).unwrap();
        Self { root }
    }

    fn file(&self) -> PathBuf {
        self.root.path().join("precious")
    }

    fn is_as_it_was(&self) -> bool {
        let names = std::fs::read_dir(self.root.path()).unwrap().count();
        names == 1 && std::fs::read(self.file()).unwrap() == vec![b'P'; 6_000]
    }
}

#[tokio::test]
async fn nothing_is_done_through_a_link() {
    for name in ["lock", "state.json", "journal", "moved"] {
        let (folder, outside) = (Folder::lived().await, Outside::new());
        std::fs::remove_file(folder.file(name)).ok();
        symlink(outside.file(), folder.file(name)).unwrap();
        let text = folder.refused().await;
        assert!(text.starts_with(&format!(".plumb/{name} is a link to /")), "{text}");
        assert!(text.ends_with("and remove it; its target stays"), "{text}");
        let error = folder.store().restore(&holder(), &snapshot(1)).await.unwrap_err();
        assert!(matches!(error, StoreError::Suspicious { .. }), "{error:?}");
        assert!(outside.is_as_it_was(), "{name}");
        // No file is made at the target of the link either.
        std::fs::remove_file(folder.file(name)).unwrap();
        symlink(outside.root.path().join("new"), folder.file(name)).unwrap();
        folder.refused().await;
        assert!(outside.is_as_it_was(), "{name}");
    }
}

#[tokio::test]
async fn backups_are_in_no_other_folder() {
    let (folder, outside) = (Folder::lived().await, Outside::new());
    std::fs::remove_dir_all(folder.file("backups")).unwrap();
    symlink(outside.root.path(), folder.file("backups")).unwrap();
    let text = folder.refused().await;
    assert!(text.starts_with(".plumb/backups is a link to /"), "{text}");
    let store = folder.store().sealed(key('a'));
    assert!(store.restore(&holder(), &snapshot(1)).await.is_err());
    assert!(store.serials().await.is_err() && store.past(1).await.is_err());
    assert!(outside.is_as_it_was());
}

#[tokio::test]
async fn a_backup_that_is_a_link_is_none_and_makes_way() {
    let (folder, outside) = (Folder::lived().await, Outside::new());
    // The names have a number in another form than Plumb's, the number of the next backup, and a later one.
    for name in ["backups/+9.json", "backups/2.json", "backups/8.json"] {
        symlink(outside.file(), folder.file(name)).unwrap();
    }
    assert_eq!(folder.store().serials().await.unwrap(), [0, 1]);
    assert!(folder.store().past(8).await.is_err());
    let before = folder.read("state.json");
    let mut held = folder.lock().await;
    let version = held.loaded().version.clone();
    held.save(&snapshot(3), &version).await.unwrap();
    assert_eq!(folder.read("backups/2.json"), before);
    assert!(!folder.file("backups/2.json").is_symlink());
    assert!(outside.is_as_it_was());
}

#[tokio::test]
async fn only_what_was_kept_here_is_sealed() {
    let folder = Folder::lived().await;
    let others = ["doc1.txt", "notes.json", "01.json", "replaced-after-me"];
    let ours = ["0.json", "7.json.tmp", "replaced-after-1-journal"];
    for name in others.iter().chain(&ours) {
        folder.write(&format!("backups/{name}"), "mine");
    }
    let store = folder.store().sealed(key('a'));
    let mut held = store.lock(&holder(), Duration::ZERO).await.unwrap();
    let version = held.loaded().version.clone();
    held.save(&snapshot(3), &version).await.unwrap();
    let is_mine = |name: &&str| folder.read(&format!("backups/{name}")) == b"mine";
    assert!(others.iter().all(is_mine));
    assert!(!ours.iter().any(is_mine));
}

#[tokio::test]
async fn a_folder_that_is_a_link_leads_to_a_state_or_to_room_for_one() {
    let (folder, outside) = (Folder::new(), Outside::new());
    symlink(outside.root.path(), folder.path()).unwrap();
    let text = folder.refused().await;
    assert!(text.contains(", where there is no state\n"), "{text}");
    assert!(text.ends_with("to start over where it leads, create .plumb/backups"), "{text}");
    assert!(folder.store().restore(&holder(), &snapshot(1)).await.is_err());
    assert!(outside.is_as_it_was());
    // The advice of the message works.
    std::fs::create_dir(outside.root.path().join("backups")).unwrap();
    folder.lock().await.initialise(&snapshot(0)).await.unwrap();
    assert!(folder.load().await.snapshot.is_some());
}

#[tokio::test]
async fn a_link_does_not_become_the_folder() {
    let (folder, outside) = (Folder::new(), Outside::new());
    symlink(outside.root.path(), folder.path().with_added_extension("tmp")).unwrap();
    let error = folder.store().lock(&holder(), Duration::ZERO).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Suspicious { .. }), "{error:?}");
    assert!(outside.is_as_it_was() && !folder.path().exists());
}

/// The folder is made under a temporary name first: things that are there already would be in it.
#[tokio::test]
async fn what_somebody_put_where_the_folder_is_made_does_not_become_it() {
    for name in ["backups", "state.json", "lock", "service"] {
        let (folder, outside) = (Folder::new(), Outside::new());
        let staged = folder.path().with_added_extension("tmp");
        std::fs::create_dir(&staged).unwrap();
        symlink(outside.root.path(), staged.join(name)).unwrap();
        let store = folder.store();
        let error = store.lock(&holder(), Duration::ZERO).await.map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Suspicious { .. }), "{name}: {error:?}");
        assert!(store.restore(&holder(), &snapshot(1)).await.is_err());
        assert!(outside.is_as_it_was() && !folder.path().exists());
        assert!(staged.join(name).is_symlink(), "nothing was changed");
    }
    let folder = Folder::new();
    let backups = folder.path().with_added_extension("tmp").join("backups");
    std::fs::create_dir_all(&backups).unwrap();
    std::fs::write(backups.join("60.json"), "mine").unwrap();
    let error = folder.store().lock(&holder(), Duration::ZERO).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Suspicious { .. }), "{error:?}");
    // A folder that a killed run left is used.
    std::fs::remove_file(backups.join("60.json")).unwrap();
    drop(folder.lock().await);
    assert!(folder.file("backups").is_dir());
}
