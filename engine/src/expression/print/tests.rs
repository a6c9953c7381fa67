use proptest::prelude::*;

use super::super::Range;
use super::super::parse::{Dialect, expression, residual, template};
use super::*;

/// Checks that `text` prints as expected, and that the parser reads the print back to the same tree.
fn check(text: &str, expected: &str) {
    let expr = residual(text).unwrap();
    assert_eq!(expr.to_string(), expected, "{text}");
    assert_eq!(residual(expected).unwrap(), expr, "{expected}");
}

#[test]
fn references() {
    check("var.x", "var.x");
    check("value.a.id", "value.a.id");
    check(r#"value.a["k"].id"#, r#"value.a["k"].id"#);
    check("value.a.0", "value.a[0]");
    check("each.key", "each.key");
    check("self.pods", "self.pods");
    check("(word).x", "(word).x");
    check("word[0]", "word[0]");
    check("value.a[*].b[0]", "value.a[*].b[0]");
    check("value.a.*.b[0]", "(value.a[*].b)[0]");
    check("value.a[*].b[*].c", "value.a[*].b[*].c");
}

#[test]
fn parentheses_stand_where_they_are_needed() {
    check("(a + b) * c", "(a + b) * c");
    check("a + (b * c)", "a + b * c");
    check("a - (b - c)", "a - (b - c)");
    check("(a - b) - c", "a - b - c");
    check("-(a + b)", "-(a + b)");
    check("!(a && b) || c", "!(a && b) || c");
    check("-(5)", "-(5)");
    check("- 5", "-5");
    check("a ? b : c ? d : e", "a ? b : c ? d : e");
    check("(a ? b : c) ? d : e", "(a ? b : c) ? d : e");
    check("(a == b) == (c == d)", "a == b == (c == d)");
    check("f(x...)", "f(x...)");
    check("f((a ? b : c)...)", "f((a ? b : c)...)");
    check("(5).x", "(5).x");
}

#[test]
fn texts() {
    check(r#""a\nb\"c\\""#, r#""a\nb\"c\\""#);
    check(r#""$${x} %%{y} $5 100%""#, r#""$${x} %%{y} $5 100%""#);
    check(r#""\u0000\u001b\u007f""#, r#""\u0000\u001b\u007f""#);
    check(r#""a\u0024${b}""#, r#""a\u0024${b}""#);
    check(r#""x${""}${b}""#, r#""x${b}""#);
    check(r#""${b}${""}""#, r#""${b}${""}""#);
    check(r#""a${"b${c}"}""#, r#""a${"b${c}"}""#);
    check("\"über 日本 🦀\"", "\"über 日本 🦀\"");
}

#[test]
fn collections() {
    check("[]", "[]");
    check("{}", "{}");
    check("[1, 2.5, [null]]", "[1, 2.5, [null]]");
    check("toset([2, 1, 2])", "toset([1, 2])");
    check("toset([a])", "toset([a])");
    check(r#"{ a = 1, "b c" = 2, "for" = 3 }"#, r#"{ a = 1, "b c" = 2, "for" = 3 }"#);
    check("{ (k) = 1 }", "{ (k) = 1 }");
    check("[for x in xs : x.id if x.ok]", "[for x in xs : x.id if x.ok]");
    check("{for k, v in m : k => v...}", "{for k, v in m : k => v...}");
    check("[for x in a.b : (a ? x : b)]", "[for x in a.b : (a ? x : b)]");
}

#[test]
fn large_maps_are_pairs() {
    let entries: Vec<String> = (0..=ENTRIES_MAX).map(|n| format!("k{n:03} = {n}")).collect();
    let text = format!("{{{}}}", entries.join(", "));
    let expr = expression(&text, Dialect::Spec).unwrap();
    let printed = residual(&text).unwrap().to_string();
    assert!(printed.starts_with(r#"tomap([["k000", 0], "#), "{printed}");
    let Kind::Literal(Value::Map(map)) = residual(&printed).unwrap().kind else { panic!() };
    assert_eq!(map.len(), ENTRIES_MAX + 1);
    assert!(expr.to_string().starts_with("tomap([["));
}

/// A map with a duplicate key is printed in a form that can be read back; the mistake shows when the map is
/// made.
#[test]
fn maps_with_a_key_twice_are_pairs() {
    check("tomap([[k, 1], [k, 2]])", "tomap([[k, 1], [k, 2]])");
    check("tomap([[\"a\", x], [\"a\", 2]])", "tomap([[\"a\", x], [\"a\", 2]])");
    check("tomap([[\"a\", 1], [\"a\", 2]])", "tomap([[\"a\", 1], [\"a\", 2]])");
    check("tomap([[\"a\", x], [\"b\", 2]])", "{ a = x, b = 2 }");
}

/// Each level of nested keys is printed once, and not again for each level around it.
#[test]
fn keys_of_keys_are_printed_once() {
    let name = |name: &str| at(Kind::Root(Root::Named(name.into())));
    let deeper = |key| at(Kind::Map(vec![(key, name("a")), (name("k"), name("b"))]));
    let deep = (0..40).fold(name("x"), |key, _| deeper(key));
    assert_eq!(deep.to_string().matches("(k) = b").count(), 40);
}

#[test]
fn what_templates_mean_is_kept() {
    let expr = template(
        "%{if var.a}x${var.b}%{else}y%{endif}-%{for x in var.c}<${x}>%{endfor}",
        Dialect::Spec,
    );
    assert_eq!(
        expr.unwrap().to_string(),
        r#""${var.a ? "x${var.b}" : "y"}-${join("", [for x in var.c : "<${x}>"])}""#
    );
}

fn word() -> impl Strategy<Value = Name> {
    prop::sample::select(vec!["a", "b", "size", "x-y", "_u", "value"]).prop_map(Name::from)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,4}",
        prop::collection::vec(
            prop::sample::select(vec![
                "$", "{", "}", "%", "\"", "\\", "\n", "\u{1}", "é", "🦀", "~"
            ]),
            0..5
        )
        .prop_map(|parts| parts.concat()),
        any::<String>(),
    ]
}

fn literal() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::Float),
        text().prop_map(Value::string),
    ];
    scalar.prop_recursive(3, 12, 4, |inner| {
        let entries = prop::collection::btree_map(text().prop_map(Name::from), inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::list),
            prop::collection::vec(inner, 0..4).prop_map(Value::set),
            entries.prop_map(|entries| Value::map(entries.into_iter().collect())),
        ]
    })
}

fn root() -> impl Strategy<Value = Root> {
    prop_oneof![
        word().prop_map(Root::Var),
        word().prop_map(Root::Local),
        Just(Root::EachKey),
        Just(Root::EachValue),
        // The types of resources are words that no `for` uses for its variables.
        ("t[a-z]{0,2}", word())
            .prop_map(|(ty, name)| Root::Resource(Block::new(ty.as_str(), name))),
        word().prop_map(Root::Named),
        Just(Root::Named("old".into())),
    ]
}

fn at(kind: Kind) -> Expr {
    Expr::nowhere(kind)
}

/// Returns a list; a list of literals is one literal, as folding makes it.
fn list(items: Vec<Expr>) -> Kind {
    let values: Option<Vec<Value>> = items
        .iter()
        .map(|item| if let Kind::Literal(value) = &item.kind { Some(value.clone()) } else { None })
        .collect();
    values.map_or(Kind::List(items), |values| Kind::Literal(Value::list(values)))
}

fn binary_op() -> impl Strategy<Value = BinaryOp> {
    prop::sample::select(vec![
        BinaryOp::Add,
        BinaryOp::Subtract,
        BinaryOp::Multiply,
        BinaryOp::Divide,
        BinaryOp::Remainder,
        BinaryOp::Equal,
        BinaryOp::NotEqual,
        BinaryOp::Less,
        BinaryOp::GreaterOrEqual,
        BinaryOp::And,
        BinaryOp::Or,
    ])
}

fn tree() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        literal().prop_map(|value| at(Kind::Literal(value))),
        root().prop_map(|root| at(Kind::Root(root))),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let e = inner.clone();
        let unary = prop::sample::select(vec![UnaryOp::Negate, UnaryOp::Not]);
        let access =
            prop_oneof![word().prop_map(Access::Attribute), e.clone().prop_map(Access::Index),];
        prop_oneof![
            prop::collection::vec(e.clone(), 0..4).prop_map(|parts| at(Kind::template(parts))),
            (e.clone(), word()).prop_map(|(base, name)| at(Kind::Attribute(Box::new(base), name))),
            (e.clone(), e.clone())
                .prop_map(|(base, index)| at(Kind::Index(Box::new(base), Box::new(index)))),
            (e.clone(), prop::collection::vec(access, 0..3))
                .prop_map(|(base, rest)| at(Kind::Splat(Box::new(base), rest))),
            (unary, e.clone()).prop_map(|(op, operand)| at(Kind::Unary(op, Box::new(operand)))),
            (binary_op(), e.clone(), e.clone()).prop_map(|(op, a, b)| at(Kind::Binary(
                op,
                Box::new(a),
                Box::new(b)
            ))),
            (e.clone(), e.clone(), e.clone()).prop_map(|(condition, yes, no)| {
                at(Kind::Conditional(Box::new(Conditional { condition, yes, no })))
            }),
            (prop::collection::vec(e.clone(), 0..3), any::<bool>()).prop_map(
                |(arguments, spread)| {
                    let spread = spread && !arguments.is_empty();
                    at(Kind::Call(Box::new(Call { name: "f".into(), arguments, spread })))
                }
            ),
            (
                prop::option::of(word()),
                word(),
                e.clone(),
                prop::option::of(e.clone()),
                e.clone(),
                prop::option::of(e.clone()),
                any::<bool>()
            )
                .prop_map(
                    |(key_variable, value_variable, collection, key, value, condition, grouped)| {
                        let grouped = grouped && key.is_some();
                        at(Kind::For(Box::new(For {
                            key_variable,
                            value_variable,
                            collection,
                            key,
                            value,
                            condition,
                            grouped,
                        })))
                    }
                ),
            prop::collection::vec(e.clone(), 0..4).prop_map(|items| at(list(items))),
            // A key that is not a literal keeps the map from being one literal.
            (e.clone(), word()).prop_map(|(value, name)| {
                at(Kind::Map(vec![(at(Kind::Root(Root::Named(name))), value)]))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_tree_reads_back(expr in tree()) {
        let printed = expr.to_string();
        let back = residual(&printed);
        prop_assert!(back.is_ok(), "{printed}: {back:?}");
        prop_assert_eq!(back.unwrap(), expr, "{}", printed);
    }

    #[test]
    fn every_text_reads_back_or_is_an_error(text in "[a-z0-9 .\\[\\](){}\"$%?:,=<>!&|*+-]{0,60}") {
        for parsed in [template(&text, Dialect::Spec), expression(&text, Dialect::Names)] {
            match parsed {
                Ok(expr) => {
                    let printed = expr.to_string();
                    let back = residual(&printed);
                    prop_assert!(back.is_ok(), "{text} -> {printed}: {back:?}");
                    prop_assert_eq!(back.unwrap().to_string(), printed);
                }
                Err(error) => {
                    let Range { start, end } = error.range;
                    prop_assert!(start <= end && end as usize <= text.len(), "{text}: {error:?}");
                    prop_assert!(text.get(start as usize..end as usize).is_some());
                }
            }
        }
    }
}
