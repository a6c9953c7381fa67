//! Tests of modules: a spec and its modules go in, the flat config or the diagnostics come out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::{ReadModule, load};
use crate::config::parse::parse;
use crate::config::resolve::{ResolveInput, resolve};
use crate::config::testing::{assert_lines, lines, schema, sources};
use crate::config::{Config, ModuleSource};
use crate::diagnostics::{Diagnostics, Sources};

/// Resolves a spec; a line `--- FOLDER/FILE` begins a file of a module.
fn resolved(text: &str) -> (Config, Sources, Diagnostics) {
    let (sources, files) = sources(text);
    let (root, modules): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| !sources.get(*file).unwrap().path.contains('/'));
    let (mut document, mut diagnostics) = parse(&sources, &root);
    diagnostics.extend(load(&mut document, &mut |source: &ModuleSource| -> ReadModule {
        let is_of = |path: &str| path.rsplit_once('/').unwrap().0 == source.to_string();
        let own: Vec<_> = modules
            .iter()
            .copied()
            .filter(|file| is_of(&sources.get(*file).unwrap().path))
            .collect();
        if own.is_empty() {
            Err("there is no such folder".to_owned())
        } else {
            Ok(parse(&sources, &own))
        }
    }));
    let providers = ["builtin", "second"].map(|name| (name.into(), Arc::new(schema())));
    let providers =
        if text.contains("second") { providers.to_vec() } else { providers[..1].to_vec() };
    let input = ResolveInput {
        variables: BTreeMap::new(),
        providers: providers.into_iter().collect(),
        files: ["modules/x/good.txt", "modules/x/"]
            .map(|name| (name.to_owned(), Ok("text".into())))
            .into(),
        ..ResolveInput::default()
    };
    let (config, found) = resolve(&document, &input);
    diagnostics.extend(found);
    diagnostics.sort();
    (config, sources, diagnostics)
}

/// Checks that a spec has no mistakes, and that its blocks and locals read as expected.
#[track_caller]
fn check(text: &str, expected: &str) {
    let (config, sources, diagnostics) = resolved(text);
    assert_lines(&lines(&sources, &diagnostics), "");
    let mut found = String::new();
    for (block, resource) in &config.resources {
        let attributes = resource.attributes.iter();
        let attributes: Vec<String> =
            attributes.map(|(name, item)| format!("{name} = {}", item.value.expr)).collect();
        let after: Vec<String> = resource.depends_on.iter().map(|(it, _)| it.to_string()).collect();
        write!(
            found,
            "{block} by {}: {}",
            resource.provider.of(&block.instance(None)),
            attributes.join(", ")
        )
        .unwrap();
        found.truncate(found.trim_end().len());
        if !after.is_empty() {
            write!(found, " after {}", after.join(", ")).unwrap();
        }
        found.push('\n');
    }
    for (name, local) in &config.locals {
        writeln!(found, "{name} = {}", local.value.expr).unwrap();
    }
    for (name, output) in &config.outputs {
        writeln!(found, "output {name} = {}", output.value.expr).unwrap();
    }
    assert_lines(&found, expected);
}

/// Checks the diagnostics of a spec.
#[track_caller]
fn refuse(text: &str, expected: &str) {
    let (_, sources, diagnostics) = resolved(text);
    assert_lines(&lines(&sources, &diagnostics), expected);
}

#[test]
fn values_pass_through_a_module() {
    check(
        r#"[module.x]
        source = "./modules/x"
        name = "${value.own.id}"
        [resource.value.own]
        [resource.value.user]
        value = "${module.x.id}"
        [output.all]
        value = "${module.x}"
--- modules/x/plumb.toml
        [variable.name]
        type = "string"
        [variable.size]
        default = 3
        [local]
        label = "${var.name}-${var.size}"
        [resource.value.a]
        value = "${local.label}"
        [resource.value.b]
        value = '${value.a.id} ${file("good.txt")}'
        [resource.value.c]
        value = '${[fileset(".", "*"), templatefile("./good.txt", {})]}'
        depends_on = ["value.a"]
        [output.id]
        value = "${value.b.id}"
"#,
        r#"value.own by builtin:
        value.user by builtin: value = module.x.id
        module.x.value.a by builtin: value = module.x.local.label
        module.x.value.b by builtin: value = "${module.x.value.a.id} ${file("modules/x/good.txt")}"
        module.x.value.c by builtin: value = [fileset("modules/x", "*"), templatefile("modules/x/good.txt", {})] after module.x.value.a
        module.x = { id = module.x.id }
        module.x.id = module.x.value.b.id
        module.x.local.label = "${module.x.var.name}-${module.x.var.size}"
        module.x.var.name = value.own.id
        module.x.var.size = 3
        output all = module.x"#,
    );
}

#[test]
fn instances_and_modules_in_modules() {
    check(
        r#"[local]
        regions = { eu = "EU-1", us = "US-2" }
        [module.x]
        source = "./modules/x"
        for_each = "${local.regions}"
        region = "${each.value}"
        [module.late]
        source = "./modules/y"
        for_each = '${[for key, one in module.x : key]}'
        name = "${module.x[each.key].id}"
        depends_on = ["module.x"]
        [output.eu]
        value = '${module.x["eu"].id}'
        [output.all]
        value = '${[for one in module.x : one.id]}'
--- modules/x/plumb.toml
        [variable.region]
        type = "string"
        [module.inner]
        source = "../y"
        name = "${var.region}"
        [output.id]
        value = "${module.inner.id}"
--- modules/y/plumb.toml
        [variable.name]
        type = "string"
        [resource.value.a]
        value = "${var.name}"
        [output.id]
        value = "${value.a.id}"
"#,
        r#"module.late["eu"].value.a by builtin: value = module.late["eu"].var.name after module.x["eu"].module.inner.value.a, module.x["us"].module.inner.value.a
        module.late["us"].value.a by builtin: value = module.late["us"].var.name after module.x["eu"].module.inner.value.a, module.x["us"].module.inner.value.a
        module.x["eu"].module.inner.value.a by builtin: value = module.x["eu"].module.inner.var.name
        module.x["us"].module.inner.value.a by builtin: value = module.x["us"].module.inner.var.name
        module.late = { eu = module.late["eu"], us = module.late["us"] }
        module.late["eu"] = { id = module.late["eu"].id }
        module.late["eu"].id = module.late["eu"].value.a.id
        module.late["eu"].var.name = module.x["eu"].id
        module.late["us"] = { id = module.late["us"].id }
        module.late["us"].id = module.late["us"].value.a.id
        module.late["us"].var.name = module.x["us"].id
        module.x = { eu = module.x["eu"], us = module.x["us"] }
        module.x.for_each = local.regions
        module.x["eu"] = { id = module.x["eu"].id }
        module.x["eu"].id = module.x["eu"].module.inner.id
        module.x["eu"].module.inner = { id = module.x["eu"].module.inner.id }
        module.x["eu"].module.inner.id = module.x["eu"].module.inner.value.a.id
        module.x["eu"].module.inner.var.name = module.x["eu"].var.region
        module.x["eu"].var.region = module.x.for_each["eu"]
        module.x["us"] = { id = module.x["us"].id }
        module.x["us"].id = module.x["us"].module.inner.id
        module.x["us"].module.inner = { id = module.x["us"].module.inner.id }
        module.x["us"].module.inner.id = module.x["us"].module.inner.value.a.id
        module.x["us"].module.inner.var.name = module.x["us"].var.region
        module.x["us"].var.region = module.x.for_each["us"]
        regions = { eu = "EU-1", us = "US-2" }
        output all = [for one in module.x : one.id]
        output eu = module.x["eu"].id"#,
    );
}

#[test]
fn a_disabled_module_is_nothing_and_secrets_stay_secret() {
    check(
        r#"[module.x]
        source = "./modules/x"
        enabled = "${1 > 2}"
        [module.y]
        source = "./modules/x"
        key = "k"
        [output.id]
        value = "${module.x.id}"
--- modules/x/plumb.toml
        [variable.key]
        default = "d"
        sensitive = true
        [resource.value.a]
        value = "${var.key}"
        [output.id]
        value = "${value.a.id}"
        sensitive = true
"#,
        r#"module.y.value.a by builtin: value = module.y.var.key
        module.x = null
        module.x.id = null
        module.y = { id = module.y.id }
        module.y.id = sensitive(module.y.value.a.id)
        module.y.var.key = sensitive("k")
        output id = module.x.id"#,
    );
}

#[test]
fn providers_are_passed() {
    check(
        r#"[resource.value.own]
        provider = "builtin"
        [module.x]
        source = "./modules/x"
        providers = { mine = "second" }
--- modules/x/plumb.toml
        [resource.value.a]
        [resource.value.b]
        provider = "mine"
        [resource.value.c]
        provider = "builtin"
"#,
        "value.own by builtin:
        module.x.value.a by second:
        module.x.value.b by second:
        module.x.value.c by builtin:
        module.x = {}",
    );
}

#[test]
fn mistakes_in_calls() {
    refuse(
        r#"[module.none]
        [module.gone]
        source = "./gone"
        [module.word]
        source = "modules/x"
        [module.git]
        source = "https://git.example/x.git"
        [module.x]
        source = "./modules/x"
        nam = "a"
        size = "many"
        [module.many]
        source = "./modules/x"
        name = "a"
        for_each = ["a", "a"]
        [module.late]
        source = "./modules/x"
        name = "a"
        for_each = "${{ a = value.own.id }[value.own.id]}"
        [resource.value.own]
        value = "${module.x.idd} ${module.y.id} ${module.gone.id}"
--- modules/x/plumb.toml
        [variable.name]
        type = "string"
        [variable.size]
        default = 3
        [variable.source]
        type = "string"
        default = ""
        [resource.value.a]
        value = "${local.missing} ${var.nam} ${value.b.id}"
        [output.id]
        value = "${value.a.id}"
        [provider.builtin]
"#,
        r#"plumb.toml:1:1 error: missing key [[module.none]] this module has no `source` | add `source = …`
    plumb.toml:3:18 error: a module cannot be read ["./gone"] there is no such folder
    plumb.toml:5:18 error: a module cannot be found ["modules/x"] `modules/x` is neither a folder nor the address of a repository | write `./FOLDER` or `../FOLDER`, or the address of a git repository with a `revision`
    plumb.toml:7:18 error: a repository needs a revision ["https://git.example/x.git"] it may hold something else tomorrow | add `revision = "TAG"`, or the hash of a commit
    plumb.toml:8:9 error: missing input [[module.x]] the module needs `name` | add the missing lines to this block
    plumb.toml:10:9 error: unknown input [nam] the module has no variable `nam` | did you mean `name`?
    plumb.toml:11:16 error: wrong type ["many"] expected integer, found string
    plumb.toml:15:20 error: wrong type [["a", "a"]] expected a table, or a list of distinct texts
    plumb.toml:19:20 error: `for_each` of a module must be known beforehand ["${{ a = value.own.id }[value.own.id]}"] it depends on what a resource computes | use variables, locals and files here; what a resource computes can only be an input
    plumb.toml:21:20 error: there is no output `idd` in the module [module.x.idd] | did you mean `id`?
    plumb.toml:21:36 error: there is no module `y` [module.y] | call it: `[module.y]` with `source = "./FOLDER"`
    modules/x/plumb.toml:5:9 error: a reserved name [[variable.source]] `source` of a `[module.NAME]` block means something else | give the variable another name
    modules/x/plumb.toml:9:20 error: there is no local value `missing` in the module [local.missing] | declare it: `[local] missing = …`
    modules/x/plumb.toml:9:37 error: there is no variable `nam` in the module [var.nam] | did you mean `name`?
    modules/x/plumb.toml:9:48 error: there is no resource `module.x.value.b` [value.b] | declare it: `[resource.value.b]`
    modules/x/plumb.toml:12:9 error: a module has no `provider` [[provider.builtin]] this is a module | configure the provider in the spec; the module uses it"#,
    );
}

#[test]
fn a_module_that_calls_itself() {
    refuse(
        r#"[module.x]
        source = "./modules/x"
--- modules/x/plumb.toml
        [module.again]
        source = "."
"#,
        "modules/x/plumb.toml:1:9 error: a module calls itself [[module.again]] `module.x.module.again` would never end | remove one of the calls",
    );
}

#[test]
fn inputs_meet_the_conditions_of_the_module() {
    refuse(
        r#"[module.good]
        source = "./modules/x"
        env = "dev"
        size = 4
        [module.bad]
        source = "./modules/x"
        env = "test"
        size = 5
        [module.open]
        source = "./modules/x"
        env = "${value.own.id}"
        [resource.value.own]
--- modules/x/plumb.toml
        [variable.env]
        type = "string"
        allowed = ["dev", "prod"]
        [variable.size]
        default = 2
        [[variable.size.validation]]
        condition = "${var.size % 2 == 0}"
        message = "an even size is needed"
"#,
        r#"plumb.toml:7:15 error: a value that is not allowed ["test"] the value given for `env` is not among its `allowed` values | choose one of `dev`, `prod`
        modules/x/plumb.toml:7:24 error: a value that is not valid [var.size % 2 == 0] `size` is 5 | an even size is needed"#,
    );
}

#[test]
fn null_stands_for_the_default_of_what_is_not_nullable() {
    check(
        r#"[module.x]
        source = "./modules/x"
        size = "${null}"
        region = "${value.own.id}"
        [resource.value.own]
--- modules/x/plumb.toml
        [variable.size]
        default = 3
        nullable = false
        [variable.region]
        default = "eu"
        nullable = false
"#,
        r#"value.own by builtin:
        module.x = {}
        module.x.var.region = value.own.id == null ? "eu" : value.own.id
        module.x.var.size = null == null ? 3 : null"#,
    );
    refuse(
        r#"[module.x]
        source = "./modules/x"
        size = "${null}"
        other = "${null}"
        [module.empty]
        source = "./modules/x"
--- modules/x/plumb.toml
        [variable.size]
        type = "integer"
        nullable = false
        [variable.other]
        default = 1
        nullable = "what"
"#,
        r#"plumb.toml:3:16 error: a variable has no value ["${null}"] `size` is null, and has `nullable = false` | give it a value, or a default that is not null
        plumb.toml:5:9 error: missing input [[module.empty]] the module needs `size` | add the missing lines to this block
        modules/x/plumb.toml:6:20 error: wrong type ["what"] expected boolean"#,
    );
}
