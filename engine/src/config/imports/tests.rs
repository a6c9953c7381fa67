//! Tests of imports: import blocks go in, diagnostics or objects come out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::parse::parse;
use crate::config::resolve::{Given, ResolveInput, resolve};
use crate::config::testing::{assert_lines, lines, schema, sources};

const SPEC: &str = "[variable.ids]
type = 'map(string)'
default = { eu = 'i-1', us = 'i-2' }
[variable.secret]
default = 's'
sensitive = true
[local]
ids = '${var.ids}'
[resource.value.a]
[resource.value.many]
for_each = '${var.ids}'
";

/// Checks the diagnostics of imports; returns the imports as text.
#[track_caller]
fn check(blocks: &str, expected: &str) -> Vec<String> {
    let (sources, files) = sources(&format!("{SPEC}{blocks}"));
    let (document, mut diagnostics) = parse(&sources, &files);
    let input = ResolveInput {
        providers: BTreeMap::from([("builtin".into(), Arc::new(schema()))]),
        variables: BTreeMap::from([("secret".into(), Given::Text("s".to_owned()))]),
        ..ResolveInput::default()
    };
    let (config, found) = resolve(&document, &input);
    diagnostics.extend(found);
    diagnostics.sort();
    assert_lines(&lines(&sources, &diagnostics), expected);
    config.imports.iter().map(|(to, import)| format!("{to} {:?}", import.object)).collect()
}

#[test]
fn an_import_for_each_entry() {
    let found = check(
        "[[import]]\nfor_each = '${local.ids}'\nto = 'value.many[\"${each.key}\"]'\nid = '${each.value}'\n",
        "",
    );
    assert_eq!(
        found,
        ["value.many[\"eu\"] Id(ObjectId(\"i-1\"))", "value.many[\"us\"] Id(ObjectId(\"i-2\"))"]
    );
    let found = check(
        "[[import]]\nfor_each = ['eu']\nto = 'value.many[${each.key}]'\nid = '${var.ids[each.key]}'\n",
        "",
    );
    assert_eq!(found, ["value.many[\"eu\"] Id(ObjectId(\"i-1\"))"]);
}

#[test]
fn imports_are_known_before_planning() {
    check(
        "[[import]]\nto = 'value.a'\nid = '${value.many[\"eu\"].id}'\n\
         [[import]]\nto = 'value.a'\nid = '${var.secret}'\n\
         [[import]]\nto = 'value.a'\nid = '${each.key}'\n\
         [[import]]\nto = 'value.a'\nid = 'x'\nname = 'y'\n\
         [[import]]\nto = 'value.a'\nname = 'y'\n\
         [[import]]\nfor_each = '${var.ids}'\nto = 'value.a'\nid = 'x-${each.key}'\n\
         [[import]]\nfor_each = 3\nto = 'value.a'\nid = 'x'\n",
        r#"plumb.toml:14:9 error: an import must be known before planning [value.many["eu"]] `id`: only `var` and `local` are known here, not the resource `value.many` | make it of variables, locals and files
        plumb.toml:17:6 error: an import cannot hold a secret ['${var.secret}'] `id` is made of a secret, and it would be shown | write it without the secret
        plumb.toml:20:9 error: `each` is not available here: it needs a `for_each` [each.key] | it stands for one entry of `for_each`, inside that resource
        plumb.toml:24:8 error: an import by id and by name ['y'] `id` says already which object is meant | keep one of the two
        plumb.toml:27:8 error: an import by name ['y'] an object of type `value` has no name to find it by | give its `id`
        plumb.toml:28:1 error: imported twice [[[import]]] another import names the same object or the same address (plumb.toml:28:1: this one) | keep one of them
        plumb.toml:33:12 error: wrong type [3] `for_each` takes a table or a list of strings, found integer | write `["a", "b"]` or `{ a = …, b = … }`"#,
    );
}
