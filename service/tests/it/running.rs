//! Tests of the start and the end of the service, of leases, and of durability across an orderly
//! restart.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use service::{Options, StartError};
use tokio::time::{sleep, timeout};

use crate::harness::{Harness, KEY, client};

async fn ends(harness: Harness) -> bool {
    timeout(Duration::from_secs(5), harness.running).await.is_ok()
}

#[tokio::test]
async fn serve_json_tells_where_the_service_is_and_goes_last() {
    let service = Harness::start().await;
    let path = service.data.join("serve.json");
    let told: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(told["rest_url"], service.addresses.rest);
    assert_eq!(told["graphql_url"], service.addresses.graphql);
    assert_eq!(told["queue_url"], service.addresses.queue);
    assert_eq!(told["lease_url"], service.addresses.lease);
    assert_eq!((&told["key"], &told["pid"]), (&json!(KEY), &json!(std::process::id())));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let folder = service.stop().await;
    assert!(!path.exists() && folder.is_some());
}

#[tokio::test]
async fn a_data_folder_serves_once_and_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let first = Harness::over(folder.path(), |options| options.key = None).await;
    let error = service::start(Options::new(folder.path().to_owned())).await.err().unwrap();
    assert!(matches!(&error, StartError::Locked { folder: held } if held == folder.path()));
    assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
    let key = first.addresses.key.clone();
    let url = format!("{}/networkvolumes", first.addresses.rest);
    let body = json!({ "name": "kept", "size": 5, "dataCenterId": "EU-RO-1" });
    let made = client().post(&url).bearer_auth(&key).json(&body).send().await.unwrap();
    let made: Value = made.json().await.unwrap();
    first.stop().await;
    let second = Harness::over(folder.path(), |options| options.key = None).await;
    assert_eq!(second.addresses.key, key);
    let mode = folder.path().join("key").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let url = format!("{}/networkvolumes", second.addresses.rest);
    let listed = client().get(&url).bearer_auth(&key).send().await.unwrap();
    assert_eq!(listed.json::<Value>().await.unwrap(), json!([made]));
    second.stop().await;
    assert!(!folder.path().join("service.db-wal").exists(), "everything is in one file");
}

#[tokio::test]
async fn what_the_service_writes_stays_out_of_git() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("serve.json"), "of a service that was killed").unwrap();
    let service = Harness::over(folder.path(), |_| {}).await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.submit(&endpoint, json!({ "input": {} })).await;
    service.until(&endpoint, &job, "COMPLETED").await;
    let ignored = std::fs::read_to_string(folder.path().join(".gitignore")).unwrap();
    let is_ignored = |name: &str| {
        ignored.lines().filter_map(|line| line.strip_prefix('/')).any(|line| {
            match line.trim_end_matches('/').split_once('*') {
                Some((head, tail)) => name.starts_with(head) && name.ends_with(tail),
                None => name == line.trim_end_matches('/'),
            }
        })
    };
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<_> = names.collect();
    assert!(names.len() > 5 && names.iter().all(|name| is_ignored(name)), "{names:?}");
    assert!(!is_ignored("plumb.toml"), "a folder may hold other things as well");
    service.stop().await;
    std::fs::write(folder.path().join(".gitignore"), "/key\n").unwrap();
    Harness::over(folder.path(), |_| {}).await.stop().await;
    let kept = std::fs::read_to_string(folder.path().join(".gitignore")).unwrap();
    assert_eq!(kept, "/key\n", "somebody wants it so");
}

#[tokio::test]
async fn without_need_the_service_ends() {
    let service = Harness::with(|options| {
        options.until_idle = true;
        options.timing.first_lease = Duration::from_millis(200);
    })
    .await;
    assert!(ends(service).await);
}

#[tokio::test]
async fn the_service_ends_with_its_last_lease() {
    let service = Harness::with(|options| {
        options.until_idle = true;
        options.timing.first_lease = Duration::from_secs(2);
    })
    .await;
    let lease = |key: &'static str| client().get(&service.addresses.lease).bearer_auth(key).send();
    assert_eq!(lease("wrong").await.unwrap().status(), 401);
    let first = lease(KEY).await.unwrap();
    let second = lease(KEY).await.unwrap();
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    sleep(Duration::from_millis(2200)).await;
    drop(first);
    sleep(Duration::from_millis(200)).await;
    assert!(!service.running.is_finished(), "a lease is still held");
    let (rest, data) = (service.addresses.rest.clone(), service.data.clone());
    drop(second);
    assert!(ends(service).await);
    assert!(client().get(format!("{rest}/networkvolumes")).send().await.is_err());
    assert!(!data.join("serve.json").exists());
}

#[tokio::test]
async fn a_stopping_service_ends_leases_and_grants_no_more() {
    let service = Harness::start().await;
    let held = client().get(&service.addresses.lease).bearer_auth(KEY).send().await.unwrap();
    service.stop.cancel();
    timeout(Duration::from_secs(5), held.bytes()).await.expect("the lease ends").ok();
    assert!(ends(service).await);
}

#[tokio::test]
async fn running_jobs_finish_before_the_service_stops() {
    let folder = tempfile::tempdir().unwrap();
    let patient = |options: &mut Options| options.timing.finish = Duration::from_secs(10);
    let service = Harness::over(folder.path(), patient).await;
    let endpoint = service.endpoint(json!({})).await;
    let running = service.run(&endpoint, json!({ "sleep_ms": 1500 })).await;
    let queued = service.run(&endpoint, json!({})).await;
    service.until(&endpoint, &running, "IN_PROGRESS").await;
    let asked = std::time::Instant::now();
    service.stop().await;
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    let hasty = |options: &mut Options| options.timing.finish = Duration::from_millis(300);
    let service = Harness::over(folder.path(), hasty).await;
    let shown = service.until(&endpoint, &running, "COMPLETED").await;
    assert_eq!(shown.get("retries"), None, "{shown}");
    service.until(&endpoint, &queued, "COMPLETED").await;
    let long = service.run(&endpoint, json!({ "sleep_ms": 60_000 })).await;
    service.until(&endpoint, &long, "IN_PROGRESS").await;
    service.stop().await;
    let service = Harness::over(folder.path(), |_| {}).await;
    let shown = service.until(&endpoint, &long, "IN_PROGRESS").await;
    assert_eq!(shown["retries"], 1, "it went back, and runs again: {shown}");
}

#[tokio::test]
async fn keys_that_fit_no_header_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for key in ["", "a b", "a\nb"] {
        let mut options = Options::new(folder.path().to_owned());
        options.key = Some(key.to_owned());
        assert!(matches!(service::start(options).await, Err(StartError::Key)));
    }
    for kept in [&b""[..], b"a b", b"\xff"] {
        std::fs::write(folder.path().join("key"), kept).unwrap();
        let error = service::start(Options::new(folder.path().to_owned())).await.err().unwrap();
        assert!(matches!(error, StartError::KeptKey { .. }), "{error}");
        assert!(error.to_string().contains("/key must be"), "{error}");
    }
}

#[tokio::test]
async fn the_access_log_counts_what_was_called() {
    let service = Harness::start().await;
    let id = service.volume("v", 1).await;
    service.get(&format!("/networkvolumes/{id}?secret=1")).await;
    service.data("{ myself { id } }", json!({})).await;
    let create = "mutation { createNetworkVolume(input: {name: \"a\", size: 1, dataCenterId: \"CA-MTL-1\"}) { id } }";
    let made = service.data(create, json!({})).await["createNetworkVolume"]["id"].take();
    let log = service.access_log();
    let brief: Vec<_> = log
        .iter()
        .map(|entry| {
            json!([entry["operation"], entry["mutating"], entry["object"], entry["status"]])
        })
        .collect();
    assert_eq!(
        brief,
        [
            json!(["POST /networkvolumes", true, id, 200]),
            json!(["GET /networkvolumes/{id}", false, id, 200]),
            json!(["myself", false, null, 200]),
            json!(["createNetworkVolume", true, made, 200]),
        ]
    );
    assert_eq!(log[1]["path"], format!("/v1/networkvolumes/{id}"));
    let text = std::fs::read_to_string(service.data.join("access.log")).unwrap();
    assert!(!text.contains(KEY) && !text.contains("secret"), "{text}");
    let silent = Harness::with(|options| options.access_log = false).await;
    silent.volume("v", 1).await;
    assert!(!silent.data.join("access.log").exists());
}

#[tokio::test]
async fn jobs_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    Harness::over(folder.path(), |_| {}).await.stop().await;
    let store = rusqlite::Connection::open(folder.path().join("service.db")).unwrap();
    store.execute_batch("alter table jobs rename column state to condition").unwrap();
    drop(store);
    let error = service::start(Options::new(folder.path().to_owned())).await.err().unwrap();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(matches!(error, StartError::Recover { .. }) && why.contains("state"), "{error}: {why}");
}

/// A client is only told that something went wrong. The cause is in the log.
#[tokio::test]
async fn the_log_says_why_an_answer_was_500() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let service = Harness::with(|options| {
        options.log = Arc::new(move |line| kept.lock().unwrap().push(line.text.to_owned()));
    })
    .await;
    let store = rusqlite::Connection::open(service.data.join("service.db")).unwrap();
    store.execute_batch("alter table objects rename column name to title").unwrap();
    let body = json!({ "name": "v", "size": 5, "dataCenterId": "EU-RO-1" });
    let (status, told) = service.rest(Method::POST, "/networkvolumes", Some(body)).await;
    assert_eq!(status, 500);
    assert!(!told.to_string().contains("column"), "{told}");
    let lines = lines.lock().unwrap();
    assert!(lines.iter().any(|line| line.contains("no column named name")), "{lines:?}");
}

#[tokio::test]
async fn what_is_no_file_is_refused_and_not_waited_for() {
    for name in ["lock", "key", "port", "access.log", "service.db", "logs"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let options = Options::new(folder.path().to_owned());
        let Err(StartError::Strange(refused)) = service::start(options).await else {
            panic!("{name} is taken for a file");
        };
        assert_eq!(refused.path, path);
        let kind = if name == "logs" { "is no folder" } else { "is not a regular file" };
        assert!(refused.to_string().ends_with(kind), "{refused}");
    }
}

#[tokio::test]
async fn nothing_is_done_through_a_link() {
    let outside = tempfile::tempdir().unwrap();
    let precious = outside.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    let files = ["lock", "key", "port", "access.log", "serve.json", "service.db", "service.db-wal"];
    let folders = ["logs", "volumes"].map(|name| (name, outside.path().to_owned()));
    let new = outside.path().join("new");
    let links = files.iter().flat_map(|name| [(*name, precious.clone()), (*name, new.clone())]);
    for (name, to) in links.chain(folders) {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(&to, &link).unwrap();
        let result = service::start(Options::new(folder.path().to_owned())).await;
        let Err(StartError::Strange(refused)) = result else { panic!("{name} is followed") };
        assert_eq!(
            refused.to_string(),
            format!("{} is a link to {}", link.display(), to.display())
        );
    }
    assert_eq!(std::fs::read_to_string(precious).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    // The data folder itself may be a link, because the user names it.
    let (real, link) = (outside.path().join("real"), outside.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert!(service::start(Options::new(link)).await.is_ok());
    assert!(real.join("service.db").exists());
}

/// The store fails, as with a full disk, while the worker of a job crashes. The job goes back into
/// the queue once the store works again.
#[tokio::test]
async fn a_job_whose_worker_died_goes_back_once_the_store_takes_it() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "executionTimeoutMs": 0 })).await;
    let job = service.run(&endpoint, json!({ "sleep_ms": 1500, "crash": true })).await;
    service.until(&endpoint, &job, "IN_PROGRESS").await;
    let conn = rusqlite::Connection::open(service.data.join("service.db")).unwrap();
    let full = "create trigger full before update on jobs begin select raise(abort, 'full'); end";
    conn.execute_batch(full).unwrap();
    service.healthy(&endpoint, |health| health["workers"]["unhealthy"] == 1).await;
    assert!(service.pods(&endpoint).await.is_empty());
    let shown = service.health(&endpoint).await;
    assert_eq!(shown["jobs"]["inProgress"], 1, "{shown}");
    conn.execute_batch("drop trigger full").unwrap();
    service.healthy(&endpoint, |health| health["jobs"]["retried"] == 1).await;
    let shown = service.until(&endpoint, &job, "IN_PROGRESS").await;
    assert_eq!(shown["retries"], 1, "{shown}");
}
