//! Digests of texts.

use super::function;
use crate::expression::functions::Body::Whole as Full;
use crate::expression::functions::Function;
use crate::expression::functions::Wants::Text;
use crate::expression::functions::{digests, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("base64sha256"("text" Text) -> types::string, Full(digests::base64_sha256))
        .gives("the SHA-256 digest of the text, in base64")
        .example(r#"base64sha256("hello world")"#, r#""uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=""#),
    function!("base64sha512"("text" Text) -> types::string, Full(digests::base64_sha512))
        .gives("the SHA-512 digest of the text, in base64")
        .example(
            r#"base64sha512("hello world")"#,
            r#""MJ7MSJwS1utMxA9QyQLytNDtd+5RGnx6m808qG1M2G+YndNbxf9JlnDaNCVbRbDP2DDoH2Bdz33FVC6TrpzXbw==""#,
        ),
    function!("md5"("text" Text) -> types::string, Full(digests::md5))
        .gives("the MD5 digest of the text, in hexadecimal; for checksums, not for safety")
        .example(r#"md5("hello world")"#, r#""5eb63bbbe01eeed093cb22bb8f5acdc3""#),
    function!("sha1"("text" Text) -> types::string, Full(digests::sha1))
        .gives("the SHA-1 digest of the text, in hexadecimal; for checksums, not for safety")
        .example(r#"sha1("hello world")"#, r#""2aae6c35c94fcfb415dbe95f408b9ce91ee846ed""#),
    function!("sha256"("text" Text) -> types::string, Full(digests::sha256))
        .gives("the SHA-256 digest of the text, in hexadecimal")
        .example(
            r#"sha256("hello world")"#,
            r#""b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9""#,
        ),
    function!("sha512"("text" Text) -> types::string, Full(digests::sha512))
        .gives("the SHA-512 digest of the text, in hexadecimal")
        .example(r#"substr(sha512("a"), 0, 16)"#, r#""1f40fc92da241694""#),
];
