//! Secrets that go through several objects on their way: each is computed from the one before it.

use crate::one_time_secrets::attribute;
use crate::world::{World, converges};

const VARIABLE: &str = "[variable.pw]\ntype = \"string\"\nsensitive = true\n";

/// Returns a spec of `count` logins. The password of each is computed from those of the two logins before it.
fn logins(count: usize) -> String {
    let password = |number: usize| match number {
        0 => "${var.pw}".to_owned(),
        1 => "${login.l0.password}".to_owned(),
        _ => format!(
            "${{login.l{}.password == login.l{}.password ? login.l{}.password : \"\"}}",
            number - 1,
            number - 2,
            number - 1
        ),
    };
    let login = |number| {
        format!(
            "[resource.login.l{number}]\nname = 'l{number}'\npassword = '{}'\n",
            password(number)
        )
    };
    (0..count).map(login).collect()
}

fn user(count: usize, workers: u8) -> String {
    let secret = format!("p-${{login.l{}.password}}", count - 1);
    format!("[resource.unit.u]\nname = 'u'\nworkers = {workers}\nsecret = '{secret}'\n")
}

/// The state has only fingerprints of the passwords. A run computes the last one from the spec, for the
/// create and for an update of the unit that uses it.
#[tokio::test(start_paused = true)]
async fn what_uses_the_last_is_made_and_changed_later() {
    for count in [1, 2, 3, 60] {
        let mut world = World::new();
        world.variables.insert("pw".to_owned(), "hunter2".to_owned());
        let chain = format!("{VARIABLE}{}", logins(count));
        for spec in [chain.clone(), chain.clone() + &user(count, 1), chain + &user(count, 2)] {
            let report = world.apply(&spec).await.unwrap();
            assert!(report.failures.is_empty(), "{count}: {:?}", report.failures);
            converges(&world, &spec).await;
        }
        let secret = attribute(&world, "unit", "secret");
        assert_eq!(secret.as_ref().and_then(|it| it.as_str()), Some("p-hunter2"), "{count}");
    }
}
