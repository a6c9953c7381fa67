//! Keys that have to be asked for: from an authorization server, from a command and from a file.

use std::sync::atomic::{AtomicUsize, Ordering};

use engine::diagnostics::Diagnostics;
use provider_http::{HttpProvider, Settings};
use provider_port::{Kind, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Server, descriptor, texts, timing};

fn with_token() -> String {
    let token = "key = { env = \"ACME_KEY\" }\nkeys = { client_id = { env = \"ACME_ID\", public = true } }\n\
                 token = { address = { env = \"ACME_TOKEN_URL\" }, client = \"${client_id}\", secret = \"${key}\", \
                 scope = \"things write\" }\n";
    REST.replace("key = { env = \"ACME_KEY\" }\n", token)
        .replace("Bearer ${key}", "Bearer ${token}")
}

fn configure(text: &str, variables: &[(&str, &str)]) -> Result<HttpProvider, Diagnostics> {
    let environment = |name: &str| {
        let found = variables.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let settings = Settings::new(&environment).timing(timing());
    HttpProvider::configure(descriptor(text), &settings)
}

/// Returns a server whose tokens are valid for a number of calls.
async fn server(good_for: usize, expires_in: f64) -> Server {
    let (given, used) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Server::start(move |_, request| {
        if request.path == "/token" {
            used.store(0, Ordering::SeqCst);
            let number = given.fetch_add(1, Ordering::SeqCst);
            let token = format!("canary-token-{number}");
            return Answer::json(200, json!({"access_token": token, "expires_in": expires_in}));
        }
        let wanted =
            format!("Bearer canary-token-{}", given.load(Ordering::SeqCst).saturating_sub(1));
        let is_good = request.headers.get("authorization") == Some(&wanted);
        if is_good && used.fetch_add(1, Ordering::SeqCst) < good_for {
            Answer::json(200, json!({"data": []}))
        } else {
            Answer::json(401, json!({"error": "the token has ended"}))
        }
    })
    .await
}

fn of(server: &Server) -> HttpProvider {
    let url = format!("{}/token", server.address);
    let variables = [
        ("ACME_URL", &*server.address),
        ("ACME_TOKEN_URL", &url),
        ("ACME_ID", "jo"),
        ("ACME_KEY", "s3cret"),
    ];
    configure(&with_token(), &variables).unwrap()
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_kept() {
    let server = server(100, 3600.0).await;
    let provider = of(&server);
    for _ in 0..3 {
        provider.list("thing").await.unwrap();
    }
    assert_eq!(server.lines(), ["POST /token", "GET /things", "GET /things", "GET /things"]);
    let asked = server.requests().remove(0);
    assert_eq!(asked.body, "grant_type=client_credentials&scope=things%20write");
    assert_eq!(asked.headers["authorization"], "Basic am86czNjcmV0");
    assert_eq!(asked.headers["content-type"], "application/x-www-form-urlencoded");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_and_when_it_is_refused() {
    let server_of_short = server(100, 0.0).await;
    let provider = of(&server_of_short);
    provider.list("thing").await.unwrap();
    provider.list("thing").await.unwrap();
    assert_eq!(
        server_of_short.lines(),
        ["POST /token", "GET /things", "POST /token", "GET /things"]
    );

    let server = server(1, 3600.0).await;
    let provider = of(&server);
    provider.list("thing").await.unwrap();
    provider.list("thing").await.unwrap();
    let lines = ["POST /token", "GET /things", "GET /things", "POST /token", "GET /things"];
    assert_eq!(server.lines(), lines);
}

#[tokio::test]
async fn a_new_token_that_is_refused_too_is_an_error() {
    let server = server(0, 3600.0).await;
    let error = of(&server).list("thing").await.unwrap_err();
    assert_eq!(error.kind, Kind::Unauthenticated);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn an_authorization_server_that_gives_no_token_is_an_error() {
    for (answer, kind, said) in [
        (
            Answer::json(
                401,
                json!({"error": "invalid_client", "error_description": "who are you? s3cret"}),
            ),
            Kind::Unauthenticated,
            "401",
        ),
        (Answer::json(200, json!({"token": "x"})), Kind::Unauthenticated, "without `access_token`"),
        (Answer::text(200, "text/html", "<html>"), Kind::Unauthenticated, "without `access_token`"),
        (Answer::empty(503), Kind::NotSent, "503"),
        (Answer::Endless, Kind::NotSent, "failed"),
    ] {
        let server = Server::start(move |_, _| answer.clone()).await;
        let error = of(&server).list("thing").await.unwrap_err();
        let shown = format!("{error:?}");
        assert!(error.kind == kind && shown.contains(said), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(server.lines().iter().all(|line| line == "POST /token"));
    }
}

#[test]
fn a_secret_goes_to_no_authorization_server_that_only_a_spec_names() {
    let text = with_token()
        .replace("ACME_TOKEN_URL\" }", "ACME_TOKEN_URL\", default = \"https://evil.example\" }");
    let environment = |name: &str| match name {
        "ACME_KEY" | "ACME_ID" => Some("x".to_owned()),
        _ => None,
    };
    let settings = Settings::new(&environment).beside_spec(true).set("url", "http://127.0.0.1:9");
    let refused = HttpProvider::configure(descriptor(&text), &settings).err();
    let said = format!("{:?}", refused.expect("an untrusted address"));
    assert!(said.contains("evil.example") && said.contains("PLUMB_ALLOWED_HOSTS"), "{said}");
}

#[tokio::test]
async fn a_command_prints_the_key_when_it_is_needed_and_again_when_it_is_refused() {
    let folder = std::env::temp_dir().join(format!("plumb-command-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let count = folder.join("count");
    std::fs::write(&count, "").unwrap();
    let command = format!("echo >> {0}; echo canary-$(wc -l < {0})", count.display());
    let server = Server::start(|_, request| match request.headers["authorization"].as_str() {
        "Bearer canary-2" => Answer::json(200, json!({"data": []})),
        sent => Answer::json(401, json!({"error": format!("{sent} has ended")})),
    })
    .await;
    let variables = [("ACME_URL", &*server.address), ("ACME_KEY_COMMAND", &*command)];
    let provider = configure(REST, &variables).unwrap();
    assert!(!provider.missing().has_errors());
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "", "nothing needs it yet");
    provider.list("thing").await.unwrap();
    assert_eq!(server.requests().len(), 2);

    let variables = [
        ("ACME_URL", &*server.address),
        ("ACME_KEY_COMMAND", "echo canary-9 >&2; echo canary-9; false"),
    ];
    let error = configure(REST, &variables).unwrap().list("thing").await.unwrap_err();
    let shown = format!("{error:?}");
    assert!(shown.contains("ACME_KEY_COMMAND") && !shown.contains("canary"), "{shown}");

    let file = folder.join("key");
    std::fs::write(&file, "canary-2\n").unwrap();
    let path = file.display().to_string();
    let variables = [("ACME_URL", &*server.address), ("ACME_KEY_FILE", &*path)];
    configure(REST, &variables).unwrap().list("thing").await.unwrap();
    let variables = [("ACME_URL", &*server.address), ("ACME_KEY_FILE", "/nowhere/key")];
    let said = format!("{:?}", configure(REST, &variables).err().expect("no file"));
    assert!(said.contains("ACME_KEY_FILE"), "{said}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Simultaneous calls share the result of one command: no call runs a command again that has just hung for
/// another call.
#[tokio::test]
async fn a_command_that_fails_is_run_once_for_all_calls_that_wait_for_it() {
    let file = std::env::temp_dir().join(format!("plumb-runs-{}", std::process::id()));
    let command = format!("echo >> {}; sleep 0.3; exit 3", file.display());
    let variables = [("ACME_URL", "http://127.0.0.1:9"), ("ACME_KEY_COMMAND", &*command)];
    let provider = configure(REST, &variables).unwrap();
    let lists = (0..8).map(|_| provider.list("thing"));
    for listed in futures_util::future::join_all(lists).await {
        insta::allow_duplicates! {
            insta::assert_snapshot!(texts(&listed.unwrap_err()), @r#"Unauthenticated: there is no key: the command in ACME_KEY_COMMAND failed: exit status: 3 -> Some("run the command in a shell, and see what it prints: its output is not shown here")"#);
        }
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
    std::fs::remove_file(&file).unwrap();
}
