//! What no answer shows.

use std::sync::Arc;

use engine::schema::Sends;
use engine::state::Snapshot;
use engine::value::Value;

use crate::cloud::Fault;
use crate::shapes;
use crate::world::{DISK, World, as_file, converges, show};

pub(crate) const LOGIN: &str = r#"
[variable.pw]
type = "string"
sensitive = true

[resource.login.l]
name = "l"
password = "${var.pw}"
"#;

fn password(world: &World) -> Value {
    let shared = world.cloud.shared.lock().unwrap();
    shared.objects.values().next().unwrap()["password"].clone()
}

/// A world whose updates of a login send all of it.
fn sends_all() -> World {
    let mut world = World::new();
    let mut schema = shapes::schema();
    let login = Arc::make_mut(schema.types.get_mut("login").unwrap());
    login.update[0].phases[0].sends = Sends::These(["name".into(), "password".into()].into());
    world.cloud.schema = Arc::new(schema);
    world.variables.insert("pw".to_owned(), "old".to_owned());
    world
}

const IGNORES: &str = "lifecycle = { ignore_changes = [\"password\"] }\n";

/// What the spec ignores and says all the same is there to be sent along.
#[tokio::test(start_paused = true)]
async fn an_ignored_password_that_is_the_same_is_sent_along() {
    let world = sends_all();
    let ignoring = format!("{LOGIN}{IGNORES}");
    converges(&world, &ignoring).await;
    converges(&world, &ignoring.replace("name = \"l\"", "name = \"m\"")).await;
    assert_eq!(password(&world), Value::string("old"));
}

/// Nobody has the one that is to stay, and the plan says so.
#[tokio::test(start_paused = true)]
async fn an_ignored_password_that_is_another_cannot_be_sent_along() {
    let mut world = sends_all();
    let ignoring = format!("{LOGIN}{IGNORES}");
    converges(&world, &ignoring).await;
    world.variables.insert("pw".to_owned(), "new".to_owned());
    assert_eq!(world.plan_text(&ignoring).await, "");
    let (plan, found, sources) =
        world.plan(&ignoring.replace("name = \"l\"", "name = \"m\"")).await;
    insta::assert_snapshot!(show(&plan, &found, &sources), @"
    update login.l [name]
    s0 = update login.l (login-1)
    error:8: the update of login.l sends its `password` along
    ");
}

/// Nor does anybody have the one of what was taken over.
#[tokio::test(start_paused = true)]
async fn a_password_that_nobody_ever_had_cannot_be_sent_along() {
    let world = sends_all();
    let found = world.cloud.put("login", &[("name", Value::string("theirs"))]);
    let import = format!("[[import]]\nto = \"login.l\"\nid = \"{}\"\n", found.0);
    let ignoring = format!("{LOGIN}{IGNORES}");
    world.apply(&format!("{import}{}", ignoring.replace("\"l\"", "\"theirs\""))).await.unwrap();
    let text = world.plan_text(&ignoring).await;
    assert!(text.contains("error:8: the update of login.l sends its `password` along"), "{text}");
}

/// No answer shows a password, so none proves that it was changed.
#[tokio::test(start_paused = true)]
async fn a_password_whose_change_was_lost_is_sent_again() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let mut world = World::new();
        world.variables.insert("pw".to_owned(), "old".to_owned());
        world.apply(LOGIN).await.unwrap();
        world.variables.insert("pw".to_owned(), "new".to_owned());
        world.cloud.strike(0, fault);
        let report = world.apply(LOGIN).await.unwrap();
        assert_eq!((report.summary.updated, password(&world)), (1, Value::string("new")));
        assert_eq!(world.plan_text(LOGIN).await, "");
    }
}

/// A change of what is shown is proved by it, whatever else the object has.
#[tokio::test(start_paused = true)]
async fn a_shown_change_beside_a_password_is_not_sent_twice() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "old".to_owned());
    world.apply(LOGIN).await.unwrap();
    world.cloud.take_log();
    world.cloud.strike(0, Fault::LostAfter);
    world.apply(&LOGIN.replace("name = \"l\"", "name = \"m\"")).await.unwrap();
    assert_eq!(world.cloud.take_log(), ["update login"]);
}

/// A run that dies after the change of a password was sent leaves it to the next plan.
#[tokio::test(start_paused = true)]
async fn a_password_whose_change_was_cut_off_is_planned_again() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "old".to_owned());
    world.apply(LOGIN).await.unwrap();
    world.variables.insert("pw".to_owned(), "new".to_owned());
    world.cloud.strike(0, Fault::LostBefore);
    world.cloud.fail_reads(1);
    assert_eq!(world.apply(LOGIN).await.unwrap().in_doubt.len(), 1);
    let text = world.plan_text(LOGIN).await;
    assert!(text.contains("update login.l [password]"), "{text}");
    converges(&world, LOGIN).await;
    assert_eq!(password(&world), Value::string("new"));
}

/// Whether what was lost took effect or not: the spec's word is sent once more, and then all is said.
#[tokio::test(start_paused = true)]
async fn a_password_whose_change_is_taken_back_after_it_was_lost_is_sent() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        for is_cut_off in [true, false] {
            let mut world = World::new();
            world.variables.insert("pw".to_owned(), "old".to_owned());
            world.apply(LOGIN).await.unwrap();
            world.variables.insert("pw".to_owned(), "new".to_owned());
            for call in 0..3 {
                world.cloud.strike(call, fault);
            }
            world.cloud.fail_reads(u64::from(is_cut_off));
            let report = world.apply(LOGIN).await.unwrap();
            assert_eq!(report.in_doubt.len(), usize::from(is_cut_off));
            for failure in report.failures {
                let tells = "gave up after 3 attempts; looked it up: nothing shows whether it \
                             happened; the last: cut";
                assert!(failure.message.starts_with(tells), "{}", failure.message);
            }
            world.cloud.shared.lock().unwrap().faults.clear();
            world.cloud.take_log();
            world.variables.insert("pw".to_owned(), "old".to_owned());
            converges(&world, LOGIN).await;
            assert_eq!(password(&world), Value::string("old"));
            assert_eq!(world.cloud.take_log(), ["update login"], "{fault:?} {is_cut_off}");
        }
    }
}

/// What the object shows beside it proves that nothing happened, and is said.
#[tokio::test(start_paused = true)]
async fn a_shown_change_proves_that_nothing_happened() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "old".to_owned());
    world.apply(LOGIN).await.unwrap();
    world.variables.insert("pw".to_owned(), "new".to_owned());
    for call in 0..3 {
        world.cloud.strike(call, Fault::LostBefore);
    }
    let renamed = LOGIN.replace("name = \"l\"", "name = \"m\"");
    let report = world.apply(&renamed).await.unwrap();
    let message = &report.failures[0].message;
    let tells = "gave up after 3 attempts; looked it up: nothing changed; the last: cut";
    assert!(message.starts_with(tells), "{message}");
    converges(&world, &renamed).await;
    assert_eq!(password(&world), Value::string("new"));
}

/// The plan says it, before anything is called.
#[tokio::test(start_paused = true)]
async fn a_secret_that_would_not_be_sent_is_no_plan() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "old".to_owned());
    world.cloud.shared.lock().unwrap().is_foreign = true;
    let (plan, said, sources) = world.plan(LOGIN).await;
    insta::assert_snapshot!(show(&plan, &said, &sources), @"
    create login.l []
    s0 = create login.l
    s1 = activate login.l after s0
    error:6: `password` is not sent there
    ");
    // What carries none is planned, and so is the end of what carried one.
    let variable = "[variable.pw]\ntype = \"string\"\nsensitive = true\n";
    let plain = world.plan(&format!("{variable}{DISK}")).await.1;
    assert!(!plain.has_errors(), "{plain:?}");
    world.cloud.shared.lock().unwrap().is_foreign = false;
    world.apply(LOGIN).await.unwrap();
    world.cloud.shared.lock().unwrap().is_foreign = true;
    assert!(!world.plan(LOGIN).await.1.has_errors(), "nothing is sent");
    world.apply(variable).await.unwrap();
    assert!(world.cloud.names("login").is_empty());
}

/// What was no secret when it was written down is sealed by the run that learns that it is one.
#[tokio::test(start_paused = true)]
async fn what_becomes_a_secret_is_sealed() {
    let mut world = World::new();
    world.variables.insert("word".to_owned(), "hunter2".to_owned());
    let open = "[variable.word]\ntype = \"string\"\n\
                [resource.value.v]\ninput = { a = \"${var.word}\" }\n\
                [resource.unit.u]\nname = \"u\"\nsecret = \"${var.word}\"\n\
                [output.o]\nvalue = \"${var.word}\"\n";
    world.apply(open).await.unwrap();
    let kept = |state: Snapshot| serde_json::to_string(&state).unwrap();
    assert!(kept(world.state().await).contains("hunter2"));
    let secret = open
        .replace("\"string\"\n", "\"string\"\nsensitive = true\n")
        .replace("[output.o]\n", "[output.o]\nsensitive = true\n");
    world.apply(&secret).await.unwrap();
    assert!(!kept(world.state().await).contains("hunter2"), "{}", kept(world.state().await));
    assert_eq!(world.plan_text(&secret).await, "");
}

/// A key may be the secret: neither the state nor a plan shows it.
#[tokio::test(start_paused = true)]
async fn keys_of_what_is_secret_are_secret() {
    let mut world = World::new();
    world.variables.insert("word".to_owned(), "hunter2".to_owned());
    let spec = format!(
        "[variable.word]\ntype = \"string\"\nsensitive = true\n{DISK}\
         [resource.value.known]\ninput = '${{zipmap([var.word], [1])}}'\n\
         [resource.value.partly]\ninput = '${{zipmap([var.word], [disk.d.id])}}'\n"
    );
    let plan = world.plan(&spec).await.0;
    let text = as_file(&plan);
    assert!(!text.contains("hunter2"), "{text}");
    world.apply(&spec).await.unwrap();
    let state = serde_json::to_string(&world.state().await).unwrap();
    assert!(!state.contains("hunter2"), "{state}");
    assert_eq!(world.plan_text(&spec).await, "");
}

/// What is known only before the call is checked then, and shown no more than in a plan.
#[tokio::test(start_paused = true)]
async fn a_bound_that_a_secret_breaks_does_not_show_it() {
    let mut world = World::new();
    world.variables.insert("n".to_owned(), "4711".to_owned());
    let spec = "[variable.n]\ntype = \"integer\"\nsensitive = true\n\
                [resource.image.i]\nname = \"i\"\n\
                [resource.disk.d]\nname = \"d\"\nzone = \"eu\"\n\
                size = \"${var.n * length(image.i.id)}\"\n";
    let report = world.apply(spec).await.unwrap();
    let failure = &report.failures[0];
    assert_eq!(failure.message, "the value of `size` may be at most 4000 GB");
    assert!(!format!("{report:?} {:?}", world.told.lock().unwrap()).contains("4711"));
}

/// The key of an instance may be a secret, and a mistake in it is one all the more.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_secret_and_wrong_is_not_shown() {
    let mut world = World::new();
    world.variables.insert("key".to_owned(), "hunter2".to_owned());
    let spec = "[variable.key]\ntype = \"string\"\nsensitive = true\n\
                [resource.image.i]\nfor_each = [\"a\", \"hunter3\"]\nname = \"${each.key}\"\n\
                [resource.unit.u]\nname = \"u\"\nsecret = \"${image.i[var.key].id}\"\n";
    let (_, found, _) = world.plan(spec).await;
    let text = format!("{found:?}");
    assert!(text.contains("`image.i` has no such key"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

/// What is made twice is made with the same secrets.
#[tokio::test(start_paused = true)]
async fn a_twin_rests_as_sealed_as_what_it_is_a_twin_of() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "hunter2".to_owned());
    let spec = "[variable.pw]\ntype = \"string\"\nsensitive = true\n\
                [resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"${base64encode(var.pw)}\"\n";
    world.cloud.strike(0, Fault::Doubled);
    world.apply(spec).await.unwrap();
    let (plan, ..) = world.plan(spec).await;
    assert_eq!(plan.steps.len(), 1, "the twin is to go");
    let text = as_file(&plan);
    assert!(!text.contains("aHVudGVy"), "{text}");
    world.cloud.strike(0, Fault::Refused);
    world.apply(spec).await.unwrap();
    let state = serde_json::to_string(&world.state().await).unwrap();
    assert!(state.contains("\"deposed\"") && !state.contains("aHVudGVy"), "{state}");
    converges(&world, spec).await;
}
