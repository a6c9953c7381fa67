//! The attributes that a phase of a change sends. A phase with nothing to send is skipped.

use provider_port::Provider as _;
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Request, Server, Step, provider};

/// Returns an API that refuses an empty change, as many APIs do.
async fn strict() -> Server {
    Server::start(|_, request| match (&*request.method, request.json().as_object()) {
        ("PATCH", None) => Answer::json(400, json!({"message": "nothing to update"})),
        ("PATCH", Some(body)) if body.is_empty() => {
            Answer::json(400, json!({"message": "nothing to update"}))
        }
        _ => Answer::json(200, json!({"id": "t1", "name": "n", "size": 3})),
    })
    .await
}

fn unchanged() -> Step {
    Step { changed: Vec::new(), ..Step::update("thing", "t1", json!({"name": "n", "size": 3})) }
}

/// A create that an earlier run began, with values that are no longer wanted, goes through its phases: the
/// object is started, and none of its attributes is changed.
#[tokio::test]
async fn a_change_of_nothing_is_not_sent() {
    let server = strict().await;
    let object = unchanged().perform(&provider(REST, &server.address)).await.unwrap().object;
    assert_eq!(object.unwrap().attributes["size"], engine::value::Value::Integer(3));
    assert_eq!(server.lines(), ["GET /things/t1"]);
}

/// An id in a body only identifies the object; another attribute beside it is a change.
#[tokio::test]
async fn what_stands_beside_a_change_counts_where_it_is_one() {
    for (with, sent) in [("id", 0), ("size", 1)] {
        let changed = "sends = \"changed\" }";
        let text = REST.replace(
            changed,
            &format!("sends = \"changed\", with = {{ {with} = \"${{{with}}}\" }} }}"),
        );
        assert_ne!(text, REST);
        let server = strict().await;
        unchanged().perform(&provider(&text, &server.address)).await.unwrap();
        let sends = server.requests().iter().filter(|it| it.method == "PATCH").count();
        assert_eq!(sends, sent, "{with}");
    }
}

/// A change of an attribute in a path is sent by the path.
#[tokio::test]
async fn a_change_in_an_address_is_one() {
    let text = REST.replace(
        "PATCH /things/${id}\", sends = \"changed\"",
        "PATCH /things/${id}/${secret}\", sends = \"changed\"",
    );
    assert_ne!(text, REST);
    let server =
        Server::start(|_, _| Answer::json(200, json!({"id": "t1", "name": "n", "size": 3}))).await;
    let step = Step::update("thing", "t1", json!({"name": "n", "secret": "s"}));
    let step = Step { changed: vec!["secret"], ..step };
    step.perform(&provider(&text, &server.address)).await.unwrap();
    assert_eq!(server.lines(), ["PATCH /things/t1/s"]);
}

/// The API derives an attribute that follows another one, unless it is sent. So an attribute that the spec
/// gives is sent even if it is live already.
#[tokio::test]
async fn what_follows_a_change_and_is_given_is_sent() {
    let text = REST.replace(
        "big_size = { type = \"integer\"",
        "big_size = { type = \"integer\", server_default = true, follows = \"size\"",
    );
    assert_ne!(text, REST);
    let server =
        Server::start(|_, _| Answer::json(200, json!({"id": "t1", "name": "n", "size": 4}))).await;
    let provider = provider(&text, &server.address);
    let live = json!({"name": "n", "size": 3, "bigSize": 9});
    for (desired, changed) in [
        (json!({"name": "n", "size": 4, "big_size": 9}), "size"),
        (json!({"name": "n", "size": 4, "big_size": null}), "size"),
        (json!({"name": "n", "size": 4}), "size"),
        (json!({"name": "new", "size": 3, "big_size": 9}), "name"),
    ] {
        let step = Step::update("thing", "t1", desired).live(live.clone());
        Step { changed: vec![changed], ..step }.perform(&provider).await.unwrap();
    }
    let sent: Vec<_> = server.requests().iter().map(Request::json).collect();
    let (given, none) = (json!({"size": 4, "bigSize": 9}), json!({"size": 4, "bigSize": null}));
    assert_eq!(sent, [given, none, json!({"size": 4}), json!({"name": "new"})]);
}

/// An attribute that the spec wants only since the create began, and that no call of the create can send, is
/// left to the update after it.
#[tokio::test]
async fn a_begun_create_is_finished_without_what_its_calls_do_not_take() {
    let text = REST.replace(
        "big_size = { type = \"integer\"",
        "big_size = { type = \"integer\", wire = { rest = { write = false } }",
    );
    let text = text.replace(", big_size = \"${big_size}\"", "");
    let server =
        Server::start(|_, _| Answer::json(200, json!({"id": "t1", "name": "n", "size": 3}))).await;
    let provider = provider(&text, &server.address);
    let wanted = json!({"name": "n", "size": 3, "big_size": 9});
    let step = || Step { changed: vec!["big_size"], ..Step::create("thing", wanted.clone()) };
    assert!(step().perform(&provider).await.unwrap_err().to_string().contains("big_size"));
    step().phase(1, "t1").perform(&provider).await.unwrap();
    let update = Step { changed: vec!["big_size"], ..Step::update("thing", "t1", wanted.clone()) };
    assert!(update.perform(&provider).await.unwrap_err().to_string().contains("big_size"));
    assert_eq!(server.lines(), ["PATCH /things/t1"]);
}

/// A state that answers show and that separate calls change has no place in any body.
#[tokio::test]
async fn what_no_call_has_a_place_for_is_told_by_its_phase() {
    let state = "running = { type = \"boolean\", default = true, wire = { rest = { name = \"state\", \
                 write = false, codec = { values = [[\"UP\", true], [\"DOWN\", false]] } } } }";
    let update = "update = [ { call = \"rest: PATCH /things/${id}\", sends = \"changed\" }";
    let stop = "{ call = \"rest: POST /things/${id}/stop\", sends = { running = \"${running}\" } }";
    let text = REST.replace("\nid = {", &format!("\n{state}\nid = {{"));
    let stopping = text.replace(update, &format!("{update}, {stop}"));
    assert!(text != REST && stopping != text);
    let server = Server::start(|_, _| {
        Answer::json(200, json!({"id": "t1", "name": "n", "size": 3, "state": "DOWN"}))
    })
    .await;
    let wanted = json!({"name": "n", "size": 3, "running": false});
    let step = || Step { changed: vec!["running"], ..Step::update("thing", "t1", wanted.clone()) };
    // No attribute of the body changes, so it is not sent.
    step().perform(&provider(&stopping, &server.address)).await.unwrap();
    let stopped = Step { phase: 1, ..step() };
    let stopped = stopped.perform(&provider(&stopping, &server.address)).await.unwrap();
    let running = &stopped.object.unwrap().attributes["running"];
    assert_eq!(running, &engine::value::Value::Bool(false));
    assert_eq!(server.lines(), ["GET /things/t1", "POST /things/t1/stop"]);
    assert_eq!(server.requests()[1].json(), json!({}));
    // Without such a phase the attribute would silently stay as it is.
    let refused = step().perform(&provider(&text, &server.address)).await.unwrap_err();
    assert!(refused.to_string().contains("takes no `running`"), "{refused}");
    let schema = |text: &str| provider(text, &server.address).schema().types["thing"].clone();
    let carries = |text: &str| -> Vec<bool> {
        schema(text).update[0].phases.iter().map(|phase| phase.carries(&"running".into())).collect()
    };
    assert_eq!(carries(&stopping), [false, true]);
}

/// A change of an attribute whose value on the wire is made of several is one of the composed value.
#[tokio::test]
async fn a_list_of_changes_has_composed_values() {
    let size = "size = { type = \"integer\", min = 0 }";
    let value = "\"${{ least = size, most = big_size }}\"";
    let composed = |name: &str| {
        format!(
            "{name} = {{ type = \"integer\", wire = {{ rest = {{ write = \"bounds\", value = {value} }} }} }}"
        )
    };
    let text = REST.replace(size, &composed("size"));
    let text = text.replace("big_size = { type = \"integer\" }", &composed("big_size"));
    let text =
        text.replace("sends = \"changed\" }", "sends = \"changed\", body = \"json_patch\" }");
    let server = Server::start(|_, _| Answer::json(200, json!({"id": "t1", "name": "n"}))).await;
    let step = Step::update("thing", "t1", json!({"name": "n", "size": 1, "big_size": 2}));
    let step = Step { changed: vec!["size", "big_size"], ..step };
    step.perform(&provider(&text, &server.address)).await.unwrap();
    let sent = server.requests().remove(0).json();
    let bounds = json!({"least": 1, "most": 2});
    assert_eq!(sent, json!([{"op": "add", "path": "/bounds", "value": bounds}]));
}

/// An API of each form can read the body in that form, and an attribute that is cleared goes.
#[tokio::test]
async fn bodies_have_the_form_that_the_descriptor_says() {
    let patch = "sends = \"changed\" }";
    let wanted = || json!({"name": "a b", "size": 3, "big_size": null});
    for (phase, content_type, body) in [
        ("sends = \"changed\" }", "application/json", r#"{"bigSize":null,"name":"a b","size":3}"#),
        (
            "sends = \"changed\", body = \"merge_patch\" }",
            "application/merge-patch+json",
            r#"{"bigSize":null,"name":"a b","size":3}"#,
        ),
        (
            "sends = \"changed\", body = \"json_patch\" }",
            "application/json-patch+json",
            r#"[{"op":"remove","path":"/bigSize"},{"op":"add","path":"/name","value":"a b"},{"op":"add","path":"/size","value":3}]"#,
        ),
        (
            "sends = \"changed\", body = \"form\", inside = \"thing\" }",
            "application/x-www-form-urlencoded",
            "thing%5BbigSize%5D=&thing%5Bname%5D=a%20b&thing%5Bsize%5D=3",
        ),
        (
            "sends = \"changed\", body = \"yaml\" }",
            "application/yaml",
            r#"{"bigSize":null,"name":"a b","size":3}"#,
        ),
        (
            "sends = { name = \"${[name, size]}\" }, body = \"ndjson\" }",
            "application/x-ndjson",
            "\"a b\"\n3\n",
        ),
        ("sends = { name = \"YSBi\" }, body = \"bytes\" }", "application/octet-stream", "a b"),
        (
            "sends = { name = \"${name}\" }, body = \"multipart\" }",
            "multipart/form-data; boundary=plumb-part-0",
            "--plumb-part-0\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\na b\r\n--plumb-part-0--\r\n",
        ),
        (
            "sends = { name = \"${name}\" }, body = \"text\", headers = { Content-Type = \"text/x-name\" } }",
            "text/x-name",
            "a b",
        ),
    ] {
        let text = REST.replace(patch, phase);
        let shown = json!({"id": "t1", "name": "a b", "size": 3, "bigSize": null});
        let server = Server::start(move |_, _| Answer::json(200, shown.clone())).await;
        let changed = vec!["name", "size", "big_size"];
        let step = Step { changed, ..Step::update("thing", "t1", wanted()) };
        step.perform(&provider(&text, &server.address)).await.unwrap();
        let request = server.requests().remove(0);
        assert_eq!(request.body, body, "{phase}");
        assert_eq!(request.headers["content-type"], content_type, "{phase}");
    }
}
