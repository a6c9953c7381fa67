//! Texts in, texts in the one layout out.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::laid_out;

#[track_caller]
fn check(text: &str, expected: &str) {
    let found = laid_out(text).expect("TOML");
    assert_eq!(found, expected, "of:\n{text}");
    assert_eq!(laid_out(&found).as_ref(), Some(&found), "a layout is its own layout");
}

#[test]
fn keys_and_values_have_one_blank_around_them() {
    check("  a=1\n\tb  =  'x'\nc . \"d\" =[ 1,2 , ]\n", "a = 1\nb = 'x'\nc.\"d\" = [1, 2]\n");
    check("[ a . b ]\n[[ c ]]\nd={x=1,y={ }}", "[a.b]\n\n[[c]]\nd = { x = 1, y = {} }\n");
    check("a = [{x=1},{ }]\nb = [ [1] ]\n", "a = [ { x = 1 }, {} ]\nb = [[1]]\n");
}

#[test]
fn lines_between_brackets_stay_lines() {
    check(
        "a = [1,\n 2, 3 # three\n# four\n\n\n , 4]\n",
        "a = [\n  1,\n  2, 3, # three\n  # four\n\n  4,\n]\n",
    );
    check("a = [\n\n]\nb = [ # none\n]\n", "a = []\nb = [\n  # none\n]\n");
    check("a = [{\nx = 1 }, [\n2]]\n", "a = [{\n  x = 1,\n}, [\n  2,\n]]\n");
    check("a = [\n[\n{ x = 1 }\n]\n]\n", "a = [\n  [\n    { x = 1 },\n  ],\n]\n");
}

#[test]
fn texts_of_several_lines_and_comments_are_copied() {
    check("a = \"\"\"\n  x  \n\ty=1\\\n\"\"\"#c  \n", "a = \"\"\"\n  x  \n\ty=1\\\n\"\"\" #c\n");
    check("#:schema ./x\n#  one\t\n", "#:schema ./x\n#  one\n");
}

#[test]
fn one_blank_line_stands_between_blocks_and_none_at_the_ends() {
    check(
        "\n\n# file\n\n\n[a]\n\nx = 1\n\n\n\ny = 2\n# of b\n[b]\n[b.c]\nz = 3\n[[b.d]]\n\n[d]\n# last\n\n",
        "# file\n\n[a]\nx = 1\n\ny = 2\n\n# of b\n[b]\n[b.c]\nz = 3\n[[b.d]]\n\n[d]\n# last\n",
    );
    check("x = 1\n# about x\n\n[a]\n", "x = 1\n# about x\n\n[a]\n");
    check("[a]\n\n# ----\n\n[b]", "[a]\n\n# ----\n\n[b]\n");
    check(" \n\t\n", "");
}

#[test]
fn comments_in_one_column_stay_in_one() {
    check(
        "a = 1     # one\nbcd = 2   # two\nef = 3 # three\n\ng = 4    # four\n",
        "a = 1   # one\nbcd = 2 # two\nef = 3 # three\n\ng = 4 # four\n",
    );
}

#[test]
fn line_ends_of_the_file_stay() {
    check("\u{feff}a=1\r\n\r\nb=[\r\n2]\n", "\u{feff}a = 1\r\n\r\nb = [\r\n  2,\r\n]\r\n");
}

#[test]
fn what_is_no_toml_has_no_layout() {
    for text in [
        "a = ",
        "[a",
        "a = \"x\nb = 1",
        "a = [1",
        "resource \"a\" {\n}",
        "= 1",
        "a = '''",
        "'' = '''\n",
    ] {
        assert_eq!(laid_out(text), None, "{text}");
    }
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(laid_out(&deep), None);
}

/// The files that people copy are in the layout.
#[test]
fn examples_and_descriptors_are_laid_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut open: Vec<PathBuf> = ["examples", "providers"].map(|name| root.join(name)).into();
    let mut count = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the house") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "toml")
                && !path.ends_with("Cargo.toml")
            {
                let text = std::fs::read_to_string(&path).expect("a file of the house");
                assert_eq!(laid_out(&text).as_ref(), Some(&text), "{}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 15, "{count}");
}

/// Blanks, and line breaks with comments where brackets allow them.
fn gap(breaks: bool) -> BoxedStrategy<String> {
    let blanks = prop_oneof![Just(String::new()), Just(" ".to_owned()), Just("\t  ".to_owned())];
    if !breaks {
        return blanks.boxed();
    }
    let line =
        prop_oneof![Just("\n"), Just("\n\n\n"), Just(" # a [comment]\n"), Just("\n#b  \n\t")];
    prop_oneof![3 => blanks, 1 => line.prop_map(str::to_owned)].boxed()
}

fn value() -> BoxedStrategy<String> {
    let scalar = prop_oneof![
        Just("1"),
        Just("-1.5e3"),
        Just("true"),
        Just("1979-05-27 07:32:00Z"),
        Just("'lit # ]'"),
        Just("\"a\\\" = ${x}\""),
        Just("\"\"\"\n  two\n lines\"\"\""),
        Just("'''x\n'y'''"),
    ];
    scalar
        .prop_map(str::to_owned)
        .prop_recursive(4, 24, 4, |inner| {
            let items = proptest::collection::vec((gap(true), inner, gap(true)), 0..4);
            (items, any::<bool>(), any::<bool>(), gap(true)).prop_map(
                |(items, is_array, comma, end)| {
                    let (open, close) = if is_array { ("[", "]") } else { ("{", "}") };
                    let comma = if comma && !items.is_empty() { "," } else { "" };
                    let item = |(at, (before, item, after)): (usize, &(String, String, String))| {
                        let key = if is_array { String::new() } else { format!("k{at} =") };
                        format!("{before}{key}{item}{after}")
                    };
                    let items: Vec<String> = items.iter().enumerate().map(item).collect();
                    format!("{open}{}{comma}{end}{close}", items.join(","))
                },
            )
        })
        .boxed()
}

/// A line with a header, a key, a comment or nothing. The number keeps names apart.
fn line() -> impl Strategy<Value = (u8, String, String, String)> {
    let comment = prop_oneof![Just(""), Just("# said "), Just("   #x")];
    (0..8_u8, gap(false), value(), comment.prop_map(str::to_owned))
}

fn document() -> impl Strategy<Value = String> {
    proptest::collection::vec(line(), 0..12).prop_map(|lines| {
        let text = |(at, (kind, gap, value, comment)): (usize, (u8, String, String, String))| {
            let code = match kind {
                0 => String::new(),
                1 => format!("[{gap}t{at}{gap}.x]"),
                2 => format!("[[t{at}.'y'.{gap}z]]"),
                3 => format!("[t{}.x.u{at}]", at.saturating_sub(2)),
                _ => format!("{gap}k{at}.{gap}a{gap}={gap}{value}{gap}"),
            };
            format!("{code}{comment}\n")
        };
        lines.into_iter().enumerate().map(text).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_layout_says_the_same_and_is_its_own_layout(text in document()) {
        let Ok(meant) = text.parse::<toml::Table>() else { return Ok(()) };
        let found = laid_out(&text).expect("TOML");
        prop_assert_eq!(&meant, &found.parse::<toml::Table>().expect("TOML"), "{}", found);
        let comments = |text: &str| text.matches("# a [comment]").count();
        prop_assert_eq!(comments(&text), comments(&found), "{}", found);
        prop_assert_eq!(laid_out(&found), Some(found.clone()));
    }

    #[test]
    fn no_text_is_too_strange(text in "[\\[\\]{}=,.#\"' \\r\\n\\\\a1-]{0,40}") {
        let found = laid_out(&text);
        prop_assert_eq!(found.as_deref().and_then(laid_out), found);
    }
}
