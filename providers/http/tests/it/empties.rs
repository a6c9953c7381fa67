//! APIs that leave empty attributes out of their answers.

use engine::state::ObjectId;
use provider_http::HttpProvider;
use provider_port::{Object, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Server, Step, attributes, provider};

const ATTRIBUTES: &str = r#"
on = { type = "boolean" }
note = { type = "string", codec = "empty_is_null" }
words = { type = "list(string)", codec = "comma" }
more = { type = "set(string)", seen_in = "read" }
depth = { type = "integer", wire = "spec.depth" }
shape = { type = "object{a = string}" }
token = { type = "string", computed = true, sensitive = true }
hint = { type = "string", wire = { rest = { read = false } } }
"#;

/// Returns a descriptor with attributes of all types.
fn silent() -> String {
    format!("{REST}{ATTRIBUTES}")
}

/// Returns the same descriptor, for an API that leaves out empty attributes.
fn terse() -> String {
    silent().replace("names = \"camel\"", "names = \"camel\"\nomits_empty = true")
}

fn shown(object: &Object) -> String {
    format!("{:?}", object.attributes)
}

async fn read(provider: &HttpProvider) -> Object {
    provider.read("thing", &ObjectId("t1".into())).await.unwrap()
}

async fn bare() -> Server {
    Server::start(|_, request| match request.path.as_str() {
        "/things" => Answer::json(200, json!({"data": [{"id": "t1", "name": "n"}]})),
        _ => Answer::json(200, json!({"id": "t1", "name": "n"})),
    })
    .await
}

#[tokio::test]
async fn what_is_left_out_is_empty_where_the_descriptor_says_so() {
    let server = bare().await;
    let provider_of = |text: &str| provider(text, &server.address);
    assert_eq!(shown(&read(&provider_of(&silent())).await), r#"{"id": "t1", "name": "n"}"#);
    let terse = provider_of(&terse());
    let listed = terse.list("thing").await.unwrap();
    insta::assert_snapshot!(shown(&listed[0]), @r#"{"big_size": 0, "depth": 0, "id": "t1", "name": "n", "note": null, "on": false, "shape": null, "size": 0, "words": []}"#);
    insta::assert_snapshot!(shown(&read(&terse).await), @r#"{"big_size": 0, "depth": 0, "id": "t1", "more": {}, "name": "n", "note": null, "on": false, "shape": null, "size": 0, "words": []}"#);
}

/// If a reference is null, its object does not exist, whatever the state knows.
#[tokio::test]
async fn null_in_the_place_of_a_parent_is_no_part_that_is_left_out() {
    for (spec, depth) in
        [(json!({"depth": 3}), "3"), (json!({"depth": null}), "null"), (json!(null), "null")]
    {
        let server =
            Server::start(move |_, _| Answer::json(200, json!({"id": "t1", "spec": spec}))).await;
        let object = read(&provider(&silent(), &server.address)).await;
        assert_eq!(shown(&object), format!(r#"{{"depth": {depth}, "id": "t1"}}"#));
    }
    let server = Server::start(|_, _| Answer::json(200, json!({"id": "t1", "spec": {}}))).await;
    assert_eq!(shown(&read(&provider(&silent(), &server.address)).await), r#"{"id": "t1"}"#);
}

/// If one call shows a reference as null because it does not expand it, and another call shows the reference,
/// the other call counts.
#[tokio::test]
async fn null_in_the_place_of_a_parent_gives_way_to_what_another_read_shows() {
    let text = silent().replace(
        "read = \"rest: GET /things/${id}\"",
        "read = [\"rest: GET /things/${id}\", \"rest: GET /things/${id}/spec\"]",
    );
    let server = Server::start(|_, request| match request.path.as_str() {
        "/things/t1" => Answer::json(200, json!({"id": "t1", "spec": null})),
        _ => Answer::json(200, json!({"spec": {"depth": 3}})),
    })
    .await;
    let object = read(&provider(&text, &server.address)).await;
    assert_eq!(shown(&object), r#"{"depth": 3, "id": "t1"}"#);
}

#[tokio::test]
async fn what_is_shown_stands() {
    let server = Server::start(|_, _| {
        Answer::json(200, json!({"id": "t1", "size": 3, "bigSize": null, "spec": {"depth": 4}}))
    })
    .await;
    let object = read(&provider(&terse(), &server.address)).await;
    insta::assert_snapshot!(shown(&object), @r#"{"big_size": null, "depth": 4, "id": "t1", "more": {}, "name": "", "note": null, "on": false, "shape": null, "size": 3, "words": []}"#);
}

/// If one of two joined lists does not show an object yet, an attribute that the other one leaves out is not
/// empty.
#[tokio::test]
async fn of_joined_lists_each_one_must_show_the_object() {
    let text = terse().replace(
        "list = { call = \"rest: GET /things\", items = \"data\" }",
        "list = [\"rest: GET /a\", \"rest: GET /b\"]",
    );
    let server = Server::start(|_, request| match request.path.as_str() {
        "/a" => Answer::json(200, json!([{"id": "t1"}, {"id": "t2"}, {"id": "t1"}])),
        _ => Answer::json(200, json!([{"id": "t3"}, {"id": "t1", "size": 4}])),
    })
    .await;
    let objects = provider(&text, &server.address).list("thing").await.unwrap();
    let sizes = objects.iter().map(|object| object.attributes.get("size"));
    assert_eq!(sizes.collect::<Vec<_>>(), [Some(&engine::value::Value::Integer(4)), None, None]);
    let on = |index: usize| objects[index].attributes.contains_key("on");
    assert!(on(0) && !on(1) && !on(2), "{objects:?}");
}

/// If only one of two APIs leaves out empty attributes, nothing follows for attributes that only the other
/// one has.
#[tokio::test]
async fn of_joined_reads_each_api_tells_of_its_own_attributes() {
    let text = terse()
        .replace(
            "read = \"rest: GET /things/${id}\"",
            "read = [\"rest: GET /things/${id}\", \"old: GET /old/${id}\"]",
        )
        .replace("[type.thing]", "[api.old]\naddress = { env = \"ACME_URL\" }\n[type.thing]")
        .replace(
            "size = { type = \"integer\", min = 0 }",
            "size = { type = \"integer\", wire = { rest = false } }",
        );
    let server = bare().await;
    let object = read(&provider(&text, &server.address)).await;
    assert!(!object.attributes.contains_key("size"), "{object:?}");
    assert_eq!(object.attributes["big_size"], engine::value::Value::Integer(0));
    let server = Server::start(|_, request| match request.path.as_str() {
        "/old/t1" => Answer::empty(404),
        _ => Answer::json(200, json!({"id": "t1", "name": "n"})),
    })
    .await;
    let object = read(&provider(&text, &server.address)).await;
    assert_eq!(object.attributes, attributes(&json!({"id": "t1", "name": "n"})));
}

#[tokio::test]
async fn a_wait_sees_it() {
    let text = terse().replace(
        "sends = \"changed\" } ]",
        "sends = \"changed\", until = \"self.big_size < 1\", within = \"10s\" } ]",
    );
    let server = bare().await;
    let step = Step::update("thing", "t1", json!({"name": "n", "size": 1}));
    let object = step.perform(&provider(&text, &server.address)).await.unwrap().object.unwrap();
    assert_eq!(object.attributes["big_size"], engine::value::Value::Integer(0));
}

/// The answer to a change may show a part of the object: of the attributes that it lacks, only those that
/// were sent empty are known.
#[tokio::test]
async fn after_a_change_what_was_sent_empty_is() {
    let server = bare().await;
    for (text, shows) in [
        (terse(), json!({"id": "t1", "name": "n", "size": 0})),
        (silent(), json!({"id": "t1", "name": "n"})),
    ] {
        let step = Step::update("thing", "t1", json!({"name": "n", "size": 0, "big_size": 7}));
        let reply = step.perform(&provider(&text, &server.address)).await.unwrap();
        assert_eq!(reply.object.unwrap().attributes, attributes(&shows));
    }
}
