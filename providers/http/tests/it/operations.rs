//! Operations of a server, and objects that fail during a wait.

use std::sync::atomic::{AtomicUsize, Ordering};

use provider_port::{Error, Kind, Notice, Provider as _, Reply};
use serde_json::{Value as Json, json};

use crate::REST;
use crate::support::{Answer, Server, Step, provider, texts};

const UPDATE: &str = "update = [ { call = \"rest: PATCH /things/${id}\", sends = \"changed\" } ]";

/// Returns a descriptor with an update whose answer names an operation.
fn with(operation: &str) -> String {
    let phase = format!(
        "update = [ {{ call = \"rest: PATCH /things/${{id}}\", sends = \"changed\", operation = {{ {operation}, waits_for = \
         \"it is resized\" }} }} ]"
    );
    REST.replace(UPDATE, &phase)
}

const BY_ID: &str = "call = \"rest: GET /operations/${answer.operation.id}\", until = \"answer.state == \\\"done\\\"\", \
                     fails_when = \"answer.state == \\\"failed\\\"\", reason = \"${answer.error.text}\", within = \"200ms\"";

/// Returns a server whose operations go through these states; the last one stays.
async fn server(begun: Json, states: &[&'static str]) -> Server {
    let (states, looks) = (states.to_vec(), AtomicUsize::new(0));
    Server::start(move |_, request| match &*request.line() {
        "PATCH /things/t1" => {
            Answer::json(202, begun.clone()).header("Location", "/operations/o1?full=true")
        }
        "GET /operations/o1" | "GET /operations/o1?full=true" => {
            let look = looks.fetch_add(1, Ordering::SeqCst).min(states.len() - 1);
            match states[look] {
                "lost" => Answer::json(404, json!({"error": "no such operation"})),
                "broken" => Answer::empty(503),
                state => Answer::json(
                    200,
                    json!({"state": state, "error": {"text": "no room left"}, "thing": "t1"}),
                ),
            }
        }
        "GET /things/t1" => Answer::json(200, json!({"id": "t1", "name": "n", "size": 3})),
        _ => Answer::json(404, json!({})),
    })
    .await
}

async fn update(text: &str, server: &Server) -> Result<Reply, Error> {
    Step::update("thing", "t1", json!({"name": "n", "size": 3}))
        .perform(&provider(text, &server.address))
        .await
}

fn begun() -> Json {
    json!({"operation": {"id": "o1"}})
}

#[tokio::test]
async fn an_operation_is_looked_at_until_it_has_ended_and_then_the_object() {
    let location = "location = true, until = \"answer.state == \\\"done\\\"\"";
    for (operation, query) in [(BY_ID, ""), (location, "?full=true")] {
        let server = server(begun(), &["running", "broken", "done"]).await;
        let notices = std::sync::Mutex::new(Vec::new());
        let note = |notice: Notice| notices.lock().unwrap().push(notice);
        let provider = provider(&with(operation), &server.address);
        let step = Step::update("thing", "t1", json!({"name": "n", "size": 3}));
        let object = step.perform_noting(&provider, &note).await.unwrap().object.unwrap();
        assert_eq!(object.attributes["size"], engine::value::Value::Integer(3));
        assert_eq!(notices.lock().unwrap()[0], Notice::Waiting("it is resized".to_owned()));
        let lines = server.lines();
        assert_eq!(lines[0], "PATCH /things/t1");
        assert_eq!(lines[1], format!("GET /operations/o1{query}"));
        assert_eq!(lines.last().unwrap(), "GET /things/t1");
    }
}

/// An operation that fails is reported at once with its own error. A look-up finds its effects.
#[tokio::test]
async fn an_operation_that_fails_is_told_at_once_with_its_own_error() {
    let server = server(begun(), &["running", "failed"]).await;
    let error = update(&with(BY_ID), &server).await.unwrap_err();
    assert!(error.is_refusal, "{error:?}");
    insta::assert_snapshot!(texts(&error), @"InDoubt: thing has failed, and this was awaited: it is resized: no room left -> None");
}

#[tokio::test]
async fn an_operation_that_never_ends_or_is_forgotten_is_looked_up() {
    for (states, kind, said) in [
        (["running"], Kind::StillWaiting, "after 0 s it still does not hold that it is resized"),
        (["lost"], Kind::InDoubt, "what became of it cannot be seen"),
    ] {
        let server = server(begun(), &states).await;
        let error = update(&with(BY_ID), &server).await.unwrap_err();
        assert!(error.kind == kind && error.message.contains(said), "{error:?}");
        assert!(!error.is_refusal);
    }
}

/// An answer without an operation is accepted: an API may execute a small change at once.
#[tokio::test]
async fn an_answer_that_names_no_operation_has_none() {
    for begun in [json!({}), json!({"operation": null}), json!({"operation": {}})] {
        let server = server(begun, &["failed"]).await;
        update(&with(BY_ID), &server).await.unwrap();
        assert_eq!(server.lines(), ["PATCH /things/t1", "GET /things/t1"]);
    }
}

#[tokio::test]
async fn an_operation_names_what_it_made() {
    let create = "{ call = \"rest: POST /things\", sends = { name = \"${one_time}\", size = \"${size}\", big_size = \
                  \"${big_size}\" }";
    let operation = format!("{create}, operation = {{ id = \"${{answer.thing}}\", {BY_ID} }} }},");
    let text = REST.replace(&format!("{create} }},"), &operation);
    assert_ne!(text, REST);
    let server = Server::start(|_, request| match &*request.line() {
        "POST /things" => Answer::json(202, json!({"operation": {"id": 7}})),
        "GET /operations/7" => Answer::json(200, json!({"state": "done", "thing": "t1"})),
        "GET /things/t1" => Answer::json(200, json!({"id": "t1", "size": 3})),
        _ => Answer::json(404, json!({})),
    })
    .await;
    let create = Step::create("thing", json!({"name": "n", "size": 3}));
    let made = create.perform(&provider(&text, &server.address)).await.unwrap().object.unwrap();
    assert_eq!(&*made.id.0, "t1");
}

#[tokio::test]
async fn an_operation_on_another_server_is_not_looked_at() {
    let other = Server::start(|_, _| Answer::json(200, json!({"state": "done"}))).await;
    let place = other.address.clone();
    let server =
        Server::start(move |_, _| Answer::json(202, json!({})).header("Location", &place)).await;
    let error = update(&with("location = true, until = \"true\""), &server).await.unwrap_err();
    assert!(error.kind == Kind::InDoubt && other.requests().is_empty(), "{error:?}");
}

#[tokio::test]
async fn an_object_that_fails_ends_the_wait() {
    let text = REST.replace(
        UPDATE,
        "update = [ { call = \"rest: PATCH /things/${id}\", sends = \"changed\", until = \"self.size > 2\", fails_when = \
         \"self.size < 0\", reason = \"its size is ${self.size}\", waits_for = \"it is large\" } ]",
    );
    let looks = AtomicUsize::new(0);
    let server = Server::start(move |_, _| {
        let size = if looks.fetch_add(1, Ordering::SeqCst) > 2 { -1 } else { 0 };
        Answer::json(200, json!({"id": "t1", "name": "n", "size": size}))
    })
    .await;
    let provider = provider(&text, &server.address);
    assert!(provider.list("thing").await.is_err(), "it is no list");
    let error = Step::update("thing", "t1", json!({"name": "n", "size": 3}))
        .perform(&provider)
        .await
        .unwrap_err();
    assert!(error.object.is_some());
    insta::assert_snapshot!(texts(&error), @r#"StillWaiting: thing has failed, and this was awaited: it is large: its size is -1 -> Some("look into the API why; then apply again, or make another one with `--replace ADDRESS`")"#);
}
