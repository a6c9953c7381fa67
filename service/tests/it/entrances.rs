//! Tests of TLS, and of calls from pages of other origins.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Certificate, Method};
use serde_json::json;
use service::{Options, StartError, TlsFiles};

use crate::harness::{Harness, KEY, client};

/// Returns the path of a test certificate. These files are for tests only: their keys are public.
fn certificate(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/certificates").join(name)
}

fn files() -> TlsFiles {
    TlsFiles { certificate: certificate("service.pem"), key: certificate("service.key") }
}

/// Returns a client that trusts the authority of the test certificates.
fn trusting() -> reqwest::Client {
    drop(client());
    let authority = std::fs::read(certificate("authority.pem")).unwrap();
    let authority = Certificate::from_pem(&authority).unwrap();
    let builder = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30));
    builder.tls_certs_only([authority]).build().unwrap()
}

#[tokio::test]
async fn with_a_certificate_clients_use_tls_and_workers_find_the_service() {
    let mut service = Harness::with(|options| options.tls = Some(files())).await;
    assert!(service.addresses.rest.starts_with("https://127.0.0.1:"), "{}", service.addresses.rest);
    // A client that does not trust the authority, or speaks no TLS, gets no answer.
    assert!(client().get(&service.addresses.rest).send().await.is_err());
    let plain = service.addresses.rest.replace("https:", "http:");
    assert!(client().get(plain).send().await.is_err());
    service.client = trusting();
    let endpoint = service.endpoint(json!({})).await;
    let (status, shown) = service
        .queue(Method::POST, &format!("{endpoint}/runsync"), Some(json!({ "input": { "a": 1 } })))
        .await;
    assert_eq!((status.as_u16(), &shown["output"]), (200, &json!({ "a": 1 })), "{shown}");
    service.stop().await;
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.pem");
    std::fs::write(&other, "no certificate").unwrap();
    for (certificate, key, why) in [
        (certificate("absent.pem"), files().key, "cannot read a certificate from"),
        (other.clone(), files().key, "cannot read a certificate from"),
        (files().certificate, other.clone(), "cannot read a key from"),
        (certificate("authority.pem"), files().key, "cannot use the certificate in"),
    ] {
        let mut options = Options::new(folder.path().join("data"));
        options.tls = Some(TlsFiles { certificate, key });
        let error = service::start(options).await.err().unwrap();
        assert!(matches!(error, StartError::Tls(_)), "{error}");
        assert!(error.to_string().starts_with(why), "{error}");
    }
}

/// Sends the preflight request of a browser for a page of this origin, and then the call. Returns
/// the headers of both answers.
async fn from_page(service: &Harness, origin: &'static str) -> (HeaderMap, HeaderMap) {
    let url = format!("{}/endpoints", service.addresses.rest);
    let asked = service
        .client
        .request(Method::OPTIONS, &url)
        .header("origin", origin)
        .header("access-control-request-method", "PATCH")
        .header("access-control-request-headers", "authorization, content-type");
    let asked = asked.send().await.unwrap();
    let called = service.client.get(&url).bearer_auth(KEY).header("origin", origin);
    let called = called.send().await.unwrap();
    assert_eq!(called.status(), 200);
    (asked.headers().clone(), called.headers().clone())
}

#[tokio::test]
async fn pages_of_the_allowed_origins_may_call() {
    const ALLOWED: &str = "access-control-allow-origin";
    let service =
        Harness::with(|options| options.cors = vec!["https://app.example.com".parse().unwrap()])
            .await;
    let (asked, called) = from_page(&service, "https://app.example.com").await;
    let origin = HeaderValue::from_static("https://app.example.com");
    assert_eq!((&asked[ALLOWED], &called[ALLOWED]), (&origin, &origin));
    assert_eq!(asked["access-control-allow-methods"], "PATCH");
    assert_eq!(asked["access-control-allow-headers"], "authorization, content-type");
    assert_eq!(called["access-control-expose-headers"], "x-request-id,retry-after");
    assert!(asked.contains_key("x-request-id"));
    let (asked, called) = from_page(&service, "https://other.example.com").await;
    assert!(!asked.contains_key(ALLOWED) && !called.contains_key(ALLOWED));
    // Without the option no origin is allowed, and with `*` every origin.
    let (asked, called) = from_page(&Harness::start().await, "https://app.example.com").await;
    assert!(!asked.contains_key(ALLOWED) && !called.contains_key(ALLOWED));
    let service = Harness::with(|options| options.cors = vec!["*".parse().unwrap()]).await;
    let (_, called) = from_page(&service, "https://app.example.com").await;
    assert_eq!(called[ALLOWED], "*");
}
