//! What somebody changes while a run is under way, of an object that a call sends whole.

use std::time::Duration;

use engine::schema::Sends;
use engine::state::ObjectId;
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{DISK, World};

/// A cloud whose units are sent whole when they change, in so many calls, and which shows nothing of what
/// they do not have.
async fn world(calls: usize) -> World {
    let mut world = World::new();
    world.cloud.change_type("unit", |unit| {
        for program in &mut unit.update {
            let mut whole = program.phases[0].clone();
            whole.sends = Sends::All;
            program.phases = vec![whole; calls];
        }
    });
    world.cloud.makes = |object| object.retain(|_, value| !value.is_null());
    world.cloud.shared.lock().unwrap().settle = Duration::from_secs(1);
    world.apply(&unit("")).await.unwrap();
    world
}

fn unit(line: &str) -> String {
    format!(
        "[resource.unit.u]\nname = \"u\"\nworkers = 2\n{line}\n\
         lifecycle = {{ ignore_changes = [\"workers\"] }}\n"
    )
}

/// The unit after it was given a disk that came 30 s late, while somebody changed it in between.
async fn changed_meanwhile(world: &World, faults: &[(u64, Fault)]) -> [Value; 3] {
    let spec = format!("{DISK}{}", unit("disk_id = \"${disk.d.id}\""));
    world.cloud.strike(0, Fault::Promised(30));
    world.cloud.shared.lock().unwrap().faults.extend(faults.iter().copied());
    let somebody = async {
        tokio::time::sleep(Duration::from_secs(15)).await;
        let mut shared = world.cloud.shared.lock().unwrap();
        let own = shared.objects.get_mut(&("unit".into(), ObjectId("unit-1".into()))).unwrap();
        own.insert("workers".into(), Value::Integer(5));
        own.insert("image_id".into(), Value::string("theirs"));
    };
    let (report, ()) = tokio::join!(world.apply(&spec), somebody);
    assert!(report.as_ref().unwrap().failures.is_empty(), "{report:?}");
    let shared = world.cloud.shared.lock().unwrap();
    let own = &shared.objects[&("unit".into(), ObjectId("unit-1".into()))];
    ["disk_id", "workers", "image_id"].map(|name| own[name].clone())
}

#[tokio::test(start_paused = true)]
async fn what_others_change_of_a_whole_object_stays_as_they_left_it() {
    let lost = [&[][..], &[(2, Fault::LostAfter)], &[(2, Fault::LostBefore)]];
    for (calls, faults) in [1, 2].into_iter().flat_map(|calls| lost.map(|it| (calls, it))) {
        let world = world(calls).await;
        let [disk, workers, image] = changed_meanwhile(&world, faults).await;
        assert!(disk.same(&Value::string("disk-2")), "{disk:?}");
        assert!(workers.same(&Value::Integer(5)), "{workers:?}");
        assert!(image.same(&Value::string("theirs")), "{image:?}");
    }
}
