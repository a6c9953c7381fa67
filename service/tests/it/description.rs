//! Tests of the descriptions of the management APIs against the behaviour of the service.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::process::Command;

use crate::harness::{Harness, KEY};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

async fn document(service: &Harness, face: &str) -> Value {
    let url = format!("{face}/openapi.json");
    let response = service.client.get(url).send().await.unwrap();
    assert_eq!(response.status(), 200, "it needs no key");
    response.json().await.unwrap()
}

fn fields(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("{value}"))
}

/// Returns the addresses of both versions, each with the version in its description.
fn faces(service: &Harness) -> [(String, &'static str); 2] {
    [(service.addresses.rest.clone(), "0.1.0"), (service.addresses.queue.clone(), "2.0.0")]
}

#[tokio::test]
async fn each_described_operation_is_there_and_no_other() {
    let service = Harness::start().await;
    for (face, version) in faces(&service) {
        let document = document(&service, &face).await;
        assert_eq!(document["info"]["version"], version);
        assert_eq!(
            (&document["openapi"], &document["servers"][0]["url"]),
            (&json!("3.1.0"), &json!(face))
        );
        let page = service.client.get(format!("{face}/docs")).send().await.unwrap();
        assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
        let page = page.text().await.unwrap();
        for (path, operations) in fields(&document["paths"]) {
            for name in METHODS {
                let real = path.replace(['{', '}'], "");
                let method = Method::from_bytes(name.to_uppercase().as_bytes()).unwrap();
                let (status, body) = service.send(method, &format!("{face}{real}"), None).await;
                let Some(operation) = operations.get(name) else {
                    assert_eq!(status, 405, "{name} {path}");
                    continue;
                };
                let message = body.get("error").or(body.get("detail")).unwrap_or(&Value::Null);
                assert!(status != 405 && message != "path not found", "{name} {path}: {body}");
                let id = operation["operationId"].as_str().unwrap();
                assert!(page.contains(&format!("id=\"{id}\"")), "the page has {id}");
            }
        }
    }
}

/// The service reads every field that the description names: it refuses a value of a wrong type,
/// and names the field.
#[tokio::test]
async fn each_described_field_is_checked() {
    let service = Harness::start().await;
    let mut checked = 0;
    for (face, _) in faces(&service) {
        let document = document(&service, &face).await;
        for (path, operations) in fields(&document["paths"]) {
            let creates = operations.get("post").filter(|_| !path.contains('{'));
            let Some(operation) = creates else { continue };
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let name = schema["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            for field in fields(&document["components"]["schemas"][name]["properties"]).keys() {
                let wrong = json!({ field: [{ "wrong": [] }] });
                let url = format!("{face}{path}");
                let (status, body) = service.send(Method::POST, &url, Some(wrong)).await;
                assert!(status == 400 || status == 422, "{path} {field}: {body}");
                let message = body.get("error").or(body.get("detail")).unwrap().to_string();
                let named = [format!("{field} must"), format!("{field}[0]"), format!("{field}.")];
                assert!(named.iter().any(|named| message.contains(named)), "{field}: {message}");
                checked += 1;
            }
        }
    }
    assert!(checked > 70, "{checked}");
}

async fn output(command: &mut Command) -> Option<std::process::Output> {
    let output = tokio::time::timeout(Duration::from_mins(5), command.output()).await;
    output.ok()?.ok()
}

fn skipped(why: &str) {
    // Written without a macro, because the test harness hides the macro output of a passed test.
    std::io::stderr().write_all(format!("skipped: schemathesis, as {why}\n").as_bytes()).unwrap();
}

/// Schemathesis makes thousands of requests from the description alone, and finds no contradiction.
#[tokio::test]
async fn schemathesis_finds_nothing() {
    if std::env::var_os("SERVICE_SDK_TESTS").is_none() {
        return skipped("SERVICE_SDK_TESTS is not set");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
    let program = folder.join("venv/bin/st");
    if !program.exists() {
        output(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv"))).await;
        output(Command::new(folder.join("venv/bin/pip")).args([
            "install",
            "-q",
            "schemathesis==4.*",
        ]))
        .await;
    }
    if !program.exists() {
        return skipped("it cannot be installed here");
    }
    // The rules that no schema can express: objects that do not exist, names that are taken, and
    // fields of endpoints that depend on other fields.
    let config = "\
[checks.positive_data_acceptance]
expected-statuses = [\"2xx\", \"400\", \"404\", \"409\"]
[[operations]]
include-path-regex = \"^/serverless\"
checks.positive_data_acceptance.expected-statuses = [\"2xx\", \"400\", \"404\", \"422\"]
";
    std::fs::write(folder.join("schemathesis.toml"), config).unwrap();
    let service = Harness::start().await;
    for (face, _) in faces(&service) {
        let mut run = Command::new(&program);
        run.current_dir(&folder).arg("run").arg(format!("{face}/openapi.json"));
        run.args(["--no-color", "--max-examples", "20", "--header"]);
        run.arg(format!("Authorization: Bearer {KEY}"));
        let found = output(&mut run).await.expect("it ends");
        let said = String::from_utf8_lossy(&found.stdout);
        assert!(found.status.success(), "{said}");
    }
}
