//! Tests of the resolution: the text of a spec goes in, diagnostics come out.

use super::*;
use crate::config::testing::{assert_lines, lines, schema, sources};
use crate::value::Value;

/// Resolves a spec with the variables of `given`, `name=text` each; the parser reports nothing.
#[track_caller]
fn check_with(given: &[&str], spec: &str, expected: &str) -> Config {
    let (sources, files) = sources(spec);
    let (document, mut diagnostics) = crate::config::parse::parse(&sources, &files);
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
        ..ResolveInput::default()
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
    assert_eq!(models.provider, ProviderChoice::Instance("builtin".into()));
    assert!(models.for_each.is_some() && models.lifecycle.prevent_destroy.is_some());
    let attributes: Vec<&str> = models.attributes.keys().map(|name| &**name).collect();
    assert_eq!(attributes, ["kinds", "name", "size", "tags"]);
    assert_eq!(config.resources[&Block::new("value", "one")].depends_on.len(), 1);
    assert!(config.outputs["id"].sensitive);
    assert_eq!(config.checks["alive"].sources.len(), 1);
}

/// Checks a resource of the type `box` with one more line.
#[track_caller]
fn check_box(line: &str, expected: &str) {
    check(&format!("[resource.box.a]\nname = 'x'\nsize = 1\n{line}\n"), expected);
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
fn depends_on_and_provider() {
    check(
        "[resource.value.a]\ndepends_on = ['value.b', 'value.bb', 'value', 3, 'value.b[\"x\"]']\nprovider = 'builtn'\n\
         [resource.value.b]\ndepends_on = 'value.c'\nprovider = '${var.x}'\n\
         [resource.value.c]\nprovider = 'builtin'\n[resource.bax.d]\nprovider = 'builtin'\n",
        "plumb.toml:2:26 error: unknown resource ['value.bb'] there is no resource `value.bb` | did you mean `value.b`?
         plumb.toml:2:38 error: invalid address ['value'] `value` is not an address: there is no dot; write TYPE.NAME or TYPE.NAME[\"KEY\"], as `plumb state list` prints them
         plumb.toml:2:47 error: expected a list of texts [3] `depends_on` is a list of plain texts | write `[\"…\", \"…\"]`, without `${…}`
         plumb.toml:2:50 error: unknown resource ['value.b[\"x\"]'] `value.b` has no `for_each`, so it has no keys | write `value.b`
         plumb.toml:3:12 error: unknown provider ['builtn'] there is no provider `builtn` | did you mean `builtin`?
         plumb.toml:5:14 error: expected a list of texts ['value.c'] `depends_on` is a list of plain texts | write `[\"…\", \"…\"]`, without `${…}`
         plumb.toml:6:12 error: a provider cannot be computed ['${var.x}'] which one manages an object is known by its address alone | write `\"NAME\"`, `'NAME[\"KEY\"]'`, or `'NAME[\"${each.key}\"]'` with the keys of this block's `for_each`
         plumb.toml:9:1 error: unknown resource type [[resource.bax.d]] the provider `builtin` has no type `bax` | did you mean `box`?",
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
        "plumb.toml:5:19 error: wrong type [\"1\"] `default` of `count`: expected integer, found string | write the number without quotes
         plumb.toml:6:9 error: the value given for a variable does not fit [[variable.number]] `number` is declared as number: this is no number | give the number as TOML writes it, such as --var 'number=3'
         plumb.toml:8:9 error: the value given for a variable does not fit [[variable.list]] `list` is declared as list(string): at [1]: expected string, found integer | give the list(string) as TOML writes it, such as --var 'list=[\"a\"]'
         plumb.toml:10:9 error: a variable has no value [[variable.missing-one]] `missing-one` has no default and none was given | give it with --var missing-one=VALUE, PLUMB_VAR_MISSING_ONE=VALUE in the environment, or --var-file FILE
         plumb.toml:13:16 error: unknown type [\"strnig\"] `strnig` is not a type | did you mean `string`?
         plumb.toml:15:9 error: a variable has no type [[variable.nothing]] `nothing` has neither a type nor a default | add `type = \"string\"`, or the type that it has
         plumb.toml:15:9 error: a variable has no value [[variable.nothing]] `nothing` has no default and none was given | give it with --var nothing=VALUE, PLUMB_VAR_NOTHING=VALUE in the environment, or --var-file FILE
         plumb.toml:16:9 error: a value that is not allowed [[variable.choice]] the value given for `choice` is not among its `allowed` values | choose one of `a`, `b`
         plumb.toml:20:19 error: expected a plain value [\"${local.x}\"] `default` of a variable cannot be computed | write the value itself, without `${…}`
         plumb.toml:21:21 error: wrong type [\"no\"] expected boolean
         error: a value for an unknown variable The spec declares no variable `cuont`. | did you mean `count`?",
    );
}

/// An empty default does not show the type of the values that may be given, so the variable has to declare
/// it.
#[test]
fn variables_with_an_empty_default() {
    check_with(
        &["hosts=[\"a\"]", "labels=a", "nested={ a = [1], b = 1 }", "said=a", "empty=[]"],
        r#"[variable.hosts]
        default = []
        [variable.labels]
        default = {}
        [variable.nested]
        default = { a = [], b = 1 }
        [variable.said]
        type = "map(string)"
        default = {}
        [variable.empty]
        default = []
        "#,
        "plumb.toml:1:1 error: the value given for a variable does not fit [[variable.hosts]] `hosts` has no `type`, and its empty default does not imply one | write `type = \"list(string)\"` here, or the type that it holds
         plumb.toml:3:9 error: the value given for a variable does not fit [[variable.labels]] `labels` has no `type`, and its empty default does not imply one | write `type = \"map(string)\"` here, or the type that it holds
         plumb.toml:5:9 error: the value given for a variable does not fit [[variable.nested]] `nested` has no `type`, and its empty default does not imply one | write `type = \"object{a = list(string), b = integer}\"` here, or the type that it holds
         plumb.toml:7:9 error: the value given for a variable does not fit [[variable.said]] `said` is declared as map(string): this is not a TOML value: texts stand in quotes there | give the map(string) as TOML writes it, such as --var 'said={ key = \"a\" }'",
    );
}

#[test]
fn what_is_given_by_one_word_is_told_what_it_should_be() {
    check_with(
        &["max=two", "on=two", "any=two"],
        r#"[variable.max]
        type = "integer"
        [variable.on]
        type = "boolean"
        [variable.any]
        type = "any"
        "#,
        "plumb.toml:1:1 error: the value given for a variable does not fit [[variable.max]] `max` is declared as integer: this is no integer | give the integer as TOML writes it, such as --var 'max=3'
         plumb.toml:3:9 error: the value given for a variable does not fit [[variable.on]] `on` is declared as boolean: this is neither true nor false | give the boolean as TOML writes it, such as --var 'on=true'
         plumb.toml:5:9 error: the value given for a variable does not fit [[variable.any]] `any` is declared as any: this is not a TOML value: texts stand in quotes there | give the any as TOML writes it, such as --var 'any=\"a\"'",
    );
}

/// A diagnostic about a word of another tool, or a value of another type, says what to write instead.
#[test]
fn what_others_call_it() {
    check(
        r#"[resource.box.a]
        name = "${local.n}"
        size = "${local.text}"
        count = 3
        [local]
        n = 3
        text = "x"
        here = '${[path.module, path.root, count.index, terraform.workspace]}'
        "#,
        "plumb.toml:2:19 error: wrong type [local.n] expected string, found integer | make it a text: tostring(…)
         plumb.toml:3:19 error: wrong type [local.text] expected integer, found string | make it a number: tonumber(…)
         plumb.toml:4:9 error: unknown attribute [count] `box` has no attribute `count` | write `for_each = [\"a\", \"b\"]` for one instance by each name, or `lifecycle = { enabled = … }` for one or none
         plumb.toml:8:20 error: there is no resource `path.module` [path.module] | a path is relative to the spec's folder by itself: file(\"some/path\")
         plumb.toml:8:33 error: there is no resource `path.root` [path.root] | a path is relative to the spec's folder by itself: file(\"some/path\")
         plumb.toml:8:44 error: there is no resource `count.index` [count.index] | write `each.key`, in a resource with `for_each`
         plumb.toml:8:57 error: there is no resource `terraform.workspace` [terraform.workspace] | write a variable, such as `var.env`: an environment has a folder of its own, or a place of its own for its state",
    );
}

/// No diagnostic proposes a command argument for a secret, because others on the machine see the arguments of
/// commands.
#[test]
fn sensitive_variables() {
    check_with(
        &["hunters=[2]", "hunter={hunter2 = 1}"],
        r#"[variable.hunter]
        type = "list(string)"
        sensitive = true
        [variable.hunters]
        type = "map(string)"
        sensitive = true
        [variable.missing]
        type = "string"
        sensitive = true
        "#,
        "plumb.toml:1:1 error: the value given for a variable does not fit [[variable.hunter]] `hunter` is declared as list(string): expected list(string), found map(integer) | give the list(string) as TOML writes it: PLUMB_VAR_HUNTER=[\"a\"] in the environment, or --var-file FILE
         plumb.toml:4:9 error: the value given for a variable does not fit [[variable.hunters]] `hunters` is declared as map(string): expected map(string), found list(integer) | give the map(string) as TOML writes it: PLUMB_VAR_HUNTERS={ key = \"a\" } in the environment, or --var-file FILE
         plumb.toml:7:9 error: a variable has no value [[variable.missing]] `missing` has no default and none was given | give it with PLUMB_VAR_MISSING=VALUE in the environment, or --var-file FILE",
    );
}

#[test]
fn a_sensitive_value_is_never_shown() {
    let spec = "[variable.key]\ntype = 'integer'\nsensitive = true\ndefault = 'hunter2'\nallowed = ['hunter3']\n\
                [variable.word]\ntype = 'string'\nsensitive = true\nallowed = ['hunter4']\n\
                [variable.both]\ntype = 'object({ a = string })'\nsensitive = true\ndefault = { hunter6 = 'x' }\n";
    let (sources, files) = sources(spec);
    let (document, _) = crate::config::parse::parse(&sources, &files);
    let variables = ["key", "word"].map(|name| (name.into(), Given::Text("\"hunter5".to_owned())));
    let input = ResolveInput { variables: variables.into(), ..ResolveInput::default() };
    let (config, diagnostics) = resolve(&document, &input);
    let text = lines(&sources, &diagnostics);
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(!text.contains("hunter"), "{text}");
    assert!(config.variables["word"].value.sensitive.covers(&crate::value::Path::root()));
}

#[test]
fn a_cycle_of_locals_is_one_diagnostic() {
    check(
        "[local]\na = '${local.b}'\nb = '${local.c + 1}'\nc = '${local.a}'\nd = '${local.a}'\ne = '${local.e}'\n",
        "plumb.toml:2:8 error: a cycle [local.b] this reference begins it They depend on each other: local.a → local.b → local.c → local.a. (plumb.toml:3:8: `local.b` refers to the next here) (plumb.toml:4:8: `local.c` refers to the next here) | remove one of the references, or move the shared part into a third resource
         plumb.toml:6:8 error: a cycle [local.e] this reference begins it They depend on each other: local.e → local.e. | remove one of the references, or move the shared part into a third resource",
    );
}

#[test]
fn a_broken_expression_hides_only_its_attribute() {
    check(
        "[local]\nx = '${1 +}'\n[resource.box.a]\nname = '${local.x}'\nsize = '${)}'\nkindd = 3\n",
        "plumb.toml:2:11 error: a value is missing here [}]
         plumb.toml:5:11 error: a value is missing here [)]
         plumb.toml:6:1 error: unknown attribute [kindd] `box` has no attribute `kindd` | did you mean `kind`?",
    );
}

#[test]
fn files() {
    check(
        r#"[resource.value.a]
        value = ['${file("good.txt")}', '${file("bad.txt")}', "${file(\"../x\")}", '${file(var.x)}']
        "#,
        "plumb.toml:2:49 error: a file cannot be read [\"bad.txt\"] `bad.txt`: no such file
         plumb.toml:2:71 error: only files in the folder of the spec are read [\\\"../x\\\"] `../x` leads out of it | write a path relative to the spec, without `..`
         plumb.toml:2:92 error: the path of a file stands in quotes [var.x] the path must be a plain text | write file(\"some/path\"), relative to the spec's folder: files are read before expressions are computed",
    );
}

#[test]
fn torn_documents_are_not_checked() {
    let config = check(
        "[resource.value.a]\nvalue = 1\nx = \n",
        "plumb.toml:3:5 error: invalid TOML [] string values must be quoted, expected literal string
         error: the spec was not checked any further What seems missing may stand in what could not be read. | fix what is said above first",
    );
    assert!(config.resources.is_empty());
}

#[test]
fn several_providers() {
    let (sources, files) = sources("[resource.value.a]\n[resource.value.b]\nprovider = 'two'\n");
    let (document, _) = crate::config::parse::parse(&sources, &files);
    let providers = ["one", "two"].map(|name| (name.into(), Arc::new(schema())));
    let input = ResolveInput { providers: providers.into(), ..ResolveInput::default() };
    let (config, diagnostics) = resolve(&document, &input);
    assert_lines(
        &lines(&sources, &diagnostics),
        "plumb.toml:1:1 error: several providers have this type [[resource.value.a]] `value` is a type of `one`, `two` | choose one: `provider = \"one\"`",
    );
    let own = &config.resources[&Block::new("value", "b")];
    assert_eq!(own.provider, ProviderChoice::Instance("two".into()));
}

#[test]
fn unknown_types_and_attributes() {
    check(
        "[resource.bix.a]\nname = '${var.nothing}'\n[resource.box.b]\nnmae = 'x'\nsize = 1\nid = 'x'\nfor_eech = []\nzzzzzz = 1\n[resource.box.c]\n",
        "plumb.toml:1:1 error: unknown resource type [[resource.bix.a]] no provider has the type `bix` | did you mean `box`?
         plumb.toml:2:11 error: there is no variable `nothing` [var.nothing] | declare it: `[variable.nothing]`
         plumb.toml:4:1 error: unknown attribute [nmae] `box` has no attribute `nmae` | did you mean `name`?
         plumb.toml:6:1 error: a computed attribute cannot be given [id] the provider sets `id` | remove it; other resources can refer to it
         plumb.toml:7:1 error: unknown attribute [for_eech] `box` has no attribute `for_eech` | did you mean `for_each`?
         plumb.toml:8:1 error: unknown attribute [zzzzzz] `box` has no attribute `zzzzzz` | known are `key`, `kind`, `kinds`, `lid`, `name`, `open`, `parts`, `size`, `tags`, `depends_on`, `for_each`, `lifecycle`, 1 more
         plumb.toml:9:1 error: missing attribute [[resource.box.c]] `box` needs `name`, `size` | add the missing lines to this block",
    );
}

#[test]
fn ranges_and_lists() {
    check(
        "[resource.box.a]\nname = 'x'\nsize = 5000\nkind = 'gren'\nkinds = ['red', 'bleu', '${box.a.id}']\nkey = 'secret'\n",
        "plumb.toml:1:1 error: a value that is not allowed [[resource.box.a]] the value of `key` must have at least 8 characters
         plumb.toml:3:8 error: a value that is not allowed [5000] size is 5000 and may be at most 4000 GB | write 4000 or less
         plumb.toml:4:8 error: a value that is not allowed ['gren'] kind is \"gren\", which is not one of the 2 known values | did you mean \"green\"?
         plumb.toml:5:17 error: a value that is not allowed ['bleu'] kinds is \"bleu\", which is not one of the 2 known values | write one of \"red\", \"green\"",
    );
    check_box(
        "kind = 'grean'\nlifecycle.allow_unknown = ['kind']",
        "plumb.toml:4:8 warning: a value that is not allowed ['grean'] kind is \"grean\", which is not one of the 2 known values | did you mean \"green\"?",
    );
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
        "plumb.toml:7:21 error: there is no variable `regoin` [var.regoin] | did you mean `var.region`?
         plumb.toml:7:38 error: there is no local value `zone` [local.zone] | did you mean `local.zones`?
         plumb.toml:7:55 error: there is no resource `value.chatt` [value.chatt] | declare it: `[resource.value.chatt]`
         plumb.toml:7:79 error: there is no resource `vars.region` [vars.region] | did you mean `var.region`?
         plumb.toml:7:97 error: there is no resource `vale.chat` [vale.chat] | declare it: `[resource.vale.chat]`
         plumb.toml:9:20 error: unknown name `region` [region] | did you mean `var.region`?
         plumb.toml:9:29 error: there is no resource `nothing.at` [nothing.at] | declare it: `[resource.nothing.at]`
         plumb.toml:9:46 error: there is no data block `data.x.y` [data.x.y] | declare it: `[data.x.y]`
         plumb.toml:9:57 error: `each` is not available here: it needs a `for_each` [each.key] | it stands for one entry of `for_each`, inside that resource",
    );
}

#[test]
fn words_that_stand_for_nothing() {
    check(
        r#"[variable.region]
        type = "string"
        default = "eu"
        [local]
        zone = "${regionn}"
        zones = "${region}"
        [resource.value.a]
        value = ["${zone}", "${each.key}", "${self}", "${[for x in [1] : y]}"]
        "#,
        "plumb.toml:5:19 error: unknown name `regionn` [regionn] | write `var.NAME`, `local.NAME` or `TYPE.NAME`, or put text in quotes
         plumb.toml:6:20 error: unknown name `region` [region] | did you mean `var.region`?
         plumb.toml:8:21 error: unknown name `zone` [zone] | did you mean `local.zone`?
         plumb.toml:8:32 error: `each` is not available here: it needs a `for_each` [each.key] | it stands for one entry of `for_each`, inside that resource
         plumb.toml:8:47 error: unknown name `self` [self] | `self` is the object in a postcondition; write the resource's address
         plumb.toml:8:74 error: unknown name `y` [y] | write `var.NAME`, `local.NAME` or `TYPE.NAME`, or put text in quotes",
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
        "plumb.toml:7:19 error: wrong type [var.count] expected string, found integer | make it a text: tostring(…)
         plumb.toml:8:19 error: wrong type [local.names] expected integer, found list(string)
         plumb.toml:9:25 error: wrong type [[1]] expected string, found list(integer)
         plumb.toml:10:25 error: `box.c` has no attribute `nothing` [nothing] | there are: id, key, kind, kinds, lid, name, open, parts, size, tags
         plumb.toml:11:19 error: `box.many` has for_each, so it is a map of its instances [box.many.id] | write box.many[\"key\"].id for one, values(box.many)[*].id for all
         plumb.toml:12:20 error: wrong type [var.count + 1] expected list(string), found integer
         plumb.toml:15:32 error: expected a number, found a boolean [true]",
    );
}

#[test]
fn for_each() {
    check(
        "[resource.value.a]\nfor_each = 3\n[resource.value.b]\nfor_each = ['x', 'y', 'x']\n[resource.value.c]\nfor_each = [1, 2]\n\
         [resource.value.d]\nfor_each = '${each.value}'\n[resource.value.e]\nfor_each = { a = 1 }\nvalue = '${each.value + 1}'\n",
        "plumb.toml:2:12 error: wrong type [3] `for_each` takes a table or a list of strings, found integer | write `[\"a\", \"b\"]` or `{ a = …, b = … }`
         plumb.toml:4:23 error: duplicate key ['x'] `x` is in the list already (plumb.toml:4:13: first here) | remove one of the two
         plumb.toml:6:12 error: wrong type [[1, 2]] `for_each` takes a table or a list of strings, found list(integer) | write `[\"a\", \"b\"]` or `{ a = …, b = … }`
         plumb.toml:8:15 error: `each` is not available here: it needs a `for_each` [each.value] | it stands for one entry of `for_each`, inside that resource",
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
        "plumb.toml:5:19 error: wrong type [\"yes\"] expected boolean, found string
         plumb.toml:6:9 error: unknown key [prevent_destory] `lifecycle` has no `prevent_destory` | did you mean `prevent_destroy`?
         plumb.toml:7:27 error: unknown attribute [\"nmae\"] `box` has no attribute `nmae` | did you mean `name`?
         plumb.toml:8:25 error: expected a list of texts [\"kind\"] `allow_unknown` is a list of plain texts | write `[\"…\", \"…\"]`, without `${…}`
         plumb.toml:9:53 error: a resource cannot trigger itself [box.a] this is the resource that would be replaced | name another resource, or remove it
         plumb.toml:9:62 error: expected references [\"box.b\"] `replace_triggered_by` is a list of references to resources or their attributes | write `[\"${TYPE.NAME.ATTRIBUTE}\"]`
         plumb.toml:9:74 error: there is no resource `box.c` [box.c] | did you mean `box.b`?
         plumb.toml:13:21 error: expected a table [3] `lifecycle` must be a table | write `lifecycle = { KEY = VALUE }`",
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
        [check.d]
        job = { endpoint = "e", input = { text = "${job.id}" }, timeout = 3 }
        http = { ulr = "x" }
        assert = 'job.status == 1 && job.stat == "X" && http.status'
        message = "${job.foo} ${job.delayTime + 1} ${http.json.any.thing}"
        [check.e]
        http = "x"
        assert = 'http.body == "" || job.error != null'
        "#,
        "plumb.toml:1:1 error: missing key [[output.a]] output `a` has no `value` | add `value = …`
         plumb.toml:2:21 error: wrong type [\"yes\"] expected boolean, found string
         plumb.toml:4:20 error: unknown name `job` [job] | write `var.NAME`, `local.NAME` or `TYPE.NAME`, or put text in quotes
         plumb.toml:5:23 error: wrong type [3] expected string, found integer | put it in quotes
         plumb.toml:7:19 error: wrong type [1] expected boolean, found integer
         plumb.toml:8:9 error: missing key [[check.b]] check `b` has no `assert` | add `assert = …`
         plumb.toml:9:31 error: there is no resource `value.nothing` [value.nothing] | declare it: `[resource.value.nothing]`
         plumb.toml:11:19 error: unknown name `job`: the check has no `job` [job] | say what to fetch: `job = { … }`
         plumb.toml:11:40 error: unknown name `self` [self] | `self` is the object in a postcondition; write the resource's address
         plumb.toml:11:52 error: there is no resource `hppt.x` [hppt.x] | declare it: `[resource.hppt.x]`
         plumb.toml:12:19 error: wrong type [3] expected string, found integer | put it in quotes
         plumb.toml:14:53 error: unknown name `job` [job] | write `var.NAME`, `local.NAME` or `TYPE.NAME`, or put text in quotes
         plumb.toml:16:19 error: a string never equals a number, so `==` tells nothing [job.status == 1] | convert one: tostring(…) or tonumber(…)
         plumb.toml:16:42 error: `job` has no attribute `stat` [stat] | did you mean `status`?
         plumb.toml:16:57 error: expected a boolean, found a number [http.status]
         plumb.toml:17:26 error: `job` has no attribute `foo` [foo] | there are: delayTime, error, executionTime, id, output, status
         plumb.toml:20:38 error: unknown name `job`: the check has no `job` [job] | say what to fetch: `job = { … }`",
    );
}

#[test]
fn types_of_locals_do_not_grow_without_end() {
    use std::fmt::Write;
    let mut text = "[local]\nl150 = 1\nm150 = 1\n".to_owned();
    for index in 0..150 {
        let next = index + 1;
        writeln!(text, "l{index} = ['${{local.l{next}}}']").unwrap();
        writeln!(text, "m{index} = {{ a = '${{local.m{next}}}', b = '${{local.m{next}}}' }}")
            .unwrap();
    }
    check(&text, "");
}

#[test]
fn very_many_mistakes_end_soon() {
    use std::fmt::Write;
    let mut text = String::new();
    for index in 0..1000 {
        writeln!(text, "[resource.value.a{index}]\nvalue = '${{value.b{index}.id}}'").unwrap();
    }
    let (sources, files) = sources(&text);
    let (document, _) = crate::config::parse::parse(&sources, &files);
    let input = ResolveInput {
        providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
        ..ResolveInput::default()
    };
    assert_eq!(resolve(&document, &input).1.len(), 1000);
}

/// The result does not depend on the workers, even if only some of the mistakes get a suggestion.
#[test]
fn who_looks_at_the_blocks_does_not_show() {
    use std::fmt::Write;
    for refers in ["a0", "b0"] {
        let mut text = String::new();
        for index in 0..3 * PART {
            writeln!(text, "[resource.value.a{index}]\nvalue = '${{value.{refers}.id}}'").unwrap();
        }
        let (sources, files) = sources(&text);
        let (document, _) = crate::config::parse::parse(&sources, &files);
        let input = ResolveInput {
            providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
            ..ResolveInput::default()
        };
        let in_turn = resolve_with(document.clone(), &input, &InTurn);
        assert_eq!(in_turn.1.is_empty(), refers == "a0");
        let backwards = resolve_with(document, &input, &crate::work::Backwards);
        assert!(format!("{in_turn:?}") == format!("{backwards:?}"));
    }
}

const GOOD: &str = r#"[variable.env]
type = "string"
default = "dev"
[local]
regions = { eu = "EU-1", us = "US-2" }
name = "x-${var.env}"
[resource.box.models]
for_each = "${local.regions}"
name = "models-${local.name}-${each.key}"
size = 100
kinds = ["red", "green"]
lifecycle = { prevent_destroy = '${var.env == "prod"}', ignore_changes = ["tags"] }
[resource.value.one]
value = '${box.models["eu"].id}'
depends_on = ['box.models["us"]']
[output.id]
value = "${[for k, v in local.regions : upper(k) if v != null]}"
"#;

proptest::proptest! {
    #[test]
    fn nothing_panics(
        cut in 0..GOOD.len(),
        length in 0_usize..12,
        insert in r#"(\[|\]|\{|\}|"|'|=|\.|\$\{|var|local|each|box|a|1|\n|,|-|\?|:|for ){0,4}"#,
    ) {
        let end = (cut + length).min(GOOD.len());
        let text = format!("{}{insert}{}", &GOOD[..cut], &GOOD[end..]);
        let (sources, files) = sources(&text);
        let (document, mut diagnostics) = crate::config::parse::parse(&sources, &files);
        let input = ResolveInput {
            providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
            ..ResolveInput::default()
        };
        let (config, more) = resolve_owned(document, &input);
        diagnostics.extend(more);
        diagnostics.extend(crate::graph::Graph::new(&config).1);
        for diagnostic in diagnostics.iter() {
            let spans = diagnostic.related.iter().map(|(span, _)| *span).chain(diagnostic.span);
            for span in spans {
                proptest::prop_assert!(sources.text(span).is_some(), "{:?}", diagnostic);
            }
        }
    }
}

#[test]
fn imports_name_an_instance_and_an_id() {
    let config = check(
        r#"[resource.box.a]
        name = "a"
        size = 1
        [resource.box.b]
        for_each = ["x"]
        name = "b"
        size = 1
        [[import]]
        to = "box.a"
        id = "abc"
        [[import]]
        to = 'box.b["x"]'
        id = "def""#,
        "",
    );
    let found: Vec<String> =
        config.imports.iter().map(|(to, import)| format!("{to} {:?}", import.object)).collect();
    assert_eq!(found, ["box.a Id(ObjectId(\"abc\"))", "box.b[\"x\"] Id(ObjectId(\"def\"))"]);
}

#[test]
fn wrong_imports_are_shown_where_they_stand() {
    check(
        "import = 3",
        "plumb.toml:1:1 error: expected a table [import] `import` is not a table | write `[[import]]`",
    );
    check(
        r#"[resource.box.a]
        name = "a"
        size = 1
        [resource.box.b]
        for_each = ["x"]
        name = "b"
        size = 1
        [[import]]
        to = "box.c"
        id = "a"
        [[import]]
        to = "box.b"
        id = "b"
        [[import]]
        to = "box.a[x]"
        id = "c"
        [[import]]
        to = "box.a"
        id = "../x"
        [[import]]
        to = "box.a"
        idd = "x"
        [[import]]
        to = "box.a"
        id = "y"
        [[import]]
        to = "box.a"
        id = "z""#,
        r#"
        plumb.toml:9:14 error: import to an unknown resource ["box.c"] there is no resource `box.c` | did you mean `box.a`?
        plumb.toml:12:14 error: an import names one instance ["box.b"] `box.b` has for_each, and this names all its instances | write the key, too: `box.b[KEY]`
        plumb.toml:15:14 error: an import names one instance ["box.a[x]"] `box.a` has no for_each, so it has no keys | write `box.a`
        plumb.toml:19:14 error: invalid id ["../x"] it could lead to another address: `\`, `%` and `..` are refused | write the id as the API shows it
        plumb.toml:20:9 error: missing key [[[import]]] this import has no `id` | add `id = …`
        plumb.toml:22:9 error: unknown key [idd] an import has no `idd` | did you mean `id`?
        plumb.toml:26:9 error: imported twice [[[import]]] another import names the same object or the same address (plumb.toml:23:9: this one) | keep one of them"#,
    );
}

const VALIDATED: &str = r#"[variable.size]
type = "integer"
[[variable.size.validation]]
condition = "var.size >= var.least"
message = "The size must be ${var.least} or more."
[[variable.size.validation]]
condition = "${var.size < 100}"
message = "The size must be below 100."
[variable.least]
default = 10
[variable.token]
type = "string"
sensitive = true
validation = { condition = "length(var.token) > 3", message = "The token is too short: ${var.token}" }
"#;

#[test]
fn validations_of_variables() {
    check_with(&["size=10", "token=long enough"], VALIDATED, "");
    check_with(
        &["size=3", "token=abc"],
        VALIDATED,
        r"plumb.toml:4:14 error: a value that is not valid [var.size >= var.least] `least` is 10, `size` is 3 | The size must be 10 or more.
         plumb.toml:14:29 error: a value that is not valid [length(var.token) > 3] `token` is a secret",
    );
    check_with(
        &["size=100", "token=long enough"],
        VALIDATED,
        r"plumb.toml:7:16 error: a value that is not valid [var.size < 100] `size` is 100 | The size must be below 100.",
    );
    check(
        "[variable.a]\ndefault = 'x'\nvalidation = { condition = 'var.a == file(\"good.txt\")', message = 'm' }\n",
        r#"plumb.toml:3:38 error: a validation reads no files [file("good.txt")] | hold the value against a variable, or write the text out"#,
    );
    check(
        "[local]\nx = 1\n[variable.a]\ndefault = 'x'\nvalidation = [{ condition = 'var.a', message = 'm' }, \
         { condition = 'local.x == 1', message = 'm' }, { condition = 'var.b', mesage = 'm' }, { condition = 'var.bb == 1', message = 1 }]\n\
         [variable.bbb]\ndefault = 1\n",
        "plumb.toml:5:30 error: wrong type [var.a] expected boolean, found string | make it a boolean: tobool(…)
         plumb.toml:5:70 error: a validation sees only variables [local.x] | write out what the local says
         plumb.toml:5:102 error: missing key [{ condition = 'var.b', mesage = 'm' }] a validation of `a` has no `message` | add `message = …`
         plumb.toml:5:125 error: unknown key [mesage] a validation has no `mesage` | did you mean `message`?
         plumb.toml:5:156 error: there is no variable `bb` [var.bb] | did you mean `var.bbb`?",
    );
}

#[test]
fn conditions_of_resources_and_outputs() {
    check(
        r#"[resource.box.a]
        name = "a"
        size = 1
        [resource.box.a.lifecycle]
        prevent_destroy = true
        [[resource.box.a.lifecycle.precondition]]
        condition = "value.b.value != null"
        message = "No ${value.b.id}."
        [[resource.box.a.lifecycle.postcondition]]
        condition = "${self.size > 0}"
        message = "No ${self.name}."
        [resource.value.b]
        [output.o]
        value = 1
        precondition = { condition = "box.a.size == 1", message = "No." }"#,
        "",
    );
    check_box(
        "lifecycle = { precondition = [{ condition = 'self.size > 0', message = 'm' }, 3], \
         postcondition = { condition = 'self.sise > 0', message = 3, help = 'x' } }",
        "plumb.toml:4:15 error: expected a table [precondition] `precondition` is not a table | write `[[resource.box.a.lifecycle.precondition]]`
         plumb.toml:4:46 error: unknown name `self` [self] | `self` is the object in a postcondition; write the resource's address
         plumb.toml:4:119 error: `self` has no attribute `sise` [sise] | did you mean `size`?
         plumb.toml:4:140 error: wrong type [3] expected string, found integer | put it in quotes
         plumb.toml:4:143 error: unknown key [help] a postcondition has no `help` | known are `condition`, `message`",
    );
}

#[test]
fn policies_are_checked_against_the_types() {
    check(
        "[policy.a]\nfor = 'box'\nassert = 'new.sise > 1 && old.name == name'\nseverity = 'warn'\n\
         [policy.b]\nassert = 'length(plan.changes) > plan.resource'\nmessage = '${new.name}'\nseverity = 'no'\n\
         [policy.c]\nfor = 'bax'\nassert = 'true'\n[policy.d]\nfor = 'all'\ndescription = 'x'\nasert = 'new.any.thing'\n",
        "plumb.toml:3:15 error: `new` has no attribute `sise` [sise] | did you mean `size`?
         plumb.toml:6:39 error: `plan` has no attribute `resource` [resource] | did you mean `resources`?
         plumb.toml:7:14 error: unknown name `new` [new] | write `var.NAME`, `local.NAME` or `TYPE.NAME`, or put text in quotes
         plumb.toml:8:12 error: unknown severity ['no'] there is no severity `no` | known are `deny`, `warn`
         plumb.toml:10:7 error: unknown resource type ['bax'] no provider has the type `bax` | did you mean `box`?
         plumb.toml:12:1 error: missing key [[policy.d]] policy `d` has no `assert` | add `assert = …`
         plumb.toml:15:1 error: unknown key [asert] a policy has no `asert` | did you mean `assert`?",
    );
}

#[test]
fn variables_that_take_no_null() {
    let spec = "[variable.a]\ntype = 'object{x? = string}'\nnullable = false\ndefault = { x = 'y' }\n\
                [variable.b]\ntype = 'string'\nnullable = false\n[variable.c]\ntype = 'string'\ndefault = '${null}'\n";
    let (sources, files) = sources(spec);
    let (document, _) = crate::config::parse::parse(&sources, &files);
    let null = || Given::Value(Value::Null);
    let given = BTreeMap::from([("a".into(), null()), ("b".into(), null()), ("c".into(), null())]);
    let (variables, diagnostics) = variables::variables(&document, (&given, &BTreeMap::new()));
    assert_lines(
        &lines(&sources, &diagnostics),
        "plumb.toml:5:1 error: a variable has no value [[variable.b]] `b` is null, and has `nullable = false` | give it a value, or a default that is not null",
    );
    let shown = |name: &str| format!("{:?}", variables[name].value.value);
    assert_eq!([shown("a"), shown("c")], ["{\"x\": \"y\"}", "null"]);
}

#[test]
fn without_values_what_depends_on_them_is_not_known() {
    let spec = "[variable.a]\ntype = 'integer'\nallowed = [1, 2]\n[[variable.a.validation]]\ncondition = 'var.a > var.b'\n\
                message = 'm'\n[variable.b]\ndefault = 3\n[resource.box.x]\nname = 'x'\nsize = '${var.a}'\nopen = '${var.a}'\n";
    let (sources, files) = sources(spec);
    let (document, _) = crate::config::parse::parse(&sources, &files);
    let input = ResolveInput {
        variables: ["a", "b"].map(|name| (name.into(), Given::Unset)).into(),
        providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
        files: Files::new(),
        ..ResolveInput::default()
    };
    let (config, diagnostics) = resolve(&document, &input);
    assert_lines(
        &lines(&sources, &diagnostics),
        "plumb.toml:12:11 error: wrong type [var.a] expected boolean, found integer",
    );
    assert!(!config.variables["a"].value.value.is_known());
    assert_eq!(config.variables["b"].value.value, Value::Integer(3));
}

#[test]
fn values_in_json() {
    let spec = "[variable.o]\ntype = 'object{a = string, b? = list(integer)}'\n[variable.s]\ntype = 'string'\n";
    let config = check_with(&[r#"o={"a": "x", "b": [1, 2]}"#, r#"s={"a": 1}"#], spec, "");
    assert_eq!(format!("{:?}", config.variables["o"].value.value), r#"{"a": "x", "b": [1, 2]}"#);
    assert_eq!(config.variables["s"].value.value, Value::string(r#"{"a": 1}"#));
}

#[test]
fn texts_that_are_addresses() {
    check(
        "[variable.env]\ndefault = 'x'\n[resource.value.a]\nvalue = ['value.b', 'value.b.id', 'value.c', 'var.env', 'a.b', 'see value.b']\n\
         [resource.value.b]\n",
        "plumb.toml:4:10 warning: a text that is the address of something in this spec ['value.b'] this is plain text, and no reference | if it is meant as a reference, write \"${value.b}\"
         plumb.toml:4:21 warning: a text that is the address of something in this spec ['value.b.id'] this is plain text, and no reference | if it is meant as a reference, write \"${value.b.id}\"
         plumb.toml:4:46 warning: a text that is the address of something in this spec ['var.env'] this is plain text, and no reference | if it is meant as a reference, write \"${var.env}\"",
    );
}
