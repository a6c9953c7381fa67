//! Attributes that no answer shows, such as passwords.

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

/// Returns a world where an update of a login sends the whole login.
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

/// The spec ignores the password, and still has the one that the login has, so an update sends it along.
#[tokio::test(start_paused = true)]
async fn an_ignored_password_that_is_the_same_is_sent_along() {
    let world = sends_all();
    let ignoring = format!("{LOGIN}{IGNORES}");
    converges(&world, &ignoring).await;
    converges(&world, &ignoring.replace("name = \"l\"", "name = \"m\"")).await;
    assert_eq!(password(&world), Value::string("old"));
}

/// The spec ignores the password, and has another one by now. Nobody has the password that is to stay, so
/// the plan refuses an update that would send it along.
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

/// Nobody has the password of an imported login, so the plan refuses an update that would send it along.
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

/// The change of a password is lost. No answer shows a password, so the run sends the change again.
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

/// The answer to a rename is lost. A read shows the new name, so the run does not send the rename again.
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

/// The change of a password is in doubt at the end of a run. The next plan sends it again.
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

/// The change of a password is lost, and the next spec takes it back. The run sends the old password once,
/// whether the lost change took effect or not.
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

/// A lost update changes the name and the password. The name that the login shows proves that nothing
/// happened, and the message says so.
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

/// The provider does not send secrets to the place of its API. The plan has that error, before any call.
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
    // A spec without secrets is planned, and so is the delete of an object that has one.
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

/// A value becomes a secret after the state got it. The next run seals it in the state.
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

/// A key of a map is a secret. Neither the state nor a plan shows it.
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

/// A size that is made of a secret is known only right before its call, and is too large. The message does
/// not show the size.
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

/// A secret is used as a key of an instance, and there is no such instance. The message does not show the
/// key.
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

/// A twin has the same secrets as its object. Plans and the state have them sealed.
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
