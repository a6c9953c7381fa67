//! Specs of many blocks: the plan is the same whichever workers evaluate it, and needs no deep stack.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use engine::work::Workers;

use crate::world::World;

/// A number of blocks that is larger than one batch of the planner.
const MANY: usize = 9_000;

/// Workers that do each part on a thread of its own, and start the last part first.
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

/// Returns a spec with `many` blocks and a block with 600 instances. Of each ten blocks, eight refer to two
/// other blocks, and two to the block before them. A block whose number `is_wrong` cannot be evaluated.
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

/// Returns a spec with the local map `services` of `INSTANCES` entries, followed by `shape`: blocks in which
/// an instance may come to hold, or to read, the values of all instances.
fn instances(shape: &str) -> String {
    let mut text = String::from(
        "[variable.pw]\ntype = \"string\"\nsensitive = true\ndefault = \"hunter-two\"\n[local.services]\n",
    );
    for i in 0..INSTANCES {
        writeln!(text, "k{i} = {{ name = \"n{i}\", size = {i} }}").unwrap();
    }
    text + shape
}

const INSTANCES: usize = 1_500;

#[tokio::test(start_paused = true)]
async fn what_an_instance_takes_does_not_grow_with_how_many_there_are() {
    let secret = "[local]\nwith = '${{ for k, v in local.services : k => { name = v.name, pw = \"${var.pw}-${k}\" } }}'\n";
    let shapes = [
        // A part of each entry is secret, and the rest is not.
        format!(
            "{secret}[resource.value.v]\nfor_each = \"${{local.with}}\"\ninput = '${{each.value.pw}}'\n"
        ),
        format!(
            "{secret}[resource.value.v]\nfor_each = \"${{local.services}}\"\ninput = '${{local.with[each.key].pw}}'\n"
        ),
        // One value reads all instances of a block.
        "[resource.value.v]\nfor_each = \"${local.services}\"\n\
         [resource.value.sum]\ninput = '${join(\",\", values(value.v)[*].id)}'\n"
            .to_owned(),
        // A block has its instances from another block, under other keys.
        "[resource.value.v]\nfor_each = \"${local.services}\"\n[resource.value.w]\n\
         for_each = '${{ for k, v in value.v : \"${k}-x\" => v.id }}'\ninput = \"${each.value}\"\n"
            .to_owned(),
    ];
    for shape in shapes {
        let (world, spec, since) = (World::new(), instances(&shape), Instant::now());
        let report = world.apply(&spec).await.unwrap();
        assert_eq!(report.failures, [], "{shape}");
        assert_eq!(world.plan_text(&spec).await, "", "{shape}");
        // This takes a second or two. It took minutes when each instance held the values of all.
        assert!(since.elapsed() < Duration::from_mins(1), "{:?} {shape}", since.elapsed());
    }
}
