//! Ids that the client chooses: where the spec gives none, it is the one-time name.

use provider_port::Provider as _;
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Server, Step, nonce, provider};

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
        // Who refers to it waits for it.
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
