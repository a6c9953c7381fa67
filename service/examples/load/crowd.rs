//! The measurement of many idle connections, and of clients that do not read their answers.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::KEY;
use crate::running::Service;

const OPEN: usize = 2000;
const STALLED: usize = 200;

/// Measures the memory of idle connections and of answers that no client reads.
pub(crate) async fn measure(service: &Service, endpoint: &str) {
    let mut client = service.client().await;
    let large = format!(r#"{{"input":{{"output_bytes":{}}}}}"#, 19 << 20);
    let job = client.post(&format!("/v2/{endpoint}/run"), &large).await;
    let path = format!("/v2/{endpoint}/status/{}", job["id"].as_str().unwrap());
    while client.get(&path).await["status"] != "COMPLETED" {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let before = service.memory();
    let mut idle = Vec::new();
    for _ in 0..OPEN {
        let mut one = service.client().await;
        one.get("/v1/templates").await;
        idle.push(one);
    }
    let open = service.memory();
    let host = service.host();
    let asked =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    let (mut deaf, mut most) = (Vec::new(), 0);
    for _ in 0..STALLED {
        let mut stream = TcpStream::connect(host).await.unwrap();
        stream.write_all(asked.as_bytes()).await.unwrap();
        deaf.push(stream);
    }
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        most = most.max(service.memory());
    }
    println!(
        "{before} MB before, {open} MB with {OPEN} open connections, {most} MB with {STALLED} \
         more that read nothing of 19 MB"
    );
}
