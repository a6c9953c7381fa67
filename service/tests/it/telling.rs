//! Tests of webhooks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::harness::Harness;

/// A receiver that answers with these statuses in turn, and with 200 after them. A status of 0
/// means no answer.
struct Receiver {
    url: String,
    heard: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    async fn start(statuses: &'static [u16]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&heard);
        tokio::spawn(async move {
            for number in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let status = statuses.get(number).copied().unwrap_or(200);
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let body = loop {
                        let mut part = [0; 4096];
                        let count = stream.read(&mut part).await.unwrap();
                        bytes.extend_from_slice(&part[..count]);
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
                        if let Some(Ok(body)) = body.map(|body| serde_json::from_str(&body)) {
                            break body;
                        }
                    };
                    noted.lock().unwrap().push(body);
                    if status == 0 {
                        tokio::time::sleep(Duration::from_mins(1)).await;
                    }
                    let location = if status == 302 { "Location: /elsewhere\r\n" } else { "" };
                    let answer = format!(
                        "HTTP/1.1 {status} X\r\n{location}Content-Length: 0\r\nConnection: close\r\n\r\n"
                    );
                    stream.write_all(answer.as_bytes()).await.unwrap();
                });
            }
        });
        Receiver { url, heard }
    }

    async fn heard(&self, count: usize) -> Vec<Value> {
        for _ in 0..400 {
            if self.heard.lock().unwrap().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // A superfluous message would come within this time.
        tokio::time::sleep(Duration::from_millis(400)).await;
        self.heard.lock().unwrap().clone()
    }
}

async fn service() -> Harness {
    Harness::with(|options| {
        options.timing.webhook_delay = Duration::from_millis(100);
        options.timing.webhook_timeout = Duration::from_millis(300);
    })
    .await
}

#[tokio::test]
async fn a_webhook_is_told_once_with_the_whole_job() {
    let (service, receiver) = (service().await, Receiver::start(&[]).await);
    let endpoint = service.endpoint(json!({})).await;
    let job =
        service.submit(&endpoint, json!({ "input": { "x": 1 }, "webhook": receiver.url })).await;
    let heard = receiver.heard(1).await;
    assert_eq!(heard.len(), 1);
    let told = &heard[0];
    assert_eq!((&told["id"], &told["status"]), (&json!(job), &json!("COMPLETED")));
    assert_eq!((&told["input"], &told["output"]), (&json!({ "x": 1 }), &json!({ "x": 1 })));
    assert!(told["webhook"] == receiver.url && told["executionTime"].is_i64(), "{told}");
}

#[tokio::test]
async fn a_refused_webhook_is_tried_three_times() {
    let (service, receiver) = (service().await, Receiver::start(&[500, 302, 200]).await);
    let endpoint = service.endpoint(json!({})).await;
    let body = json!({ "input": { "fail": "x" }, "webhook": receiver.url });
    service.submit(&endpoint, body).await;
    let heard = receiver.heard(3).await;
    assert_eq!((heard.len(), &heard[2]["status"]), (3, &json!("FAILED")));
    let receiver = Receiver::start(&[500, 0, 404, 200]).await;
    service.submit(&endpoint, json!({ "input": {}, "webhook": receiver.url })).await;
    assert_eq!(receiver.heard(3).await.len(), 3, "two more tries, not three");
}

#[tokio::test]
async fn webhooks_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[500]).await;
    let first = Harness::over(folder.path(), |_| {}).await;
    let endpoint = first.endpoint(json!({})).await;
    let job = first.submit(&endpoint, json!({ "input": {}, "webhook": receiver.url })).await;
    first.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(receiver.heard(1).await.len(), 1);
    first.stop().await;
    let conn = rusqlite::Connection::open(folder.path().join("service.db")).unwrap();
    assert_eq!(conn.execute("update webhooks set due_at = 0", []).unwrap(), 1);
    drop(conn);
    let second = Harness::over(folder.path(), |_| {}).await;
    assert_eq!(receiver.heard(2).await.len(), 2);
    second.stop().await;
}

#[tokio::test]
async fn a_store_that_takes_nothing_has_no_webhook_called_again() {
    let folder = tempfile::tempdir().unwrap();
    let service =
        Harness::over(folder.path(), |options| options.timing.webhook_delay = Duration::ZERO).await;
    let conn = rusqlite::Connection::open(folder.path().join("service.db")).unwrap();
    conn.busy_timeout(Duration::from_secs(5)).unwrap();
    let refuse = |what| {
        let sql =
            "create trigger full_{} before {} on webhooks begin select raise(abort, 'full'); end";
        conn.execute(&sql.replace("{}", what), []).unwrap();
    };
    refuse("update");
    refuse("delete");
    let endpoint = service.endpoint(json!({})).await;
    let (taken, refused) = (Receiver::start(&[]).await, Receiver::start(&[500]).await);
    for receiver in [&taken, &refused] {
        service.submit(&endpoint, json!({ "input": {}, "webhook": receiver.url })).await;
    }
    for receiver in [&taken, &refused] {
        assert_eq!(receiver.heard(1).await.len(), 1, "nothing of it is written down");
    }
    conn.execute_batch("drop trigger full_update; drop trigger full_delete").unwrap();
    assert_eq!(refused.heard(2).await.len(), 2);
    assert_eq!(taken.heard(1).await.len(), 1);
    let left = || conn.query_row("select count(*) from webhooks", [], |row| row.get::<_, i64>(0));
    assert_eq!(left(), Ok(0), "what was told is not told again");
    service.stop().await;
}
