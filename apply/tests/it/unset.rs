//! Attributes that the spec no longer gives, under faults: they are cleared in the end, whatever answers a
//! run got.

use engine::schema::{Operation, Program, Sends, Unset};
use engine::value::Value;

use crate::cloud::Fault;
use crate::shapes::phase;
use crate::world::{World, converges};

const SITE: &str = "[resource.site.s]\nname = \"s\"\nlabel = \"x\"\nregion = \"eu\"\n";

/// Returns an attribute of the only object of a type, or null if the object does not have it.
fn of(world: &World, ty: &str, name: &str) -> Value {
    let shared = world.cloud.shared.lock().unwrap();
    let (_, object) = shared.objects.iter().find(|((own, _), _)| &**own == ty).unwrap();
    object.get(name).cloned().unwrap_or(Value::Null)
}

#[tokio::test(start_paused = true)]
async fn a_clearing_update_whose_answer_is_lost_is_sent_again() {
    for name in ["label", "region"] {
        let line = if name == "label" { "label = \"x\"\n" } else { "region = \"eu\"\n" };
        for fault in [Fault::LostBefore, Fault::LostAfter] {
            let world = World::new();
            world.apply(SITE).await.unwrap();
            let bare = SITE.replace(line, "");
            world.cloud.strike(0, fault);
            world.apply(&bare).await.unwrap();
            converges(&world, &bare).await;
            let cleared = if name == "label" { Value::Null } else { Value::string("the default") };
            assert_eq!(of(&world, "site", name), cleared, "{name} {fault:?}");
        }
    }
}

/// An update has two calls, and the second one clears the size. The next run clears it if only the first call
/// was done.
#[tokio::test(start_paused = true)]
async fn what_a_later_phase_clears_counts_until_that_is_done() {
    for fault in [Fault::Refused, Fault::LostBefore, Fault::LostAfter] {
        let mut world = World::new();
        world.cloud.change_type("host", |host| {
            let size = host.attributes.get_mut("size").unwrap();
            size.unset = Some(Unset::Value(Value::Null));
            let name = Sends::These(["name".into()].into());
            host.update = vec![Program {
                when: None,
                phases: vec![
                    phase(Operation::Update, name),
                    phase(Operation::Update, Sends::These(["size".into()].into())),
                ],
            }];
        });
        world.apply("[resource.host.h]\nname = \"h\"\nsize = 1\n").await.unwrap();
        let bare = "[resource.host.h]\nname = \"other\"\n";
        world.cloud.strike(1, fault);
        world.cloud.fail_reads(2);
        world.apply(bare).await.unwrap();
        world.cloud.fail_reads(0);
        converges(&world, bare).await;
        assert_eq!(of(&world, "host", "size"), Value::Null, "{fault:?}");
    }
}

/// A value that only the apply knows turns out to be null, and the attribute is cleared.
#[tokio::test(start_paused = true)]
async fn what_turns_out_to_be_null_is_cleared() {
    let world = World::new();
    world.apply(SITE).await.unwrap();
    let other = "[resource.host.h]\nname = \"h\"\n";
    let null = SITE.replace("\"x\"", "'${host.h.starts == 9 ? host.h.id : null}'");
    converges(&world, &format!("{other}{null}")).await;
    assert_eq!(of(&world, "site", "label"), Value::Null);
}

/// A cleared value is live again, and the next run clears it again.
#[tokio::test(start_paused = true)]
async fn a_value_that_comes_back_is_cleared_again() {
    let world = World::new();
    world.apply(SITE).await.unwrap();
    let bare = SITE.replace("label = \"x\"\n", "");
    world.apply(&bare).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        let mut sites = shared.objects.iter_mut().filter(|((own, _), _)| &**own == "site");
        let (_, site) = sites.next().unwrap();
        site.insert("label".into(), Value::string("x"));
    }
    converges(&world, &bare).await;
    assert_eq!(of(&world, "site", "label"), Value::Null);
}
