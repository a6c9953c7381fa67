//! The conformance suite, against a small API that stores the values that it gets.

use std::collections::BTreeMap;
use std::sync::Mutex;

use provider_port::conformance::{self, Fixture, Suite};
use serde_json::{Value as Json, json};

use crate::REST;
use crate::support::{Answer, KEY, Request, Server, attributes, provider, provider_with_key};

fn api(things: &Mutex<BTreeMap<String, Json>>, request: &Request) -> Answer {
    if request.headers.get("authorization") != Some(&format!("Bearer {KEY}")) {
        return Answer::json(401, json!({"message": "wrong key"}));
    }
    let mut things = things.lock().unwrap();
    let id = request.path.strip_prefix("/things/").unwrap_or_default().to_owned();
    match (request.method.as_str(), id.as_str()) {
        ("GET", "") => Answer::json(200, json!({"data": things.values().collect::<Vec<_>>()})),
        ("POST", "") => {
            let id = format!("t{}", things.len() + 1);
            let mut thing = request.json();
            thing["id"] = id.clone().into();
            things.insert(id, thing.clone());
            Answer::json(201, thing)
        }
        (method, _) => {
            let Some(thing) = things.get_mut(&id) else {
                return Answer::json(404, json!({"message": "no such thing"}));
            };
            match method {
                "PATCH" => {
                    for (key, value) in request.json().as_object().unwrap() {
                        thing[key] = value.clone();
                    }
                    Answer::json(200, thing.clone())
                }
                "DELETE" => {
                    things.remove(&id);
                    Answer::empty(204)
                }
                _ => Answer::json(200, thing.clone()),
            }
        }
    }
}

#[tokio::test]
async fn conforms() {
    let things = Mutex::new(BTreeMap::new());
    let server = Server::start(move |_, request| api(&things, request)).await;
    let (ours, stranger) =
        (provider(REST, &server.address), provider_with_key(REST, &server.address, "wrong"));
    let suite = Suite::new(&ours).wrong_key(&stranger).secret(KEY).with(Fixture::new(
        "thing",
        attributes(&json!({"name": "first", "size": 1})),
        attributes(&json!({"name": "second", "size": 2})),
    ));
    conformance::run(&suite).await.unwrap();
}
