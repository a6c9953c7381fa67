//! The meaning of each answer to a call, and the calls that are repeated.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use provider_http::Timing;
use provider_port::{Error, Kind, Notice, Provider as _, SendPermit};
use serde_json::json;

use crate::REST;
use crate::support::{
    Answer, KEY, Request, Server, Step, attributes, nonce, provider, provider_timed, texts, timing,
};

pub(crate) fn wanted() -> serde_json::Value {
    json!({"name": "final", "size": 3, "big_size": null, "secret": "hush-hush"})
}

fn made(request: &Request) -> Answer {
    let body = request.json();
    Answer::json(200, json!({"id": "t1", "name": body["name"], "size": body["size"]}))
}

async fn create_against(
    answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
) -> (Result<provider_port::Reply, provider_port::Error>, Vec<Request>) {
    let server = Server::start(answer).await;
    let provider = provider(REST, &server.address);
    let result = Step::create("thing", wanted()).perform(&provider).await;
    (result, server.requests())
}

#[tokio::test]
async fn a_create_sends_the_nonce_and_reads_the_object() {
    let (result, requests) = create_against(|_, request| made(request)).await;
    let object = result.unwrap().object.unwrap();
    assert_eq!(&*object.id.0, "t1");
    let name = nonce().to_string();
    assert_eq!(object.attributes, attributes(&json!({"id": "t1", "name": name, "size": 3})));
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].line(), "POST /things");
    assert_eq!(requests[0].json(), json!({"name": name, "size": 3}), "null is left out");
}

/// A create is in doubt, and sent once, whenever its answer is missing or cannot be relied on.
#[tokio::test]
async fn lost_and_unreadable_answers_leave_a_doubt() {
    let answers: Vec<(&str, Answer)> = vec![
        ("cut", Answer::Cut),
        ("cut body", Answer::CutBody),
        ("stuck", Answer::Stuck),
        ("endless", Answer::Endless),
        ("500", Answer::json(500, json!({"error": "boom"}))),
        ("502 html", Answer::text(502, "text/html", "<html>bad gateway</html>")),
        ("503", Answer::empty(503)),
        ("504", Answer::empty(504)),
        ("408", Answer::empty(408)),
        ("302", Answer::empty(302).header("location", "/elsewhere")),
        ("200 html", Answer::text(200, "text/html", "<html>welcome</html>")),
        ("200 half", Answer::text(200, "application/json", "{\"id\": ")),
        ("200 list", Answer::json(200, json!([1]))),
        ("200 wrong type", Answer::json(200, json!({"id": "t1", "size": "big"}))),
        ("200 another name", Answer::json(200, json!({"id": "t1", "name": "stranger"}))),
    ];
    for (what, answer) in answers {
        let (result, requests) = create_against(move |_, _| answer.clone()).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind, Kind::InDoubt, "{what}: {error}");
        assert!(!texts(&error).contains("hush-hush"), "{what}");
        assert_eq!(requests.len(), 1, "{what}: a create is never sent again blindly");
    }
}

/// A success without an object is an answer: the create was accepted, and its object may show late.
#[tokio::test]
async fn a_create_that_was_accepted_is_no_lost_one() {
    for answer in [
        Answer::empty(200),
        Answer::empty(202),
        Answer::empty(204),
        Answer::json(202, json!({"operation": "op-1"})),
        Answer::json(200, json!({"id": null, "name": "x"})),
        Answer::json(201, serde_json::Value::Null),
    ] {
        let (result, requests) = create_against(move |_, _| answer.clone()).await;
        assert_eq!(result.unwrap().object, None);
        assert_eq!(requests.len(), 1);
    }
}

/// The id of the object is known, and the object does not exist yet.
#[tokio::test]
async fn what_was_accepted_under_a_chosen_id_may_not_show_yet() {
    let text = REST.replace("\"one_time_name\"", "\"client_id\"");
    let server = Server::start(|_, request| match request.method.as_str() {
        "POST" => Answer::empty(202),
        _ => Answer::json(404, json!({})),
    })
    .await;
    let reply = Step::create("thing", wanted()).perform(&provider(&text, &server.address)).await;
    assert_eq!(reply.unwrap().object, None);
    assert_eq!(server.lines(), ["POST /things".to_owned(), format!("GET /things/{}", nonce())]);
}

/// The object with the id may be an older one. It is the new one if the phase waits for it, or if the id was
/// drawn for the create.
#[tokio::test]
async fn what_was_accepted_under_a_chosen_id_may_show_what_was_there_before() {
    let text = |id: &str, until: &str| {
        REST.replace("\"one_time_name\"", "\"client_id\"")
            .replace("id = { type = \"string\", computed = true }", &format!("id = {{ {id} }}"))
            .replace("${big_size}\" } }", &format!("${{big_size}}\" }}{until} }}"))
    };
    let chosen = "type = \"string\", required = true, on_change = \"replace\"";
    let until = ", until = \"self.size == 3\"";
    for (id, until, status, shows) in [
        (chosen, "", 202, false),
        (chosen, "", 204, true),
        (chosen, until, 202, true),
        ("type = \"string\", computed = true", "", 202, true),
    ] {
        let drawn = nonce().to_string();
        let own = if id == chosen { "t1".to_owned() } else { drawn };
        let shown = json!({"id": own, "name": "n", "size": 3});
        let server = Server::start(move |_, request| match request.method.as_str() {
            "POST" => Answer::empty(status),
            _ => Answer::json(200, shown.clone()),
        })
        .await;
        let mut given = json!({"name": "n", "size": 3});
        if id == chosen {
            given["id"] = json!("t1");
        }
        let provider = provider(&text(id, until), &server.address);
        let reply = Step::create("thing", given).perform(&provider).await.unwrap();
        assert_eq!(reply.object.is_some(), shows, "{id} {until} {status}");
    }
}

#[tokio::test]
async fn refusals_prove_that_nothing_happened() {
    for status in [400, 404, 405, 409, 410, 413, 422] {
        let (result, requests) = create_against(move |_, _| {
            Answer::json(status, json!({"message": "size hush-hush is wrong"}))
        })
        .await;
        let error = result.unwrap_err();
        assert_eq!(error.kind, Kind::Rejected, "{status}");
        let shown = texts(&error);
        assert!(shown.contains("size … is wrong"), "{shown}");
        assert_eq!(requests.len(), 1);
    }
}

#[tokio::test]
async fn a_retired_api_says_so() {
    let server = Server::start(|_, _| Answer::empty(410)).await;
    let error = provider(REST, &server.address).list("thing").await.unwrap_err();
    assert!(texts(&error).contains("this version of the API was retired"), "{error:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_did_not_leave_is_not_sent() {
    let server = Server::start(|_, _| Answer::Cut).await;
    let address = server.address.clone();
    drop(server);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let provider = provider(REST, &address);
    let error = Step::create("thing", wanted()).perform(&provider).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotSent);
    let shown = texts(&error).to_lowercase();
    assert!(shown.contains("refused") && shown.contains(&address), "{shown}");
}

#[tokio::test]
async fn throttled_calls_are_sent_again_with_the_same_nonce() {
    let server = Server::start(|number, request| match number {
        0 | 1 => Answer::json(429, json!({})).header("retry-after", "0.02"),
        _ => made(request),
    })
    .await;
    let provider = provider(REST, &server.address);
    let notices = std::sync::Mutex::new(Vec::new());
    let note = |notice: Notice| notices.lock().unwrap().push(notice);
    let reply = Step::create("thing", wanted()).perform_noting(&provider, &note).await.unwrap();
    assert_eq!(&*reply.object.unwrap().id.0, "t1");
    let bodies: Vec<_> = server.requests().iter().map(Request::json).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(notices.lock().unwrap().len(), 2);
}

/// A permit for a number of requests.
struct PermitFor(AtomicUsize);

#[async_trait]
impl SendPermit for PermitFor {
    async fn ask(&self) -> Result<(), Error> {
        let left =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(1));
        left.map(drop).map_err(|_| Error::new(Kind::NotSent, "no leave"))
    }
}

/// A throttled call whose next attempt gets no permit was not sent, so the run may start the call anew.
#[tokio::test]
async fn a_throttled_call_that_gets_no_leave_any_more_was_not_sent() {
    for given in 0..3 {
        let throttled = || Answer::json(429, json!({})).header("retry-after", "0.02");
        let server = Server::start(move |_, _| throttled()).await;
        let permit = PermitFor(AtomicUsize::new(given));
        let step = Step::create("thing", wanted());
        let done = step.perform_with(&provider(REST, &server.address), &permit, &|_| {}).await;
        let error = done.unwrap_err();
        assert_eq!((error.kind, &*error.message), (Kind::NotSent, "no leave"));
        assert_eq!(server.requests().len(), given);
    }
}

/// The pause that a server asks for is bounded, and one that cannot be parsed is ignored.
#[tokio::test]
async fn pauses_that_make_no_sense_are_not_waited_for() {
    for after in [
        "99999999",
        "-5",
        "1e400",
        "NaN",
        "inf",
        "soon",
        "",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ] {
        let server = Server::start(move |number, request| match number {
            0 => Answer::json(429, json!({})).header("retry-after", after),
            _ => made(request),
        })
        .await;
        let longest = std::time::Duration::from_millis(300);
        let timing = Timing { retry_after_max: longest, ..timing() };
        let provider = provider_timed(REST, &server.address, KEY, timing);
        let begin = std::time::Instant::now();
        let done = Step::create("thing", wanted()).perform(&provider).await;
        assert!(done.is_ok(), "{after:?}: {done:?}");
        assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{after:?}");
    }
}

#[tokio::test]
async fn a_throttled_call_waits_until_the_date_that_it_is_told() {
    let server = Server::start(|number, request| match number {
        0 => Answer::json(429, json!({}))
            .header("date", "Sat, 21 Nov 2026 02:00:00 GMT")
            .header("retry-after", "Sat, 21 Nov 2026 02:00:01 GMT"),
        _ => made(request),
    })
    .await;
    let begin = std::time::Instant::now();
    Step::create("thing", wanted()).perform(&provider(REST, &server.address)).await.unwrap();
    assert!(begin.elapsed() >= std::time::Duration::from_secs(1), "{:?}", begin.elapsed());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_api_that_only_refuses_is_given_up() {
    let (result, requests) =
        create_against(|_, _| Answer::json(429, json!({})).header("retry-after", "0.2")).await;
    let error = result.unwrap_err();
    assert!(matches!(error.kind, Kind::Throttled), "{error}");
    let help = error.help.unwrap_or_default();
    assert!(help.starts_with("it refused every call for 1 s: try again later"), "{help}");
    assert!((2..12).contains(&requests.len()), "{} tries", requests.len());
}

#[tokio::test]
async fn reads_are_tried_again() {
    for first in [
        Answer::Cut,
        Answer::CutBody,
        Answer::empty(500),
        Answer::empty(503),
        Answer::text(200, "application/json", "{"),
    ] {
        let server = Server::start(move |number, _| match number {
            0 | 1 => first.clone(),
            _ => Answer::json(200, json!({"data": [{"id": "t1", "name": "n"}]})),
        })
        .await;
        let objects = provider(REST, &server.address).list("thing").await.unwrap();
        assert_eq!(objects.len(), 1);
        assert_eq!(server.requests().len(), 3);
    }
}

#[tokio::test]
async fn reads_are_not_tried_for_ever() {
    let server = Server::start(|_, _| Answer::empty(500)).await;
    let error = provider(REST, &server.address).list("thing").await.unwrap_err();
    assert_eq!(error.kind, Kind::InDoubt);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_web_page_is_recognised_and_not_dumped() {
    let page = format!("<!doctype html><title>Sign in</title>{}", "<p>x</p>".repeat(5000));
    let server = Server::start(move |_, _| Answer::text(200, "text/html", &page)).await;
    let error = provider(REST, &server.address).list("thing").await.unwrap_err();
    let shown = texts(&error);
    assert!(shown.contains("HTML page where JSON was expected"), "{shown}");
    assert!(shown.len() < 600, "{} bytes", shown.len());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_update_without_a_body_is_read_back() {
    let server = Server::start(|_, request| match request.method.as_str() {
        "PATCH" => Answer::empty(204),
        _ => Answer::json(200, json!({"id": "t1", "name": "new", "size": 5})),
    })
    .await;
    let provider = provider(REST, &server.address);
    let step = Step::update("thing", "t1", json!({"name": "new", "size": 5}));
    let object = step.perform(&provider).await.unwrap().object.unwrap();
    assert_eq!(object.attributes["size"], engine::value::Value::Integer(5));
    assert_eq!(server.lines(), ["PATCH /things/t1", "GET /things/t1"]);
    assert_eq!(server.requests()[0].json(), json!({"name": "new", "size": 5}));
}

/// A drain whose answer has no body is followed by a read, because the next phase sends the attributes that
/// the drain changed. The last phase of a delete is not.
#[tokio::test]
async fn a_drain_without_a_body_is_read_back_and_an_end_is_not() {
    let server = Server::start(|_, request| match request.method.as_str() {
        "GET" => Answer::json(200, json!({"id": "t1", "name": "new", "size": 0})),
        _ => Answer::empty(204),
    })
    .await;
    let text =
        REST.replace("delete = [ ", "delete = [ { call = \"rest: POST /things/${id}/stop\" }, ");
    assert_ne!(text, REST);
    let provider = provider(&text, &server.address);
    let drained = Step::delete("thing", "t1").perform(&provider).await.unwrap().object.unwrap();
    assert_eq!(drained.attributes["size"], engine::value::Value::Integer(0));
    let ended = Step::delete("thing", "t1").phase(1, "t1").perform(&provider).await.unwrap();
    assert_eq!(ended.object, None);
    assert_eq!(server.lines(), ["POST /things/t1/stop", "GET /things/t1", "DELETE /things/t1"]);
}

#[tokio::test]
async fn an_answer_about_another_object_is_a_doubt() {
    let server = Server::start(|_, _| Answer::json(200, json!({"id": "t2", "name": "new"}))).await;
    let provider = provider(REST, &server.address);
    let step = Step::update("thing", "t1", json!({"name": "new"}));
    assert_eq!(step.perform(&provider).await.unwrap_err().kind, Kind::InDoubt);
}

#[tokio::test]
async fn a_delete_of_what_is_gone_says_so() {
    for answer in [Answer::empty(204), Answer::json(200, json!({}))] {
        let server = Server::start(move |_, _| answer.clone()).await;
        let reply = Step::delete("thing", "t1").perform(&provider(REST, &server.address)).await;
        assert!(reply.unwrap().object.is_none());
    }
    let server = Server::start(|_, _| Answer::json(404, json!({}))).await;
    let reply = Step::delete("thing", "t1").perform(&provider(REST, &server.address)).await;
    assert_eq!(reply.unwrap_err().kind, Kind::NotFound);
}

/// An object of others that does not fit the descriptor does not hide the other objects; an object of the
/// state that does not fit is an error.
#[tokio::test]
async fn an_object_that_does_not_fit_is_an_error_of_its_own() {
    let server = Server::start(|_, request| {
        let fits = json!({"id": "t1", "name": "n", "size": 5});
        match &*request.path {
            "/things" => Answer::json(
                200,
                json!({"data": [
                    fits,
                    {"id": "t2", "name": "plumb-abc", "size": "10GB"},
                    {"id": null, "name": 5, "size": 1},
                ]}),
            ),
            _ => Answer::json(200, json!({"id": "t2", "name": "n", "size": "10GB"})),
        }
    })
    .await;
    let provider = provider(REST, &server.address);
    let listed = provider.list("thing").await.unwrap();
    assert_eq!(listed.iter().map(|object| &*object.id.0).collect::<Vec<_>>(), ["t1"]);
    let own = engine::state::ObjectId("t2".into());
    let error = provider.read("thing", &own).await.unwrap_err();
    assert!(texts(&error).contains("`size`"), "{error:?}");
}

/// An answer 202 promises a delete, which is done when the object is gone.
#[tokio::test]
async fn a_promise_to_delete_is_looked_after() {
    for reads_before in [0, 2] {
        let server = Server::start(move |number, request| match &*request.method {
            "DELETE" => Answer::empty(202),
            _ if number <= reads_before => Answer::json(200, json!({"id": "t1", "name": "n"})),
            _ => Answer::json(404, json!({})),
        })
        .await;
        Step::delete("thing", "t1").perform(&provider(REST, &server.address)).await.unwrap();
        assert_eq!(server.requests().len(), 2 + reads_before);
    }
}

/// A 404 with a web page says nothing about the object: a proxy before an API sends it for an unknown path.
#[tokio::test]
async fn a_page_that_finds_nothing_is_not_the_apis_word() {
    let page = Answer::text(404, "text/html", "<html>no such route</html>");
    let server = Server::start(move |_, _| page.clone()).await;
    let provider = provider(REST, &server.address);
    let read = provider.read("thing", &engine::state::ObjectId("t1".into())).await.unwrap_err();
    let delete = Step::delete("thing", "t1").perform(&provider).await.unwrap_err();
    let update = Step::update("thing", "t1", json!({"name": "new"}));
    let update = update.perform(&provider).await.unwrap_err();
    for error in [read, delete, update] {
        assert_eq!(error.kind, Kind::Rejected, "{error}");
        assert!(texts(&error).contains("an address that leads to the API"), "{error:?}");
    }
}

#[tokio::test]
async fn an_update_of_what_is_gone_is_not_found() {
    let server = Server::start(|_, _| Answer::json(404, json!({"error": "thing not found"}))).await;
    let step = Step::update("thing", "t1", json!({"name": "new"}));
    let error = step.perform(&provider(REST, &server.address)).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
}

#[tokio::test]
async fn known_refusals_are_tried_again_for_a_while() {
    let row = "{ name = \"in_use\", match = \"in use\" }";
    let locked = REST.replace(row, "{ name = \"in_use\", status = 423 }");
    for (text, status) in [(REST, 400), (&locked, 423)] {
        let in_use = move || Answer::json(status, json!({"error": "the thing is in use"}));
        let server = Server::start(move |number, _| match number {
            0..3 => in_use(),
            _ => Answer::empty(204),
        })
        .await;
        let patient = text.replace("retry_within = \"100ms\"", "retry_within = \"1m\"");
        Step::delete("thing", "t1").perform(&provider(&patient, &server.address)).await.unwrap();
        assert_eq!(server.requests().len(), 4);

        let server = Server::start(move |_, _| in_use()).await;
        let error = Step::delete("thing", "t1").perform(&provider(text, &server.address)).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, Kind::Rejected);
        assert!(texts(&error).contains("the thing is in use"), "{error}");
    }
}

#[tokio::test]
async fn ids_never_change_the_path() {
    let server = Server::start(|_, _| Answer::empty(204)).await;
    let provider = provider(REST, &server.address);
    Step::delete("thing", "../../admin?x=1#y").perform(&provider).await.unwrap();
    assert_eq!(server.lines(), ["DELETE /things/..%2F..%2Fadmin%3Fx%3D1%23y"]);
    let error = Step::delete("thing", "..").perform(&provider).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert_eq!(server.requests().len(), 1);
}

const KEYED: &str = r#"
[provider]
name = "acme"
[api.rest]
address = { env = "ACME_URL" }
[type.thing]
list = "rest: GET /things"
identity = { idempotency_key = "Idempotency-Key" }
create = [ { call = "rest: POST /things", sends = "all" } ]
update = [ { call = "rest: PUT /things/${id}", sends = "all" } ]
delete = [ { call = "rest: DELETE /things/${id}" } ]
[type.thing.attribute]
id = { type = "integer", computed = true }
name = { type = "string", required = true }
"#;

#[tokio::test]
async fn creates_with_an_idempotency_key_may_be_repeated() {
    let server = Server::start(|number, _| match number {
        0 => Answer::Cut,
        1 => Answer::empty(503),
        _ => Answer::json(201, json!({"id": 42, "name": "n"})),
    })
    .await;
    let provider = provider(KEYED, &server.address);
    let reply = Step::create("thing", json!({"name": "n"})).perform(&provider).await.unwrap();
    assert_eq!(&*reply.object.unwrap().id.0, "42");
    let keys: Vec<_> =
        server.requests().iter().map(|r| r.headers["idempotency-key"].clone()).collect();
    assert_eq!(keys, vec![nonce().to_string(); 3]);
    let nonce = nonce();
    let lookup = provider_port::Lookup { nonce: &nonce, desired: None };
    assert_eq!(provider.find("thing", &lookup).await.unwrap_err().kind, Kind::InDoubt);
}

/// A create whose answer was lost may have been executed, whatever the result of the next attempt.
#[tokio::test]
async fn a_repeated_create_that_gets_no_leave_any_more_is_in_doubt() {
    let server = Server::start(|_, _| Answer::Cut).await;
    let permit = PermitFor(AtomicUsize::new(1));
    let step = Step::create("thing", json!({"name": "n"}));
    let done = step.perform_with(&provider(KEYED, &server.address), &permit, &|_| {}).await;
    let error = done.unwrap_err();
    assert_eq!(error.kind, Kind::InDoubt);
    assert!(error.message.ends_with("; then: no leave"), "{}", error.message);
    assert!(!error.message.starts_with("no leave"), "{}", error.message);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn ids_that_the_client_chooses() {
    let text = KEYED
        .replace("{ idempotency_key = \"Idempotency-Key\" }", "\"client_id\"")
        .replace("POST /things", "PUT /things/${one_time}")
        .replace("type = \"integer\"", "type = \"string\"");
    let server = Server::start(|_, request| match request.method.as_str() {
        "PUT" => Answer::empty(204),
        _ => Answer::json(200, json!([{"id": nonce().to_string(), "name": "n"}])),
    })
    .await;
    let provider = provider(&text, &server.address);
    let reply = Step::create("thing", json!({"name": "n"})).perform(&provider).await.unwrap();
    assert_eq!(*reply.object.unwrap().id.0, *nonce().0);
    let nonce = nonce();
    let lookup = provider_port::Lookup { nonce: &nonce, desired: None };
    assert_eq!(provider.find("thing", &lookup).await.unwrap().len(), 1);
}

/// If the spec chose the id, no object has the one-time name, so its absence proves nothing.
#[tokio::test]
async fn an_id_of_the_specs_is_not_looked_for_by_a_one_time_name() {
    let text = KEYED
        .replace("{ idempotency_key = \"Idempotency-Key\" }", "\"client_id\"")
        .replace("POST /things", "PUT /things/${id}")
        .replace(
            "type = \"integer\", computed = true",
            "type = \"string\", required = true, on_change = \"replace\"",
        );
    let server =
        Server::start(|_, _| Answer::json(200, json!([{"id": "mine", "name": "n"}]))).await;
    let provider = provider(&text, &server.address);
    let nonce = nonce();
    let find = async |desired| {
        let lookup = provider_port::Lookup { nonce: &nonce, desired };
        provider.find("thing", &lookup).await
    };
    assert_eq!(find(None).await.unwrap_err().kind, Kind::InDoubt);
    let chosen =
        engine::value::Attributes::from([("id".into(), engine::value::Value::string("mine"))]);
    assert_eq!(find(Some(&chosen)).await.unwrap().len(), 1);
}

/// A filter that cannot be filled in is an error, and the result of a server that does not filter is not
/// used.
#[tokio::test]
async fn what_is_looked_for_shows_what_it_was_to_be() {
    let text = KEYED
        .replace("list = ", "find = \"rest: GET /things?name=${name}&region=${region}\"\nlist = ")
        + "region = { type = \"string\" }\n";
    let server = Server::start(|_, _| {
        Answer::json(200, json!([{"id": 1, "name": "n", "region": "us"}, {"id": 2, "name": "n"}]))
    })
    .await;
    let provider = provider(&text, &server.address);
    let nonce = nonce();
    let find = async |pairs: &[(&str, &str)]| {
        let desired = pairs.iter().map(|(name, text)| {
            (engine::address::Name::from(*name), engine::value::Value::string(*text))
        });
        let desired = desired.collect();
        let lookup = provider_port::Lookup { nonce: &nonce, desired: Some(&desired) };
        provider.find("thing", &lookup).await
    };
    assert_eq!(find(&[("name", "n")]).await.unwrap_err().kind, Kind::InDoubt);
    assert!(server.requests().is_empty(), "a part of the question is another question");
    let found = find(&[("name", "n"), ("region", "eu")]).await.unwrap();
    let ids: Vec<&str> = found.iter().map(|object| &*object.id.0).collect();
    assert_eq!(ids, ["2"], "what shows another region is another's");
}

/// An object of others with the same name, and with other values than the sent ones, is not taken for that of
/// a lost create.
#[tokio::test]
async fn what_is_found_by_a_part_of_what_was_sent_may_be_anybodys() {
    let text = KEYED.replace("list = ", "find = \"rest: GET /things?name=${name}\"\nlist = ")
        + "region = { type = \"string\" }\nnote = { type = \"string\", seen_in = \"read\" }\n";
    for (theirs, is_ours) in [("us", false), ("eu", true)] {
        let answer = json!([{"id": 1, "name": "n", "region": theirs, "note": "other"}]);
        let server = Server::start(move |_, _| Answer::json(200, answer.clone())).await;
        let provider = provider(&text, &server.address);
        let nonce = nonce();
        let desired = attributes(&json!({"name": "n", "region": "eu", "note": "own"}));
        let lookup = provider_port::Lookup { nonce: &nonce, desired: Some(&desired) };
        let found = provider.find("thing", &lookup).await;
        match found {
            Ok(found) => assert!(is_ours && found.len() == 1, "{theirs}"),
            Err(error) => assert!(!is_ours && error.kind == Kind::InDoubt, "{error}"),
        }
    }
}

/// A server that does not know a filter by the key shows its one object for any key, which proves nothing.
#[tokio::test]
async fn a_filter_by_the_key_that_a_server_does_not_know_finds_nothing() {
    let text = KEYED.replace("list = ", "find = \"rest: GET /things?key=${one_time}\"\nlist = ");
    for knows_it in [false, true] {
        let own = nonce().to_string();
        let server = Server::start(move |_, request| {
            let shows = !knows_it || request.path.contains(&own);
            let all = if shows { json!([{"id": 1, "name": "n"}]) } else { json!([]) };
            Answer::json(200, all)
        })
        .await;
        let provider = provider(&text, &server.address);
        let nonce = nonce();
        let lookup = provider_port::Lookup { nonce: &nonce, desired: None };
        match provider.find("thing", &lookup).await {
            Ok(found) => assert!(knows_it && found.len() == 1),
            Err(error) => assert!(!knows_it && error.kind == Kind::InDoubt, "{error}"),
        }
    }
}
