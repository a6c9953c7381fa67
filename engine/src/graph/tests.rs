//! Tests of the graph: the text of a spec goes in, the order or the diagnostic of a cycle comes out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::config::resolve::ResolveInput;
use crate::config::testing::{assert_lines, lines, schema, sources};

fn graph(text: &str) -> (Graph, String) {
    let (sources, files) = sources(text);
    let (document, diagnostics) = crate::config::parse::parse(&sources, &files);
    assert_lines(&lines(&sources, &diagnostics), "");
    let input = ResolveInput {
        providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
        ..ResolveInput::default()
    };
    let (config, diagnostics) = crate::config::resolve::resolve(&document, &input);
    assert_lines(&lines(&sources, &diagnostics), "");
    let (graph, diagnostics) = Graph::new(&config);
    (graph, lines(&sources, &diagnostics))
}

#[track_caller]
fn check_order(text: &str, expected: &str) -> Graph {
    let (graph, diagnostics) = graph(text);
    assert_lines(&diagnostics, "");
    let order: Vec<String> = graph.order().map(ToString::to_string).collect();
    assert_eq!(order.join(" "), expected);
    graph
}

fn names(blocks: Vec<&Block>) -> String {
    blocks.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn dependencies_come_first_and_addresses_break_ties() {
    let graph = check_order(
        "[resource.value.a]\nvalue = '${value.c.value}'\n[resource.value.b]\n[resource.value.c]\n\
         [resource.value.d]\ndepends_on = ['value.a', 'value.b']\n",
        "value.b value.c value.a value.d",
    );
    let block = |name: &str| Block::new("value", name);
    assert_eq!(names(graph.dependencies(&block("d"))), "value.a value.b");
    assert_eq!(names(graph.dependents(&block("c"))), "value.a");
    assert_eq!(names(graph.dependents(&block("nowhere"))), "");
}

#[test]
fn every_kind_of_expression_counts() {
    check_order(
        "[resource.value.a]\nfor_each = '${value.z.value}'\n\
         [resource.value.b]\nlifecycle = { enabled = '${value.y.value == 1}' }\n\
         [resource.value.c]\nlifecycle = { replace_triggered_by = ['${value.x}'] }\n\
         [resource.value.d]\nvalue = { a = ['x-${value.w.value}'] }\n\
         [resource.value.w]\n[resource.value.x]\n[resource.value.y]\n[resource.value.z]\n",
        "value.w value.d value.x value.c value.y value.b value.z value.a",
    );
}

#[test]
fn locals_pass_dependencies_on() {
    let graph = check_order(
        "[local]\none = '${local.two}'\ntwo = '${value.z.value}'\n\
         [resource.value.a]\nvalue = '${local.one}'\n[resource.value.b]\n[resource.value.z]\n",
        "value.b value.z value.a",
    );
    let block = |name: &str| Block::new("value", name);
    assert_eq!(names(graph.dependencies(&block("a"))), "value.z");
    assert_eq!(names(graph.dependents(&block("z"))), "value.a");
}

#[track_caller]
fn check_cycle(text: &str, expected: &str) {
    assert_lines(&graph(text).1, expected);
}

#[test]
fn a_cycle_is_one_diagnostic_with_all_its_members() {
    check_cycle(
        "[resource.value.a]\nvalue = '${value.b.value}'\n[resource.value.b]\nvalue = '${value.c.value}'\n\
         [resource.value.c]\nvalue = 1\ndepends_on = ['value.a']\n[resource.value.d]\nvalue = '${value.a.value}'\n",
        "plumb.toml:2:12 error: a cycle [value.b] this reference begins it They depend on each other: value.a → value.b → value.c → value.a. (plumb.toml:4:12: `value.b` refers to the next here) (plumb.toml:7:15: `value.c` refers to the next here) | remove one of the references, or move the shared part into a third resource",
    );
    check_cycle(
        "[resource.value.a]\nvalue = '${value.a.value}'\n",
        "plumb.toml:2:12 error: a cycle [value.a] this reference begins it They depend on each other: value.a → value.a. | remove one of the references, or move the shared part into a third resource",
    );
    check_cycle(
        "[local]\nx = '${value.a.value}'\n[resource.value.a]\nvalue = '${local.x}'\n",
        "plumb.toml:4:12 error: a cycle [local.x] this reference begins it They depend on each other: value.a → local.x → value.a. (plumb.toml:2:8: `local.x` refers to the next here) | remove one of the references, or move the shared part into a third resource",
    );
}

#[test]
fn two_cycles_are_two_diagnostics() {
    let (_, diagnostics) = graph(
        "[resource.value.a]\nvalue = '${value.b.value}'\n[resource.value.b]\nvalue = '${value.a.value}'\n\
         [resource.value.c]\nvalue = '${value.d.value}'\n[resource.value.d]\nvalue = '${value.c.value}'\n",
    );
    assert_eq!(diagnostics.lines().count(), 2);
}

#[test]
fn a_long_chain_is_no_problem() {
    use std::fmt::Write;
    let mut text = String::new();
    let count = 5_000;
    for index in 0..count {
        let next = index + 1;
        writeln!(text, "[resource.value.r{index:06}]\nvalue = '${{value.r{next:06}.value}}'")
            .unwrap();
    }
    let last = format!("[resource.value.r{count:06}]\n");
    let (graph, diagnostics) = graph(&(text.clone() + &last));
    assert_eq!(diagnostics, "");
    assert_eq!(graph.order().next().unwrap().to_string(), format!("value.r{count:06}"));
    let closing = format!("{last}value = '${{value.r000000.value}}'\n");
    let (_, diagnostics) = self::graph(&(text + &closing));
    assert!(diagnostics.contains("a cycle") && diagnostics.len() < 4000, "{diagnostics}");
}

#[test]
fn the_members_of_a_wave_need_none_of_each_other() {
    let text = "[local]\none = '${local.two}'\ntwo = '${value.z.value}'\n\
         [resource.value.a]\nvalue = '${local.one}'\n[resource.value.b]\n[resource.value.c]\n\
         [resource.value.d]\nvalue = '${value.b.value}'\n[resource.value.z]\n\
         [resource.value.zz]\nvalue = '${value.d.value}'\n";
    let graph = check_order(text, "value.b value.c value.d value.z value.a value.zz");
    assert_eq!(graph.waves, [2, 2, 2]);
    let (sources, files) = sources(text);
    let (document, _) = crate::config::parse::parse(&sources, &files);
    let input = ResolveInput {
        providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
        ..ResolveInput::default()
    };
    let (config, _) = crate::config::resolve::resolve(&document, &input);
    let waves = graph.waves(&config).map(|wave| {
        let blocks = wave.iter().filter_map(|declared| match declared {
            Declared::Resource(resource) => Some(&resource.block),
            Declared::Data(_) => None,
        });
        names(blocks.collect())
    });
    assert_eq!(
        waves.collect::<Vec<_>>(),
        ["value.b value.c", "value.d value.z", "value.a value.zz"]
    );
}
