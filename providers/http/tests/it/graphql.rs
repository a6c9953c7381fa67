//! GraphQL: the documents that are sent, and the answers that are accepted.

use provider_port::{Kind, Lookup, Provider as _};
use serde_json::json;

use crate::support::{Answer, Server, Step, nonce, provider, texts};

const GRAPHQL: &str = r#"
[provider]
name = "acme"
key = { env = "ACME_KEY" }

[api.graphql]
address = { env = "ACME_GRAPHQL_URL" }
auth = { query = "api_key" }
names = "camel"
error = [
  { match = "quota", help = "ask for more" },
  { match = "no such thing", kind = "not_found" },
  { match = "already gone", kind = "done" },
]

[type.thing]
list = "graphql: query me.things"
identity = "one_time_name"
create = [
  { call = "graphql: mutation saveThing(input: ${sends})", sends = "all", with = { name = "${one_time}", workers = 0 } },
  { name = "activate", call = "graphql: mutation saveThing(input: ${sends})", sends = "all", with = { id = "${id}" } },
]
update = [ { call = "graphql: mutation saveThing(input: ${sends})", sends = "all", with = { id = "${id}" } } ]
delete = [
  { name = "drain", call = "graphql: mutation saveThing(input: ${sends})", sends = "all", with = { id = "${id}", workers = 0 }, until = "length(self.pods) == 0", within = "20s", waits_for = "no pods are left" },
  { call = "graphql: mutation deleteThing(id: ${id})" },
]

[type.thing.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true, codec = { suffixes = [" -fb"] } }
kind_of = { type = "string", codec = "enum" }
workers = { type = "integer", default = 3 }
env = { type = "map(string)", codec = "pairs" }
zones = { type = "set(string)", codec = "comma", follows = "kind_of" }
pods = { type = "list(object{desired_status = string})", computed = true, volatile = true }
"#;

#[tokio::test]
async fn documents_are_printed_from_values() {
    let server = Server::start(|_, request| {
        request.data(&json!({"id": "t1", "name": nonce().to_string(), "zones": "b,a",
            "env": [{"key": "A", "value": "1"}], "kindOf": "FAST", "pods": []}))
    })
    .await;
    let desired = json!({
        "name": "evil\"}) { id } x: deleteThing(id: \"t9",
        "kind_of": "FAST", "workers": 3, "env": {"A\"": "1\n"}, "zones": ["a", "b"],
    });
    let provider = provider(GRAPHQL, &server.address);
    let reply = Step::create("thing", desired.clone()).perform(&provider).await.unwrap();
    let object = reply.object.unwrap();
    insta::assert_snapshot!(format!("{:?}", object.attributes), @r#"{"env": {"A": "1"}, "id": "t1", "kind_of": "FAST", "name": "plumb-h2bqsd6ah2bqsd6ah2bqsd6aha", "pods": [], "zones": {"a", "b"}}"#);
    let live = json!({"id": "t1"});
    let step =
        Step { kind: engine::journal::ProgramKind::Create, ..Step::create("thing", desired) };
    step.phase(1, "t1").live(live).perform(&provider).await.unwrap();
    let queries: Vec<_> = server.requests().iter().map(super::support::Request::query).collect();
    insta::assert_snapshot!(queries.join("\n").replace(&nonce().to_string(), "NONCE"), @r#"
mutation { a0: saveThing(input: {env: [{key: "A\"", value: "1\n"}], kindOf: FAST, name: "NONCE", workers: 0, zones: "a,b"}) { env { key value } id kindOf name pods { desiredStatus } workers zones } }
mutation { a1: saveThing(input: {env: [{key: "A\"", value: "1\n"}], id: "t1", kindOf: FAST, name: "evil\"}) { id } x: deleteThing(id: \"t9", workers: 3, zones: "a,b"}) { env { key value } id kindOf name pods { desiredStatus } workers zones } }
"#);
    assert_eq!(server.lines()[0], "POST /graphql?api_key=canary-4711");
    let aliases: Vec<_> = server.requests().iter().map(super::support::Request::alias).collect();
    assert_ne!(aliases[0], aliases[1], "each attempt has its own alias");
}

#[tokio::test]
async fn answers_that_are_believed_and_those_that_are_not() {
    let error = |message: &str| json!({"errors": [{"message": message}], "data": null});
    let cases = [
        (json!({"data": {"a999": {"id": "t1"}}}), 200, Kind::InDoubt),
        (json!({"data": null}), 200, Kind::InDoubt),
        (json!({}), 200, Kind::InDoubt),
        (error("Something went wrong"), 200, Kind::InDoubt),
        (error("Your quota is used up"), 200, Kind::Rejected),
        (error("no such thing"), 200, Kind::NotFound),
        (error("syntax"), 400, Kind::Rejected),
        (error("who are you"), 401, Kind::Unauthenticated),
        (error("later"), 500, Kind::InDoubt),
    ];
    for (body, status, kind) in cases {
        let answer = body.clone();
        let server = Server::start(move |_, _| Answer::json(status, answer.clone())).await;
        let provider = provider(GRAPHQL, &server.address);
        let step = Step::update("thing", "t1", json!({"name": "n"}));
        let failed = step.perform(&provider).await.unwrap_err();
        assert_eq!(failed.kind, kind, "{body}: {}", texts(&failed));
        assert_eq!(server.requests().len(), 1, "{body}");
    }
}

#[tokio::test]
async fn null_is_a_successful_delete_and_null_with_errors_is_none() {
    let delete = || Step::delete("thing", "t1").phase(1, "t1");
    let server = Server::start(|_, request| request.data(&json!(null))).await;
    let reply = delete().perform(&provider(GRAPHQL, &server.address)).await.unwrap();
    assert!(reply.object.is_none());
    assert!(server.requests()[0].query().contains(r#"deleteThing(id: "t1") }"#));
    for (message, kind) in [
        ("Something went wrong", Some(Kind::InDoubt)),
        ("no such thing", Some(Kind::NotFound)),
        ("already gone", None),
    ] {
        let server = Server::start(move |_, request| {
            let alias = request.alias();
            Answer::json(200, json!({"data": {alias: null}, "errors": [{"message": message}]}))
        })
        .await;
        let result = delete().perform(&provider(GRAPHQL, &server.address)).await;
        assert_eq!(result.err().map(|error| error.kind), kind, "{message}");
    }
}

#[tokio::test]
async fn what_is_left_out_would_be_reset_so_live_values_are_sent() {
    let server = Server::start(|_, request| {
        if request.query().starts_with("query") {
            let things = json!([{"id": "t1", "name": "n", "pods": []}]);
            return request.data(&json!({"things": things}));
        }
        request.data(&json!({"id": "t1", "name": "n", "pods": [{"desiredStatus": "RUNNING"}]}))
    })
    .await;
    let provider = provider(GRAPHQL, &server.address);
    let live = json!({"id": "t1", "name": "n", "workers": 5, "env": {}, "kind_of": "FAST",
        "zones": ["a"], "pods": []});
    let step = Step::delete("thing", "t1").live(live);
    let reply = step.perform(&provider).await.unwrap();
    let query = server.requests()[0].query();
    let query = query.replace(&server.requests()[0].alias(), "ALIAS");
    insta::assert_snapshot!(query, @r#"mutation { ALIAS: saveThing(input: {env: [], id: "t1", kindOf: FAST, name: "n", workers: 0, zones: "a"}) { env { key value } id kindOf name pods { desiredStatus } workers zones } }"#);
    assert!(reply.object.is_some(), "the drain is not the last phase");
}

#[tokio::test]
async fn a_sealed_value_is_never_sent() {
    let server = Server::start(|_, request| request.data(&json!({"id": "t1", "name": "n"}))).await;
    let provider = provider(GRAPHQL, &server.address);
    let key = engine::digest::SealKey::from_random([1; 32]);
    let mut live = super::support::attributes(&json!({"id": "t1", "name": "n", "env": {"A": "s"}}));
    let sealed = engine::stored::seal(&live["env"], &engine::value::Paths::whole(), &key);
    live.insert("env".into(), sealed);
    let id = engine::state::ObjectId("t1".into());
    let phase = engine::journal::PhaseRef::new(engine::journal::ProgramKind::Update, 0, 0, 1);
    let call = provider_port::Call {
        ty: "thing",
        phase,
        id: Some(&id),
        nonce: None,
        desired: &live,
        live: Some(&live),
        changed: &["name".into()].into(),
        secrets: &provider_port::Secrets::default(),
        permit: &provider_port::Always,
        progress: &|_| {},
    };
    let error = provider.perform(&call).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert!(error.message.contains("`env`") && error.message.contains("fingerprint"), "{error}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn one_time_names_are_found_with_declared_endings_only() {
    let server = Server::start(|_, request| {
        request.data(&json!({"things": [
            {"id": "t1", "name": "stranger"},
            {"id": "t2", "name": format!("{} -fb", nonce())},
            {"id": "t3", "name": format!("{}-copy", nonce())},
            {"id": "t4", "name": format!("{} (copy) -fb", nonce())},
            {"id": "t5", "name": format!("copy of {}", nonce())},
            {"id": "t6", "name": &*nonce().0},
        ]}))
    })
    .await;
    let provider = provider(GRAPHQL, &server.address);
    let nonce = nonce();
    let lookup = Lookup { nonce: &nonce, desired: None };
    let found = provider.find("thing", &lookup).await.unwrap();
    let ids: Vec<_> = found.iter().map(|object| &*object.id.0).collect();
    assert_eq!(ids, ["t2", "t6"], "a copy that a person made is nobody's but theirs");
    assert_eq!(found[0].attributes["name"].as_str(), Some(&*nonce.0));
    let error = provider.read("thing", &engine::state::ObjectId("t9".into())).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
}

#[tokio::test]
async fn what_follows_a_change_is_left_to_the_api() {
    let server = Server::start(|_, request| request.data(&json!({"id": "t1", "name": "n"}))).await;
    let provider = provider(GRAPHQL, &server.address);
    // The wanted values are sent, even if they do not change: the API would derive other values.
    let wanted = json!({"name": "n", "kind_of": "SLOW", "zones": ["a"]});
    let silent = json!({"name": "n", "kind_of": "SLOW"});
    for (desired, changed, sent) in [
        (&silent, vec!["kind_of"], false),
        (&silent, vec!["name"], true),
        (&wanted, vec!["kind_of"], true),
        (&wanted, vec!["kind_of", "zones"], true),
    ] {
        let step = Step { changed, ..Step::update("thing", "t1", desired.clone()) };
        step.live(json!({"zones": ["a"]})).perform(&provider).await.unwrap();
        let query = server.requests().last().unwrap().query();
        assert_eq!(query.contains("zones: "), sent, "{query}");
    }
}
