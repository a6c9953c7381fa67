//! The servers to which the key is sent, and those that never get it.

use engine::diagnostics::Diagnostics;
use engine::journal::{PhaseRef, ProgramKind};
use engine::value::Value;
use provider_http::{Ask, Direct, DirectCall, HttpProvider, Settings};
use provider_port::{Kind, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, KEY, Server, Step, descriptor, provider, texts, timing};

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
        let body = format!("you sent Bearer {KEY} and {KEY}");
        let server = Server::start(move |_, _| Answer::text(status, "text/html", &body)).await;
        let text = REST.replace(
            "header = \"Authorization\", value = \"Bearer ${key}\"",
            "query = \"api_key\"",
        );
        for text in [REST, &text] {
            let error = provider(text, &server.address).list("thing").await.unwrap_err();
            let shown = texts(&error);
            // The text of a success that is no JSON is not shown.
            assert_eq!(shown.contains('…'), status != 200, "{shown}");
        }
    }
}

/// The secrets of a call that no descriptor describes are masked, too, if the API repeats them.
#[tokio::test]
async fn direct_calls_show_no_secret() {
    let server = Server::start(|_, request| {
        Answer::json(
            400,
            json!({ "error": format!("bad: {} {}", request.body, KEY.to_uppercase()) }),
        )
    })
    .await;
    let environment = |name: &str| match name {
        "ACME_URL" => Some(server.address.clone()),
        "ACME_KEY" => Some(KEY.to_owned()),
        _ => None,
    };
    let settings = Settings::new(&environment).timing(timing());
    let direct = Direct::open(&descriptor(REST), "rest", &settings).unwrap();
    let call = DirectCall {
        path: "/run".to_owned(),
        what: "POST /run",
        ask: Ask::Post(Some("{\"accessSecret\": \"s3-hunter2-value\"}".to_owned())),
        repeatable: false,
        held: std::time::Duration::ZERO,
        secrets: vec![Value::string("s3-hunter2-value")],
        permit: None,
    };
    let error = direct.call(call, &|_| {}).await.unwrap_err();
    let shown = texts(&error);
    assert!(!shown.contains("hunter2") && !shown.contains("CANARY"), "{shown}");
    assert!(shown.contains("accessSecret"), "{shown}");
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
        let mut settings = Settings::new(environment).beside_spec(true);
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
    let said = refused(None, &given).expect("it reads its address from any variable that it likes");
    assert!(said.contains("ACME_URL") && said.contains("PLUMB_ALLOWED_HOSTS=any"), "{said}");
    let local = |name: &str| match name {
        "ACME_URL" => Some("http://127.0.0.1:8080".to_owned()),
        name => environment(name),
    };
    assert!(refused(None, &local).is_none());
}

/// A descriptor beside the spec reads its key only from its own variables: it could otherwise name the
/// variable of any secret in the environment.
#[test]
fn a_descriptor_beside_the_spec_has_its_key_from_its_own_variables() {
    let text = REST.replace("ACME_KEY", "AWS_SECRET_ACCESS_KEY");
    let refused = |allowed: Option<&'static str>, stranger: bool| {
        let environment = move |name: &str| match name {
            "AWS_SECRET_ACCESS_KEY" => Some(KEY.to_owned()),
            "ACME_URL" => Some("http://127.0.0.1:8080".to_owned()),
            "PLUMB_ALLOWED_KEYS" => allowed.map(str::to_owned),
            _ => None,
        };
        let settings = Settings::new(&environment).beside_spec(stranger);
        let configured = HttpProvider::configure(descriptor(&text), &settings);
        configured.err().map(|diagnostics| format!("{diagnostics:?}"))
    };
    let said = refused(None, true).expect("it is not its own");
    assert!(said.contains("PLUMB_ALLOWED_KEYS=AWS_SECRET_ACCESS_KEY"), "{said}");
    assert!(said.contains("ACME_KEY") && !said.contains(KEY), "{said}");
    assert!(refused(Some("AWS_SECRET"), true).is_some());
    assert!(refused(Some("X, AWS_SECRET_ACCESS_KEY"), true).is_none());
    assert!(refused(None, false).is_none(), "what comes with Plumb names its own");
}

/// A variable that is not read is told of before anyone sets it.
#[test]
fn a_key_that_is_not_read_is_told_of_before_it_is_set() {
    let text = REST.replace("ACME_KEY", "MY_TOKEN");
    let said = |text: &str, allowed: &'static str, stranger: bool| {
        let environment =
            move |name: &str| (name == "PLUMB_ALLOWED_KEYS").then(|| allowed.to_owned());
        let settings = Settings::new(&environment).beside_spec(stranger);
        let warned = descriptor(text).foreign_keys(&settings);
        assert!(!warned.has_errors());
        let provider = HttpProvider::configure(descriptor(text), &settings).unwrap();
        let summaries = |all: &Diagnostics| all.iter().map(|it| it.summary.clone()).collect();
        [summaries(&warned), summaries(provider.missing())].map(|all: Vec<_>| all.join(", "))
    };
    let foreign = "the key of the provider acme is not read from MY_TOKEN";
    let missing = "there is no key for the provider acme";
    assert_eq!(said(&text, "", true), [foreign, foreign]);
    assert_eq!(said(&text, "MY_TOKEN", true), ["", missing]);
    assert_eq!(said(&text, "", false), ["", missing]);
    assert_eq!(said(REST, "", true), ["", missing]);
}

/// A provider without a key sends no secrets to hosts that only a spec names.
#[tokio::test]
async fn secrets_do_not_go_to_hosts_that_only_a_spec_names() {
    let text = REST
        .replace("key = { env = \"ACME_KEY\" }\n", "")
        .replace("auth = { header = \"Authorization\", value = \"Bearer ${key}\" }\n", "");
    let server = Server::start(|_, _| Answer::json(200, json!({"id": "t1", "name": "n"}))).await;
    // This address leads to this machine, and is no loopback address.
    let elsewhere = server.address.replace("127.0.0.1", "0.0.0.0");
    let perform = async |url: &str, allowed: &'static str, secret: bool| {
        let environment =
            move |name: &str| (name == "PLUMB_ALLOWED_HOSTS").then(|| allowed.to_owned());
        let settings = Settings::new(&environment).beside_spec(true).set("url", url);
        let provider = HttpProvider::configure(descriptor(&text), &settings).unwrap();
        let desired = json!({"name": "n", "secret": "hunter2-canary"});
        let step = Step { changed: vec!["secret"], ..Step::update("thing", "t1", desired) };
        let step = if secret { step.secret("secret", &[]) } else { step };
        step.perform(&provider).await
    };
    let error = perform(&elsewhere, "", true).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert!(error.to_string().contains("the secret in `secret`"), "{error}");
    assert!(error.help.unwrap().contains("PLUMB_ALLOWED_HOSTS=http://0.0.0.0"));
    assert!(server.requests().is_empty(), "nothing was sent");
    perform(&elsewhere, "", false).await.unwrap();
    perform(&elsewhere, "0.0.0.0", true).await.unwrap_err();
    perform(&elsewhere, "http://0.0.0.0", true).await.unwrap();
    perform(&server.address, "", true).await.unwrap();
    assert_eq!(server.requests().len(), 3);
}

/// A server may repeat parts of a call in other forms; none of them is stored.
#[tokio::test]
async fn a_servers_words_show_no_secret_and_are_told_apart() {
    let words = "HUNTER2-canary&gt; and s3cr3t-in-url, pin 7423187465";
    let server = Server::start(move |_, _| Answer::json(400, json!({"message": words}))).await;
    let provider = provider(REST, &server.address);
    let desired = json!({"name": "n", "secret": "hunter2-canary>", "big_size": 3});
    let step = Step { changed: vec!["secret"], ..Step::update("thing", "t1", desired) };
    let variables = [Value::string("s3cr3t-in-url"), Value::Integer(7_423_187_465)];
    let error = step.secret("secret", &variables).perform(&provider).await.unwrap_err();
    assert!(error.message.ends_with("answered 400 (bad request)"), "{}", error.message);
    let shown = error.to_string().to_lowercase();
    assert!(error.said.is_some() && shown.len() > error.message.len());
    for part in ["hunter", "canary", "s3cr3t", "742318"] {
        assert!(!shown.contains(part), "{shown}");
    }
}

#[test]
fn hosts_can_be_allowed_and_the_environment_is_trusted() {
    let allowed = |name: &str| match name {
        "ACME_KEY" => Some(KEY.to_owned()),
        "PLUMB_ALLOWED_HOSTS" => Some("other.example, Evil.example".to_owned()),
        _ => None,
    };
    assert!(configure(Some("https://evil.example/v1"), &allowed).is_ok());
    // A spec that somebody else wrote may choose the scheme.
    let error = configure(Some("http://evil.example/v1"), &allowed).err().unwrap();
    assert!(format!("{error:?}").contains("PLUMB_ALLOWED_HOSTS=http://evil.example"), "{error:?}");
    let given = |name: &str| match name {
        "ACME_KEY" => Some(KEY.to_owned()),
        "ACME_URL" => Some("https://anywhere.example".to_owned()),
        _ => None,
    };
    assert!(configure(Some("https://evil.example/v1"), &given).is_ok(), "the environment wins");
    let keyless = |_: &str| None;
    assert!(configure(Some("https://evil.example/v1"), &keyless).is_ok(), "no key, no danger");
}

/// A plan reports a secret that may not be sent, with the message of the call that would fail.
#[tokio::test]
async fn where_a_secret_does_not_go_is_known_without_a_call() {
    let none = |_: &str| None;
    let url = Some("https://evil.example/v1");
    let secret = "secret".into();
    let phase = |kind| PhaseRef::new(kind, 0, 0, 1);
    let provider = configure(url, &none).unwrap();
    let error = provider.may_carry("thing", phase(ProgramKind::Create), &secret).unwrap_err();
    let call = Step::create("thing", json!({"name": "n", "secret": "hush-hush"}));
    let called = call.secret("secret", &[]).perform(&provider).await.unwrap_err();
    assert_eq!(texts(&error), texts(&called));
    assert!(texts(&error).contains("set PLUMB_ALLOWED_HOSTS=evil.example"), "{error:?}");
    let allowed = |name: &str| (name == "PLUMB_ALLOWED_HOSTS").then(|| "evil.example".to_owned());
    let provider = configure(url, &allowed).unwrap();
    provider.may_carry("thing", phase(ProgramKind::Create), &secret).unwrap();
}

/// A key of several lines is refused at once: it would fail at the first call, with a message about a server
/// that cannot be reached.
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
the address of the API rest cannot be used Some("write it like https://host/path, http://127.0.0.1:8080/path or unix:/run/x.sock:/path")
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
}

#[tokio::test]
async fn accounts_are_told_apart_by_key_and_by_address() {
    let with = |key: &'static str, url: &'static str| {
        move |name: &str| match name {
            "ACME_KEY" => Some(key.to_owned()),
            "ACME_URL" => Some(url.to_owned()),
            _ => None,
        }
    };
    let account = |key, url| configure(None, &with(key, url)).unwrap().account().unwrap();
    assert_eq!(account("a", "http://127.0.0.1:1"), account("a", "http://127.0.0.1:1"));
    assert_ne!(account("a", "http://127.0.0.1:1"), account("b", "http://127.0.0.1:1"));
    assert_ne!(account("a", "http://127.0.0.1:1"), account("a", "http://127.0.0.1:2"));
    assert_ne!(account("", "http://127.0.0.1:1"), account("", "http://127.0.0.1:2"), "no key");
    // The service of a folder listens at another address each time, and is the same service.
    let at_home = |url| {
        let environment = with("a", url);
        let settings = Settings::new(&environment).at_home(true);
        let descriptor = descriptor(REST);
        HttpProvider::configure(descriptor, &settings).unwrap().account().unwrap()
    };
    assert_eq!(at_home("http://127.0.0.1:1"), at_home("http://127.0.0.1:2"));
}
