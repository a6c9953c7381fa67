//! Ids that the client chooses: if the spec gives none, the id is the one-time name.

use engine::state::ObjectId;
use provider_port::{Lookup, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Server, Step, attributes, nonce, provider, texts};

fn text(create: &str, id: &str) -> String {
    let (before, rest) = REST.split_once("identity = ").unwrap();
    let (_, after) = rest.split_once("update = ").unwrap();
    let text = format!("{before}identity = \"client_id\"\ncreate = [ {create} ]\nupdate = {after}");
    text.replace("id = { type = \"string\", computed = true }", &format!("id = {{ {id} }}"))
}

#[tokio::test]
async fn an_id_that_nobody_gives_is_drawn() {
    let (optional, computed) =
        ("type = \"string\", on_change = \"replace\"", "type = \"string\", computed = true");
    let put = r#"{ call = "rest: PUT /things/${id}", sends = "all" }"#;
    let post = r#"{ call = "rest: POST /things", sends = "all" }"#;
    let with = r#"{ call = "rest: POST /things", sends = "all", with = { id = "${id}" } }"#;
    let drawn = nonce().to_string();
    for (create, id, given) in [
        (put, optional, json!({"name": "n", "id": null})),
        (put, computed, json!({"name": "n"})),
        (post, optional, json!({"name": "n", "id": null})),
        (with, computed, json!({"name": "n"})),
        (put, optional, json!({"name": "n", "id": "mine"})),
    ] {
        let expected = given["id"].as_str().unwrap_or(&drawn).to_owned();
        let shown = json!({"id": expected, "name": "n"});
        let server = Server::start(move |_, _| Answer::json(200, shown.clone())).await;
        let step = Step::create("thing", given);
        let provider = provider(&text(create, id), &server.address);
        // The id is unknown before the create, so resources that refer to it wait for it.
        let schema = &provider.schema().types["thing"].attributes["id"];
        assert_eq!(schema.server_default, id == optional);
        let object = step.perform(&provider).await.unwrap();
        assert_eq!(&*object.object.unwrap().id.0, expected);
        let request = &server.requests()[0];
        match &*request.method {
            "PUT" => assert_eq!(request.path, format!("/things/{expected}")),
            _ => assert_eq!(request.json()["id"], json!(expected), "{create}"),
        }
    }
}

/// Returns an API that shows ids in upper case, whatever the client sent.
async fn shouting() -> Server {
    Server::start(|_, request| match &*request.method {
        "POST" | "PATCH" => Answer::json(200, json!({})),
        "GET" if request.path == "/things" => {
            Answer::json(200, json!({"data": [{"id": "MINE", "name": "n"}]}))
        }
        "GET" if request.path == "/things/other" => Answer::json(200, json!({"id": "ELSE"})),
        _ => Answer::json(200, json!({"id": "MINE", "name": "n"})),
    })
    .await
}

const CHOSEN: (&str, &str) = (
    r#"{ call = "rest: POST /things", sends = "all", item = false }"#,
    "type = \"string\", required = true, on_change = \"replace\"",
);

/// The state gets the id as the API shows it, and the plan shows the difference.
#[tokio::test]
async fn what_is_made_has_the_id_that_the_api_shows() {
    let server = shouting().await;
    let provider = provider(&text(CHOSEN.0, CHOSEN.1), &server.address);
    let wanted = json!({"id": "mine", "name": "n"});
    let made = Step::create("thing", wanted.clone()).perform(&provider).await.unwrap();
    assert_eq!(&*made.object.unwrap().id.0, "MINE");
    assert_eq!(server.lines()[1..], ["GET /things/mine"]);
}

/// After a lost answer, an object with another spelling of the id may belong to another owner: the plan only
/// made sure that no object has the id as the spec spells it.
#[tokio::test]
async fn a_lost_create_takes_nothing_that_is_spelled_otherwise() {
    let server = shouting().await;
    let provider = provider(&text(CHOSEN.0, CHOSEN.1), &server.address);
    let find = async |id: &str| {
        let wanted = attributes(&json!({"id": id, "name": "n"}));
        provider.find("thing", &Lookup { nonce: &nonce(), desired: Some(&wanted) }).await
    };
    assert_eq!(find("MINE").await.unwrap().len(), 1);
    let error = find("mine").await.unwrap_err();
    insta::assert_snapshot!(texts(&error), @"InDoubt: mine is shown as MINE: it may be of this create, or of another client -> None");
}

/// An object that is known under another spelling of an id is not silently taken for another object.
#[tokio::test]
async fn an_id_that_is_spelled_otherwise_is_named() {
    let server = shouting().await;
    let provider = provider(&text(CHOSEN.0, CHOSEN.1), &server.address);
    let error = provider.read("thing", &ObjectId("mine".into())).await.unwrap_err();
    insta::assert_snapshot!(texts(&error), @r#"InDoubt: the thing mine is shown as MINE: the API spells its id otherwise -> Some("forget it with `plumb state rm ADDRESS`, write its id in the spec as the API does, and take it over with `plumb import ADDRESS MINE`")"#);
    let error = provider.read("thing", &ObjectId("other".into())).await.unwrap_err();
    assert!(error.message.ends_with("it shows another object"), "{error}");
    let update = Step::update("thing", "mine", json!({"id": "mine", "name": "m"}));
    let object = update.perform(&provider).await.unwrap().object.unwrap();
    assert_eq!(&*object.id.0, "mine", "a call is about the object that it names");
}
