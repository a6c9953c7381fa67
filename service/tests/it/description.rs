//! The descriptions of the management APIs against what the service does.

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

#[tokio::test]
async fn each_described_operation_is_there_and_no_other() {
    let service = Harness::start().await;
    let face = service.addresses.rest.clone();
    let document = document(&service, &face).await;
    assert_eq!(
        (&document["info"]["version"], &document["openapi"]),
        (&json!("0.1.0"), &json!("3.1.0"))
    );
    assert_eq!(document["servers"][0]["url"], face);
    let page = service.client.get(format!("{face}/docs")).send().await.unwrap();
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    let page = page.text().await.unwrap();
    for (path, operations) in fields(&document["paths"]) {
        for method in METHODS {
            let real = path.replace(['{', '}'], "");
            let method_name = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let (status, body) = service.send(method_name, &format!("{face}{real}"), None).await;
            match operations.get(method) {
                Some(operation) => {
                    assert!(
                        status != 405 && body["error"] != "path not found",
                        "{method} {path}: {body}"
                    );
                    let id = operation["operationId"].as_str().unwrap();
                    assert!(page.contains(&format!("id=\"{id}\"")), "the page has {id}");
                }
                None => assert_eq!(status, 405, "{method} {path}"),
            }
        }
    }
}

/// A field that is described is read: of a wrong type, it is refused, and named.
#[tokio::test]
async fn each_described_field_is_checked() {
    let service = Harness::start().await;
    let face = service.addresses.rest.clone();
    let document = document(&service, &face).await;
    let mut checked = 0;
    for (path, operations) in fields(&document["paths"]) {
        let Some(operation) = operations.get("post").filter(|_| !path.contains('{')) else {
            continue;
        };
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let name = schema["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        for field in fields(&document["components"]["schemas"][name]["properties"]).keys() {
            let wrong = json!({ field: [{ "wrong": [] }] });
            let (status, body) =
                service.send(Method::POST, &format!("{face}{path}"), Some(wrong)).await;
            assert_eq!(status, 400, "{path} {field}: {body}");
            let message = body["error"].as_str().unwrap();
            assert!(
                message.contains(&format!("{field} must"))
                    || message.contains(&format!("{field}[0] must")),
                "{message}"
            );
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked}");
}

async fn output(command: &mut Command) -> Option<std::process::Output> {
    let output = tokio::time::timeout(Duration::from_mins(5), command.output()).await;
    output.ok()?.ok()
}

fn skipped(why: &str) {
    // Not by a macro: what those print of a test that passes is kept back.
    std::io::stderr().write_all(format!("skipped: schemathesis, as {why}\n").as_bytes()).unwrap();
}

/// Thousands of requests, made from the description by a program that knows nothing else.
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
    // What no schema can say is refused by 400: names that are taken, objects that are not there.
    let config =
        "[checks.positive_data_acceptance]\nexpected-statuses = [\"2xx\", \"400\", \"404\"]\n";
    std::fs::write(folder.join("schemathesis.toml"), config).unwrap();
    let service = Harness::start().await;
    let mut run = Command::new(&program);
    run.current_dir(&folder).arg("run").arg(format!("{}/openapi.json", service.addresses.rest));
    run.args(["--no-color", "--max-examples", "20", "--header"]);
    run.arg(format!("Authorization: Bearer {KEY}"));
    let found = output(&mut run).await.expect("it ends");
    let said = String::from_utf8_lossy(&found.stdout);
    assert!(found.status.success(), "{said}");
}
