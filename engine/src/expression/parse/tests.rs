use super::super::{Access, Root, TREE_DEPTH_MAX};
use super::*;
use crate::address::Block;

/// Checks the tree of a template, printed.
fn check(text: &str, expected: &str) {
    match template(text, Dialect::Spec) {
        Ok(expr) => assert_eq!(expr.to_string(), expected, "{text}"),
        Err(error) => assert_eq!(show(text, &error), expected, "{text}"),
    }
}

fn show(text: &str, error: &ExprError) -> String {
    let Range { start, end } = error.range;
    let place = &text[start as usize..end as usize];
    match &error.help {
        Some(help) => format!("`{place}`: {error} ({help})"),
        None => format!("`{place}`: {error}"),
    }
}

#[test]
fn literal_text() {
    check("", r#""""#);
    check("plain $5, 100% {x}", r#""plain $5, 100% {x}""#);
    check("$${x} and %%{y}", r#""$${x} and %%{y}""#);
    check("back\\slash \"quoted\"", r#""back\\slash \"quoted\"""#);
}

#[test]
fn a_part_alone_keeps_its_type() {
    check("${var.x}", "var.x");
    check("${ var.x }", "var.x");
    check("${1 + 2}", "1 + 2");
    check(" ${var.x}", r#"" ${var.x}""#);
    check("%{if var.a}${var.b}%{endif}", r#"var.a ? "${var.b}${""}" : """#);
}

#[test]
fn first_words() {
    check("${network_volume.models[each.key].id}", "network_volume.models[each.key].id");
    check("${each.value.size}", "each.value.size");
    check("${word}", "word");
    check(
        "${self.a} ${old.b} ${new.c} ${action} ${job.d} ${http.e}",
        "\"${self.a} ${old.b} ${new.c} ${action} ${job.d} ${http.e}\"",
    );
    check("${each.kye}", "`each.kye`: `each` has no `kye` (write `each.key` or `each.value`)");
    check("${data.a.b.id}", "data.a.b.id");
    check("${[for d in data.a.b : d.id]}", "[for d in data.a.b : d.id]");
    check(
        "${data.a}",
        "`data.a`: `data.a` is no data block (write the name of the block behind its type, and an attribute: `data.TYPE.NAME.id`)",
    );
    check(
        "${provider.a.b}",
        "`provider.a`: `provider` cannot be referred to (refer to variables (`var.x`), locals (`local.x`) and resources (`type.name`))",
    );
}

#[test]
fn bound_names_win() {
    let expr = expression("[for value in value.a : value.b]", Dialect::Spec).unwrap();
    let Kind::For(walk) = expr.kind else { panic!() };
    assert_eq!(walk.collection.kind, Kind::Root(Root::Resource(Block::new("value", "a"))));
    let named = Expr::nowhere(Kind::Root(Root::Named("value".into())));
    assert_eq!(walk.value.kind, Kind::Attribute(Box::new(named), "b".into()));
}

#[test]
fn in_descriptors_every_word_is_a_name() {
    let expr = expression("var.x", Dialect::Names).unwrap();
    let named = Expr::nowhere(Kind::Root(Root::Named("var".into())));
    assert_eq!(expr.kind, Kind::Attribute(Box::new(named), "x".into()));
}

#[test]
fn splats() {
    let expr = expression("value.a[*].b[0].c", Dialect::Spec).unwrap();
    let Kind::Splat(base, rest) = expr.kind else { panic!() };
    assert_eq!(base.kind, Kind::Root(Root::Resource(Block::new("value", "a"))));
    let zero = Expr::literal(Value::Integer(0));
    let expected =
        [Access::Attribute("b".into()), Access::Index(zero), Access::Attribute("c".into())];
    assert_eq!(rest, expected);
}

#[test]
fn spaces_are_cut_where_asked() {
    check("a ${~ var.x ~} b", r#""a${var.x}b""#);
    check("a\n%{~ if var.x ~}\n b\n%{~ endif ~}\nc", r#""a${var.x ? "b" : ""}c""#);
}

#[test]
fn numbers_keep_their_kind() {
    check("${3}", "3");
    check("${3.0}", "3.0");
    check("${-0.5}", "-0.5");
    check("${- 7}", "-7");
    check("${1e300}", "1e300");
    check("${-9223372036854775808}", "-9223372036854775808");
    check(
        "${9223372036854775808}",
        "`9223372036854775808`: this number is too large (whole numbers have 64 bits; write a larger one with a `.0`)",
    );
    check("${1e999}", "`e`: syntax error in expression: expected `}`");
}

#[test]
fn mistakes_have_their_place() {
    check(
        "a ${",
        "`$`: what begins here has no end (close it with `}`, and `%{if}` with `%{endif}`; `$${` and `%%{` are plain text)",
    );
    check("${a b}", "`b`: syntax error in expression: expected `}`");
    check("${1 + }", "`}`: a value is missing here");
    check(
        "${'x'}",
        "`'`: a value is missing here (text stands in double quotes inside an expression)",
    );
    check(
        "${a + ${b}}",
        "`$`: a value is missing here (inside an expression, references stand without `${` and `}`)",
    );
    check(
        "é${é.}",
        "`}`: syntax error in expression: invalid traversal operator; expected `*`, identifier or unsigned integer",
    );
    check(
        "${a::b(1)}",
        "`a::b(1)`: functions have no namespaces (write the function's name alone)",
    );
    let error = expression("  ", Dialect::Spec).unwrap_err();
    assert_eq!(error.message, "there is no expression here");
    let error = expression("  1 +", Dialect::Spec).unwrap_err();
    assert_eq!(error.range, range(3, 4));
}

#[test]
fn ranges_are_of_the_text() {
    let text = "x-${upper(var.env)}-${value.a[\"k\"].size + 1}";
    let Kind::Template(parts) = template(text, Dialect::Spec).unwrap().kind else { panic!() };
    let place = |expr: &Expr| &text[expr.range.start as usize..expr.range.end as usize];
    assert_eq!(
        parts.iter().map(place).collect::<Vec<_>>(),
        ["x-", "upper(var.env)", "-", "value.a[\"k\"].size + 1"]
    );
    let Kind::Binary(_, left, _) = &parts[3].kind else { panic!() };
    assert_eq!(place(left), "value.a[\"k\"].size");
    let Kind::Attribute(base, _) = &left.kind else { panic!() };
    assert_eq!(place(base), "value.a[\"k\"]");
    let padded = expression("  var.x ", Dialect::Spec).unwrap();
    assert_eq!(padded.range, range(2, 7));
}

/// The scanner and the full parser make the same tree, with the same ranges everywhere.
#[test]
fn the_short_way_leads_to_the_same_tree() {
    let references = [
        "var.x",
        "local.some-name",
        "each.key",
        "each.value",
        "each.value.a.b",
        "value.a.id",
        "value.a[\"k\"].id",
        "data.value.a.id",
        "data.value.a[\"k\"].id",
        "value.a[\"k k\"][0].b",
        "value.a[each.key].id",
        "value.a[each.value]",
        "word",
        "self.a",
        "old.size",
        "job.output.x",
        "_x",
        "a-b.c-d",
        "word[0]",
        "value.a[12]",
        "http.x[\"ü\"]",
    ];
    let mut texts: Vec<String> = references.iter().map(|r| format!("${{{r}}}")).collect();
    texts.extend(references.iter().map(|r| format!("${{ {r} }}")));
    texts.extend(references.iter().map(|r| format!("ä-${{{r}}}")));
    texts.extend(references.iter().map(|r| format!("${{{r}}}${{var.y}} $ % {{")));
    for text in &texts {
        for dialect in [Dialect::Spec, Dialect::Names] {
            let Some(short) = scan::template(text, dialect) else {
                assert!(dialect == Dialect::Names, "not scanned: {text}");
                continue;
            };
            let long = convert::template(&text.parse().unwrap(), text, dialect).unwrap();
            // Debug shows the ranges, too, which equality ignores.
            assert_eq!(format!("{short:?}"), format!("{long:?}"), "{text}");
        }
    }
}

#[test]
fn the_short_way_gives_up_on_what_it_does_not_know() {
    for text in [
        "${true}",
        "${a.b(1)}",
        "${f(x)}",
        "${a.b + 1}",
        "$${a}",
        "%{if a}%{endif}",
        "${a.*.b}",
        "${a[*]}",
        "${a[\"${b}\"]}",
        "${a[\"\\n\"]}",
        "${a[99999999999999999999]}",
        "${each.x}",
        "${a .b}",
        "${a",
        "${}",
        "${a.}",
        "${data.a}",
    ] {
        assert!(scan::template(text, Dialect::Spec).is_none(), "{text}");
    }
}

#[test]
fn long_and_deep_input_is_refused() {
    let deep = |open: &str, middle: &str, close: &str, n: usize| {
        format!("{}{middle}{}", open.repeat(n), close.repeat(n))
    };
    let texts = [
        deep("(", "1", ")", 10_000),
        deep("[", "", "]", 10_000),
        deep("{a=", "1", "}", 10_000),
        deep("f(", "1", ")", 10_000),
        deep("\"${", "1", "}\"", 10_000),
        deep("[for x in ", "y", " : x]", 5_000),
        deep("a[", "0", "]", 10_000),
        format!("{}1", "!".repeat(10_000)),
        format!("{}1", "-".repeat(10_000)),
        format!("a{}", ".b".repeat(10_000)),
        format!("a{}", "[0]".repeat(10_000)),
        format!("a{}", "[*]".repeat(10_000)),
        format!("1{}", "+1".repeat(10_000)),
        format!("{}1", "a?b:".repeat(10_000)),
        format!("{}1", "a?".repeat(10_000)),
        "x".repeat(TEXT_MAX + 1),
    ];
    for text in &texts {
        let start: String = text.chars().take(20).collect();
        let error = expression(text, Dialect::Spec).unwrap_err();
        assert!(!error.message.is_empty(), "{start}");
        let error = template(&format!("${{{text}}}"), Dialect::Spec).unwrap_err();
        assert!(!error.message.is_empty(), "{start}");
        residual(text).map_or_else(drop, |expr| assert!(matches!(expr.kind, Kind::Root(_))));
    }
    let directive = deep("%{if a}", "", "%{endif}", 5_000);
    assert!(template(&directive, Dialect::Spec).is_err());
}

/// The parser needs twice as long for each of these levels as for the one around it.
#[test]
fn a_mistake_deep_in_what_is_computed_is_found_soon() {
    for level in [
        "a+a+(",
        "a+a+{b=",
        "a && b && \"${",
        "8.9 % 8 % {",
        "a+a+[for x in ",
        "a == b == !(",
        "\"${<<EOT\nEOT}",
        // These texts hide the markers, or the brackets, from the code that counts them.
        "\"${!<<E\nE}",
        "\"${~!<<-E\nE}",
        "\"${a!=<<E\nE}",
        "\"${/*\"*/<<E\nE}",
        "\"${a+/*\"*/<<E\nE}",
        "\"${#\"\n<<E\nE}",
        "\"${//\"\n!<<E\nE}",
        "\"${<<E\n\"\n E}",
        "a+a+/*\"*/(",
        "a+a+[<<E\n\"\nEE\nE\n, a+a+(",
    ] {
        for text in [level.repeat(60), format!("f(1, {}", level.repeat(60))] {
            for read in
                [expression(&text, Dialect::Spec), template(&format!("${{{text}"), Dialect::Spec)]
            {
                let error = read.unwrap_err();
                assert!(
                    error.message.starts_with("more than 10 brackets"),
                    "{level}: {}",
                    error.message
                );
            }
        }
    }
}

#[test]
fn what_people_write_is_not_too_deep() {
    let scripts = "if (a && b || {c && d || [e - f - (".repeat(20);
    assert!(template(&format!("{scripts}${{upper(var.x)}}"), Dialect::Spec).is_ok());
    let quoted = format!("upper(\"{scripts}\")");
    assert!(expression(&quoted, Dialect::Spec).is_ok());
    let list = "a + b + (c + d + (e + f)), ".repeat(30);
    assert!(expression(&format!("[{list}]"), Dialect::Spec).is_ok());
    let deep = "a && b && (".repeat(10) + "c" + &")".repeat(10);
    assert!(expression(&deep, Dialect::Spec).is_ok());
    let script = "cat <<EOF > a\nEOF\n".repeat(30) + "${upper(var.x)}";
    assert!(template(&script, Dialect::Spec).is_ok());
    let marked = "upper(<<EOT\nx${var.y}\nEOT\n)";
    assert!(expression(marked, Dialect::Spec).is_ok());
    let json = "[".repeat(30) + "\"a + b + (c\"" + &"]".repeat(30);
    let marked = format!("jsondecode(<<-END\n  {json}\n  END\n)");
    assert_eq!(expression(&marked, Dialect::Spec).map(drop), Ok(()));
}

#[test]
fn what_is_allowed_can_be_walked() {
    let nested = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    assert_eq!(expression(&nested, Dialect::Spec).unwrap().to_string(), nested);
    let chain = format!("a.b{}", "[0]".repeat(TREE_DEPTH_MAX - 20));
    assert_eq!(expression(&chain, Dialect::Spec).unwrap().to_string(), chain);
    let sum = format!("1{}", " + 1".repeat(100));
    assert_eq!(expression(&sum, Dialect::Spec).unwrap().to_string(), sum);
}

#[test]
fn long_residuals_are_read() {
    let long = "é".repeat(TEXT_MAX);
    let text = format!("upper(\"{long}\")");
    assert!(expression(&text, Dialect::Spec).is_err());
    assert_eq!(residual(&text).unwrap().to_string(), text);
}
