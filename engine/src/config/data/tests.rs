//! Tests of data blocks: the text of a spec goes in, diagnostics come out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::parse::parse;
use crate::config::resolve::{ResolveInput, resolve};
use crate::config::testing::{assert_lines, lines, schema, sources};

#[track_caller]
fn check(spec: &str, expected: &str) {
    let (sources, files) = sources(spec);
    let (document, mut diagnostics) = parse(&sources, &files);
    let input = ResolveInput {
        providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
        ..ResolveInput::default()
    };
    let (_, more) = resolve(&document, &input);
    diagnostics.extend(more);
    diagnostics.sort();
    assert_lines(&lines(&sources, &diagnostics), expected);
}

#[test]
fn a_good_block_says_nothing() {
    check(
        r#"[data.box.a]
        for_each = ["x"]
        name = "${each.key}"
        lid = { colour = "red" }
        provider = "builtin"
        depends_on = ["value.v"]
        [data.box.b]
        id = "b-1"
        open = '${data.box.a["x"].open}'
        [resource.value.v]
        value = "${data.box.b.size + 1}"
        depends_on = ["data.box.a"]
        [output.all]
        value = '${[for one in data.box.a : one.id]}'"#,
        "",
    );
}

#[test]
fn conditions_are_its_only_lifecycle() {
    check(
        r#"[data.box.a]
        name = "x"
        [[data.box.a.lifecycle.postcondition]]
        condition = "self.size > 1"
        message = "it has ${self.size}"
        [data.box.b]
        name = "x"
        lifecycle = { prevent_destroy = true, precondition = [{ condition = "1" }] }"#,
        "
plumb.toml:8:23 error: unknown key [prevent_destroy] `lifecycle` has no `prevent_destroy` | known are `postcondition`, `precondition`
plumb.toml:8:63 error: missing key [{ condition = \"1\" }] a precondition of `data.box.b` has no `message` | add `message = …`",
    );
}

#[test]
fn mistakes_have_a_place_and_the_nearest_name() {
    check(
        r#"[data.box.a]
        nmae = "x"
        size = "large"
        [data.box.b]
        [data.value.c]
        value = 1
        [data.bx.d]
        name = "x"
        [data.box.e]
        name = "${data.box.f.name}"
        depends_on = ["data.box.x"]
        [resource.value.v]
        value = "${data.box.a.nam}"
        lifecycle = { replace_triggered_by = ["${data.box.a}"] }
        [check.c]
        assert = "data.box.a.size > 1""#,
        r#"plumb.toml:2:9 error: unknown attribute [nmae] `box` has no attribute `nmae` | did you mean `name`?
        plumb.toml:3:16 error: wrong type ["large"] expected integer, found string
        plumb.toml:4:9 error: missing attribute [[data.box.b]] it says nothing of the object that is meant | give an attribute that only this object has: `id = "…"`
        plumb.toml:5:9 error: nothing to look up [[data.value.c]] no API has a `value`: it lives in a state only | refer to the resource, or read the outputs of its state: `[data.state.NAME]`
        plumb.toml:7:9 error: unknown resource type [[data.bx.d]] no provider has the type `bx` | did you mean `box`?
        plumb.toml:10:19 error: there is no data block `data.box.f` [data.box.f] | did you mean `data.box.a`?
        plumb.toml:11:23 error: unknown resource ["data.box.x"] there is no data block `data.box.x` | did you mean `data.box.a`?
        plumb.toml:13:31 error: `data.box.a` has no attribute `nam` [nam] | did you mean `name`?
        plumb.toml:14:50 error: expected references [data.box.a] this is looked up, and no plan changes it | name a resource; what an attribute takes from data is compared anyway
        plumb.toml:16:19 error: a check does not see data [data.box.a] this is looked up while planning, and checks run after an apply | assert something of a resource, or let the check ask by itself: `http = { url = … }`"#,
    );
}

#[test]
fn what_is_only_looked_up_is_no_resource() {
    check(
        r#"[data.bill.a]
        amount = 1.5
        [resource.bill.b]
        id = "b-1"
        [resource.value.v]
        value = "${data.bill.a.id}""#,
        "plumb.toml:3:9 error: this type is not managed [[resource.bill.b]] a `bill` can be looked up, and not be made | write `[data.bill.b]`, and refer to `data.bill.b`",
    );
}

#[test]
fn blocks_of_data_have_a_type_and_a_name() {
    check(
        "[data]\nbox = 1\n[data.module.x]\nid = 'x'\n[[data.list]]\n",
        "plumb.toml:2:1 error: expected a table [box] `data.box` is not a table | write `[data.TYPE.NAME]`
         plumb.toml:3:7 error: not a resource type [module] `module` means something else in expressions | write `[resource.TYPE.NAME]` with a type of a provider
         plumb.toml:5:8 error: expected a table [list] `data.list` is not a table | write `[data.TYPE.NAME]`",
    );
}

#[test]
fn states_and_addresses() {
    check(
        r#"[data.state.a]
        path = "../network"
        [data.state.b]
        for_each = ["x"]
        backend = "s3"
        bucket = "${each.key}"
        prefix = "p"
        [data.http.c]
        url = "https://a.example/${data.state.a.outputs.id}"
        headers = { A = "b" }
        expected_status = [200, 404]
        [resource.value.v]
        value = '${data.http.c.json.x + data.http.c.status} ${data.state.b["x"].outputs}'"#,
        "",
    );
    check(
        r#"[data.state.a]
        [data.state.b]
        path = "x"
        bucket = "y"
        [data.http.c]
        uri = "x"
        json = 1
        [data.http.d]
        url = 5
        provider = "builtin"
        [resource.value.v]
        value = "${data.http.d.text}""#,
        r#"plumb.toml:1:1 error: missing attribute [[data.state.a]] it does not say where the state is | write `path = "../FOLDER"` for the state of another spec, or `backend = "…"` as in `[state]`
        plumb.toml:4:9 error: one place too many [bucket] beside `path`: the spec in that folder says where its state is | remove it, or remove `path` and name the backend
        plumb.toml:5:9 error: missing attribute [[data.http.c]] `http` needs `url` | add the missing lines to this block
        plumb.toml:6:9 error: unknown attribute [uri] `http` has no attribute `uri` | did you mean `url`?
        plumb.toml:7:9 error: this attribute cannot be given [json] `json` is what is read | remove it, and refer to it: `data.http.NAME.json`
        plumb.toml:9:15 error: wrong type [5] expected string, found integer | put it in quotes
        plumb.toml:10:9 error: unknown attribute [provider] `http` has no attribute `provider` | known are `depends_on`, `expected_status`, `for_each`, `headers`, `lifecycle`, `sensitive`, `timeout`, `url`
        plumb.toml:12:32 error: `data.http.d` has no attribute `text` [text] | there are: body, expected_status, headers, json, sensitive, status, timeout, url"#,
    );
}
