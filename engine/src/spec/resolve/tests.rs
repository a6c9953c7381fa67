//! Spec text in, diagnostics out.

use super::*;
use crate::spec::testing::{assert_lines, lines, schema, sources};

/// Resolves a spec with the variables of `given`, `name=text` each; parsing says nothing.
#[track_caller]
fn check_with(given: &[&str], spec: &str, expected: &str) -> Config {
    let (sources, files) = sources(spec);
    let (document, mut diagnostics) = crate::spec::parse::parse(&sources, &files);
    let variables = given.iter().map(|text| {
        let (name, value) = text.split_once('=').unwrap();
        (name.into(), Given::Text(value.to_owned()))
    });
    let input = ResolveInput {
        variables: variables.collect(),
        providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
        files: BTreeMap::from([
            ("good.txt".to_owned(), Ok("text".into())),
            ("bad.txt".to_owned(), Err("no such file".to_owned())),
        ]),
    };
    let (config, more) = resolve(&document, &input);
    diagnostics.extend(more);
    diagnostics.sort();
    assert_lines(&lines(&sources, &diagnostics), expected);
    config
}

#[track_caller]
fn check(spec: &str, expected: &str) -> Config {
    check_with(&[], spec, expected)
}

/// A resource of the type `box` with one line more.
#[track_caller]
fn check_box(line: &str, expected: &str) {
    check(&format!("[resource.box.a]\nname = 'x'\nsize = 1\n{line}\n"), expected);
}

#[test]
fn a_good_spec_says_nothing() {
    let config = check(
        r#"[plumb]
        name = "inference"
        description = "an example"
        [state]
        backend = "file"
        [variable.env]
        type = "string"
        default = "dev"
        allowed = ["dev", "prod"]
        [local]
        regions = { eu = "EU-1", us = "US-2" }
        [resource.box.models]
        for_each = "${local.regions}"
        name = "models-${var.env}-${each.key}"
        size = 100
        kinds = ["red", "green"]
        tags = { region = "${each.value}" }
        lifecycle = { prevent_destroy = '${var.env == "prod"}', ignore_changes = ["tags"] }
        [resource.value.one]
        value = '${box.models["eu"].id}'
        depends_on = ['box.models["us"]']
        provider = "builtin"
        [output.id]
        value = "${value.one.value}"
        sensitive = true
        [check.alive]
        http = { url = "${value.one.value}" }
        assert = 'http.status == 200'
        message = "gone: ${value.one.id}"
        "#,
        "",
    );
    assert_eq!(config.name.as_deref(), Some("inference"));
    assert_eq!(config.variables["env"].value.value, Value::string("dev"));
    let models = &config.resources[&Block::new("box", "models")];
    assert_eq!(&*models.provider, "builtin");
    assert!(models.for_each.is_some() && models.lifecycle.prevent_destroy.is_some());
    let attributes: Vec<&str> = models.attributes.keys().map(|name| &**name).collect();
    assert_eq!(attributes, ["kinds", "name", "size", "tags"]);
    assert_eq!(config.resources[&Block::new("value", "one")].depends_on.len(), 1);
    assert!(config.outputs["id"].sensitive);
    assert_eq!(config.checks["alive"].sources.len(), 1);
}

#[test]
fn unknown_types_and_attributes() {
    check(
        "[resource.bix.a]\nname = '${var.nothing}'\n[resource.box.b]\nnmae = 'x'\nsize = 1\nid = 'x'\nfor_eech = []\nzzzzzz = 1\n",
        "plumb.toml:1:1 error: unknown resource type [[resource.bix.a]] no provider has the type `bix` | did you mean `box`?
         plumb.toml:2:11 error: there is no variable `nothing` [var.nothing] | declare it: `[variable.nothing]`
         plumb.toml:3:1 error: missing attribute [[resource.box.b]] `box` needs `name` | add the missing lines to this block
         plumb.toml:4:1 error: unknown attribute [nmae] `box` has no attribute `nmae` | did you mean `name`?
         plumb.toml:6:1 error: a computed attribute cannot be given [id] the provider sets `id` | remove it; others can refer to it
         plumb.toml:7:1 error: unknown attribute [for_eech] `box` has no attribute `for_eech` | did you mean `for_each`?
         plumb.toml:8:1 error: unknown attribute [zzzzzz] `box` has no attribute `zzzzzz` | known are `key`, `kind`, `kinds`, `lid`, `name`, `open`, `parts`, `size`, `tags`, `depends_on`, `for_each`, `lifecycle`, `1 more`",
    );
}

#[test]
fn wrong_types_of_plain_values() {
    check(
        "[resource.box.a]\nname = 3\nsize = '3'\nopen = 'true'\nkinds = 'red'\ntags = { a = 1, b = 'x' }\nparts = ['x', 2]\n",
        "plumb.toml:2:8 error: wrong type [3] expected string, found integer | put it in quotes
         plumb.toml:3:8 error: wrong type ['3'] expected integer, found string | write the number without quotes
         plumb.toml:4:8 error: wrong type ['true'] expected boolean, found string | write it without quotes
         plumb.toml:5:9 error: wrong type ['red'] expected list(string), found string | put it in brackets: a list of one
         plumb.toml:6:14 error: wrong type [1] expected string, found integer | put it in quotes
         plumb.toml:7:15 error: wrong type [2] expected string, found integer | put it in quotes",
    );
    check_box(
        "lid = { color = 'x', hinges = 1.5 }",
        "plumb.toml:4:7 error: missing attribute [{ color = 'x', hinges = 1.5 }] it needs `colour`
         plumb.toml:4:9 error: unknown attribute [color] there is no attribute `color` here | did you mean `colour`?
         plumb.toml:4:31 error: wrong type [1.5] expected integer, found number | write a whole number",
    );
    check_box("lid = { colour = 'x', hinges = 2.0 }", "");
}

#[test]
fn ranges_and_lists() {
    check(
        "[resource.box.a]\nname = 'x'\nsize = 5000\nkind = 'gren'\nkinds = ['red', 'bleu', '${box.a.id}']\nkey = 'secret'\n",
        "plumb.toml:3:8 error: a value that is not allowed [5000] size is 5000 and may be at most 4000 GB
         plumb.toml:4:8 error: a value that is not allowed ['gren']",
    );
    check_box("kind = 'grean'\nlifecycle.allow_unknown = ['kind']", "plumb.toml");
}

#[test]
fn references_to_nothing() {
    check(
        r#"[variable.region]
        type = "string"
        default = "eu"
        [local]
        zones = ["a"]
        [resource.value.chat]
        value = ["${var.regoin}", "${local.zone}", "${value.chatt.value}", "${vars.region}", "${vale.chat.id}"]
        [resource.value.other]
        value = "${region}${nothing.at.all}${data.x.y}${each.key}"
        "#,
        "",
    );
}

#[test]
fn types_of_expressions() {
    check(
        r#"[variable.count]
        type = "integer"
        default = 1
        [local]
        names = ["a"]
        [resource.box.b]
        name = "${var.count}"
        size = "${local.names}"
        tags = { a = "${[1]}", b = "${box.c.name}" }
        open = "${box.c.nothing}"
        kind = "${box.many.id}"
        kinds = "${var.count + 1}"
        [resource.box.c]
        name = '${box.many["x"].name}'
        size = "${box.b.size + true}"
        [resource.box.many]
        for_each = ["x"]
        name = "${each.key}"
        size = "${box.many[each.key].size}"
        "#,
        "",
    );
}

#[test]
fn for_each() {
    check(
        "[resource.value.a]\nfor_each = 3\n[resource.value.b]\nfor_each = ['x', 'y', 'x']\n[resource.value.c]\nfor_each = [1, 2]\n\
         [resource.value.d]\nfor_each = '${each.value}'\n[resource.value.e]\nfor_each = { a = 1 }\nvalue = '${each.value + 1}'\n",
        "plumb.toml:2:12 error: wrong type [3] `for_each` takes a table or a list of strings, found integer | write `[\"a\", \"b\"]` or `{ a = …, b = … }`
         plumb.toml:4:23 error: a key that is there twice ['x'] `x` is in the list already (plumb.toml:4:13: first here) | remove one of the two
         plumb.toml:6:12 error: wrong type [[1, 2]] `for_each` takes a table or a list of strings, found list(integer) | write `[\"a\", \"b\"]` or `{ a = …, b = … }`
         plumb.toml:8:14 error: `each` means nothing here [each.value] | it stands for one entry of `for_each`, inside that resource",
    );
}

#[test]
fn depends_on_and_provider() {
    check(
        "[resource.value.a]\ndepends_on = ['value.b', 'value.bb', 'value', 3, 'value.b[\"x\"]']\nprovider = 'builtn'\n\
         [resource.value.b]\ndepends_on = 'value.c'\nprovider = '${var.x}'\n\
         [resource.value.c]\nprovider = 'builtin'\n[resource.bax.d]\nprovider = 'builtin'\n",
        "",
    );
}

#[test]
fn lifecycle() {
    check(
        r#"[resource.box.a]
        name = "x"
        size = 1
        [resource.box.a.lifecycle]
        enabled = "yes"
        prevent_destory = true
        ignore_changes = ["nmae", "size"]
        allow_unknown = "kind"
        replace_triggered_by = ["${box.b.name}", "${box.a}", "box.b", "${box.c.id}"]
        [resource.box.b]
        name = "x"
        size = 1
        lifecycle = 3
        "#,
        "",
    );
}

#[test]
fn variables() {
    check_with(
        &["given=x", "cuont=1", "number=abc", "list=['a', 3]", "choice=c"],
        r#"[variable.given]
        type = "string"
        [variable.count]
        type = "integer"
        default = "1"
        [variable.number]
        type = "number"
        [variable.list]
        type = "list(string)"
        [variable.missing-one]
        type = "string"
        [variable.typo]
        type = "strnig"
        default = 1
        [variable.nothing]
        [variable.choice]
        type = "string"
        allowed = ["a", "b"]
        [variable.computed]
        default = "${local.x}"
        sensitive = "no"
        "#,
        "",
    );
}

#[test]
fn a_sensitive_value_is_never_shown() {
    let spec = "[variable.key]\ntype = 'integer'\nsensitive = true\ndefault = 'hunter2'\nallowed = ['hunter3']\n\
                [variable.word]\ntype = 'string'\nsensitive = true\nallowed = ['hunter4']\n";
    let (sources, files) = sources(spec);
    let (document, _) = crate::spec::parse::parse(&sources, &files);
    let variables =
        ["key", "word"].map(|name| (name.into(), Given::Text("\"hunter5".to_owned())));
    let input = ResolveInput { variables: variables.into(), ..ResolveInput::default() };
    let (config, diagnostics) = resolve(&document, &input);
    let text = lines(&sources, &diagnostics);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(!text.contains("hunter"), "{text}");
    assert!(config.variables["word"].value.sensitive.covers(&crate::value::Path::root()));
}

#[test]
fn a_cycle_of_locals_is_one_diagnostic() {
    check(
        "[local]\na = '${local.b}'\nb = '${local.c + 1}'\nc = '${local.a}'\nd = '${local.a}'\ne = '${local.e}'\n",
        "plumb.toml:2:8 error: a cycle [local.b] this reference begins it They need each other: local.a → local.b → local.c → local.a. (plumb.toml:3:8: `local.b` refers to the next here) (plumb.toml:4:8: `local.c` refers to the next here) | remove one of the references, or move what both need into a third
         plumb.toml:6:8 error: a cycle [local.e] this reference begins it They need each other: local.e → local.e. | remove one of the references, or move what both need into a third",
    );
}

#[test]
fn a_broken_expression_hides_only_its_attribute() {
    check(
        "[local]\nx = '${1 +}'\n[resource.box.a]\nname = '${local.x}'\nsize = '${)}'\nkindd = 3\n",
        "",
    );
}

#[test]
fn files() {
    check(
        r#"[resource.value.a]
        value = ['${file("good.txt")}', '${file("bad.txt")}', "${file(\"../x\")}", '${file(var.x)}']
        "#,
        "",
    );
}

#[test]
fn outputs_and_checks() {
    check(
        r#"[output.a]
        sensitive = "yes"
        [output.b]
        value = "${job.x}"
        description = 3
        [check.a]
        assert = "1"
        [check.b]
        job = { endpoint = "${value.nothing.id}" }
        [check.c]
        assert = 'job.status == "X" && self.a.b && hppt.x'
        message = 3
        "#,
        "",
    );
}

#[test]
fn torn_documents_are_not_checked() {
    let config = check(
        "[resource.value.a]\nvalue = 1\nx = \n",
        "error: the spec was not checked any further A file could not be read whole, so what seems missing may stand in it. | mend the TOML first
         plumb.toml:3:5 error: invalid TOML [] string values must be quoted, expected literal string",
    );
    assert!(config.resources.is_empty());
}

#[test]
fn several_providers() {
    let (sources, files) = sources("[resource.value.a]\n[resource.value.b]\nprovider = 'two'\n");
    let (document, _) = crate::spec::parse::parse(&sources, &files);
    let providers = ["one", "two"].map(|name| (name.into(), Arc::new(schema())));
    let input = ResolveInput { providers: providers.into(), ..ResolveInput::default() };
    let (config, diagnostics) = resolve(&document, &input);
    assert_lines(
        &lines(&sources, &diagnostics),
        "plumb.toml:1:1 error: several providers have this type [[resource.value.a]] `value` is a type of `one`, `two` | choose one: `provider = \"one\"`",
    );
    assert_eq!(&*config.resources[&Block::new("value", "b")].provider, "two");
}
