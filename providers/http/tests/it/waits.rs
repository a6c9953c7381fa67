//! Waiting after a call.

use std::sync::atomic::{AtomicUsize, Ordering};

use provider_port::{Kind, Notice, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Server, Step, provider, texts};

fn text(within: &str) -> String {
    REST.replace(
        "update = [ { call = \"rest: PATCH /things/${id}\", sends = \"changed\" } ]",
        "update = [ { call = \"rest: PATCH /things/${id}\", sends = \"changed\", until = \"self.size > 2\", within = \"WITHIN\", waits_for = \"it is large\" } ]",
    )
    .replace("WITHIN", within)
}

fn update() -> Step {
    Step::update("thing", "t1", json!({"name": "n", "size": 1}))
}

#[tokio::test]
async fn until_it_holds() {
    let reads = AtomicUsize::new(0);
    let server = Server::start(move |_, request| {
        let size = match request.method.as_str() {
            "PATCH" => 0,
            _ => reads.fetch_add(1, Ordering::SeqCst),
        };
        Answer::json(200, json!({"id": "t1", "name": "n", "size": size}))
    })
    .await;
    let notices = std::sync::Mutex::new(Vec::new());
    let note = |notice: Notice| notices.lock().unwrap().push(notice);
    let reply =
        update().perform_noting(&provider(&text("20s"), &server.address), &note).await.unwrap();
    assert_eq!(reply.object.unwrap().attributes["size"], engine::value::Value::Integer(3));
    assert_eq!(*notices.lock().unwrap(), [Notice::Waiting("it is large".to_owned())]);
    assert_eq!(server.lines()[0], "PATCH /things/t1");
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn not_for_ever() {
    let server =
        Server::start(|_, _| Answer::json(200, json!({"id": "t1", "name": "n", "size": 0}))).await;
    let error = update().perform(&provider(&text("100ms"), &server.address)).await.unwrap_err();
    assert_eq!(error.kind, Kind::StillWaiting);
    assert!(texts(&error).contains("it is large"), "{error}");
    let mutations = server.lines().iter().filter(|line| line.starts_with("PATCH")).count();
    assert_eq!(mutations, 1);
}

#[tokio::test]
async fn trouble_while_waiting_is_no_doubt_about_the_call() {
    let server = Server::start(|_, request| match request.method.as_str() {
        "PATCH" => Answer::json(200, json!({"id": "t1", "name": "n", "size": 0})),
        _ => Answer::json(401, json!({})),
    })
    .await;
    let error = update().perform(&provider(&text("20s"), &server.address)).await.unwrap_err();
    assert_eq!(error.kind, Kind::StillWaiting);
}

/// A wait goes on while a read shows null for the size, and ends when a read shows a size that fits.
#[tokio::test]
async fn what_is_null_at_first_is_waited_for() {
    let reads = AtomicUsize::new(0);
    let server = Server::start(move |_, request| {
        let is_known = request.method != "PATCH" && reads.fetch_add(1, Ordering::SeqCst) > 1;
        let size = if is_known { json!(3) } else { json!(null) };
        Answer::json(200, json!({"id": "t1", "name": "n", "size": size}))
    })
    .await;
    let reply = update().perform(&provider(&text("20s"), &server.address)).await.unwrap();
    assert_eq!(reply.object.unwrap().attributes["size"], engine::value::Value::Integer(3));
}

/// If the size stays null until the time is over, the error says that the condition cannot be judged.
#[tokio::test]
async fn what_stays_null_is_said() {
    let null = json!({"id": "t1", "name": "n", "size": null});
    let server = Server::start(move |_, _| Answer::json(200, null.clone())).await;
    let error = update().perform(&provider(&text("100ms"), &server.address)).await.unwrap_err();
    assert_eq!(error.kind, Kind::StillWaiting);
    insta::assert_snapshot!(
        texts(&error),
        @r#"StillWaiting: thing: cannot see whether it is large: expected a number, found null -> Some("apply again: what is done stays done, and the wait goes on")"#
    );
}

/// A wait goes on when the first reads after an update do not find the object: they may be out of date.
#[tokio::test]
async fn what_does_not_show_yet_is_waited_for() {
    let reads = AtomicUsize::new(0);
    let server = Server::start(move |_, request| match request.method.as_str() {
        "PATCH" => Answer::json(200, json!({"id": "t1", "name": "n", "size": 0})),
        _ if reads.fetch_add(1, Ordering::SeqCst) < 3 => Answer::json(404, json!({})),
        _ => Answer::json(200, json!({"id": "t1", "name": "n", "size": 3})),
    })
    .await;
    let reply = update().perform(&provider(&text("20s"), &server.address)).await.unwrap();
    assert_eq!(reply.object.unwrap().attributes["size"], engine::value::Value::Integer(3));
}

/// A wait ends once the object has been missing for the settle time.
#[tokio::test]
async fn what_is_gone_is_not_waited_for() {
    let server = Server::start(|_, request| match request.method.as_str() {
        "PATCH" => Answer::json(200, json!({"id": "t1", "name": "n", "size": 0})),
        _ => Answer::json(404, json!({})),
    })
    .await;
    let began = std::time::Instant::now();
    let error = update().perform(&provider(&text("10m"), &server.address)).await.unwrap_err();
    assert_eq!(error.kind, Kind::StillWaiting);
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
}

/// If no look-up could find the created object, the create and its wait are separate phases, so the answer is
/// in the journal before the wait begins.
#[tokio::test]
async fn what_no_look_up_finds_is_made_before_it_is_waited_for() {
    let until = "create = [ { call = \"rest: POST /things\", sends = \"all\", until = \"self.size > 2\" } ]";
    for (identity, phases) in
        [("\"ask\"", 2), ("{ idempotency_key = \"Key\" }", 2), ("\"unique_name\"", 1)]
    {
        let (before, rest) = REST.split_once("identity = ").unwrap();
        let (_, after) = rest.split_once("update = ").unwrap();
        let text = format!("{before}identity = {identity}\n{until}\nupdate = {after}");
        let provider = provider(&text, "http://127.0.0.1:1");
        let create = provider.schema().types["thing"].create[0].phases.clone();
        let waits: Vec<bool> = create.iter().map(|phase| phase.waits_for.is_some()).collect();
        assert_eq!(waits, [[false, true].as_slice(), &[true]][2 - phases], "{identity}");
    }
}
