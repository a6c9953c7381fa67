//! APIs that merge the sent values into the existing ones (RFC 7396).

use serde_json::{Value as Json, json};

use crate::REST;
use crate::support::{Answer, Server, Step, provider};

/// Returns a descriptor of things with labels.
fn text(merges: bool) -> String {
    let labels = format!("labels = {{ type = \"any\", merges = {merges} }}\nsecret = {{");
    let text = REST.replace("secret = {", &labels);
    text.replace("size = \"${size}\",", "labels = \"${labels}\",")
}

/// Returns the `labels` that a step sends, if they are merged.
async fn sent(step: Step, merges: bool) -> Json {
    let server = Server::start(|_, _| Answer::json(200, json!({"id": "t1"}))).await;
    step.perform(&provider(&text(merges), &server.address)).await.unwrap();
    server.requests()[0].json()["labels"].clone()
}

fn step(live: &Json, wanted: &Json) -> Step {
    let step = Step::update("thing", "t1", json!({"name": "n", "labels": wanted}));
    Step { changed: vec!["labels"], ..step }.live(json!({"name": "n", "labels": live}))
}

/// A key that is not sent stays, so a removed key is sent as null.
#[tokio::test]
async fn a_key_that_goes_is_sent_as_null() {
    for (live, wanted, merged) in [
        (json!({"a": "1", "b": "2"}), json!({"a": "1"}), json!({"a": "1", "b": null})),
        (json!({"a": "1"}), json!({}), json!({"a": null})),
        (json!({"a": "1"}), json!({"a": "2", "b": "3"}), json!({"a": "2", "b": "3"})),
        (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": 2}}), json!({"a": {"b": null, "c": 2}})),
        (json!({"a": {"b": 1}}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"a": [{"b": 1}]}), json!({"a": [{}]}), json!({"a": [{}]})),
        (json!({"a": "1"}), json!(null), json!(null)),
        (json!(null), json!({"a": "1"}), json!({"a": "1"})),
    ] {
        assert_eq!(sent(step(&live, &wanted), true).await, merged, "{live} {wanted}");
        assert_eq!(sent(step(&live, &wanted), false).await, wanted);
    }
}

#[tokio::test]
async fn a_create_sends_what_is_wanted() {
    let made = Step::create("thing", json!({"name": "n", "labels": {"a": "1"}}));
    assert_eq!(sent(made, true).await, json!({"a": "1"}));
}

/// Of a secret map, or a secret deep in a map, the state has only a fingerprint, so a read finds its keys.
#[tokio::test]
async fn the_keys_of_a_secret_map_are_read() {
    for (place, live, wanted, merged) in [
        ("labels", json!({"a": 1, "b": 2}), json!({"a": 1}), json!({"a": 1, "b": null})),
        (
            "labels.in",
            json!({"in": {"a": 1, "b": 2}, "z": 1}),
            json!({"in": {"a": 1}, "z": 1}),
            json!({"in": {"a": 1, "b": null}, "z": 1}),
        ),
    ] {
        let held = json!({"id": "t1", "name": "n", "labels": live});
        let server = Server::start(move |_, _| Answer::json(200, held.clone())).await;
        let step = step(&live, &wanted).sealed(place);
        step.perform(&provider(&text(true), &server.address)).await.unwrap();
        let calls = server.requests();
        assert_eq!(calls[0].line(), "GET /things/t1", "{place}");
        assert_eq!(calls[1].json()["labels"], merged, "{place}");
    }
}
