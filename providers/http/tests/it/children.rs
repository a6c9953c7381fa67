//! Lists below parents, such as records in zones: one list for each parent, and never one for each child.

use std::sync::atomic::{AtomicBool, Ordering};

use engine::state::ObjectId;
use engine::value::Value;
use provider_port::{Kind, Lookup, Provider as _};
use serde_json::json;

use crate::support::{Answer, Server, Step, attributes, nonce, provider, texts};

const RECORDS: &str = r#"
[provider]
name = "acme"

[api.rest]
address = { env = "ACME_URL" }

[type.zone]
list = "rest: GET /zones"
identity = "unique_name"
create = [ { call = "rest: POST /zones", sends = "all" } ]
delete = [ { call = "rest: DELETE /zones/${id}" } ]

[type.zone.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true, on_change = "replace" }

[type.record]
parent = { type = "zone", attributes = { zone = "id" } }
list = "rest: GET /zones/${parent.id}/records"
read = "rest: GET /zones/${zone}/records/${id}"
key = "full_id"
name_attribute = "full_name"
identity = "unique_name"
create = [ { call = "rest: POST /zones/${zone}/records", sends = "all" } ]
update = [ { call = "rest: PATCH /zones/${zone}/records/${id}", sends = "changed" } ]
delete = [ { call = "rest: DELETE /zones/${zone}/records/${id}" } ]

[type.record.attribute]
full_id = { type = "string", computed = true, derived = "${zone}/${id}" }
full_name = { type = "string", computed = true, derived = "${zone}/${name}" }
id = { type = "string", computed = true }
zone = { type = "string", required = true, on_change = "replace", wire = false }
name = { type = "string", required = true, on_change = "replace" }
ttl = { type = "integer" }
"#;

fn id(id: &str) -> ObjectId {
    ObjectId(id.into())
}

/// Returns a server with two zones that have one record each, with the same id and name.
async fn two_zones() -> Server {
    Server::start(|_, request| match &*request.line() {
        "GET /zones" => {
            Answer::json(200, json!([{"id": "z/1", "name": "a"}, {"id": "z2", "name": "b"}]))
        }
        "GET /zones/z%2F1/records" | "GET /zones/z2/records" => {
            Answer::json(200, json!([{"id": "r1", "name": "www", "ttl": 60}]))
        }
        "GET /zones/z%2F1/records/r1" => {
            Answer::json(200, json!({"id": "r1", "name": "www", "ttl": 61}))
        }
        "POST /zones/z2/records" => Answer::json(201, json!({"id": "r9", "name": "ftp"})),
        "DELETE /zones/z2/records/r1" => Answer::empty(204),
        _ => Answer::json(404, json!({})),
    })
    .await
}

#[tokio::test]
async fn children_are_listed_once_for_each_parent() {
    let server = two_zones().await;
    let listed = provider(RECORDS, &server.address).list("record").await.unwrap();
    let shown = listed.iter().map(|object| format!("{} {:?}", object.id, object.attributes));
    insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r#"
    z/1/r1 {"full_id": "z/1/r1", "full_name": "z/1/www", "id": "r1", "name": "www", "ttl": 60, "zone": "z/1"}
    z2/r1 {"full_id": "z2/r1", "full_name": "z2/www", "id": "r1", "name": "www", "ttl": 60, "zone": "z2"}
    "#);
    let mut lines = server.lines();
    lines.sort();
    assert_eq!(lines, ["GET /zones", "GET /zones/z%2F1/records", "GET /zones/z2/records"]);
}

#[tokio::test]
async fn a_child_is_read_by_the_path_that_its_key_tells() {
    let server = two_zones().await;
    let text = RECORDS.replace("${zone}/${id}\" }", "${zone}|${id}\" }");
    let provider = provider(&text, &server.address);
    let object = provider.read("record", &id("z/1|r1")).await.unwrap();
    assert_eq!(server.lines(), ["GET /zones/z%2F1/records/r1"]);
    insta::assert_snapshot!(format!("{:?}", object.attributes), @r#"{"full_id": "z/1|r1", "full_name": "z/1/www", "id": "r1", "name": "www", "ttl": 61, "zone": "z/1"}"#);
    let error = provider.read("record", &id("z/1|r2")).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "{error}");
}

/// If a part of a key contains the text between the parts, only the lists show which object an id means.
#[tokio::test]
async fn a_key_that_can_be_split_in_two_ways_is_looked_up() {
    let server = two_zones().await;
    let object = provider(RECORDS, &server.address).read("record", &id("z/1/r1")).await.unwrap();
    assert_eq!(&*object.id.0, "z/1/r1");
    assert_eq!(server.lines().last().unwrap(), "GET /zones/z%2F1/records/r1");
}

#[tokio::test]
async fn without_a_read_the_list_below_the_parent_shows_a_child() {
    let server = two_zones().await;
    let text = RECORDS.replace("read = \"rest: GET /zones/${zone}/records/${id}\"\n", "");
    let provider = provider(&text, &server.address);
    provider.read("record", &id("z2/r1")).await.unwrap();
    assert_eq!(server.lines(), ["GET /zones/z2/records"]);
    let error = provider.read("record", &id("z2/r7")).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "{error}");
}

#[tokio::test]
async fn a_lost_create_is_looked_up_below_its_parent() {
    let server = two_zones().await;
    let provider = provider(RECORDS, &server.address);
    let desired = json!({"zone": "z2", "name": "www", "full_name": "z2/www"});
    let desired = attributes(&desired);
    let found = provider
        .find("record", &Lookup { nonce: &nonce(), desired: Some(&desired) })
        .await
        .unwrap();
    assert_eq!(found.iter().map(|object| &*object.id.0).collect::<Vec<_>>(), ["z2/r1"]);
    assert_eq!(server.lines(), ["GET /zones/z2/records"]);
}

#[tokio::test]
async fn the_parent_stands_in_the_paths_and_not_in_the_body() {
    let server = two_zones().await;
    let provider = provider(RECORDS, &server.address);
    let create = Step::create("record", json!({"zone": "z2", "name": "ftp", "ttl": 5}));
    let made = create.perform(&provider).await.unwrap().object.unwrap();
    assert_eq!(&*made.id.0, "z2/r9");
    assert_eq!(made.attributes["zone"], Value::string("z2"), "few answers repeat it");
    assert_eq!(server.requests()[0].json(), json!({"name": "ftp", "ttl": 5}));
    let delete = Step::delete("record", "z2/r1").live(json!({"zone": "z2", "id": "r1"}));
    delete.perform(&provider).await.unwrap();
    assert!(server.lines().contains(&"DELETE /zones/z2/records/r1".to_owned()));
}

#[tokio::test]
async fn a_parent_that_goes_while_its_children_are_listed_has_none() {
    let gone = AtomicBool::new(false);
    let server = Server::start(move |_, request| match &*request.line() {
        "GET /zones" if gone.swap(true, Ordering::SeqCst) => Answer::json(200, json!([])),
        "GET /zones" => Answer::json(200, json!([{"id": "z1", "name": "a"}])),
        _ => Answer::json(404, json!({"error": "no such zone"})),
    })
    .await;
    assert!(provider(RECORDS, &server.address).list("record").await.unwrap().is_empty());
}

/// A wrong path must not make objects look gone.
#[tokio::test]
async fn a_404_below_a_parent_that_is_there_is_an_error() {
    let server = Server::start(|_, request| match &*request.line() {
        "GET /zones" => Answer::json(200, json!([{"id": "z1", "name": "a"}])),
        _ => Answer::json(404, json!({"error": "no such page"})),
    })
    .await;
    let error = provider(RECORDS, &server.address).list("record").await.unwrap_err();
    insta::assert_snapshot!(texts(&error), @r#"InDoubt: GET /zones/…/records found nothing below the zone z1, which is there: no such page -> Some("check the path of `list`; where an object without children answers so, say `may_be_left_out = true` in `list`")"#);
    let text = RECORDS.replace(
        "list = \"rest: GET /zones/${parent.id}/records\"",
        "list = { call = \"rest: GET /zones/${parent.id}/records\", may_be_left_out = true }",
    );
    assert!(provider(&text, &server.address).list("record").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_list_below_one_parent_that_fails_fails_the_list() {
    let server = Server::start(|_, request| match &*request.line() {
        "GET /zones" => {
            Answer::json(200, json!([{"id": "z1", "name": "a"}, {"id": "z2", "name": "b"}]))
        }
        "GET /zones/z1/records" => Answer::json(200, json!([])),
        _ => Answer::json(400, json!({"error": "no"})),
    })
    .await;
    let error = provider(RECORDS, &server.address).list("record").await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected, "{error}");
}

/// Two zones of which the second has the only record; a person has moved it out of the first.
async fn a_moved_record() -> Server {
    Server::start(|_, request| match &*request.line() {
        "GET /zones" => {
            Answer::json(200, json!([{"id": "z1", "name": "a"}, {"id": "z2", "name": "b"}]))
        }
        "GET /zones/z1/records" => Answer::json(200, json!([])),
        "GET /zones/z2/records" => Answer::json(200, json!([{"id": "r1", "name": "www"}])),
        "GET /zones/z2/records/r1" => Answer::json(200, json!({"id": "r1", "name": "www"})),
        _ => Answer::json(404, json!({})),
    })
    .await
}

/// The key names the parent: the old object is gone, and the moved one is a stranger.
#[tokio::test]
async fn a_child_that_is_moved_is_another_object() {
    let server = a_moved_record().await;
    let provider = provider(RECORDS, &server.address);
    let error = provider.read("record", &id("z1/r1")).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "{error}");
    let listed = provider.list("record").await.unwrap();
    assert_eq!(listed.iter().map(|object| &*object.id.0).collect::<Vec<_>>(), ["z2/r1"]);
}

/// The key does not name the parent: the same object shows its new parent, which is drift.
#[tokio::test]
async fn a_child_that_is_moved_shows_its_new_parent() {
    let server = a_moved_record().await;
    let text = RECORDS.replace("key = \"full_id\"", "key = \"id\"");
    let object = provider(&text, &server.address).read("record", &id("r1")).await.unwrap();
    assert_eq!(object.attributes["zone"], Value::string("z2"));
}
