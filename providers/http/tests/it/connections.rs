//! Connections other than plain TCP: sockets of this machine, an own certificate authority, and client
//! certificates.

use std::sync::Arc;

use provider_http::{HttpProvider, Settings};
use provider_port::{Kind, Provider as _};
use serde_json::json;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::REST;
use crate::support::{Answer, Request, Server, descriptor, provider, texts, timing};

fn nothing(_: usize, _: &Request) -> Answer {
    Answer::json(200, json!({"data": []}))
}

#[tokio::test]
async fn an_api_behind_a_socket() {
    let folder = std::env::temp_dir().join(format!("plumb-socket-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let server = Server::at_socket(&folder.join("api.sock"), nothing);
    for (prefix, line) in [("", "GET /things"), (":/v1.43", "GET /v1.43/things")] {
        let provider = provider(REST, &format!("{}{prefix}", server.address));
        provider.list("thing").await.unwrap();
        assert_eq!(server.lines().last().unwrap(), line);
        assert_eq!(provider.service(), Some(&*server.address));
    }
    assert_eq!(server.requests()[0].headers["host"], "localhost");
    let error = provider(REST, "unix:/nowhere/api.sock").list("thing").await.unwrap_err();
    assert_eq!(error.kind, Kind::NotSent);
    let shown = texts(&error);
    assert!(shown.contains("unix:/nowhere/api.sock") && shown.contains("No such file"), "{shown}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Returns a file of the test certificates. They are only for tests: their keys are public.
fn file(name: &str) -> String {
    format!("{}/tests/it/certificates/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn content(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

/// Returns a server of the test authority, which may ask its clients for a certificate.
async fn server(wants_certificate: bool) -> Server {
    let pem = |name: &str| CertificateDer::from_pem_file(file(name)).unwrap();
    let ring = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(ring.clone());
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = if wants_certificate {
        let mut roots = RootCertStore::empty();
        roots.add(pem("authority.pem")).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), ring);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_file(file("machine.key")).unwrap();
    let config = builder.with_single_cert(vec![pem("machine.pem")], key).unwrap();
    Server::with_tls(config, nothing).await
}

const SOURCES: &str = r#"
ca = { env = "ACME_CA", setting = "ca" }
certificate = { env = "ACME_CERTIFICATE" }
certificate_key = { env = "ACME_CERTIFICATE_KEY" }
"#;

/// Returns the provider, or the mistakes in its settings.
fn configure(
    url: &str,
    ca: Option<&str>,
    variables: &[(&str, &str)],
) -> Result<HttpProvider, String> {
    let key = "key = { env = \"ACME_KEY\" }\n";
    let text = REST.replace(key, &format!("{key}{SOURCES}"));
    let environment = |name: &str| {
        let all = [("ACME_URL", url), ("ACME_KEY", "s3cret")];
        let found = all.iter().chain(variables).find(|(own, _)| *own == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let mut settings = Settings::new(&environment).timing(timing());
    if let Some(ca) = ca {
        settings = settings.set("ca", ca);
    }
    let configured = HttpProvider::configure(descriptor(&text), &settings);
    configured.map_err(|found| {
        let said = found
            .iter()
            .map(|it| format!("{}: {}", it.summary, it.detail.as_deref().unwrap_or_default()));
        said.collect::<Vec<_>>().join("\n")
    })
}

#[tokio::test]
async fn an_authority_of_ones_own() {
    let server = server(false).await;
    let (path, text) = (file("authority.pem"), content("authority.pem"));
    for (setting, variable) in [(None, Some(&*path)), (None, Some(&*text)), (Some(&*text), None)] {
        let variables: Vec<_> = variable.map(|text| ("ACME_CA", text)).into_iter().collect();
        let provider = configure(&server.address, setting, &variables).unwrap();
        provider.list("thing").await.unwrap();
    }
    for ca in [None, Some(content("stranger.pem"))] {
        let provider = configure(&server.address, ca.as_deref(), &[]).unwrap();
        let error = provider.list("thing").await.unwrap_err();
        assert_eq!(error.kind, Kind::NotSent);
        let shown = texts(&error);
        assert!(shown.contains("certificate") && shown.contains("`ca`"), "{shown}");
    }
    assert_eq!(server.requests().len(), 3, "no request goes to whom nobody trusts");
}

#[tokio::test]
async fn a_certificate_of_the_client() {
    let server = server(true).await;
    let ca = content("authority.pem");
    let both = format!("{}{}", content("machine.pem"), content("machine.key"));
    let (certificate, key) = (file("machine.pem"), file("machine.key"));
    for variables in [
        vec![("ACME_CERTIFICATE", &*certificate), ("ACME_CERTIFICATE_KEY", &*key)],
        vec![("ACME_CERTIFICATE", &*both)],
    ] {
        let provider = configure(&server.address, Some(&ca), &variables).unwrap();
        provider.list("thing").await.unwrap();
    }
    assert_eq!(server.requests().len(), 2);
    let provider = configure(&server.address, Some(&ca), &[]).unwrap();
    let error = provider.list("thing").await.unwrap_err();
    assert!(texts(&error).to_lowercase().contains("certificate"), "{error}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn certificates_that_cannot_be_used_are_refused() {
    let url = "https://127.0.0.1:9";
    let (certificate, key) = (file("machine.pem"), content("machine.key"));
    let refused = |ca: Option<&str>, variables: &[(&str, &str)]| {
        configure(url, ca, variables).err().expect("it cannot be used")
    };
    let found = [
        refused(None, &[("ACME_CA", "/nowhere/ca.pem")]),
        refused(None, &[("ACME_CA", &key)]),
        refused(Some("ca.pem"), &[]),
        refused(Some("-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----"), &[]),
        refused(None, &[("ACME_CERTIFICATE", &certificate)]),
        refused(None, &[("ACME_CERTIFICATE_KEY", &key)]),
        refused(
            None,
            &[("ACME_CERTIFICATE", &certificate), ("ACME_CERTIFICATE_KEY", &certificate)],
        ),
        refused(
            None,
            &[("ACME_CERTIFICATE", &file("stranger.pem")), ("ACME_CERTIFICATE_KEY", &key)],
        ),
    ];
    insta::assert_snapshot!(found.join("\n"), @r#"
    the certificate authority for the provider acme cannot be used: It comes from ACME_CA: No such file or directory (os error 2).
    the certificate authority for the provider acme cannot be used: It comes from ACME_CA: it holds none in the form of PEM.
    the certificate authority for the provider acme cannot be used: It comes from `ca`: a spec gives the content of a PEM file, as with `file("ca.pem")`.
    the certificate authority for the provider acme cannot be used: It comes from `ca`: it holds none in the form of PEM.
    the certificate for the provider acme stands alone: A certificate is shown to a server with proof of its key.
    the key for the provider acme stands alone: A certificate is shown to a server with proof of its key.
    the key of the certificate for the provider acme cannot be used: It comes from ACME_CERTIFICATE_KEY: it holds none in the form of PEM.
    the certificate for the provider acme is not that of its key: 
    "#);
}

/// A client certificate is not shown to an address that only a spec gives: it would prove the user's identity
/// to others.
#[test]
fn a_certificate_is_not_shown_to_an_address_that_only_a_spec_gives() {
    let text = REST.replace("key = { env = \"ACME_KEY\" }\n", SOURCES);
    let text =
        text.replace("auth = { header = \"Authorization\", value = \"Bearer ${key}\" }\n", "");
    let both = format!("{}{}", content("machine.pem"), content("machine.key"));
    let environment = |name: &str| (name == "ACME_CERTIFICATE").then(|| both.clone());
    let settings = Settings::new(&environment).set("url", "https://evil.example");
    let refused = HttpProvider::configure(descriptor(&text), &settings).err();
    let said = format!("{:?}", refused.expect("an untrusted address"));
    assert!(said.contains("evil.example") && said.contains("PLUMB_ALLOWED_HOSTS"), "{said}");
}
