//! Unique names: the objects that have them, the objects that take them, and the order of their steps.

use std::sync::Arc;
use std::time::Duration;

use engine::address::Address;
use engine::plan::input::Options;
use engine::state::ObjectId;
use provider_port::Provider as _;
use state::Store as _;

use crate::cloud::Fault;
use crate::slow_cloud::Busy;
use crate::world::{World, converges};

/// A spec with a key whose name is the id of a disk that is made before it, so no plan knows the name.
const LATE: &str = r#"
[resource.key.a]
name = "disk-2"

[resource.disk.d]
name = "d"
size = 1
zone = "eu"

[resource.key.b]
name = "${disk.d.id}"
"#;

const FIRST: &str = r#"
[resource.key.a]
name = "disk-2"
"#;

async fn objects(world: &World) -> Vec<(Address, ObjectId)> {
    let loaded = world.store.load().await.unwrap();
    let folded = apply::session::fold(loaded, &world.host).unwrap();
    let current = |(address, entry): (&Address, &engine::state::Entry)| {
        Some((address.clone(), entry.current.as_ref()?.id.clone()))
    };
    folded.snapshot.entries.iter().filter_map(current).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_does_not_take_the_object_of_another_address() {
    let world = World::new();
    world.apply(FIRST).await.unwrap();
    world.cloud.strike(2, Fault::LostBefore);
    let report = world.apply(LATE).await.unwrap();
    let messages: Vec<&str> = report.failures.iter().map(|f| &*f.message).collect();
    assert_eq!(messages, ["the name is taken"]);
    assert!(report.in_doubt.is_empty());
    let known: Vec<String> =
        objects(&world).await.iter().map(|(address, id)| format!("{address} {id}")).collect();
    assert_eq!(known, ["disk.d disk-2", "key.a key-1"]);
    world.destroy(LATE).await.unwrap();
    assert!(world.cloud.names("key").is_empty());
}

/// Two creates of one name are in doubt. The searches for both find the same key, and only one create gets
/// it. The plan of the second create did not know its name.
#[tokio::test(start_paused = true)]
async fn of_two_lost_creates_of_one_name_only_one_takes_the_object() {
    let world = World::new();
    let first = FIRST.replace("disk-2", "disk-1");
    let other = LATE.replace(FIRST, "");
    for (fault_at, fault, spec) in [(0, Fault::LostBefore, &first), (2, Fault::LostAfter, &other)] {
        world.cloud.strike(fault_at, fault);
        world.cloud.shared.lock().unwrap().finds_fail = 2;
        world.apply(spec).await.unwrap();
    }
    world.cloud.shared.lock().unwrap().finds_fail = 0;
    assert_eq!(world.cloud.names("key"), ["disk-1"]);
    converges(&world, &other).await;
    assert_eq!(world.cloud.names("key"), ["disk-1"]);
    let addresses = objects(&world).await;
    assert_eq!(addresses.len(), 2, "{addresses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_does_not_take_what_bore_its_name_a_moment_ago() {
    let world = World::new();
    world.apply(FIRST).await.unwrap();
    let busy = Busy::new(&world, Duration::ZERO);
    *busy.behind.lock().unwrap() = world.cloud.list("key").await.unwrap();
    // The old key is deleted, and the answer to the create of the new key is lost. The first search after
    // that still shows the old key.
    world.cloud.strike(1, Fault::LostAfter);
    let other = FIRST.replace("key.a", "key.b");
    let providers = world.providers_with(Arc::new(busy));
    world.apply_through(&world.store, &providers, &other, &Options::default()).await.unwrap();
    let known: Vec<String> =
        objects(&world).await.iter().map(|(address, id)| format!("{address} {id}")).collect();
    assert_eq!(known, ["key.b key-2"]);
    converges(&world, &other).await;
}

async fn check(world: &World, spec: &str, expected: &str) {
    let text = world.plan_text(spec).await;
    assert_eq!(text.trim(), expected.trim(), "\n{text}");
}

fn keys(names: &[(&str, &str)]) -> String {
    let block = |(key, name): &(&str, &str)| format!("[resource.key.{key}]\nname = \"{name}\"\n");
    names.iter().map(block).collect::<Vec<_>>().concat()
}

#[tokio::test(start_paused = true)]
async fn one_name_twice_is_refused_in_the_plan() {
    let world = World::new();
    let expected = "
create key.a []
create key.b []
s0 = create key.a
s1 = create key.b
error:4: two objects would be named \"n\"";
    check(&world, &keys(&[("a", "n"), ("b", "n")]), expected).await;
    world.apply(&keys(&[("a", "n"), ("b", "m")])).await.unwrap();
    let text = world.plan_text(&keys(&[("a", "n"), ("b", "n")])).await;
    assert!(text.contains("error:4: two objects would be named \"n\""), "{text}");
    let text = world.plan_text(&keys(&[("a", "m"), ("b", "m")])).await;
    assert!(text.contains("error:2: two objects would be named \"m\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_is_let_go_keeps_its_name() {
    let world = World::new();
    let spec = |enabled: bool| {
        format!("{}lifecycle = {{ retain = true, enabled = {enabled} }}\n", keys(&[("a", "n")]))
    };
    world.apply(&spec(true)).await.unwrap();
    let text = world.plan_text(&(spec(false) + &keys(&[("b", "n")]))).await;
    assert!(text.contains("error:5: two objects would be named \"n\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_rename_onto_a_strangers_name_is_refused_in_the_plan() {
    let world = World::new();
    world.apply(&keys(&[("a", "n")])).await.unwrap();
    world.cloud.put("key", &[("name", engine::value::Value::string("theirs"))]);
    let expected = "
update key.a [name]
s0 = update key.a (key-1)
error:2: another key named \"theirs\" exists already";
    check(&world, &keys(&[("a", "theirs")]), expected).await;
}

#[tokio::test(start_paused = true)]
async fn an_import_is_asked_for_its_new_name_and_not_for_its_old_one() {
    let world = World::new();
    let put = |name| world.cloud.put("key", &[("name", engine::value::Value::string(name))]);
    let (id, _) = (put("old"), put("theirs"));
    let import = format!("[[import]]\nto = 'key.a'\nid = '{id}'\n");
    let text = world.plan_text(&(keys(&[("a", "theirs")]) + &import)).await;
    assert!(text.contains("error:2: another key named \"theirs\" exists already"), "{text}");
    let expected = "
import key.a [name]
create key.b []
s0 = update key.a (key-1)
s1 = create key.b after s0";
    let spec = keys(&[("a", "new"), ("b", "old")]) + &import;
    check(&world, &spec, expected).await;
    world.apply(&spec).await.unwrap();
    assert_eq!(world.cloud.names("key"), ["new", "old", "theirs"]);
}

#[tokio::test(start_paused = true)]
async fn names_pass_from_one_to_the_next_in_order() {
    let world = World::new();
    world.apply(&keys(&[("a", "1"), ("b", "2"), ("c", "3")])).await.unwrap();
    let passed = keys(&[("a", "2"), ("b", "3"), ("c", "4"), ("d", "1")]);
    let expected = "
update key.a [name]
update key.b [name]
update key.c [name]
create key.d []
s0 = update key.c (key-3)
s1 = update key.b (key-2) after s0
s2 = update key.a (key-1) after s1
s3 = create key.d after s2";
    check(&world, &passed, expected).await;
    let report = world.apply(&passed).await.unwrap();
    assert!(report.failures.is_empty(), "{report:?}");
    check(&world, &passed, "").await;
}

#[tokio::test(start_paused = true)]
async fn names_in_a_circle_are_refused() {
    let world = World::new();
    world.apply(&keys(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")])).await.unwrap();
    let spec = keys(&[("a", "2"), ("b", "3"), ("c", "1"), ("d", "5"), ("e", "4")]);
    let (_, diagnostics, _) = world.plan(&spec).await;
    let found: Vec<_> = diagnostics
        .iter()
        .map(|d| format!("{}: {}", d.summary, d.detail.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        found,
        ["unique names would be exchanged in a circle: \
          Each of these waits for another to give up its name: key.a, key.b, key.c."]
    );
}

/// The plan refuses a second object with the same secret name, and its message does not show the name.
#[tokio::test(start_paused = true)]
async fn two_of_one_secret_name_are_refused() {
    let mut world = World::new();
    world.variables.insert("word".to_owned(), "hunter2".to_owned());
    let image = |block: &str| {
        format!("[resource.image.{block}]\nname = \"n-${{var.word}}\"\nkind = \"thin\"\n")
    };
    let variable = "[variable.word]\ntype = \"string\"\nsensitive = true\n";
    let spec = format!("{variable}{}{}", image("a"), image("b"));
    let (_, said, _) = world.plan(&spec).await;
    let said: Vec<_> = said.iter().map(|d| &*d.summary).collect();
    assert_eq!(said, ["two objects would be named the same sensitive text"]);
    world.apply(&format!("{variable}{}", image("a"))).await.unwrap();
    assert!(world.plan(&spec).await.1.has_errors());
}

/// A secret name passes from one block to another without a failure, whichever block is the first by name.
#[tokio::test(start_paused = true)]
async fn a_secret_name_passes_to_another_block_in_order() {
    let mut world = World::new();
    world.variables.insert("word".to_owned(), "hunter2".to_owned());
    let spec = |block: &str| {
        format!(
            "[variable.word]\ntype = \"string\"\nsensitive = true\n\
             [resource.image.{block}]\nname = \"n-${{var.word}}\"\nkind = \"thin\"\n"
        )
    };
    for (old, new) in [("a", "z"), ("z", "b")] {
        world.apply(&spec(old)).await.unwrap();
        let report = world.apply(&spec(new)).await.unwrap();
        assert!(report.failures.is_empty(), "{report:?}");
        assert_eq!(world.cloud.names("image"), ["n-hunter2"]);
    }
}

/// The state does not have a secret name in clear, and the run still finds the object of a lost create by it.
#[tokio::test(start_paused = true)]
async fn a_lost_create_is_found_by_a_secret_name() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let mut world = World::new();
        world.variables.insert("word".to_owned(), "hunter2".to_owned());
        let spec = "[variable.word]\ntype = \"string\"\nsensitive = true\n\
                    [resource.key.k]\nname = \"k-${var.word}\"\n";
        world.cloud.strike(0, fault);
        world.cloud.shared.lock().unwrap().finds_fail = 1;
        assert_eq!(world.apply(spec).await.unwrap().in_doubt.len(), 1);
        let kept = serde_json::to_string(&world.state().await).unwrap();
        assert!(!kept.contains("hunter2"), "{kept}");
        converges(&world, spec).await;
        assert_eq!(world.cloud.names("key"), ["k-hunter2"], "{fault:?}");
        world.destroy(spec).await.unwrap();
        assert!(world.cloud.names("key").is_empty());
    }
}

/// While a delete is in doubt, its object may still have its name. No other key gets the name, because an
/// object with the name could be either of them.
#[tokio::test(start_paused = true)]
async fn a_name_whose_bearers_delete_is_in_doubt_is_given_to_nobody() {
    let key = |block: &str| format!("[resource.key.{block}]\nname = \"n\"\n");
    let world = World::new();
    world.apply(&key("a")).await.unwrap();
    world.cloud.strike(0, Fault::LostAfter);
    world.cloud.fail_reads(1);
    let report = world.apply("").await.unwrap();
    assert_eq!(report.in_doubt.len(), 1, "{report:?}");
    world.cloud.fail_reads(1);
    let text = world.plan_text(&key("b")).await;
    assert!(text.contains("key.b waits for key.a, which may have its name still"), "{text}");
    assert!(!text.contains("create key.b"), "{text}");
    world.cloud.fail_reads(0);
    converges(&world, &key("b")).await;
    assert_eq!(world.cloud.names("key"), ["n"]);
}
