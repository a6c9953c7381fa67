//! Tests of writing back: a spec and changes from outside go in, the new text and the diagnostics come out.

use std::sync::Arc;

use super::*;
use crate::config::resolve::{ResolveInput, resolve};
use crate::config::testing::{lines, schema, sources};
use crate::digest::SealKey;
use crate::stored::{from_json, seal};
use crate::value::{Attributes, Paths};

/// Returns the attributes of a JSON text, in the types of `box`. A tag that begins with "secret" is sealed.
fn attributes(json: &str) -> Attributes {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let schema = schema();
    let typed = |(name, value): (&String, &serde_json::Value)| {
        let ty = &schema.types["box"].attributes[name.as_str()].ty;
        let mut value = from_json(value).convert(ty).unwrap();
        if let Value::Map(tags) = &mut value {
            let is_secret =
                |tag: &&mut Value| tag.as_str().is_some_and(|it| it.starts_with("secret"));
            let tags = Arc::make_mut(tags).values_mut();
            tags.filter(is_secret).for_each(|tag| {
                *tag = seal(tag, &Paths::whole(), &SealKey::from_random([7; 32]));
            });
        }
        (Name::from(name.as_str()), value)
    };
    json.as_object().unwrap().iter().map(typed).collect()
}

/// Writes back the change `was → is` of each address; returns the changed lines and the diagnostics.
fn write(spec: &str, drifted: &[(&str, &str, &str)]) -> String {
    let (back, sources) = written_back(spec, drifted);
    let mut said = String::new();
    for (file, text) in &back.files {
        let old = &sources.get(*file).unwrap().text;
        let diff = similar_lines(old, text);
        said.push_str(&diff);
    }
    said + &lines(&sources, &back.kept)
}

/// Returns the values that writing back shows, a line for each.
fn shown(spec: &str, drifted: &[(&str, &str, &str)]) -> Vec<String> {
    let line = |it: Written| format!("{} = {}", it.attribute, it.value.unwrap_or_default());
    written_back(spec, drifted).0.written.into_iter().map(line).collect()
}

/// Writes back the change `was → is` of each address.
fn written_back(spec: &str, drifted: &[(&str, &str, &str)]) -> (WriteBack, Sources) {
    let (sources, files) = sources(spec);
    let (document, found) = parse::parse(&sources, &files);
    assert!(!found.has_errors(), "{}", lines(&sources, &found));
    let providers = BTreeMap::from([("builtin".into(), Arc::new(schema()))]);
    let input = ResolveInput { providers, ..ResolveInput::default() };
    let (config, found) = resolve(&document, &input);
    assert!(!found.has_errors(), "{}", lines(&sources, &found));
    let mut plan = Plan::default();
    for (address, was, is) in drifted {
        let (before, after) = (attributes(was), attributes(is));
        let address: Address = address.parse().unwrap();
        let mut change = Change::new(address.clone(), "builtin".into());
        change.before = Some(Arc::new(after.clone()));
        plan.changes.push(change);
        let names: Vec<Name> =
            before.keys().filter(|name| before.get(*name) != after.get(*name)).cloned().collect();
        if names.is_empty() {
            continue;
        }
        let mut wanted = before.clone();
        for (name, item) in config.resources[&address.block].attributes.iter() {
            if let Kind::Literal(value) = &item.value.expr.kind {
                wanted.insert(name.clone(), value.clone());
            }
        }
        let (after, attributes) = (Some(after), names);
        plan.drift.push(Drift { address, before, after, attributes, proposal: None, wanted });
    }
    (write_back(&config, &sources, &plan), sources)
}

/// Returns the lines of a text that are not in the other, marked with `-` and `+`.
fn similar_lines(old: &str, new: &str) -> String {
    let missing = |a: &str, b: &str, mark: &str| -> String {
        let b: Vec<&str> = b.lines().collect();
        let lines = a.lines().filter(|line| !b.contains(line));
        lines.flat_map(|line| [mark, line.trim_start(), "\n"]).collect()
    };
    missing(old, new, "-") + &missing(new, old, "+")
}

/// The file keeps its byte order mark and its line ends.
#[test]
fn the_form_of_a_file_stays() {
    let spec = "[resource.box.a]\nname = \"a\"\n# A size.\nsize = 1\ntags = { a = \"1\" } # all\n";
    let drift = [("box.a", r#"{"size": 1, "tags": {"a": "1"}}"#, r#"{"size": 2, "tags": {}}"#)];
    let text = |spec: &str| written_back(spec, &drift).0.files.into_values().next().unwrap();
    let plain = text(spec);
    assert_ne!(plain, spec);
    let marked = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(text(&marked(spec)), marked(&plain));
    assert_eq!(text(&format!("\u{feff}{spec}")), format!("\u{feff}{plain}"));
}

const SPEC: &str = r#"# The boxes.
[variable.size]
type = "integer"
default = 3

[local]
large = "${var.size * 2}"

[resource.box.a]   # the first
name = "a"  # its name
size = 1_0 # GB; may only grow
kinds = ["red", "green"] # in order
parts = [
  "x", # the first part
  "y",
]
tags = { team = "lab", env = "n${var.size}" }
open = true # of a

# The second.
[resource.box.b]
name = "b"
size = "${local.large}"
[resource.box.b.tags]
team = "lab" # whose

[resource.box.many]
for_each = { eu = 1, us = 2 }
name = "${each.key}"
size = "${each.value}"
open = true
"#;

#[test]
fn plain_values_are_written_where_they_stand() {
    let said = write(
        SPEC,
        &[
            ("box.a", r#"{"size": 10, "open": true}"#, r#"{"size": 30, "open": false}"#),
            ("box.b", r#"{"name": "b"}"#, r#"{"name": "new ${name}"}"#),
        ],
    );
    insta::assert_snapshot!(said, @r#"
    -size = 1_0 # GB; may only grow
    -open = true # of a
    -name = "b"
    +size = 30 # GB; may only grow
    +open = false # of a
    +name = "new $${name}"
    "#);
}

#[test]
fn collections_change_item_by_item() {
    let said = write(
        SPEC,
        &[
            (
                "box.a",
                r#"{"kinds": ["red", "green"], "parts": ["x", "y"], "tags": {"team": "lab", "env": "n3"}}"#,
                r#"{"kinds": ["green"], "parts": ["x", "y", "z"], "tags": {"team": "new", "env": "n3", "a b": "c"}}"#,
            ),
            ("box.b", r#"{"tags": {"team": "lab"}}"#, r#"{"tags": {"on": "it"}}"#),
        ],
    );
    insta::assert_snapshot!(said, @r#"
    -kinds = ["red", "green"] # in order
    -tags = { team = "lab", env = "n${var.size}" }
    -team = "lab" # whose
    +kinds = ["green"] # in order
    +"z",
    +tags = { team = "new", env = "n${var.size}", "a b" = "c" }
    +on = "it"
    "#);
}

#[test]
fn what_an_expression_makes_stays_and_its_origins_are_named() {
    let said = write(
        SPEC,
        &[
            (
                "box.a",
                r#"{"tags": {"team": "lab", "env": "n3"}}"#,
                r#"{"tags": {"team": "lab", "env": "n4"}}"#,
            ),
            ("box.b", r#"{"size": 6}"#, r#"{"size": 8}"#),
            ("box.many[\"eu\"]", r#"{"open": true, "size": 1}"#, r#"{"open": false, "size": 5}"#),
            ("box.many[\"us\"]", r#"{"open": true, "size": 2}"#, r#"{"open": true, "size": 2}"#),
        ],
    );
    insta::assert_snapshot!(said, @r#"
    plumb.toml:17:31 warning: `tags.env` of box.a stays in the spec as it is: an expression makes it [n${var.size}] (plumb.toml:2:1: variable `size` is here) | change variable `size`, so that this gives `"n4"`
    plumb.toml:23:11 warning: `size` of box.b stays in the spec as it is: an expression makes it [local.large] (plumb.toml:7:9: `local.large` is here) (plumb.toml:2:1: variable `size` is here) | change `local.large` or variable `size`, so that this gives `8`
    plumb.toml:31:8 warning: `open` of box.many["eu"] stays in the spec as it is: it is written once for 2 instances, which differ [true] | make it a part of the values of `for_each`, or let it follow from `each.key`
    plumb.toml:30:11 warning: `size` of box.many["eu"] stays in the spec as it is: an expression makes it [each.value] (plumb.toml:28:12: `for_each` is here) | change `for_each`, so that this gives `5`
    "#);
}

#[test]
fn one_line_for_all_instances_is_written_where_all_agree() {
    let (was, is) = (r#"{"open": true}"#, r#"{"open": false}"#);
    let said = write(SPEC, &[("box.many[\"eu\"]", was, is), ("box.many[\"us\"]", was, is)]);
    insta::assert_snapshot!(said, @r#"
    -open = true
    +open = false
    "#);
}

#[test]
fn attributes_come_and_go() {
    let said = write(
        SPEC,
        &[
            ("box.a", r#"{"open": true}"#, r#"{"open": null}"#),
            ("box.b", r#"{"open": true}"#, r#"{"open": false}"#),
        ],
    );
    insta::assert_snapshot!(said, @r#"
    -open = true # of a
    +open = false
    "#);
}

#[test]
fn a_value_that_the_spec_changed_too_is_left_to_a_person() {
    let spec = SPEC.replace("1_0", "20");
    let said = write(&spec, &[("box.a", r#"{"size": 10}"#, r#"{"size": 30}"#)]);
    // The last run had 10, so the spec changed the value, too.
    insta::assert_snapshot!(said, @r#"plumb.toml:11:8 warning: `size` of box.a stays in the spec as it is: the spec gives it another value than the last run had [20] | write `30` to keep what is live; the next apply sets the spec's value"#);
}

/// Only the plain parts beside a secret are written. The text of a secret is not shown, even if it is plain.
#[test]
fn a_plain_value_beside_a_secret_is_written() {
    let spec = SPEC.replace("team = \"lab\", env", "team = \"secret-1\", env");
    let spec = spec.replace("n${var.size}", "lab");
    let was = r#"{"tags": {"team": "secret-1", "env": "lab"}}"#;
    let plain = [("box.a", was, r#"{"tags": {"team": "secret-1", "env": "new"}}"#)];
    assert_eq!(shown(&spec, &plain), [r#"tags = { env = "new", team = "(sensitive)" }"#]);
    let both = [("box.a", was, r#"{"tags": {"team": "secret-2", "env": "new"}}"#)];
    insta::assert_snapshot!(write(&spec, &both), @r#"
    -tags = { team = "secret-1", env = "lab" }
    +tags = { team = "secret-1", env = "new" }
    plumb.toml:17:17 warning: `tags.team` of box.a stays in the spec as it is: it is sensitive ["secret-1"] | give the variable that it comes from the new value
    "#);
}

#[test]
fn a_written_table_is_shown_in_line() {
    let was = r#"{"tags": {"team": "lab"}}"#;
    let drifted = [("box.b", was, r#"{"tags": {"team": "new", "a b": "c"}}"#)];
    let dotted = SPEC.replace("[resource.box.b.tags]\nteam", "tags.team");
    for spec in [SPEC, &dotted] {
        assert_eq!(shown(spec, &drifted), [r#"tags = { "a b" = "c", team = "new" }"#]);
    }
}

#[test]
fn secrets_are_never_written() {
    let spec = format!("{SPEC}key = \"${{var.size}}-long-enough\"\n");
    let said = write(
        &spec,
        &[("box.many[\"eu\"]", r#"{"key": "hunter2-hunter2"}"#, r#"{"key": "hunter3-hunter3"}"#)],
    );
    assert!(!said.contains("hunter"), "{said}");
    insta::assert_snapshot!(said, @r#"plumb.toml:32:7 warning: `key` of box.many["eu"] stays in the spec as it is: it is sensitive ["${var.size}-long-enough"] | give the variable that it comes from the new value"#);
}
