//! Objects that have an id or a unique name of the spec's choice from their create on. A second object
//! with the same id cannot be made beside the first, and its create would change the first.

use std::sync::Arc;
use std::time::Duration;

use engine::address::Name;
use engine::plan::input::Options;
use engine::schema::{Attribute, Identity, OnChange, ReplaceOrder, SeenIn};
use engine::state::ObjectId;
use engine::value::Value;
use provider_port::Provider as _;

use crate::cloud::Fault;
use crate::slow_cloud::Busy;
use crate::world::{World, converges};

/// Returns a world where the name of a key is its id, and where another name or kind replaces the key.
fn shelf() -> World {
    let mut world = World::new();
    world.cloud.change_type("key", |key| {
        let replaces =
            Attribute { on_change: OnChange::Replace, ..Attribute::new("string".parse().unwrap()) };
        key.attributes.get_mut("name").unwrap().on_change = OnChange::Replace;
        key.attributes.insert("kind".into(), replaces);
        key.identity = Identity::ClientId { attribute: "name".into() };
        key.unique_name = false;
    });
    world
}

fn key(block: &str, name: &str, rest: &str) -> String {
    format!("[resource.key.{block}]\nname = \"{name}\"\n{rest}\n")
}

async fn summaries(world: &World, spec: &str) -> Vec<String> {
    let (_, diagnostics, _) = world.plan(spec).await;
    diagnostics.iter().map(|it| it.summary.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_would_have_the_same_id_is_not_made_beside_the_old_object() {
    let world = shelf();
    world.apply(&key("a", "n", "kind = \"one\"")).await.unwrap();
    let first = "lifecycle = { create_before_destroy = true }";
    let other = format!("kind = \"two\"\n{first}");
    assert_eq!(
        summaries(&world, &key("a", "n", &other)).await,
        ["the new key.a cannot be created while the old one exists"]
    );
    // Under another id, the new key is created first.
    let text = world.plan_text(&key("a", "m", &other)).await;
    assert!(text.contains("s1 = delete key.a (n) after s0"), "{text}");
    converges(&world, &key("a", "m", &other)).await;
    assert_eq!(world.cloud.names("key"), ["m"]);
}

#[tokio::test(start_paused = true)]
async fn a_type_that_creates_first_deletes_first_where_the_id_stays() {
    let mut world = shelf();
    world.cloud.change_type("key", |key| key.replace = ReplaceOrder::CreateFirst);
    world.apply(&key("a", "n", "kind = \"one\"")).await.unwrap();
    let other = key("a", "n", "kind = \"two\"");
    let text = world.plan_text(&other).await;
    assert!(text.contains("s1 = create key.a after s0"), "{text}");
    converges(&world, &other).await;
    assert_eq!(world.cloud.names("key"), ["n"]);
}

#[tokio::test(start_paused = true)]
async fn a_unique_name_from_the_start_is_not_given_twice() {
    let mut world = shelf();
    world.cloud.change_type("key", |key| {
        key.identity = Identity::UniqueName { attribute: "name".into() };
        key.unique_name = true;
    });
    world.apply(&key("a", "n", "kind = \"one\"")).await.unwrap();
    let first = "kind = \"two\"\nlifecycle = { create_before_destroy = true }";
    assert_eq!(
        summaries(&world, &key("a", "n", first)).await,
        ["the new key.a cannot be created while the old one exists"]
    );
    converges(&world, &key("a", "n", "kind = \"two\"")).await;
}

#[tokio::test(start_paused = true)]
async fn an_id_that_goes_to_another_block_is_given_after_it_was_let_go() {
    for (old, new) in [("a", "z"), ("z", "a")] {
        let world = shelf();
        world.apply(&key(old, "n", "")).await.unwrap();
        let text = world.plan_text(&key(new, "n", "")).await;
        assert!(text.contains(&format!("s1 = create key.{new} after s0")), "{text}");
        converges(&world, &key(new, "n", "")).await;
        assert_eq!(world.cloud.names("key"), ["n"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_does_not_take_what_bore_its_id_a_moment_ago() {
    let world = shelf();
    world.apply(&key("a", "n", "kind = \"one\"")).await.unwrap();
    let busy = Busy::new(&world, Duration::ZERO);
    *busy.behind.lock().unwrap() = world.cloud.list("key").await.unwrap();
    // The old key is deleted, and the create of the new key never arrives. The first search after that still
    // shows the old key.
    world.cloud.strike(1, Fault::LostBefore);
    let other = key("b", "n", "kind = \"two\"");
    let providers = world.providers_with(Arc::new(busy));
    let applied = world.apply_through(&world.store, &providers, &other, &Options::default()).await;
    assert_eq!(applied.unwrap().summary.created, 1);
    assert_eq!(world.cloud.names("key"), ["n"]);
    converges(&world, &other).await;
}

/// The create of `key.a` is in doubt, so `key.b` does not get the same name. A search by the name would find
/// either key, and the key of the second create would be taken for that of the first.
#[tokio::test(start_paused = true)]
async fn a_name_that_a_create_in_doubt_may_give_is_taken_by_nobody_else() {
    let attribute = || "name".into();
    let by_id = Identity::ClientId { attribute: attribute() };
    for identity in [by_id, Identity::UniqueName { attribute: attribute() }] {
        let mut world = shelf();
        world.cloud.change_type("key", |key| key.identity = identity.clone());
        world.cloud.strike(0, Fault::Promised(600));
        let report = world.apply(&key("a", "n", "")).await.unwrap();
        assert_eq!(report.in_doubt.len(), 1, "{identity:?}");
        let text = world.plan_text(&key("b", "n", "")).await;
        assert!(!text.contains("= create"), "{text}");
        assert!(text.contains("key.b waits for key.a, which may get its name"), "{text}");
        world.apply(&key("b", "n", "")).await.unwrap();
        assert!(world.cloud.names("key").is_empty(), "{identity:?}");
        // The doubt is about one name only: under another name, `key.b` is created.
        let text = world.plan_text(&key("b", "m", "")).await;
        assert!(text.contains("= create key.b"), "{text}");
        tokio::time::sleep(Duration::from_mins(10)).await;
        converges(&world, &key("b", "n", "")).await;
        assert_eq!(world.cloud.names("key"), ["n"], "{identity:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_id_twice_is_refused_in_the_plan() {
    let world = shelf();
    let both = key("a", "n", "") + &key("b", "n", "");
    assert_eq!(summaries(&world, &both).await, ["two objects would be named \"n\""]);
    // A retained object keeps its id, too.
    let retained = "lifecycle = { retain = true }\nkind = \"one\"";
    world.apply(&key("a", "n", retained)).await.unwrap();
    let other = key("a", "n", &retained.replace("one", "two"));
    assert_eq!(summaries(&world, &other).await, ["the old key.a keeps the name \"n\""]);
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_stranger_is_refused_in_the_plan() {
    let world = shelf();
    world.cloud.put("key", &[("name", engine::value::Value::string("n"))]);
    let said = summaries(&world, &key("a", "n", "")).await;
    assert_eq!(said, ["another key named \"n\" exists already"]);
    assert!(world.plan(&key("a", "n", "")).await.1.has_errors());
}

/// Returns a spec whose key gets its id from a disk that is made before it, so the plan does not know the id.
fn late(block: &str, rest: &str) -> String {
    let disk = "[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"eu\"\n";
    format!("{disk}{}", key(block, "${disk.d.id}", rest))
}

#[tokio::test(start_paused = true)]
async fn an_id_that_shows_late_and_is_in_use_is_refused_before_the_call() {
    let first = "lifecycle = { create_before_destroy = true }";
    let taken = key("a", "disk-1", first);
    for spec in [late("a", first), late("b", first) + &taken] {
        let world = shelf();
        world.apply(&taken).await.unwrap();
        let report = world.apply(&spec).await.unwrap();
        let said: Vec<&str> = report.failures.iter().map(|it| &*it.message).collect();
        assert_eq!(said, ["the object disk-1 exists already, and key.a stands for it"], "{spec}");
        assert_eq!(world.cloud.names("key"), ["disk-1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_that_goes_to_another_block_with_users_is_refused() {
    let world = shelf();
    let user = |block: &str| {
        format!("[resource.unit.u]\nname = \"u\"\nimage_id = \"${{key.{block}.id}}\"\n")
    };
    world.apply(&(key("a", "n", "") + &user("a"))).await.unwrap();
    assert_eq!(
        summaries(&world, &(key("z", "n", "") + &user("z"))).await,
        ["key.a may be called key.z now", "key.z cannot take its name from key.a in one plan"]
    );
}

/// Returns a world with a key that stands for the settings of a disk: such settings exist as soon as the
/// disk does. The plan does not know the key's id, `disk-1`, because the disk is made by the run.
fn settings() -> World {
    let mut world = shelf();
    world.cloud.change_type("key", |key| {
        let text = || Attribute::new("string".parse().unwrap());
        let hidden = Attribute { seen_in: SeenIn::Never, ..text() };
        let volatile = Attribute { volatile: true, ..text() };
        let all = [("note", text()), ("pin", hidden), ("at", volatile)];
        key.attributes.extend(all.map(|(name, attribute)| (name.into(), attribute)));
    });
    let id: Name = "disk-1".into();
    let text = |text: &str| Value::string(text);
    let own =
        [("id", text(&id)), ("name", text(&id)), ("note", text("default")), ("at", text("then"))];
    let own = own.map(|(name, value)| (name.into(), value)).into();
    world.cloud.shared.lock().unwrap().objects.insert(("key".into(), ObjectId(id)), own);
    world
}

const NOTED: &str = "note = \"ours\"\npin = \"1234\"\nat = \"now\"";

fn note(world: &World, name: &str) -> Value {
    let shared = world.cloud.shared.lock().unwrap();
    shared.objects[&("key".into(), ObjectId("disk-1".into()))][name].clone()
}

/// The number of the mutating call that creates the key, after the two calls for the disk.
const CREATES_KEY: u64 = 2;

#[tokio::test(start_paused = true)]
async fn a_lost_create_is_not_done_where_what_is_there_does_not_hold_what_it_sent() {
    let by_id = Identity::ClientId { attribute: "name".into() };
    for identity in [by_id, Identity::UniqueName { attribute: "name".into() }] {
        let (mut world, spec) = (settings(), late("k", NOTED));
        world.cloud.change_type("key", |key| key.identity = identity.clone());
        world.cloud.strike(CREATES_KEY, Fault::LostBefore);
        let report = world.apply(&spec).await.unwrap();
        let said: Vec<&str> = report.failures.iter().map(|it| &*it.message).collect();
        let other =
            "cut: in the words of the server, and what is there has another `note` than was sent";
        assert_eq!(said, [other], "{identity:?}");
        assert_eq!((report.summary.created, report.in_doubt.len()), (1, 0));
        // The key is ours, and one more apply sets the rest, also the `pin`, which no answer shows.
        converges(&world, &spec).await;
        assert_eq!(note(&world, "note"), Value::string("ours"));
        assert_eq!(note(&world, "pin"), Value::string("1234"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_is_done_where_what_is_there_holds_what_it_sent() {
    let (world, spec) = (settings(), late("k", NOTED));
    world.cloud.strike(CREATES_KEY, Fault::LostAfter);
    let report = world.apply(&spec).await.unwrap();
    assert_eq!((report.summary.created, report.failures.len()), (2, 0));
    assert_eq!(world.plan_text(&spec).await, "");
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_waited_for_until_what_is_there_holds_it() {
    for (after, made) in [(30, 2), (600, 1)] {
        let (world, spec) = (settings(), late("k", NOTED));
        world.cloud.strike(CREATES_KEY, Fault::Promised(after));
        let report = world.apply(&spec).await.unwrap();
        assert_eq!(report.summary.created, made, "{after}");
        let said: Vec<&str> = report.failures.iter().map(|it| &*it.message).collect();
        let late = "the API accepted it, and what is there has another `note` than was sent";
        assert_eq!(said, vec![late; 2 - made], "{after}");
        converges(&world, &spec).await;
    }
}

/// The live key has another `note` than a lost create sent. The run does not fail, because the spec ignores
/// changes of `note`.
#[tokio::test(start_paused = true)]
async fn what_an_api_makes_of_what_is_ignored_is_no_failure() {
    let (world, spec) =
        (settings(), late("k", &format!("{NOTED}\nlifecycle = {{ ignore_changes = [\"note\"] }}")));
    world.cloud.strike(CREATES_KEY, Fault::LostBefore);
    assert_eq!(world.apply(&spec).await.unwrap().failures, []);
}

/// The run searches for a unique name in lists, which may show less than a read does. An attribute that
/// only reads show is no reason to fail.
#[tokio::test(start_paused = true)]
async fn a_list_says_nothing_of_what_only_reads_show() {
    let (mut world, spec) = (settings(), late("k", NOTED));
    world.cloud.change_type("key", |key| {
        key.identity = Identity::UniqueName { attribute: "name".into() };
        key.attributes.get_mut("note").unwrap().seen_in = SeenIn::Read;
    });
    world.cloud.strike(CREATES_KEY, Fault::LostBefore);
    assert_eq!(world.apply(&spec).await.unwrap().failures, []);
}

/// A phase with a wait defines when an accepted create is done: at the end of the wait. The key may still
/// lack what the create sent.
#[tokio::test(start_paused = true)]
async fn what_was_accepted_and_has_a_wait_is_done_when_that_is_over() {
    let (mut world, spec) = (settings(), late("k", NOTED));
    world.cloud.change_type("key", |key| {
        key.create[0].phases[0].waits_for = Some("it is ready".to_owned());
    });
    world.cloud.strike(CREATES_KEY, Fault::Promised(600));
    let report = world.apply(&spec).await.unwrap();
    assert_eq!((report.summary.created, report.failures.len()), (2, 0));
}

/// The API shows another `note` than a create sent. The run whose create was lost fails, and the next run
/// does not.
#[tokio::test(start_paused = true)]
async fn what_an_api_makes_of_a_lost_create_is_changed_by_the_next_run() {
    let (mut world, spec) = (settings(), late("k", NOTED));
    world.cloud.makes = |object| {
        if object.contains_key("note") {
            object.insert("note".into(), Value::string("OURS"));
        }
    };
    world.cloud.strike(CREATES_KEY, Fault::LostAfter);
    assert_eq!(world.apply(&spec).await.unwrap().failures.len(), 1);
    assert_eq!(world.apply(&spec).await.unwrap().failures, []);
}
