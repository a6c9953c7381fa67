//! Functions of the files beside the spec.

use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use super::function;
use crate::expression::functions::Body::Special as Own;
use crate::expression::functions::Wants::{Map, Text};
use crate::expression::functions::{Function, Special, digests, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("file"("path" Text) -> types::string, Own(Special::File))
        .gives("the text of a file inside the spec's folder, except `.plumb`")
        .example(r#"file("prompt.txt")"#, r#""Be brief.\n""#),
    function!("filebase64"("path" Text) -> types::string, Own(Special::FileBytes(digests::base64)))
        .gives("the bytes of a file inside the spec's folder, in base64")
        .example(r#"filebase64("prompt.txt")"#, r#""QmUgYnJpZWYuCg==""#),
    function!("filebase64sha256"("path" Text) -> types::string, Own(Special::FileBytes(digests::in_base64::<Sha256>)))
        .gives("the SHA-256 digest of a file's bytes, in base64")
        .example(r#"filebase64sha256("prompt.txt")"#, r#"base64sha256("Be brief.\n")"#),
    function!("filebase64sha512"("path" Text) -> types::string, Own(Special::FileBytes(digests::in_base64::<Sha512>)))
        .gives("the SHA-512 digest of a file's bytes, in base64")
        .example(r#"filebase64sha512("prompt.txt")"#, r#"base64sha512("Be brief.\n")"#),
    function!("filemd5"("path" Text) -> types::string, Own(Special::FileBytes(digests::hexadecimal::<Md5>)))
        .gives("the MD5 digest of a file's bytes, in hexadecimal; for checksums, not for safety")
        .example(r#"filemd5("prompt.txt")"#, r#"md5("Be brief.\n")"#),
    function!("fileset"("folder" Text, "pattern" Text) -> types::string_set, Own(Special::FileSet))
        .gives("the paths, seen from the folder, of the files that a pattern names: `*` stands for any characters, `?` for \
                one, `**` for any folders, `{a,b}` for one of these. Links are left out")
        .example(r#"fileset("conf", "*.txt")"#, r#"toset(["a.txt", "b.txt"])"#),
    function!("filesha1"("path" Text) -> types::string, Own(Special::FileBytes(digests::hexadecimal::<Sha1>)))
        .gives("the SHA-1 digest of a file's bytes, in hexadecimal; for checksums, not for safety")
        .example(r#"filesha1("prompt.txt")"#, r#"sha1("Be brief.\n")"#),
    function!("filesha256"("path" Text) -> types::string, Own(Special::FileBytes(digests::hexadecimal::<Sha256>)))
        .gives("the SHA-256 digest of a file's bytes, in hexadecimal")
        .example(r#"filesha256("prompt.txt")"#, r#"sha256("Be brief.\n")"#),
    function!("filesha512"("path" Text) -> types::string, Own(Special::FileBytes(digests::hexadecimal::<Sha512>)))
        .gives("the SHA-512 digest of a file's bytes, in hexadecimal")
        .example(r#"filesha512("prompt.txt")"#, r#"sha512("Be brief.\n")"#),
    function!("templatefile"("path" Text, "values" Map) -> types::string, Own(Special::TemplateFile))
        .gives("the text of a file with its `${…}` and `%{…}` filled in; they see these values and nothing else")
        .example(r#"templatefile("hello.tpl", { name = "Ada", tags = ["x", "y"] })"#, r#""Hello Ada: x y\n""#),
];
