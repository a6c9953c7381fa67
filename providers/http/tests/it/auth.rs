//! Where the key goes, and where it never does.

use engine::diagnostics::Diagnostics;
use provider_http::{HttpProvider, Settings};
use provider_port::{Kind, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, KEY, Server, descriptor, provider, texts};

#[tokio::test]
async fn three_ways_of_authentication() {
    for (auth, header, query) in [
        ("header = \"Authorization\", value = \"Bearer ${key}\"", "Bearer canary-4711", "/things"),
        ("header = \"Authorization\", value = \"${key}\"", "canary-4711", "/things"),
        ("query = \"api_key\"", "", "/things?api_key=canary-4711"),
    ] {
        let server = Server::start(|_, _| Answer::json(200, json!({"data": []}))).await;
        let text = REST.replace("header = \"Authorization\", value = \"Bearer ${key}\"", auth);
        provider(&text, &server.address).list("thing").await.unwrap();
        let request = server.requests().remove(0);
        assert_eq!(request.path, query);
        let sent = request.headers.get("authorization").map_or("", |value| value);
        assert_eq!(sent, header);
        assert!(request.headers["user-agent"].starts_with("plumb/"));
        assert!(!request.headers.contains_key("referer"));
    }
}

#[tokio::test]
async fn errors_show_no_key_even_if_the_server_repeats_it() {
    for status in [400, 401, 403, 404, 500, 200, 302] {
        let body = format!("{{\"message\": \"you sent Bearer {KEY} and {KEY}\"");
        let server = Server::start(move |_, _| Answer::text(status, "text/html", &body)).await;
        let text = REST.replace(
            "header = \"Authorization\", value = \"Bearer ${key}\"",
            "query = \"api_key\"",
        );
        for text in [REST, &text] {
            let error = provider(text, &server.address).list("thing").await.unwrap_err();
            let shown = texts(&error);
            assert!(status == 302 || shown.contains('…'), "{shown}");
        }
    }
}

#[tokio::test]
async fn refused_keys_are_told_apart() {
    for status in [401, 403] {
        let server = Server::start(move |_, _| Answer::json(status, json!({"error": "no"}))).await;
        let error = provider(REST, &server.address).list("thing").await.unwrap_err();
        assert_eq!(error.kind, Kind::Unauthenticated);
        assert!(texts(&error).contains("ACME_KEY"), "{error}");
        assert_eq!(server.requests().len(), 1, "a wrong key is not tried again");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Server::start(|_, _| Answer::json(200, json!({"data": []}))).await;
    let target = other.address.clone();
    let server = Server::start(move |_, _| Answer::empty(302).header("location", &target)).await;
    let error = provider(REST, &server.address).list("thing").await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert!(texts(&error).contains("redirect"), "{error}");
    assert!(other.requests().is_empty());
    assert_eq!(server.requests().len(), 1);
}

fn configure(
    url: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<HttpProvider, Diagnostics> {
    let mut settings = Settings::new(environment);
    if let Some(url) = url {
        settings = settings.set("url", url);
    }
    HttpProvider::configure(descriptor(REST), &settings)
}

#[test]
fn a_spec_cannot_send_the_key_elsewhere() {
    let environment = |name: &str| (name == "ACME_KEY").then(|| KEY.to_owned());
    for (url, allowed) in [
        ("https://evil.example/v1", false),
        ("https://api.acme.example.evil.example/v1", false),
        ("http://api.acme.example/v1", false),
        ("https://api.acme.example:8443/v1", false),
        ("https://api.acme.example/v2", true),
        ("http://127.0.0.1:8080", true),
        ("http://localhost:8080/v1", true),
        ("http://[::1]:8080/v1", true),
    ] {
        let configured = configure(Some(url), &environment);
        assert_eq!(configured.is_ok(), allowed, "{url}");
        if let Err(diagnostics) = configured {
            let text = format!("{diagnostics:?}");
            assert!(text.contains("PLUMB_ALLOWED_HOSTS") && !text.contains(KEY), "{text}");
        }
    }
}

#[test]
fn a_descriptor_beside_the_spec_cannot_send_the_key_elsewhere() {
    let environment = |name: &str| (name == "ACME_KEY").then(|| KEY.to_owned());
    let refused = |url: Option<&str>, environment: &dyn Fn(&str) -> Option<String>| {
        let mut settings = Settings::new(environment).stranger(true);
        if let Some(url) = url {
            settings = settings.set("url", url);
        }
        let configured = HttpProvider::configure(descriptor(REST), &settings);
        configured.err().map(|diagnostics| format!("{diagnostics:?}"))
    };
    let said = refused(None, &environment).expect("its own default");
    assert!(said.contains("beside the spec") && said.contains("PLUMB_ALLOWED_HOSTS"), "{said}");
    assert!(refused(Some("https://api.acme.example/v2"), &environment).is_some());
    assert!(refused(Some("http://127.0.0.1:8080"), &environment).is_none());
    assert!(refused(None, &|_| None).is_none(), "no key, no danger");
    let allowed = |name: &str| match name {
        "PLUMB_ALLOWED_HOSTS" => Some("api.acme.example".to_owned()),
        name => environment(name),
    };
    assert!(refused(None, &allowed).is_none());
    let given = |name: &str| match name {
        "ACME_URL" => Some("https://anywhere.example".to_owned()),
        name => environment(name),
    };
    assert!(refused(None, &given).is_none());
}

#[test]
fn hosts_can_be_allowed_and_the_environment_is_trusted() {
    let allowed = |name: &str| match name {
        "ACME_KEY" => Some(KEY.to_owned()),
        "PLUMB_ALLOWED_HOSTS" => Some("other.example, Evil.example".to_owned()),
        _ => None,
    };
    assert!(configure(Some("https://evil.example/v1"), &allowed).is_ok());
    let given = |name: &str| match name {
        "ACME_KEY" => Some(KEY.to_owned()),
        "ACME_URL" => Some("https://anywhere.example".to_owned()),
        _ => None,
    };
    assert!(configure(Some("https://evil.example/v1"), &given).is_ok(), "the environment wins");
    let keyless = |_: &str| None;
    assert!(configure(Some("https://evil.example/v1"), &keyless).is_ok(), "no key, no danger");
}

/// Such a key would only fail at the first call, and there look like a server that is not reached.
#[test]
fn a_key_of_several_lines_is_refused_at_once() {
    for key in ["line\nline", "a\0b", "a\u{7f}b"] {
        let environment = |name: &str| (name == "ACME_KEY").then(|| key.to_owned());
        let refused = configure(Some("http://127.0.0.1:8080"), &environment).err().unwrap();
        let text = format!("{refused:?}");
        assert!(
            text.contains("ACME_KEY holds a line break") && !text.contains("line\\n"),
            "{text}"
        );
    }
    let environment = |name: &str| (name == "ACME_KEY").then(|| format!(" {KEY}\n"));
    assert!(configure(Some("http://127.0.0.1:8080"), &environment).is_ok());
}

#[test]
fn settings_with_mistakes() {
    let none = |_: &str| None;
    let settings = Settings::new(&none).set("ulr", "x").set("url", "u:p@host");
    let said = HttpProvider::configure(descriptor(REST), &settings).map(|_| ()).unwrap_err();
    let said: Vec<_> = said.iter().map(|d| format!("{} {:?}", d.summary, d.help)).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
the provider acme has no setting `ulr` Some("did you mean `url`?")
the address of the API rest cannot be used Some("write it like https://host/path or http://127.0.0.1:8080/path")
"#);
}

#[tokio::test]
async fn what_is_missing_is_said_before_and_in_the_call() {
    let none = |_: &str| None;
    let provider = configure(None, &none).unwrap();
    let said: Vec<_> =
        provider.missing().iter().map(|d| format!("{} {:?}", d.summary, d.help)).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"there is no key for the provider acme Some("set the environment variable ACME_KEY")"#);
    let error = provider.list("thing").await.unwrap_err();
    assert_eq!(error.kind, Kind::Unauthenticated);
    assert!(provider.account().is_none());
}

#[tokio::test]
async fn accounts_are_told_apart_by_key_and_not_by_address() {
    let with = |key: &'static str, url: &'static str| {
        move |name: &str| match name {
            "ACME_KEY" => Some(key.to_owned()),
            "ACME_URL" => Some(url.to_owned()),
            _ => None,
        }
    };
    let account = |key, url| configure(None, &with(key, url)).unwrap().account().unwrap();
    assert_eq!(account("a", "http://x"), account("a", "http://y"));
    assert_ne!(account("a", "http://x"), account("b", "http://x"));
}
