//! Functions of the files beside the spec.

use super::function;
use crate::expression::functions::Body::Special as Own;
use crate::expression::functions::Wants::{Map, Text};
use crate::expression::functions::{Function, Special, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("file"("path" Text) -> types::string, Own(Special::File))
        .gives("the text of a file inside the spec's folder, except `.plumb`")
        .example(r#"file("prompt.txt")"#, r#""Be brief.\n""#),
    function!("fileset"("folder" Text, "pattern" Text) -> types::string_set, Own(Special::FileSet))
        .gives("the paths, seen from the folder, of the files that a pattern names: `*` stands for any characters, `?` for \
                one, `**` for any folders, `{a,b}` for one of these. Links are left out")
        .example(r#"fileset("conf", "*.txt")"#, r#"toset(["a.txt", "b.txt"])"#),
    function!("templatefile"("path" Text, "values" Map) -> types::string, Own(Special::TemplateFile))
        .gives("the text of a file with its `${…}` and `%{…}` filled in; they see these values and nothing else")
        .example(r#"templatefile("hello.tpl", { name = "Ada", tags = ["x", "y"] })"#, r#""Hello Ada: x y\n""#),
];
