//! Reads whose address needs more than the id, such as those of records in zones: the lists show the other
//! attributes.

use std::sync::atomic::{AtomicBool, Ordering};

use engine::state::ObjectId;
use engine::value::Value;
use provider_port::{Kind, Lookup, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Server, Step, provider, texts};

const NESTED: &str = r#"
[provider]
name = "acme"
key = { env = "ACME_KEY" }

[api.rest]
address = { env = "ACME_URL" }
auth = { header = "Authorization", value = "Bearer ${key}" }

[type.record]
list = "rest: GET /records"
read = "rest: GET /zones/${zone}/records/${id}"
identity = "unique_name"
create = [ { call = "rest: POST /zones/${zone}/records", sends = "all" } ]
update = [ { call = "rest: PUT /zones/${zone}/records/${id}", sends = "all", item = false } ]
delete = [ { call = "rest: DELETE /zones/${zone}/records/${id}" } ]

[type.record.attribute]
id = { type = "string", computed = true }
zone = { type = "string", required = true, on_change = "replace" }
name = { type = "string", required = true }
"#;

fn id(id: &str) -> ObjectId {
    ObjectId(id.into())
}

/// Returns a server with one record in one zone; only the list and the address of its read show the zone.
async fn one_record() -> Server {
    Server::start(|_, request| match &*request.line() {
        "GET /records" => Answer::json(200, json!([{"id": "r1", "zone": "z1"}])),
        "GET /zones/z1/records/r1" | "GET /records/r1?zone=z1" => {
            Answer::json(200, json!({"id": "r1", "name": "www"}))
        }
        "PUT /zones/z1/records/r1" => Answer::empty(204),
        _ => Answer::json(404, json!({})),
    })
    .await
}

#[tokio::test]
async fn what_an_object_is_read_by_is_not_left_out_as_empty() {
    let omits = NESTED.replace("[api.rest]\n", "[api.rest]\nomits_empty = true\n");
    let server = one_record().await;
    let object = provider(&omits, &server.address).read("record", &id("r1")).await.unwrap();
    assert_eq!(object.attributes["zone"], Value::string("z1"));
}

#[tokio::test]
async fn a_read_is_filled_in_with_what_the_list_shows() {
    let in_query =
        NESTED.replace("/zones/${zone}/records/${id}\"\nid", "/records/${id}?zone=${zone}\"\nid");
    for (text, path) in [(NESTED, "/zones/z1/records/r1"), (&in_query, "/records/r1?zone=z1")] {
        let server = one_record().await;
        let object = provider(text, &server.address).read("record", &id("r1")).await.unwrap();
        assert_eq!(server.lines(), ["GET /records", &format!("GET {path}")]);
        assert_eq!(object.attributes["name"], Value::string("www"));
        // The object has the attributes in the address by which it was read.
        assert_eq!(object.attributes["zone"], Value::string("z1"));
    }
}

#[tokio::test]
async fn what_no_list_shows_is_not_there() {
    let server = one_record().await;
    let error = provider(NESTED, &server.address).read("record", &id("r2")).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "{error}");
    assert_eq!(server.lines(), ["GET /records"]);
}

/// If an object of the list has no id, it may be any object, so none counts as absent.
#[tokio::test]
async fn nothing_is_absent_from_a_list_that_cannot_be_read() {
    let server =
        Server::start(|_, _| Answer::json(200, json!([{"id": "r1"}, {"zone": "z1"}]))).await;
    let error = provider(NESTED, &server.address).read("record", &id("r2")).await.unwrap_err();
    assert_eq!(error.kind, Kind::InDoubt, "{error}");
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let server =
        Server::start(|_, _| Answer::json(200, json!([{"id": "r1", "name": "www"}]))).await;
    let error = provider(NESTED, &server.address).read("record", &id("r1")).await.unwrap_err();
    insta::assert_snapshot!(texts(&error), @"Rejected: GET /zones/…/records/… of record r1 cannot be filled in: `zone` is not known -> None");
}

#[tokio::test]
async fn an_update_without_an_answer_is_followed_by_a_read() {
    let server = one_record().await;
    let update = Step::update("record", "r1", json!({"zone": "z1", "name": "www"}));
    let object = update.perform(&provider(NESTED, &server.address)).await.unwrap().object.unwrap();
    assert_eq!(object.attributes["name"], Value::string("www"));
}

#[tokio::test]
async fn a_promised_end_is_awaited_in_the_list() {
    let gone = AtomicBool::new(false);
    let server = Server::start(move |_, request| match (&*request.method, &*request.path) {
        ("DELETE", _) => {
            gone.store(true, Ordering::SeqCst);
            Answer::empty(202)
        }
        (_, "/records") if gone.load(Ordering::SeqCst) => Answer::json(200, json!([])),
        (_, "/records") => Answer::json(200, json!([{"id": "r1", "zone": "z1"}])),
        _ => Answer::json(200, json!({"id": "r1", "name": "www"})),
    })
    .await;
    let delete = Step::delete("record", "r1").live(json!({"zone": "z1", "name": "www"}));
    delete.perform(&provider(NESTED, &server.address)).await.unwrap();
    assert_eq!(server.lines(), ["DELETE /zones/z1/records/r1", "GET /records"]);
}

/// A list may show a page, or an object, twice. If two different objects have one id, neither can be used.
#[tokio::test]
async fn two_objects_of_one_id_are_told_apart_by_nobody() {
    let server = Server::start(|_, request| match &*request.path {
        "/records" => Answer::json(
            200,
            json!([
                {"id": "r1", "zone": "z1"}, {"id": "r2", "zone": "z1", "name": "a"},
                {"id": "r1", "zone": "z2"}, {"id": "r2", "zone": "z1", "name": "b"},
            ]),
        ),
        _ => Answer::json(200, json!({"name": "www"})),
    })
    .await;
    let provider = provider(NESTED, &server.address);
    let listed = provider.list("record").await.unwrap();
    assert_eq!(listed.iter().map(|object| &*object.id.0).collect::<Vec<_>>(), ["r2"]);
    provider.read("record", &id("r2")).await.unwrap();
    let error = provider.read("record", &id("r1")).await.unwrap_err();
    insta::assert_snapshot!(texts(&error), @r#"InDoubt: GET /records got an answer that cannot be read: it shows two objects whose `id` is r1, and whose `zone` differ -> Some("a key tells an object from all others in the list: in the descriptor, make one of both, with `key = \"full_id\"` and `full_id = { type = \"string\", computed = true, wire = false, derived = \"${zone}|${id}\" }`")"#);
    assert!(!server.lines().contains(&"GET /zones/z2/records/r1".to_owned()));
}

/// Joined lists show the same objects; if they do not, a key has to tell their objects apart.
#[tokio::test]
async fn lists_that_are_joined_show_one_object_for_one_id() {
    let text = NESTED
        .replace("list = \"rest: GET /records\"", "list = [\"rest: GET /eu\", \"rest: GET /us\"]");
    let server = Server::start(|_, request| match &*request.path {
        "/eu" => Answer::json(
            200,
            json!([
                {"id": "r1", "zone": "eu"}, {"id": "r2", "zone": "us"}, {"id": "r3", "zone": null},
            ]),
        ),
        "/us" => Answer::json(
            200,
            json!([
                {"id": "r1", "zone": "us"}, {"id": "r2", "zone": "us"}, {"id": "r3", "zone": "us"},
            ]),
        ),
        _ => Answer::json(200, json!({"name": "www"})),
    })
    .await;
    let provider = provider(&text, &server.address);
    let listed = provider.list("record").await.unwrap();
    assert_eq!(listed.iter().map(|object| &*object.id.0).collect::<Vec<_>>(), ["r2", "r3"]);
    let error = provider.read("record", &id("r1")).await.unwrap_err();
    assert!(texts(&error).contains("whose `zone` differ"), "{error}");
}

/// A descriptor of names in namespaces: the key is made of both.
const BOTH: &str = r#"
[provider]
name = "acme"

[api.rest]
address = { env = "ACME_URL" }

[type.queue]
list = "rest: GET /queues"
read = "rest: GET /queues/${vhost}/${name}"
key = "id"
identity = "client_id"
create = [ { call = "rest: PUT /queues/${vhost}/${name}", sends = { durable = "${durable}" } } ]
update = [ { call = "rest: PUT /queues/${vhost}/${name}", sends = { durable = "${durable}" } } ]
delete = [ { call = "rest: DELETE /queues/${vhost}/${name}" } ]

[type.queue.attribute]
id = { type = "string", computed = true, derived = "${vhost}|${name}", wire = false }
vhost = { type = "string", required = true, on_change = "replace" }
name = { type = "string", required = true, on_change = "replace" }
durable = { type = "boolean", default = true }
"#;

/// Returns a server with two queues of the same name, and the answer of one call for that name.
async fn two_queues() -> Server {
    Server::start(|_, request| match &*request.line() {
        "GET /queues" => Answer::json(
            200,
            json!([
                {"vhost": "/", "name": "jobs", "durable": false}, {"vhost": "shop", "name": "jobs"},
            ]),
        ),
        "GET /queues/shop/jobs" => Answer::json(200, json!({"durable": true})),
        "PUT /queues/shop/jobs" => Answer::empty(204),
        "DELETE /queues/%2F/jobs" => Answer::empty(204),
        _ => Answer::json(404, json!({})),
    })
    .await
}

#[tokio::test]
async fn a_key_may_be_made_of_several_attributes() {
    let server = two_queues().await;
    let provider = provider(BOTH, &server.address);
    let listed = provider.list("queue").await.unwrap();
    let ids = listed.iter().map(|object| &*object.id.0);
    assert_eq!(ids.collect::<Vec<_>>(), ["/|jobs", "shop|jobs"]);
    let object = provider.read("queue", &id("shop|jobs")).await.unwrap();
    insta::assert_snapshot!(format!("{:?}", object.attributes), @r#"{"durable": true, "id": "shop|jobs", "name": "jobs", "vhost": "shop"}"#);
    let error = provider.read("queue", &id("test|jobs")).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "{error}");

    let wanted = json!({"vhost": "shop", "name": "jobs", "durable": true, "id": "shop|jobs"});
    let made = Step::create("queue", wanted).perform(&provider).await.unwrap().object;
    assert_eq!(made.unwrap().id, id("shop|jobs"));
    let delete = Step::delete("queue", "/|jobs").live(json!({"vhost": "/", "name": "jobs"}));
    delete.perform(&provider).await.unwrap();
}

/// An object that the state has under the key of an earlier descriptor is not gone; who types a part of an id
/// learns its form.
#[tokio::test]
async fn an_id_of_another_key_says_nothing_of_its_object() {
    let server = two_queues().await;
    let error = provider(BOTH, &server.address).read("queue", &id("jobs")).await.unwrap_err();
    insta::assert_snapshot!(texts(&error), @r#"InDoubt: jobs is no id of a queue: the descriptor makes its `id` as "${vhost}|${name}" -> Some("give the whole id in this form; if the state has the object by an older key, forget it with `plumb state rm ADDRESS`, and take it over by its new one with `plumb import ADDRESS ID`")"#);
}

/// The API chooses a part of the key, and its answer does not repeat the other part.
#[tokio::test]
async fn what_a_create_named_is_a_part_of_the_key() {
    let text = BOTH
        .replace("client_id", "ask")
        .replace("PUT /queues/${vhost}/${name}", "POST /queues/${vhost}")
        .replace(
            "name = { type = \"string\", required = true, on_change = \"replace\" }",
            "name = { type = \"string\", computed = true }",
        );
    let server = Server::start(|_, _| Answer::json(201, json!({"name": "q7"}))).await;
    let wanted = json!({"vhost": "shop", "durable": true});
    let made = Step::create("queue", wanted).perform(&provider(&text, &server.address)).await;
    assert_eq!(made.unwrap().object.unwrap().id, id("shop|q7"));
}

/// A queue with the same name in another host is no namesake.
#[test]
fn an_object_is_known_by_its_key_of_several_attributes() {
    let schema = provider(BOTH, "http://127.0.0.1:9").schema().types["queue"].clone();
    assert_eq!(schema.name_attribute.as_deref(), Some("id"));
}

#[tokio::test]
async fn a_lost_create_is_found_by_a_key_of_several_attributes() {
    let server = two_queues().await;
    let provider = provider(BOTH, &server.address);
    let nonce = crate::support::nonce();
    for (vhost, found) in [("shop", 1), ("test", 0)] {
        let key = format!("{vhost}|jobs");
        let desired =
            crate::support::attributes(&json!({"id": key, "vhost": vhost, "name": "jobs"}));
        let lookup = Lookup { nonce: &nonce, desired: Some(&desired) };
        assert_eq!(provider.find("queue", &lookup).await.unwrap().len(), found, "{vhost}");
    }
    let error = provider.find("queue", &Lookup { nonce: &nonce, desired: None }).await.unwrap_err();
    assert_eq!(error.kind, Kind::InDoubt, "{error}");
}

/// An object has the attributes in the address of its read, whether they are its key or not.
#[tokio::test]
async fn a_read_need_not_repeat_the_key() {
    let text = REST
        .replace("read = \"rest: GET /things/${id}\"", "read = \"rest: GET /things/${id}/iam\"");
    let server = Server::start(|_, _| Answer::json(200, json!({"size": 3}))).await;
    let object = provider(&text, &server.address).read("thing", &id("t1")).await.unwrap();
    insta::assert_snapshot!(format!("{:?}", object.attributes), @r#"{"id": "t1", "size": 3}"#);

    let text = text.replace("id = { type = \"string\"", "id = { type = \"integer\"");
    let object = provider(&text, &server.address).read("thing", &id("443")).await.unwrap();
    insta::assert_snapshot!(format!("{:?}", object.attributes), @r#"{"id": 443, "size": 3}"#);
}

/// Many simultaneous reads share a few lists.
#[tokio::test]
async fn reads_at_the_same_time_share_a_list() {
    let server = one_record().await;
    let provider = provider(NESTED, &server.address);
    let own = id("r1");
    let reads = (0..8).map(|_| provider.read("record", &own));
    for read in futures_util::future::join_all(reads).await {
        read.unwrap();
    }
    let lists = server.lines().iter().filter(|line| *line == "GET /records").count();
    assert!(lists <= 2, "{lists} lists");
}
