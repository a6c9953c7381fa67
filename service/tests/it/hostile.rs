//! Tests with malicious and with careless clients: they must not harm others.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{Harness, KEY};

fn host(service: &Harness) -> String {
    let rest = service.addresses.rest.strip_prefix("http://").unwrap();
    rest.split('/').next().unwrap().to_owned()
}

#[tokio::test]
async fn thousands_of_half_open_connections_do_no_harm() {
    let service = Harness::start().await;
    let host = host(&service);
    let mut open = Vec::new();
    for number in 0..2000 {
        let Ok(mut stream) = TcpStream::connect(&host).await else { break };
        let part: &[u8] = match number % 3 {
            0 => b"",
            1 => b"POST /v1/networkvolumes HTTP/1.1\r\nHost: x\r\n",
            _ => b"POST /v1/networkvolumes HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{",
        };
        drop(stream.write_all(part).await);
        open.push(stream);
    }
    assert!(open.len() > 400, "{}", open.len());
    let asked = Instant::now();
    service.volume("v", 1).await;
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn what_is_not_http_is_answered_or_cut() {
    let service = Harness::start().await;
    for rubbish in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/templates HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/templates HTTP/1.1\r\nTransfer-Encoding: nonsense\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(host(&service)).await.unwrap();
        stream.write_all(rubbish).await.unwrap();
        let mut answer = Vec::new();
        let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "the connection hangs");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    service.volume("v", 1).await;
}

#[tokio::test]
async fn deep_and_wide_documents_are_refused_early() {
    let service = Harness::start().await;
    let deep =
        format!("{{ myself {}{} }}", "{ endpoint(id: \"x\") ".repeat(5000), "}".repeat(5000));
    let (status, _) = service.graphql(&deep, json!({})).await;
    assert_eq!(status, 400);
    let nested = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let url = format!("{}/templates", service.addresses.rest);
    let body = format!("{{\"name\": {nested}}}");
    let sent = service.client.post(&url).bearer_auth(KEY).body(body).send().await.unwrap();
    assert_eq!(sent.status(), 400);
    // The service does not look into an input, so it may be nested as deeply as the client likes.
    let endpoint = service.endpoint(json!({ "workersMax": 0 })).await;
    let url = format!("{}/{endpoint}/run", service.addresses.queue);
    let body = format!("{{\"input\": {{\"x\": {nested}}}}}");
    let sent = service.client.post(&url).bearer_auth(KEY).body(body).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    let bomb = (0..40).map(|number| {
        let next = number + 1;
        format!("fragment f{number} on User {{ ...f{next} ...f{next} }} ")
    });
    let bomb: String = bomb.collect();
    let query = format!("{{ myself {{ ...f0 }} }} {bomb} fragment f40 on User {{ id }}");
    let asked = Instant::now();
    let (status, _) = service.graphql(&query, json!({})).await;
    assert_eq!(status, 400);
    assert!(asked.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_client_that_leaves_early_is_served_all_the_same() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let body = json!({ "input": { "sleep_ms": 300 } }).to_string();
    let head = format!(
        "POST /v2/{endpoint}/runsync HTTP/1.1\r\nHost: x\r\nAuthorization: {KEY}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(host(&service)).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    service.healthy(&endpoint, |health| health["jobs"]["inProgress"] == 1).await;
    drop(stream);
    service.healthy(&endpoint, |health| health["jobs"]["completed"] == 1).await;
    let left = service.access_log().into_iter().find(|entry| entry["operation"] == "POST /runsync");
    assert_eq!(left.expect("it is in the log")["status"], 0);
}

#[tokio::test]
async fn what_is_too_large_is_refused_without_reading_it() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMax": 0 })).await;
    for (operation, length) in
        [("run", "10485761"), ("runsync", "20971521"), ("run", "999999999999")]
    {
        let mut stream = TcpStream::connect(host(&service)).await.unwrap();
        let head = format!(
            "POST /v2/{endpoint}/{operation} HTTP/1.1\r\nHost: x\r\nAuthorization: {KEY}\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        // The client has sent no byte of the body, and the service waits for none.
        let read = timeout(Duration::from_secs(10), stream.read_exact(&mut answer)).await;
        read.expect("the service waits for the body").unwrap();
        assert_eq!(&answer, b"HTTP/1.1 400", "{operation} {length}");
    }
    assert_eq!(service.health(&endpoint).await["jobs"]["inQueue"], 0);
}

/// A client that deletes a volume and leaves at once leaves neither the volume nor its folder
/// behind.
#[tokio::test]
async fn a_volume_goes_with_its_folder_when_the_client_has_left() {
    let service = Harness::start().await;
    let mut folders = Vec::new();
    for number in 0..20 {
        let id = service.volume(&format!("v{number}"), 1).await;
        let folder = service.data.join("volumes").join(&id);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("data"), "of a worker").unwrap();
        folders.push(folder);
        let mut stream = TcpStream::connect(host(&service)).await.unwrap();
        let head = format!(
            "DELETE /v1/networkvolumes/{id} HTTP/1.1\r\nHost: x\r\n\
             Authorization: Bearer {KEY}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
    }
    let all_gone = async {
        while service.get("/networkvolumes").await != json!([])
            || folders.iter().any(|folder| folder.exists())
        {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    timeout(Duration::from_secs(10), all_gone).await.expect("folders are left");
}

/// The service reads a body without an announced length up to the limit, and then refuses it.
#[tokio::test]
async fn what_turns_out_too_large_is_refused() {
    let service = Harness::start().await;
    let mut stream = TcpStream::connect(host(&service)).await.unwrap();
    let head = format!(
        "POST /v1/networkvolumes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..17 {
        // The answer may come, and the connection end, before the last chunk.
        drop(stream.write_all(chunk.as_bytes()).await);
    }
    let mut answer = [0; 12];
    let read = timeout(Duration::from_secs(10), stream.read_exact(&mut answer)).await;
    read.expect("the service waits for more").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn slow_clients_hold_up_nobody() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMin": 1 })).await;
    let large = service.run(&endpoint, json!({ "output_bytes": 8 << 20 })).await;
    service.until(&endpoint, &large, "COMPLETED").await;
    let head =
        |operation: &str| format!("{operation} HTTP/1.1\r\nHost: x\r\nAuthorization: {KEY}\r\n");
    let mut deaf = Vec::new();
    for _ in 0..20 {
        // These clients ask for a large answer and never read it.
        let mut stream = TcpStream::connect(host(&service)).await.unwrap();
        let asked = format!("{}\r\n", head(&format!("GET /v2/{endpoint}/status/{large}")));
        stream.write_all(asked.as_bytes()).await.unwrap();
        deaf.push(stream);
    }
    let mut dripping = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(host(&service)).await.unwrap();
        let asked = head(&format!("POST /v2/{endpoint}/run"));
        dripping.push(tokio::spawn(async move {
            for byte in format!("{asked}Content-Length: 1000\r\n\r\n{{").bytes().cycle() {
                if stream.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }));
    }
    let asked = Instant::now();
    for number in 0..20 {
        let job = service.run(&endpoint, json!({ "n": number })).await;
        service.until(&endpoint, &job, "COMPLETED").await;
    }
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    dripping.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_path_that_is_no_text_is_refused_as_all_else_is() {
    let service = Harness::start().await;
    for path in ["%ff/health", "e1/status/%ff", "e1/openai/v1/%ff", "e1/ping/%ff"] {
        let url = format!("{}/{path}", service.addresses.queue);
        let answer = service.client.get(url).bearer_auth(KEY).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        let body: serde_json::Value = answer.json().await.expect("JSON");
        assert!(body.to_string().contains("path not found"), "{path}: {body}");
    }
}

/// The service waits ten seconds for the rest of a body, and serves other clients meanwhile.
#[tokio::test]
async fn half_sent_bodies_end_and_keep_nobody_out() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMax": 0 })).await;
    let asked = Instant::now();
    let mut halves = Vec::new();
    for number in 0..250 {
        let operation = ["run", "runsync", "openai/v1/completions"][number % 3];
        let mut stream = TcpStream::connect(host(&service)).await.unwrap();
        let head = format!(
            "POST /v2/{endpoint}/{operation} HTTP/1.1\r\nHost: x\r\nAuthorization: {KEY}\r\n\
             Content-Length: 1000\r\n\r\n{{\"input\":"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        halves.push(stream);
    }
    service.run(&endpoint, json!({})).await;
    for mut stream in halves {
        let mut answer = [0; 12];
        let read = timeout(Duration::from_secs(15), stream.read_exact(&mut answer)).await;
        read.expect("the service waits for more").unwrap();
        assert_eq!(&answer, b"HTTP/1.1 408");
    }
    assert!(asked.elapsed() > Duration::from_secs(9), "{:?}", asked.elapsed());
}

/// A client that writes its whole body before it reads gets the answer too.
#[tokio::test]
async fn what_is_too_large_is_answered_before_the_connection_ends() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMax": 0 })).await;
    let body = vec![b' '; 30 << 20];
    for (path, key, status) in
        [("run", KEY, "400"), ("runsync", KEY, "400"), ("run", "wrong", "401"), ("x", KEY, "404")]
    {
        let mut stream = TcpStream::connect(host(&service)).await.unwrap();
        let head = format!(
            "POST /v2/{endpoint}/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.expect("all of it is taken");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"), "{path}");
    }
}

#[tokio::test]
async fn who_takes_nothing_of_an_answer_is_cut() {
    let service = Harness::with(|options| {
        options.timing.stall = Duration::from_millis(1500);
        options.timing.retention = Duration::from_secs(2);
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "output_bytes": 19 << 20 })).await;
    service.until(&endpoint, &job, "COMPLETED").await;
    let asked = format!(
        "GET /v2/{endpoint}/status/{job} HTTP/1.1\r\nHost: x\r\nAuthorization: {KEY}\r\n\r\n"
    );
    let mut deaf = TcpStream::connect(host(&service)).await.unwrap();
    deaf.write_all(asked.as_bytes()).await.unwrap();
    // A slow client gets the whole result, even if the retention of the result ends meanwhile.
    let mut slow = TcpStream::connect(host(&service)).await.unwrap();
    slow.write_all(asked.as_bytes()).await.unwrap();
    let (mut piece, mut text) = (vec![0; 1 << 20], Vec::new());
    while text.len() < 19 << 20 {
        let read = slow.read(&mut piece).await.unwrap();
        assert!(read > 0, "cut off after {} bytes", text.len());
        text.extend_from_slice(&piece[..read]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("\"output\":\"xxx") && text.contains("HTTP/1.1 200"));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut rest = Vec::new();
    let left = timeout(Duration::from_secs(5), deaf.read_to_end(&mut rest)).await;
    assert!(left.is_ok() && rest.len() < 19 << 20, "{}", rest.len());
    service.healthy(&endpoint, |health| health["jobs"]["completed"] == 1).await;
}

/// A job that is still in the queue is cancelled when its client hangs up.
#[tokio::test]
async fn the_queued_job_of_a_client_that_hangs_up_is_cancelled() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMax": 0 })).await;
    for (operation, body) in [
        ("runsync", "{\"input\":{}}"),
        ("openai/v1/completions", "{\"prompt\":\"x\"}"),
        ("openai/v1/completions", "{\"prompt\":\"x\",\"stream\":true}"),
    ] {
        let mut stream = TcpStream::connect(host(&service)).await.unwrap();
        let head = format!(
            "POST /v2/{endpoint}/{operation} HTTP/1.1\r\nHost: x\r\nAuthorization: {KEY}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        service.healthy(&endpoint, |health| health["jobs"]["inQueue"] == 1).await;
        drop(stream);
        service.healthy(&endpoint, |health| health["jobs"]["inQueue"] == 0).await;
    }
    let kept = service.run(&endpoint, json!({})).await;
    let path = format!("{endpoint}/requests");
    let listed = service.queue(Method::GET, &path, None).await.1["requests"].take();
    let states: Vec<_> = listed.as_array().unwrap().iter().map(|job| &job["status"]).collect();
    assert_eq!(states, ["IN_QUEUE", "CANCELLED", "CANCELLED", "CANCELLED"], "{kept}");
}
