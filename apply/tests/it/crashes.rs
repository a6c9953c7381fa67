//! Runs that die at each write of their store: the next run finishes what was begun.

use engine::schema::Identity;
use engine::value::Value;

use crate::world::World;

const SPEC: &str = r#"
[local]
keys = ["a", "b", "c"]

[resource.disk.d]
for_each = "${local.keys}"
name = "d-${each.key}"
size = 10
zone = "eu"

[resource.unit.u]
for_each = "${local.keys}"
name = "u-${each.key}"
disk_id = "${disk.d[each.key].id}"
workers = 2
"#;

/// Applies with a store that fails after `writes` writes. Returns true if the run died of that.
async fn die(world: &World, spec: &str, writes: u64) -> bool {
    world.store.fail_after(Some(writes));
    let died = world.apply(spec).await.is_err();
    world.store.fail_after(None);
    died
}

async fn whole(world: &World, spec: &str, what: &str) {
    world.apply(spec).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let text = world.plan_text(spec).await;
    assert_eq!(text, "", "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_create_loses_and_doubles_nothing() {
    let mut writes = 0;
    loop {
        let world = World::new();
        let stranger = world.cloud.put("disk", &[("name", Value::string("d-a"))]);
        let died = die(&world, SPEC, writes).await;
        whole(&world, SPEC, &format!("after {writes} writes")).await;
        assert_eq!(world.cloud.names("disk"), ["d-a", "d-a", "d-b", "d-c"], "{writes}");
        assert_eq!(world.cloud.names("unit"), ["u-a", "u-b", "u-c"], "{writes}");
        let shared = world.cloud.shared.lock().unwrap();
        assert!(shared.objects.contains_key(&("disk".into(), stranger)));
        drop(shared);
        if !died {
            break;
        }
        writes += 1;
    }
    assert!(writes > 4, "the loop saw only {writes} writes");
}

/// The next run finds the key of a killed create by the id that the spec chose, and deletes it, also if the
/// spec does not have the key any more.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_create_under_an_id_of_the_specs() {
    for writes in 1.. {
        let mut world = World::new();
        world.cloud.change_type("key", |key| {
            key.identity = Identity::ClientId { attribute: "name".into() };
        });
        let died = die(&world, "[resource.key.k]\nname = \"k\"\n", writes).await;
        world.apply("[local]\n").await.unwrap();
        assert!(world.cloud.names("key").is_empty(), "an orphan after {writes} writes");
        if !died {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_change_or_an_end_is_finished() {
    let changed = SPEC.replace("size = 10", "size = 20").replace("workers = 2", "workers = 5");
    let fewer = SPEC.replace(r#"["a", "b", "c"]"#, r#"["a"]"#);
    for target in [changed.as_str(), fewer.as_str(), "[local]\n"] {
        let mut writes = 0;
        loop {
            let world = World::new();
            world.apply(SPEC).await.unwrap();
            let died = die(&world, target, writes).await;
            whole(&world, target, &format!("{target} after {writes} writes")).await;
            let left = world.cloud.names("disk").len();
            assert_eq!(left, if target == changed { 3 } else { usize::from(target == fewer) });
            if !died {
                break;
            }
            writes += 1;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_the_spec_changed_its_mind() {
    // The creates were begun, and the next spec has no resource any more.
    for writes in 0..8 {
        let world = World::new();
        die(&world, SPEC, writes).await;
        whole(&world, "[local]\n", &format!("{writes}")).await;
        assert!(world.cloud.names("disk").is_empty(), "{writes}");
        assert!(world.cloud.names("unit").is_empty(), "{writes}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_a_delete_whose_spec_changed_its_mind_again() {
    // The killed run drained and deleted some of the objects; the next spec has all of them again.
    for writes in 0..8 {
        let world = World::new();
        world.apply(SPEC).await.unwrap();
        die(&world, "[local]\n", writes).await;
        whole(&world, SPEC, &format!("{writes}")).await;
        assert_eq!(world.cloud.names("disk"), ["d-a", "d-b", "d-c"], "{writes}");
        let shared = world.cloud.shared.lock().unwrap();
        let units = shared.objects.iter().filter(|((ty, _), _)| &**ty == "unit");
        let workers: Vec<_> = units.map(|(_, unit)| unit["workers"].clone()).collect();
        assert_eq!(workers, vec![Value::Integer(2); 3], "nothing stays drained: {writes}");
    }
}
