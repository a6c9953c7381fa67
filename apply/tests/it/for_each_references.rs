//! Instances that are made for the instances of another block, and references whose key is known only in a
//! run.

use engine::address::Address;
use engine::plan::input::{Options, Target};
use engine::state::Snapshot;

use crate::world::{World, converges};

/// Returns a spec with images, and a unit for each of them. `way` is the number of the way in which a unit
/// gets its image by `each.value`.
fn chained(way: usize, keys: &str) -> String {
    let (local, for_each, value) = [
        ("", "${image.base}", "each.value.id"),
        ("", "${{ for k, v in image.base : k => v.id }}", "each.value"),
        (
            "[local]\nof = '${{ for k, v in image.base : k => v.id if v != null }}'\n",
            "${local.of}",
            "each.value",
        ),
        ("", "${{ for k, v in image.base : \"${k}-x\" => v }}", "each.value.id"),
        // The `for` reads a local beside its entry.
        (
            "[local]\nend = \"x\"\n",
            "${{ for k in keys(image.base) : \"${k}-${local.end}\" => image.base[k].id }}",
            "each.value",
        ),
        (
            "",
            "${merge({ for k, v in { for k, v in image.base : upper(k) => v } : \"${lower(k)}-x\" => v }, {})}",
            "each.value.id",
        ),
        // The engine cannot tell which image an entry is made of.
        (
            "",
            "${{ for i, k in keys(image.base) : \"${k}-x\" => values(image.base)[i].id }}",
            "each.value",
        ),
    ][way];
    format!(
        "{local}[resource.image.base]\nfor_each = {keys}\nname = \"base-${{each.key}}\"\nkind = \"thin\"\n\
         [resource.unit.chat]\nfor_each = '{for_each}'\nname = \"chat-${{each.key}}\"\n\
         image_id = \"${{{value}}}\"\n"
    )
}

const WAYS: std::ops::Range<usize> = 0..7;

fn dependencies(state: &Snapshot, address: &str) -> Vec<String> {
    let address: Address = address.parse().unwrap();
    state.entries[&address].dependencies.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn what_an_instance_gets_by_each_is_made_before_it() {
    for way in WAYS {
        let world = World::new();
        let spec = chained(way, "[\"a\", \"b\"]");
        converges(&world, &spec).await;
        let own = dependencies(
            &world.state().await,
            &format!("unit.chat[\"{}\"]", if way < 3 { "a" } else { "a-x" }),
        );
        let all = ["image.base[\"a\"]", "image.base[\"b\"]"];
        assert_eq!(own, if way == 6 { &all[..] } else { &all[..1] }, "{way}");
    }
}

/// An earlier run made the images, so their ids were known when the units were made. A later run still
/// deletes a unit before its image.
#[tokio::test(start_paused = true)]
async fn what_an_instance_got_by_each_goes_after_it() {
    for way in WAYS {
        let world = World::new();
        let both = chained(way, "[\"a\", \"b\"]");
        let images = both.split("[resource.unit").next().unwrap();
        world.apply(images).await.unwrap();
        world.apply(&both).await.unwrap();
        let one = chained(way, "[\"a\"]");
        let report = world.apply(&one).await.unwrap();
        assert_eq!(report.failures, [], "{way}");
        assert_eq!((world.cloud.names("image").len(), world.cloud.names("unit").len()), (1, 1));
        let report = world.destroy(&one).await.unwrap();
        assert_eq!(report.failures, [], "{way}");
    }
}

/// `value.pick` refers to an instance whose key is known only in the run. It depends on all instances of
/// the block, so each of them exists before it.
#[tokio::test(start_paused = true)]
async fn an_instance_whose_key_is_known_late_is_one_of_all() {
    let spec = r#"
[resource.value.region]
for_each = ["eu", "us"]
input = "${each.key}"
[resource.value.seed]
[resource.value.pick]
input = '${value.region[startswith(value.seed.id, "a") ? "eu" : "us"].id}'
"#;
    let world = World::new();
    converges(&world, spec).await;
    let all = ["value.region[\"eu\"]", "value.region[\"us\"]", "value.seed"];
    assert_eq!(dependencies(&world.state().await, "value.pick"), all);
}

/// A block of logins gets `for_each` in the same plan in which a value uses the passwords of all instances.
#[tokio::test(start_paused = true)]
async fn a_block_gets_instances_while_all_of_it_makes_a_secret() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "hunter-two".to_owned());
    let spec = |login: &str, secret: &str| {
        format!(
            "[variable.pw]\ntype = \"string\"\nsensitive = true\n\
             [resource.login.l]\n{login}password = \"${{var.pw}}\"\n\
             [resource.value.u]\ninput = '{secret}'\n"
        )
    };
    world.apply(&spec("name = \"l\"\n", "${login.l.password}")).await.unwrap();
    let many = "for_each = [\"a\", \"b\"]\nname = \"l-${each.key}\"\n";
    converges(&world, &spec(many, "${join(\",\", values(login.l)[*].password)}")).await;
}

/// An output uses a sensitive variable through a local. The saved plan asks for that variable.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_asks_for_the_variable_behind_a_local() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "hunter-two".to_owned());
    let spec = "[variable.pw]\ntype = \"string\"\nsensitive = true\n\
                [local]\ndsn = \"app:${var.pw}@${value.v.id}\"\n\
                [resource.value.v]\n[resource.value.other]\n[output.dsn]\nsensitive = true\nvalue = \"${local.dsn}\"\n";
    let first = "[variable.pw]\ntype = \"string\"\n[resource.value.other]\n";
    world.apply(first).await.unwrap();
    let (plan, ..) = world.plan(spec).await;
    world.apply_saved(&plan).await.unwrap();
    assert_eq!(world.plan_text(spec).await, "");
    assert!(world.state().await.outputs.contains_key("dsn"));
}

/// A plan for another part of the spec leaves a twin alone; a plan that includes its address deletes it.
#[tokio::test(start_paused = true)]
async fn a_leftover_outside_what_was_chosen_stays_for_now() {
    let world = World::new();
    world.apply(crate::world::DISK).await.unwrap();
    let nonce = world.state().await.watched[0].nonce.clone();
    let name = engine::value::Value::String(nonce.0.clone());
    world.cloud.put("disk", &[("name", name)]);
    let both = format!("{}[resource.value.v]\n", crate::world::DISK);
    let narrow =
        Options { targets: vec![Target::Block("value.v".parse().unwrap())], ..Options::default() };
    let (plan, ..) = world.plan_with(&both, &narrow).await;
    assert!(plan.changes.iter().all(|change| !change.deposed), "{plan:?}");
    let (plan, ..) = world.plan(&both).await;
    assert_eq!(plan.changes.iter().filter(|change| change.deposed).count(), 1);
}
