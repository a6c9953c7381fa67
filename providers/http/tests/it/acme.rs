//! A second provider, without Rust code: an API of another kind, and a server that behaves like it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use engine::state::Nonce;
use provider_port::conformance::{self, Fixture, Suite};
use provider_port::{Kind, Lookup, Provider as _};
use serde_json::{Value as Json, json};

use crate::support::{
    Answer, KEY, Request, Server, Step, attributes, nonce, provider, provider_with_key,
};

const ACME: &str = include_str!("acme.provider.toml");

#[derive(Default)]
struct World {
    buckets: BTreeMap<String, Json>,
    tickets: BTreeMap<u64, Json>,
    /// The numbers of tickets by idempotency key.
    keys: BTreeMap<String, u64>,
    numbered: u64,
    /// The number of further deletes of buckets that are refused.
    busy: u32,
}

fn answer(world: &Mutex<World>, request: &Request) -> Answer {
    if request.headers.get("x-acme-key").map(String::as_str) != Some(KEY) {
        return Answer::json(403, json!({"problem": {"title": "who are you?"}}));
    }
    let mut world = world.lock().unwrap();
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let query: BTreeMap<&str, &str> =
        query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    match (request.method.as_str(), path.trim_start_matches('/').split_once('/')) {
        ("GET", None) if path == "/buckets" => buckets(&world, &query),
        ("GET", None) => tickets(&world, &query),
        ("POST", None) => ticket(&mut world, request),
        (_, Some(("buckets", id))) => bucket(&mut world, request, id),
        ("DELETE", Some((_, number))) => {
            let gone = number.parse().ok().and_then(|number: u64| world.tickets.remove(&number));
            Answer::empty(if gone.is_some() { 204 } else { 404 })
        }
        _ => Answer::empty(405),
    }
}

/// Returns one page with one bucket.
fn buckets(world: &World, query: &BTreeMap<&str, &str>) -> Answer {
    let after = query.get("after").copied().unwrap_or_default();
    let mut rest = world.buckets.iter().filter(|(id, _)| id.as_str() > after);
    let page: Vec<_> = rest.by_ref().take(1).collect();
    let next = if rest.next().is_some() { json!(page[0].0) } else { Json::Null };
    let shown: Vec<_> = page.iter().map(|(_, bucket)| bucket).collect();
    Answer::json(200, json!({"result": {"buckets": shown, "next": next}}))
}

fn bucket(world: &mut World, request: &Request, id: &str) -> Answer {
    match request.method.as_str() {
        "PUT" => {
            let mut bucket = request.json()["bucket"].clone();
            bucket["id"] = id.into();
            world.buckets.insert(id.to_owned(), bucket.clone());
            Answer::json(200, json!({"result": bucket}))
        }
        "DELETE" if world.busy > 0 => {
            world.busy -= 1;
            Answer::json(409, json!({"problem": {"title": "the bucket is busy"}}))
        }
        "DELETE" => match world.buckets.remove(id) {
            Some(_) => Answer::empty(204),
            None => Answer::json(404, json!({"problem": {"title": "no such bucket"}})),
        },
        _ => match world.buckets.get(id) {
            Some(bucket) => Answer::json(200, json!({"result": bucket})),
            None => Answer::json(404, json!({"problem": {"title": "no such bucket"}})),
        },
    }
}

fn tickets(world: &World, query: &BTreeMap<&str, &str>) -> Answer {
    if let Some(key) = query.get("key") {
        let number = world.keys.get(*key);
        let found: Vec<_> = number.iter().filter_map(|n| world.tickets.get(n)).collect();
        return Answer::json(200, json!({"tickets": found}));
    }
    let page: usize = query["page"].parse().unwrap();
    let size: usize = query["per_page"].parse().unwrap();
    let shown: Vec<_> = world.tickets.values().skip((page - 1) * size).take(size).collect();
    Answer::json(200, json!({"tickets": shown}))
}

fn ticket(world: &mut World, request: &Request) -> Answer {
    let key = request.headers["idempotency-key"].clone();
    if let Some(number) = world.keys.get(&key) {
        return Answer::json(200, world.tickets[number].clone());
    }
    world.numbered += 1;
    let mut ticket = request.json();
    ticket["number"] = world.numbered.into();
    world.tickets.insert(world.numbered, ticket.clone());
    world.keys.insert(key, world.numbered);
    Answer::json(201, ticket)
}

async fn server() -> Server {
    let world = Mutex::new(World { busy: 2, ..World::default() });
    Server::start(move |_, request| answer(&world, request)).await
}

#[tokio::test]
async fn conforms() {
    let server = server().await;
    let ours = provider(ACME, &server.address);
    let stranger = provider_with_key(ACME, &server.address, "wrong");
    Step::create("bucket", json!({"id": "other", "quota": 1})).perform(&ours).await.unwrap();
    let suite = Suite::new(&ours)
        .wrong_key(&stranger)
        .secret(KEY)
        .with(Fixture::new(
            "bucket",
            attributes(&json!({"id": "photos", "labels": {"team": "a"}, "rules": {"days": [1]}})),
            attributes(&json!({"quota": 20, "public": true, "labels": {"team": "b"}})),
        ))
        .with(Fixture::new(
            "ticket",
            attributes(&json!({"title": "help", "severity": "high"})),
            attributes(&json!({})),
        ));
    conformance::run(&suite).await.unwrap();
    let put = server.requests().into_iter().rfind(|request| request.method == "PUT").unwrap();
    insta::assert_snapshot!(put.body, @r#"{"bucket":{"acl":"public-read","labels":[{"key":"team","value":"b"}],"limits":{"quota_gb":20},"rules":"{\"days\":[1]}"}}"#);
}

#[tokio::test]
async fn a_lost_ticket_is_found_by_its_key_and_never_made_twice() {
    let world = Mutex::new(World::default());
    let server = Server::start(move |number, request| {
        let answer = answer(&world, request);
        // The first answer is lost after the effect.
        if number == 0 { Answer::Cut } else { answer }
    })
    .await;
    let provider = provider(ACME, &server.address);
    let made = Step::create("ticket", json!({"title": "help"})).perform(&provider).await.unwrap();
    assert_eq!(&*made.object.unwrap().id.0, "1");
    let nonce = nonce();
    let lookup = Lookup { nonce: &nonce, desired: None };
    assert_eq!(provider.find("ticket", &lookup).await.unwrap().len(), 1);
    let other = Nonce::from_random([9; 16]);
    let lookup = Lookup { nonce: &other, desired: None };
    assert!(provider.find("ticket", &lookup).await.unwrap().is_empty());
    assert_eq!(provider.list("ticket").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_refused_repetition_proves_nothing_about_what_it_repeats() {
    let world = Mutex::new(World::default());
    let server = Server::start(move |number, request| match number {
        // The ticket is made, and the answer is lost; the repetition is refused, because the service has had
        // too many requests.
        0 => {
            answer(&world, request);
            Answer::Cut
        }
        _ => Answer::json(409, json!({"problem": {"title": "one at a time"}})),
    })
    .await;
    let provider = provider(ACME, &server.address);
    let step = Step::create("ticket", json!({"title": "help"}));
    let error = step.perform(&provider).await.unwrap_err();
    assert_eq!(error.kind, Kind::InDoubt, "{error}");
}

#[tokio::test]
async fn conflicts_are_refusals() {
    let server = Server::start(|_, _| {
        Answer::json(409, json!({"problem": {"title": "the bucket is frozen"}}))
    })
    .await;
    let provider = provider(ACME, &server.address);
    let step = Step::create("bucket", json!({"id": "photos"}));
    let error = step.perform(&provider).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert!(error.to_string().contains("the bucket is frozen"), "{error}");
}
