//! Refusals, and successes that are refusals: the conclusions from them, and the words of them that are
//! shown.

use provider_port::{Kind, Provider as _};
use serde_json::json;

use crate::REST;
use crate::answers::wanted;
use crate::support::{Answer, Request, Server, Step, provider, texts};

/// A refusal may show the object as it is. A value that the API generated is not known here.
#[tokio::test]
async fn a_refusal_shows_no_secret_of_the_object() {
    let text = REST.replace(
        "secret = {",
        "api_token = { type = \"string\", computed = true, sensitive = true }\nsecret = {",
    );
    let object = json!({"id": "t1", "name": "n", "apiToken": "tok-GENERATED-4f"});
    let printed = object.to_string();
    for status in [400, 403, 409, 412, 422, 423, 500] {
        for body in [
            object.clone(),
            json!({"message": "stale tok-generated-4f", "current": [{"item": object}]}),
            json!({"error": format!("stale: {printed}")}),
            json!({"error": "Thing(id=t1, api_token='tok-GENERATED-4f')"}),
            json!({"errors": [{"message": format!("API-Token: {}", "tok-GENERATED-4f")}]}),
        ] {
            let answer = Answer::json(status, body.clone());
            let server = Server::start(move |_, _| answer.clone()).await;
            let provider = provider(&text, &server.address);
            for step in [
                Step::update("thing", "t1", json!({"name": "n", "size": 5})),
                Step::delete("thing", "t1"),
            ] {
                let shown = texts(&step.perform(&provider).await.unwrap_err()).to_lowercase();
                assert!(!shown.contains("generated"), "{status} {body}: {shown}");
            }
            if status != 500 {
                let read = provider.list("thing").await.unwrap_err();
                assert!(!texts(&read).to_lowercase().contains("generated"), "{status} {body}");
            }
        }
    }
}

/// The secret that was sent before the present one is known only by its fingerprint.
#[tokio::test]
async fn a_refusal_shows_no_secret_that_was_sent_before() {
    let server = Server::start(|_, _| {
        Answer::json(409, json!({"message": "stale: older-Pw", "current": {"size": "older-Pw"}}))
    })
    .await;
    let text = REST.replace("{ type = \"integer\", min = 0 }", "{ type = \"string\" }");
    let step = Step::update("thing", "t1", json!({"name": "n", "size": "fresh"}));
    let error = step.secret("size", &[]).perform(&provider(&text, &server.address)).await;
    let shown = texts(&error.unwrap_err());
    assert!(shown.contains("stale: …") && !shown.contains("older"), "{shown}");
}

/// A call to a wrong address is answered with 404, too.
#[tokio::test]
async fn a_delete_of_what_is_there_is_not_done() {
    let thing = json!({"id": "t1", "name": "n"});
    let listed = move |ids: &'static str| {
        let thing = thing.clone();
        move |_: usize, request: &Request| match request.line().as_str() {
            "GET /things/t1" => Answer::json(200, thing.clone()),
            "GET /things" if ids.is_empty() => Answer::json(200, json!({"data": []})),
            "GET /things" => Answer::json(200, json!({"data": [thing]})),
            _ => Answer::json(404, json!({"message": "no route"})),
        }
    };
    let text = REST.replace("DELETE /things/", "DELETE /thing/");
    let server = Server::start(listed("t1")).await;
    let error = Step::delete("thing", "t1").perform(&provider(&text, &server.address)).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    let shown = error.to_string();
    let tail = "answered 404 (not found), and the thing is still there: no route";
    assert!(shown.starts_with("DELETE /thing/") && shown.ends_with(tail), "{shown}");
    // An API may show a deleted object for a while to calls that use its id.
    let server = Server::start(listed("")).await;
    let error = Step::delete("thing", "t1").perform(&provider(&text, &server.address)).await;
    assert_eq!(error.unwrap_err().kind, Kind::NotFound);
    let server = Server::start(|_, request| match request.method.as_str() {
        "DELETE" => Answer::json(404, json!({})),
        _ => Answer::json(403, json!({})),
    })
    .await;
    let error = Step::delete("thing", "t1").perform(&provider(REST, &server.address)).await;
    assert_eq!(error.unwrap_err().kind, Kind::InDoubt, "nobody can see it");
}

/// An object that exists already counts as done for a change; for a create it belongs to another owner.
#[tokio::test]
async fn a_create_is_not_done_because_something_is_there() {
    let text = REST
        .replace("error = [", "error = [ { status = 409, match = \"already\", kind = \"done\" },");
    let server = Server::start(|_, _| Answer::json(409, json!({"message": "already so"}))).await;
    let provider = provider(&text, &server.address);
    let made = Step::create("thing", wanted()).perform(&provider).await;
    assert_eq!(made.unwrap_err().kind, Kind::Rejected);
    assert_eq!(server.lines(), ["POST /things"]);
    assert!(Step::delete("thing", "t1").perform(&provider).await.unwrap().object.is_none());
}

/// Some APIs answer 200 in all cases.
#[tokio::test]
async fn a_success_that_says_no_is_a_refusal() {
    let text = REST.replace(
        "error = [",
        "message = \"error.text\"\nerror = [ { status = 200, match = \"denied\" },",
    );
    let server = Server::start(|_, _| {
        Answer::json(200, json!({"ok": false, "error": {"text": "Denied: hush-hush"}}))
    })
    .await;
    let one = provider(&text, &server.address);
    for step in [
        Step::create("thing", wanted()),
        Step::update("thing", "t1", json!({"name": "n"})),
        Step::delete("thing", "t1"),
    ] {
        assert_eq!(step.perform(&one).await.unwrap_err().kind, Kind::Rejected);
    }
    assert_eq!(one.list("thing").await.unwrap_err().kind, Kind::Rejected);
    // A text in an object is no error.
    let server = Server::start(|_, _| {
        Answer::json(200, json!({"id": "t1", "name": "denied", "message": "denied", "error": null}))
    })
    .await;
    let step = Step::update("thing", "t1", json!({"name": "denied"}));
    step.perform(&provider(&text, &server.address)).await.unwrap();
}

/// An answer that only acknowledges a call does not show the state of the object.
#[tokio::test]
async fn an_update_that_shows_nothing_of_the_object_is_read_back() {
    let server = Server::start(|_, request| match request.method.as_str() {
        "PATCH" => Answer::json(200, json!({"ok": true})),
        _ => Answer::json(200, json!({"id": "t1", "name": "n", "size": 5})),
    })
    .await;
    let step = Step::update("thing", "t1", json!({"name": "n", "size": 5}));
    let object = step.perform(&provider(REST, &server.address)).await.unwrap().object.unwrap();
    assert_eq!(object.attributes["size"], engine::value::Value::Integer(5));
}

/// A redirect of the same call to another place proves that nothing happened here.
#[tokio::test]
async fn a_redirect_says_where_it_leads() {
    let said = async |status: u16, to: &'static str| {
        let server = Server::start(move |_, _| Answer::empty(status).header("location", to)).await;
        let step = Step::update("thing", "t1", json!({"name": "n", "secret": "hush-hush"}));
        let step = Step { changed: vec!["name", "secret"], ..step }.secret("secret", &[]);
        let error = step.perform(&provider(REST, &server.address)).await.unwrap_err();
        assert_eq!(server.lines(), ["PATCH /things/t1"]);
        let shown = texts(&error);
        let leads = error.help.unwrap_or_default();
        let leads =
            leads.split_once("it leads to ").and_then(|(_, rest)| rest.split_once(", and "));
        assert!(shown.contains(&format!("answered {status} (a redirect)")), "{shown}");
        (error.kind, leads.map_or_else(String::new, |(place, _)| place.to_owned()))
    };
    for (status, kind) in [(307, Kind::Rejected), (308, Kind::Rejected), (302, Kind::InDoubt)] {
        assert_eq!(said(status, "/things/7?token=abc#x").await, (kind, "/things/7".into()));
    }
    for (to, place) in [
        ("https://user:pw@other.example/to/ken?x=1", "https://other.example"),
        ("/a%20b/canary-4711/hush%2Dhush", "/a b/…/…"),
        ("mailto:hush-hush", ""),
        ("", ""),
    ] {
        assert_eq!(said(307, to).await, (Kind::Rejected, place.into()), "{to}");
    }
}
