//! Tests of moves: moves and removals go in, diagnostics or rules come out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::Config;
use crate::config::parse::parse;
use crate::config::resolve::{ResolveInput, resolve};
use crate::config::testing::{assert_lines, lines, schema, sources};

const SPEC: &str = "[resource.value.a]
[resource.value.many]
for_each = ['x', 'y']
";

#[track_caller]
fn check(blocks: &str, expected: &str) -> Config {
    let (sources, files) = sources(&format!("{SPEC}{blocks}"));
    let (document, mut diagnostics) = parse(&sources, &files);
    let providers = BTreeMap::from([("builtin".into(), Arc::new(schema()))]);
    let (config, found) =
        resolve(&document, &ResolveInput { providers, ..ResolveInput::default() });
    diagnostics.extend(found);
    diagnostics.sort();
    assert_lines(&lines(&sources, &diagnostics), expected);
    config
}

/// A `[[moved]]` block in a line.
fn moved(from: &str, to: &str) -> String {
    format!("[[moved]]\nfrom = '{from}'\nto = '{to}'\n")
}

#[test]
fn moves_and_removals_are_read() {
    let blocks = [
        moved("value.old", "value.many"),
        moved("value.one", "value.many[x]"),
        moved("value.x", "value.y"),
        moved("value.y", "value.a"),
        moved("module.gone.value.*", "value.*"),
        "[[removed]]\nfrom = 'module.left'\ndestroy = true\n[[removed]]\nfrom = 'value.many[z]'\n"
            .to_owned(),
    ];
    let config = check(&blocks.concat(), "");
    let rules: Vec<String> = config
        .moves
        .iter()
        .map(|config| format!("{} → {}", config.rule.from(), config.rule.to()))
        .collect();
    assert_eq!(
        rules,
        [
            "value.old → value.many",
            "value.one → value.many[\"x\"]",
            "value.x → value.y",
            "value.y → value.a",
            "module.gone.value.* → value.*",
        ]
    );
    let removals: Vec<String> =
        config.removals.iter().map(|it| format!("{} {}", it.from, it.destroys)).collect();
    assert_eq!(removals, ["module.left true", "value.many[\"z\"] false"]);
}

#[test]
fn addresses_that_do_not_fit_are_refused() {
    check(
        &[
            moved("value.b", "box.a"),
            moved("value.b", "value"),
            moved("value.c", "value.*"),
            moved("value.a", "value.a"),
            moved("module.x", "value.a"),
            "[[moved]]\nfrom = '${1}'\n".to_owned(),
            "[[removed]]\nform = 'value.q'\ndestroy = 3\n".to_owned(),
        ]
        .concat(),
        "plumb.toml:6:6 error: a move that cannot be ['box.a'] the type of an object cannot change (plumb.toml:5:8: from here) | another type is another object: to keep this one, write `[[removed]]` and `[[import]]`
         plumb.toml:9:6 error: invalid address ['value'] `value` is not an address: there is no dot; write TYPE.NAME or TYPE.NAME[\"KEY\"], as `plumb state list` prints them
         plumb.toml:12:6 error: a move that cannot be ['value.*'] each `*` of one address needs a `*` in the other one (plumb.toml:11:8: from here) | write `*` at the same places of both, or in neither
         plumb.toml:15:6 error: a move that cannot be ['value.a'] both addresses are the same (plumb.toml:14:8: from here) | remove this block: it does nothing
         plumb.toml:18:6 error: a move that cannot be ['value.a'] a module cannot become a resource, nor a resource a module (plumb.toml:17:8: from here) | write two modules, such as `module.a` and `module.b`, or two resources
         plumb.toml:19:1 error: missing key [[[moved]]] this move has no `to` | add `to = …`
         plumb.toml:20:8 error: wrong type ['${1}'] expected string, found integer | put it in quotes
         plumb.toml:21:1 error: missing key [[[removed]]] this removal has no `from` | add `from = …`
         plumb.toml:22:1 error: unknown key [form] a removal has no `form` | did you mean `from`?
         plumb.toml:23:11 error: wrong type [3] expected boolean, found integer",
    );
}

#[test]
fn moves_fit_the_spec() {
    check(
        &[
            moved("value.a", "value.many[x]"),
            moved("value.b", "value.aa"),
            moved("value.c", "value.a[k]"),
            moved("value.d[k]", "value.many"),
            moved("module.x", "module.y"),
            "[[removed]]\nfrom = 'value.*'\n".to_owned(),
        ]
        .concat(),
        "plumb.toml:5:8 error: moved and still in the spec ['value.a'] `value.a` is in the spec (plumb.toml:1:1: declared here) | remove the resource, give it another name, or remove this block if its move is done
         plumb.toml:9:6 error: a move to an unknown resource ['value.aa'] there is no resource `value.aa` | did you mean `value.a`?
         plumb.toml:12:6 error: a move to one instance ['value.a[k]'] `value.a` has no for_each, so it has no keys | write `value.a`
         plumb.toml:15:6 error: a move to one instance ['value.many'] `value.many` has for_each, and this names none of its instances | write the key, too: `value.many[KEY]`
         plumb.toml:18:6 error: a move to an unknown module ['module.y'] the spec has no resource in `module.y` | write the name of a module, with its key if it has `for_each`
         plumb.toml:20:8 error: removed and still in the spec ['value.*'] `value.a` is in the spec (plumb.toml:1:1: declared here) | remove the resource, or this block",
    );
}

#[test]
fn an_object_has_one_way_to_go() {
    check(
        &[
            moved("value.b", "value.a"),
            moved("value.b", "value.many[x]"),
            moved("value.c", "value.many[x]"),
            moved("value.p", "value.q"),
            moved("value.q", "value.p"),
            "[[removed]]\nfrom = 'value.r'\n".repeat(2),
        ]
        .concat(),
        "plumb.toml:8:8 error: moved twice ['value.b'] another block moves `value.b` already (plumb.toml:5:8: this one) | keep one of them: an object has one address
         plumb.toml:12:6 error: two moves to one address ['value.many[x]'] another block moves something to `value.many[\"x\"]` already (plumb.toml:9:6: this one) | give each object an address of its own, or remove the block that is done
         plumb.toml:18:6 error: moves in a circle ['value.p'] this leads back to where it began value.p → value.q → value.p. | to exchange two addresses, use a third one and `plumb state mv`, or keep the names as they are
         plumb.toml:22:8 error: removed twice ['value.r'] another block removes `value.r` already (plumb.toml:20:8: this one) | keep one of them: an object has one end",
    );
}
