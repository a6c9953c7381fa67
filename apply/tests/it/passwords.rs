//! What no answer shows.

use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{DISK, World, converges, show};

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
