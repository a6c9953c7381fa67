//! Many resources: the time and the memory of a command grow no faster than their number.
//!
//! `benches/scale.py` measures the time of commands. This test measures only the growth, with a wide margin:
//! eight times the resources may take twenty-four times as long. Code that looks at each pair of resources
//! takes sixty-four times.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::harness::Project;

const FEW: usize = 400;
const GROWTH: usize = 8;
const SLOWER_MAX: u32 = 24;

/// Returns a spec of resources that each refer to one shared resource and to the one before.
fn spec(count: usize) -> String {
    let mut text = "[plumb]\nname = \"scale\"\n[resource.value.base]\ninput = 1\n".to_owned();
    for n in 0..count {
        let before = if n % 10 == 0 { "base".to_owned() } else { format!("r{}", n - 1) };
        let _ = writeln!(
            text,
            "[resource.value.r{n}]\ninput = {{ n = {n}, id = \"${{value.base.id}}\", before = \"${{value.{before}.id}}\" }}"
        );
    }
    text
}

/// Returns the shortest time of each command.
fn times(count: usize) -> Vec<(&'static str, Duration)> {
    let commands: [(&str, &[&str]); 4] = [
        ("plan from nothing", &["plan", "."]),
        ("apply", &["apply", ".", "--yes"]),
        ("plan without a change", &["plan", "."]),
        ("destroy", &["destroy", ".", "--yes"]),
    ];
    let mut best = Vec::new();
    for _ in 0..2 {
        let project = Project::new(&spec(count));
        for (at, (name, arguments)) in commands.iter().enumerate() {
            let began = Instant::now();
            project.run(arguments).expect(0);
            let took = began.elapsed();
            match best.get_mut(at) {
                Some((_, least)) => *least = took.min(*least),
                None => best.push((*name, took)),
            }
        }
    }
    best
}

#[test]
fn time_grows_no_faster_than_the_spec() {
    for ((name, few), (_, many)) in times(FEW).into_iter().zip(times(FEW * GROWTH)) {
        let bound = few * SLOWER_MAX;
        assert!(many <= bound, "{name}: {FEW} took {few:?}, {GROWTH} times as many {many:?}");
    }
}
