//! Headers of requests and answers, and APIs with several keys.

use engine::value::Value;
use provider_http::{HttpProvider, Settings};
use provider_port::{Kind, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Request, Server, Step, descriptor, provider, texts, timing};

const TWO_KEYS: &str = r#"
keys = { user = { env = "ACME_USER", setting = "user", default = "guest", public = true } }
"#;

fn with_keys(auth: &str) -> String {
    let auth = format!("auth = {auth}");
    let text = REST.replace(
        "key = { env = \"ACME_KEY\" }\n",
        &format!("key = {{ env = \"ACME_KEY\" }}{TWO_KEYS}"),
    );
    text.replace("auth = { header = \"Authorization\", value = \"Bearer ${key}\" }", &auth)
}

fn configure(
    text: &str,
    address: &str,
    variables: &[(&'static str, &'static str)],
) -> HttpProvider {
    let (address, variables) = (address.to_owned(), variables.to_vec());
    let environment = move |name: &str| {
        let found =
            variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        found.or_else(|| (name == "ACME_URL").then(|| address.clone()))
    };
    let settings = Settings::new(&environment).timing(timing());
    HttpProvider::configure(descriptor(text), &settings)
        .unwrap_or_else(|found| panic!("{found:#?}"))
}

async fn sent(text: &str, variables: &[(&'static str, &'static str)]) -> Request {
    let server = Server::start(|_, _| Answer::json(200, json!({"data": []}))).await;
    configure(text, &server.address, variables).list("thing").await.unwrap();
    server.requests().remove(0)
}

#[tokio::test]
async fn basic_authentication() {
    let text = with_keys("{ basic = \"${user}:${key}\" }");
    for (user, sent_as) in [(None, "Basic Z3Vlc3Q6czNjcmV0"), (Some("jo"), "Basic am86czNjcmV0")] {
        let mut variables = vec![("ACME_KEY", "s3cret")];
        variables.extend(user.map(|user| ("ACME_USER", user)));
        assert_eq!(sent(&text, &variables).await.headers["authorization"], sent_as);
    }
}

#[tokio::test]
async fn several_keys_go_out_together() {
    let text = with_keys(
        "[ { header = \"X-Auth-Email\", value = \"${user}\" }, { header = \"X-Auth-Key\" }, { query = \"k\" } ]",
    );
    let request = sent(&text, &[("ACME_KEY", "s3cret"), ("ACME_USER", "jo@x.example")]).await;
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    assert_eq!(
        [header("x-auth-email"), header("x-auth-key")],
        [Some("jo@x.example"), Some("s3cret")]
    );
    assert_eq!(request.path, "/things?k=s3cret");
}

#[tokio::test]
async fn a_secret_that_a_server_repeats_is_masked_and_a_public_name_is_not() {
    let server = Server::start(|_, request| {
        let sent = request.headers["authorization"].clone();
        Answer::json(400, json!({"error": format!("jo sent {sent}, that is s3cret-4711")}))
    })
    .await;
    let text = with_keys("{ basic = \"${user}:${key}\" }");
    let variables = [("ACME_KEY", "s3cret-4711"), ("ACME_USER", "jo")];
    let error = configure(&text, &server.address, &variables).list("thing").await.unwrap_err();
    let shown = texts(&error);
    assert!(!shown.contains("4711") && !shown.contains("czNj"), "{shown}");
}

#[tokio::test]
async fn a_missing_key_is_named() {
    let text = with_keys("{ basic = \"${user}:${key}\" }");
    let provider = configure(&text, "http://127.0.0.1:9", &[]);
    let said: Vec<String> =
        provider.missing().iter().map(|it| format!("{} {:?}", it.summary, it.help)).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"there is no key for the provider acme Some("set the environment variable ACME_KEY")"#);
    assert_eq!(provider.list("thing").await.unwrap_err().kind, Kind::Unauthenticated);
}

/// Headers of the API, the type and the phase are sent; the more specific one takes precedence.
#[tokio::test]
async fn headers_of_three_places() {
    let text = REST
        .replace("names = \"camel\"", "names = \"camel\"\nheaders = { X-Version = \"1\", Accept = \"application/x+json\", X-Of = \"api\" }")
        .replace("identity = \"one_time_name\"", "headers = { X-Of = \"type\", X-Size = \"${size}\" }\nidentity = \"one_time_name\"")
        .replace(
            "update = [ { call = \"rest: PATCH /things/${id}\"",
            "update = [ { headers = { Content-Type = \"application/merge-patch+json\", X-Of = \"phase\" }, call = \"rest: PATCH /things/${id}\"",
        );
    let server = Server::start(|_, request| match &*request.method {
        "GET" => Answer::json(200, json!({"data": []})),
        _ => Answer::json(200, json!({"id": "t1", "size": 3})),
    })
    .await;
    let provider = provider(&text, &server.address);
    provider.list("thing").await.unwrap();
    Step::update("thing", "t1", json!({"size": 3})).perform(&provider).await.unwrap();
    let shown = server.requests().into_iter().map(|request| {
        let names = ["x-version", "accept", "x-of", "x-size", "content-type"];
        let header =
            |name: &&str| request.headers.get(*name).map_or("-", String::as_str).to_owned();
        format!("{} {}", request.line(), names.iter().map(header).collect::<Vec<_>>().join(" "))
    });
    insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @"
    GET /things 1 application/x+json type - -
    PATCH /things/t1 1 application/x+json phase 3 application/merge-patch+json
    ");
}

#[tokio::test]
async fn a_header_of_an_answer_is_an_attribute() {
    let text = REST.replace(
        "\nbig_size =",
        "\netag = { type = \"string\", computed = true, volatile = true, header = \"ETag\" }\nbig_size =",
    );
    let text = text
        .replace("update = [ { call", "update = [ { headers = { If-Match = \"${etag}\" }, call");
    let server = Server::start(|_, request| {
        Answer::json(200, json!({"id": "t1", "size": 3}))
            .header("ETag", &format!("\"{}\"", request.method))
    })
    .await;
    let provider = provider(&text, &server.address);
    let id = engine::state::ObjectId("t1".into());
    let read = provider.read("thing", &id).await.unwrap();
    assert_eq!(read.attributes["etag"], Value::string("\"GET\""));
    let update = Step::update("thing", "t1", json!({"size": 4})).live(json!({"etag": "\"GET\""}));
    let made = update.perform(&provider).await.unwrap().object.unwrap();
    assert_eq!(made.attributes["etag"], Value::string("\"PATCH\""));
    assert_eq!(server.requests()[1].headers["if-match"], "\"GET\"");
}

/// For a provider under another name, its own variables take precedence over the common ones.
#[tokio::test]
async fn a_provider_under_another_name_has_variables_of_its_own() {
    let folder = std::env::temp_dir().join(format!("plumb-alias-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("key");
    std::fs::write(&file, "of-file").unwrap();
    let path: &'static str = file.display().to_string().leak();
    for (alias, variables, user, key) in [
        (None, vec![], "guest", "plain"),
        (Some("eu"), vec![], "guest", "plain"),
        (Some("eu"), vec![("ACME_KEY_EU", "own"), ("ACME_USER_EU", "jo")], "jo", "own"),
        (Some("us"), vec![("ACME_KEY_EU", "own"), ("ACME_USER_EU", "jo")], "guest", "plain"),
        (Some("eu"), vec![("ACME_KEY_EU_FILE", path)], "guest", "of-file"),
        (Some("eu"), vec![("ACME_KEY_EU_COMMAND", "echo of-command")], "guest", "of-command"),
        (Some("eu-1"), vec![("ACME_KEY_EU_1", "own"), ("ACME_USER", "all")], "all", "own"),
    ] {
        let server = Server::start(|_, _| Answer::json(200, json!({"data": []}))).await;
        let other = Server::start(|_, _| Answer::json(200, json!({"data": []}))).await;
        let environment = |name: &str| {
            let all = [("ACME_KEY", "plain"), ("ACME_URL", &*other.address)];
            let found = all.iter().chain(&variables).find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let settings = Settings::new(&environment).timing(timing()).alias(alias);
        let settings = settings.set("url", &*server.address);
        let text = with_keys("{ header = \"X-Key\", value = \"${user} ${key}\" }");
        let provider = HttpProvider::configure(descriptor(&text), &settings).unwrap();
        provider.list("thing").await.unwrap();
        // The common variables apply to the provider without a block of its own.
        let asked = if alias.is_some() { server.requests() } else { other.requests() };
        assert_eq!(asked[0].headers["x-key"], format!("{user} {key}"), "{alias:?} {variables:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
