//! Specs of many blocks: what they make is the same however it is made, and needs no deep stack.

use std::fmt::Write as _;
use std::thread;

use engine::work::Workers;

use crate::world::World;

/// More than the planner looks at in one go.
const MANY: usize = 9_000;

/// Each part on a thread of its own, the last one first.
struct Crowd;

impl Workers for Crowd {
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        thread::scope(|scope| {
            for number in (0..parts).rev() {
                scope.spawn(move || part(number));
            }
        });
    }
}

/// Blocks that refer to two others, chains of ten, and a block with many instances; those whose
/// number `is_wrong` cannot be evaluated.
fn spec(many: usize, is_wrong: impl Fn(usize) -> bool) -> String {
    let mut text = String::from(
        "[local]\nkeys = \"${[for i in range(0, 600) : tostring(i)]}\"\nlast = '${value.z.id}'\n\
         [resource.value.left]\ninput = 1\n[resource.value.z]\ninput = \"${value.left.id}\"\n\
         [resource.value.many]\nfor_each = \"${local.keys}\"\n\
         input = { key = '${each.key}', left = '${value.left.output}' }\n",
    );
    for i in 0..many {
        let input = match i {
            _ if is_wrong(i) => "${[][1]}".to_owned(),
            _ if i % 10 > 7 => format!("${{value.r{}.output}}", i - 1),
            _ => format!("{i} ${{value.left.output}} ${{local.last}}"),
        };
        writeln!(text, "[resource.value.r{i}]\ninput = '{input}'").unwrap();
    }
    text
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_the_same_whoever_looks_at_the_instances() {
    let (mut alone, mut many) = (World::new(), World::new());
    many.workers = &Crowd;
    let plans = async |world: &World, spec: &str| {
        let (plan, diagnostics, _) = world.plan(spec).await;
        (plan, diagnostics)
    };
    for spec in [spec(MANY, |_| false), spec(700, |i| i % 300 == 5)] {
        assert_eq!(plans(&alone, &spec).await, plans(&many, &spec).await);
    }
    for world in [&mut alone, &mut many] {
        world.apply(&spec(300, |_| false)).await.unwrap();
    }
    for spec in [spec(300, |_| false), spec(700, |i| i == 650), spec(280, |_| false)] {
        assert_eq!(plans(&alone, &spec).await, plans(&many, &spec).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_chain_of_locals_needs_no_deep_stack() {
    let mut text =
        String::from("[resource.value.z]\ninput = 0\n[local]\nl0 = '${value.z.output}'\n");
    for i in 1..20_000 {
        writeln!(text, "l{i} = '${{local.l{} == 1 ? 2 : {i}}}'", i - 1).unwrap();
    }
    text.push_str("[resource.value.a]\ninput = '${local.l19999}'\n");
    let plan = World::new().plan_text(&text).await;
    assert!(plan.contains("create value.a"), "{plan}");
}
