//! Tests of the parser: the text of a spec goes in, diagnostics or the shape of the document come out.

use super::*;
use crate::config::testing::{assert_lines, lines, sources};
use crate::expression::Kind;
use crate::value::Value;
use crate::work::Backwards;

#[track_caller]
fn check(spec: &str, expected: &str) -> Document {
    let (sources, files) = sources(spec);
    let (document, diagnostics) = parse(&sources, &files);
    assert_lines(&lines(&sources, &diagnostics), expected);
    document
}

#[test]
fn a_good_spec_says_nothing() {
    let document = check(
        "[plumb]\nname = 'x'\n[state]\nbackend = 'file'\nroot = 'x'\n[variable.env]\ntype = 'string'\n\
         [local]\na = 1\n[provider.acme]\nkey = 'x'\n[resource.value.a]\nx = 1\n\
         [resource.value.a.lifecycle]\nenabled = true\n[output.o]\nvalue = 1\n\
         --- other.plumb.toml\n[local]\nb = 2\n[resource.value.b]\n[resource.list.a]\n",
        "",
    );
    let resources: Vec<String> = document.resources.keys().map(ToString::to_string).collect();
    assert_eq!(resources, ["list.a", "value.a", "value.b"]);
    assert_eq!(document.locals.len(), 2);
    assert!(!document.torn);
}

#[test]
fn values_keep_their_places() {
    let text = "\u{feff}[resource.value.a]\nx = [1, { k = 'v' }]\n";
    let (sources, files) = sources(text);
    let (document, diagnostics) = parse(&sources, &files);
    assert!(diagnostics.is_empty());
    let block = &document.resources[&Block::new("value", "a")];
    assert_eq!(sources.text(block.header), Some("[resource.value.a]"));
    let item = &block.items["x"];
    assert_eq!(sources.text(item.key), Some("x"));
    assert_eq!(sources.text(item.value.span), Some("[1, { k = 'v' }]"));
    let Kind::List(parts) = &item.value.expr.kind else { panic!() };
    let Kind::Map(entries) = &parts[1].kind else { panic!() };
    assert_eq!(entries[0].0.kind, Kind::Literal(Value::string("k")));
    assert_eq!(sources.text(item.value.span_of(entries[0].1.range)), Some("'v'"));
}

#[test]
fn headers_of_tables_without_one() {
    let text = "resource.value.a = { x = 1 }\n[resource.value.b.lifecycle]\nenabled = true\n";
    let (sources, files) = sources(text);
    let (document, _) = parse(&sources, &files);
    let header = |name| sources.text(document.resources[&Block::new("value", name)].header);
    assert_eq!(header("a"), Some("a"));
    assert_eq!(header("b"), Some("b"));
}

#[test]
fn several_mistakes_in_one_go() {
    let document = check(
        "a = \nb = 1\nb = 2\n[x\n",
        "plumb.toml:1:5 error: invalid TOML [] string values must be quoted, expected literal string
         plumb.toml:2:1 error: unknown table [b] `b` is not a table of a spec | known are `check`, `data`, `import`, `local`, `module`, `moved`, `output`, `plumb`, `policy`, `provider`, `removed`, `resource`, 2 more
         plumb.toml:3:1 error: declared twice [b] `b` is declared again here (plumb.toml:2:1: first declared here) | remove one of the two, or give it another name
         plumb.toml:4:3 error: invalid TOML [] unclosed table, expected `]`",
    );
    check(
        "[resource.value.a\ninput = 1\nother = 2\n",
        "plumb.toml:1:18 error: invalid TOML [] unclosed table, expected `]`",
    );
    assert!(document.torn);
}

#[test]
fn a_broken_line_does_not_hide_the_next_block() {
    check(
        "[variable.a]\ndefault = \"x\ntype = 'string'\n[variable.b]\ntipe=1",
        "plumb.toml:2:13 error: invalid TOML [] invalid basic string, expected `\"`
         plumb.toml:5:1 error: unknown key [tipe] a variable has no `tipe` | did you mean `type`?",
    );
}

#[test]
fn a_quote_that_ends_the_string_of_an_expression() {
    check(
        "[output.a]\nvalue = \"${lower(\"A\")}\"\n",
        "plumb.toml:2:17 error: syntax error in expression: expected `}` [(]
         plumb.toml:2:19 error: invalid TOML [] unexpected key or value, expected newline, `#` | a double quote ends the string: write '${…}' with single quotes around an expression that holds double quotes",
    );
}

#[test]
fn a_block_declared_twice_names_both_places_once() {
    let document = check(
        "[resource.value.a]\nx = 1\nname=2\n\n[resource.value.b]\n[resource.value.a] # again\nx = 2\nname=2\n",
        "plumb.toml:6:1 error: declared twice [[resource.value.a]] `resource.value.a` is declared again here (plumb.toml:1:1: first declared here) | remove one of the two, or give it another name",
    );
    assert!(!document.torn);
    check(
        "[resource.value.a]\n--- b.plumb.toml\n[resource.value.a]\n[plumb]\n--- c.plumb.toml\n[plumb]\n",
        "b.plumb.toml:1:1 error: declared twice [[resource.value.a]] `value.a` is declared again here (plumb.toml:1:1: first declared here) | remove one of the two, or give it another name
         c.plumb.toml:1:1 error: declared twice [[plumb]] `[plumb]` is declared again here (b.plumb.toml:2:1: first declared here) | remove one of the two, or give it another name",
    );
    check(
        "[variable.a]\n[output.a]\n--- b\n[variable.a]\n[output.a]\n",
        "b:1:1 error: declared twice [[variable.a]] `variable.a` is declared again here (plumb.toml:1:1: first declared here) | remove one of the two, or give it another name
         b:2:1 error: declared twice [[output.a]] `output.a` is declared again here (plumb.toml:2:1: first declared here) | remove one of the two, or give it another name",
    );
}

#[test]
fn a_key_given_twice() {
    check(
        "[resource.value.a]\n  x = 1\ny = 1\nx = 2\n",
        "plumb.toml:4:1 error: declared twice [x] `x` is declared again here (plumb.toml:2:3: first declared here) | remove one of the two, or give it another name",
    );
    check(
        "[resource.value.a]\nenv = {a=1}\n[resource.value.a.env]\nx=2\n",
        "plumb.toml:3:1 error: declared twice [[resource.value.a.env]] `resource.value.a.env` is declared again here (plumb.toml:2:1: first declared here) | remove one of the two, or give it another name",
    );
    check(
        "[local]\na = 1\n--- b\n[local]\na = 2\nB = 3\n",
        "b:2:1 error: declared twice [a] `local.a` is declared again here (plumb.toml:2:1: first declared here) | remove one of the two, or give it another name
         b:3:1 error: invalid name [B] `B` cannot name a local value | begin with a small letter, then use small letters, digits, `_` and `-`",
    );
}

#[test]
fn blocks_of_the_wrong_shape() {
    check(
        "[resource.value]\nsize = 3\n[resource.var.x]\n[resource.Value.x]\n[resource.value.X]\n[[resource.value.y]]\n",
        "plumb.toml:2:1 error: expected a table [size] `resource.value.size` is not a table | write `[resource.TYPE.NAME]`
         plumb.toml:3:11 error: not a resource type [var] `var` means something else in expressions | write `[resource.TYPE.NAME]` with a type of a provider
         plumb.toml:4:11 error: invalid name [Value] `Value` cannot name a resource type | begin with a small letter, then use small letters, digits, `_` and `-`
         plumb.toml:5:17 error: invalid name [X] `X` cannot name a resource | begin with a small letter, then use small letters, digits, `_` and `-`
         plumb.toml:6:18 error: expected a table [y] `resource.value.y` is not a table | write `[resource.TYPE.NAME]`",
    );
    check(
        "resource = 3\nplumb = 'x'\n[variable]\na=1\nA={}\n",
        "plumb.toml:1:1 error: expected a table [resource] `resource` is not a table | write `[resource.TYPE.NAME]`
         plumb.toml:2:1 error: expected a table [plumb] `plumb` is not a table | write `[plumb]`
         plumb.toml:4:1 error: expected a table [a] `variable.a` is not a table | write `[variable.NAME]`
         plumb.toml:5:1 error: invalid name [A] `A` cannot name a variable | begin with a small letter, then use small letters, digits, `_` and `-`",
    );
}

#[test]
fn tables_that_mean_nothing() {
    check(
        "[ressource.value.a]\n[locals]\n[module.x]\n[zzz]\n",
        "plumb.toml:1:2 error: unknown table [ressource] `ressource` is not a table of a spec | did you mean `resource`?
         plumb.toml:2:1 error: unknown table [[locals]] `locals` is not a table of a spec | did you mean `local`?
         plumb.toml:4:1 error: unknown table [[zzz]] `zzz` is not a table of a spec | known are `check`, `data`, `import`, `local`, `module`, `moved`, `output`, `plumb`, `policy`, `provider`, `removed`, `resource`, 2 more",
    );
}

#[test]
fn keys_that_mean_nothing() {
    check(
        "[plumb]\nnme = 'x'\n[variable.a]\ntpe='string'\n[output.a]\nvalu=3\n[check.b]\nasert='x'\n",
        "plumb.toml:2:1 error: unknown key [nme] `[plumb]` has no `nme` | did you mean `name`?
         plumb.toml:4:1 error: unknown key [tpe] a variable has no `tpe` | did you mean `type`?
         plumb.toml:6:1 error: unknown key [valu] an output has no `valu` | did you mean `value`?
         plumb.toml:8:1 error: unknown key [asert] a check has no `asert` | did you mean `assert`?",
    );
}

#[test]
fn names_are_small_letters_of_ascii() {
    let spec = |name: &str| format!("[resource.value.'{name}']\n");
    for name in ["A", "aB", "é", "e\u{301}", "а", "ﬁ", "ı", "a b", ""] {
        let (sources, files) = sources(&spec(name));
        let (document, diagnostics) = parse(&sources, &files);
        assert!(diagnostics.has_errors() && document.resources.is_empty(), "{name}");
    }
    check(&spec("a-b_1"), "");
}

#[test]
fn values_that_are_none() {
    let document = check(
        "[local]\na = 1979-05-27\nb = 99999999999999999999\nc = inf\nd = nan\ne=[1, {x = 07:32:00}]\nf=1_000\ng=0xff\n",
        "plumb.toml:2:5 error: dates are not values [1979-05-27] TOML reads this as a date or time | put it in quotes
         plumb.toml:3:5 error: number out of range [99999999999999999999] numbers must be finite, and integers must fit into 64 bits | write a smaller number, or put it in quotes if it is a name
         plumb.toml:4:5 error: number out of range [inf] numbers must be finite, and integers must fit into 64 bits | write a smaller number, or put it in quotes if it is a name
         plumb.toml:5:5 error: number out of range [nan] numbers must be finite, and integers must fit into 64 bits | write a smaller number, or put it in quotes if it is a name
         plumb.toml:6:12 error: dates are not values [07:32:00] TOML reads this as a date or time | put it in quotes",
    );
    assert_eq!(document.broken.len(), 5);
    assert_eq!(document.locals["f"].value.expr.kind, Kind::Literal(Value::Integer(1000)));
    assert_eq!(document.locals["g"].value.expr.kind, Kind::Literal(Value::Integer(255)));
}

#[test]
fn what_is_no_spec_at_all() {
    check(
        "<html>\n<body class=\"x\">nope</body>\n",
        "plumb.toml:1:1 error: invalid TOML [<] invalid unquoted key, expected letters, numbers, `-`, `_`
         plumb.toml:2:7 error: invalid TOML [] key with no value, expected `=`",
    );
    check(
        "[local]\nb='\u{0}'\n",
        "plumb.toml:2:4 error: invalid TOML [] invalid literal string, expected non-single-quote visible characters",
    );
}

#[test]
fn expressions_that_cannot_be_read_are_underlined_through_escapes() {
    let document = check(
        "[resource.value.a]\nx = \"a \\\"b\\\" \\u00e9 ${1 + } c\"\ny = \"\"\"\n  one \\\n   two ${) }\n\"\"\"\nz = ['ok', '${var.}']\nw = 'ok'\n",
        "plumb.toml:2:27 error: a value is missing here [}]
         plumb.toml:5:10 error: a value is missing here [)]
         plumb.toml:7:19 error: syntax error in expression: invalid traversal operator; expected `*`, identifier or unsigned integer [}]",
    );
    assert_eq!(document.broken.len(), 3);
    assert!(!document.torn);
}

#[test]
fn ranges_of_expressions_count_bytes_of_the_file() {
    let text = "[resource.value.a]\nx = \"é \\t${ var.one }-${value.b[\\\"k\\\"].id}\"\n[check.c]\nassert = 'job.ok == var.two'\n";
    let (sources, files) = sources(text);
    let (document, diagnostics) = parse(&sources, &files);
    assert!(diagnostics.is_empty());
    let mut words = Vec::new();
    let items = document.resources.values().chain(document.checks.values());
    for value in items.flat_map(|block| block.items.values()).map(|item| &item.value) {
        crate::expression::visit::roots(&value.expr, &mut |_, range| {
            words.push(sources.text(value.span_of(range)).unwrap());
        });
    }
    assert_eq!(words, ["var.one", "value.b", "job", "var.two"]);
}

#[test]
fn limits_are_clear_errors_at_once() {
    let deep = format!("[local]\na = {}", "[".repeat(10_000));
    check(
        &deep,
        "plumb.toml:2:69 error: nested too deeply [[] more than 64 levels | name the inner parts in `[local]` and refer to them",
    );
    let key = format!("[local]\n{}b = 1\n", "a.".repeat(10_000));
    let words = "a.".repeat(10_000) + "b";
    check(
        &key,
        &format!("plumb.toml:2:1 error: nested too deeply [{words}] this key has too many parts"),
    );
    let (mut sources, mut files) = (Sources::default(), Vec::new());
    let half = "#".repeat(BYTES_MAX / 2 + 1);
    files.extend([sources.add("a", half.clone()), sources.add("b", half)]);
    let (document, diagnostics) = parse(&sources, &files);
    assert!(document.torn);
    assert_lines(
        &lines(&sources, &diagnostics),
        "error: the spec is too large Its files have 33 MiB together; 32 MiB are allowed. | split it into several folders, or declare similar resources with `for_each`",
    );
    let values = format!("[local]\na = [{}]\n", "1,".repeat(VALUES_MAX));
    check(
        &values,
        "error: the spec is too large With `plumb.toml` its files hold more than 5000000 values, which are not read. | split it into several folders, or declare similar resources with `for_each`",
    );
    let errors = "[a\n".repeat(1000);
    let (sources, files) = super::super::testing::sources(&errors);
    assert!(parse(&sources, &files).1.len() < 60);
}

#[test]
fn pieces_of_a_file_read_like_the_whole() {
    let read = |text: &str, in_pieces| {
        let (sources, files) = sources(text);
        let texts: Vec<_> = files.iter().map(|file| (*file, sources.get(*file).unwrap())).collect();
        let pieces = syntax::scan(text).cuts.len();
        let read = super::read(&texts, in_pieces, &Backwards);
        (pieces, read.map(|read| format!("{read:?}")))
    };
    let block = |index: u32| {
        format!("[resource.value.r{index}]\nvalue = \"${{value.r0.value}}\"\nbad = 1979-05-27\n")
    };
    let many: String = (0..2500).map(block).collect();
    let text =
        format!("# first\n\n[local]\na = 1\n{many}[resource.value.last]\n[output.x]\nvalue = 1\n");
    let (pieces, in_pieces) = read(&text, true);
    assert!(pieces > 1);
    assert!(in_pieces == read(&text, false).1);
    // The parser of whole files judges names that come twice, and blocks that go on in another place.
    for more in [
        "[local]\n",
        "[local.b]\n",
        "[resource.value.r0.lifecycle]\n",
        "[resource.value.r0]\n",
        "a =\n",
    ] {
        let (_, in_pieces) = read(&format!("{text}{more}"), true);
        assert_eq!(in_pieces.is_none(), more != "[local.b]\n", "{more}");
    }
    let (sources, files) =
        sources(&format!("{text}[resource.value.r0.lifecycle]\nenabled = true\n"));
    let (document, diagnostics) = parse(&sources, &files);
    assert!(document.resources[&Block::new("value", "r0")].items.contains_key("lifecycle"));
    assert!(!document.torn && diagnostics.iter().all(|d| d.summary == "dates are not values"));
}

proptest::proptest! {
    #[test]
    fn nothing_panics(text in r#"(\[|\]|\{|\}|"|'|"""|=|\.|a|resource|value|local|\n|\\|\$|#|1| |,|:|-|é){0,40}"#) {
        let (sources, files) = sources(&text);
        let (document, diagnostics) = parse(&sources, &files);
        proptest::prop_assert_eq!(document.torn && diagnostics.is_empty(), false);
        for diagnostic in diagnostics.iter() {
            let span = diagnostic.span.unwrap();
            proptest::prop_assert!(sources.text(span).is_some(), "{:?}", diagnostic);
        }
    }
}

#[test]
fn references_without_quotes() {
    for (line, written) in [
        ("template_id = template.worker.id", "\"${template.worker.id}\""),
        ("x = var.env # text", "\"${var.env}\""),
        ("x = endpoint.a[\"eu\"].id", "'${endpoint.a[\"eu\"].id}'"),
    ] {
        let (sources, files) = sources(&format!("[resource.value.a]\n{line}\n"));
        let (_, diagnostics) = parse(&sources, &files);
        let lines = lines(&sources, &diagnostics);
        let help = format!("a reference stands in `${{…}}` and in quotes: {written}");
        assert!(lines.contains("error: a reference without quotes"), "{lines}");
        assert!(lines.contains(&help), "{lines}");
    }
    check(
        "[resource.value.a]\nx = 1.2.3\n",
        "plumb.toml:2:5 error: number out of range [1.2.3] numbers must be finite, and integers must fit into 64 bits | write a smaller number, or put it in quotes if it is a name\n\
         plumb.toml:2:8 error: invalid TOML [.3] invalid float, expected nothing",
    );
}

#[test]
fn a_file_of_another_language() {
    check(
        "# comment\nresource \"value\" \"a\" {\n  name = \"x\"\n}\n\nvariable \"b\" {}\n",
        "plumb.toml:2:1 error: this is HCL, and a spec is TOML [resource \"value\" \"a\" {] a block of Terraform's language | \
         write `[resource.TYPE.NAME]` in place of `resource \"TYPE\" \"NAME\" {`, and one `key = value` a line below it; `plumb init` writes an example",
    );
}

#[test]
fn versions_that_a_spec_requires() {
    check("[plumb]\nrequired_version = '>=0.1, <9'\n", "");
    check(
        "[plumb]\nrequired_version = '>=99'\n[resource.value.a]\n[later.table]\n",
        concat!(
            "plumb.toml:2:20 error: this spec is not for Plumb ",
            env!("CARGO_PKG_VERSION"),
            " ['>=99'] it requires >=99 | install a version of Plumb that fits, or change `required_version` if the spec works with this one",
        ),
    );
    check(
        "[plumb]\nrequired_version = '~> 1.2'\n",
        "plumb.toml:2:20 error: no requirement of a version ['~> 1.2'] `~> 1.2` names no versions | write it such as \">=0.1, <0.3\"; \
         Terraform's `~> 1.2` is \"^1.2\", and `~> 1.2.3` is \"~1.2.3\"",
    );
}
