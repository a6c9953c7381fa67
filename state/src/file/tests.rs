use super::*;
use crate::conformance;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    let root = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    conformance::run(|| {
        count.set(count.get() + 1);
        let folder = root.path().join(format!("{}", count.get()));
        Box::new(move || Box::new(FileStore::new(folder.clone())))
    })
    .await;
}
