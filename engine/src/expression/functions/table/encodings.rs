//! Functions that turn values into text and back.

use super::function;
use crate::expression::functions::Body::Whole as Full;
use crate::expression::functions::Function;
use crate::expression::functions::Wants::{Anything, Text};
use crate::expression::functions::{encodings, gzip, toml_text, types, yaml};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("base64decode"("text" Text) -> types::string, Full(encodings::base64_decode))
        .gives("the decoded text")
        .example(r#"base64decode("aGVsbG8=")"#, r#""hello""#),
    function!("base64encode"("text" Text) -> types::string, Full(encodings::base64_encode))
        .gives("the text in base64")
        .example(r#"base64encode("hello")"#, r#""aGVsbG8=""#),
    function!("base64gunzip"("text" Text) -> types::string, Full(gzip::unpack))
        .gives("the text that was compressed with gzip and written in base64")
        .example(r#"base64gunzip("H4sIAAAAAAAA/ypJLS4BAAAA//8BAAD//wx+f9gEAAAA")"#, r#""test""#),
    function!("base64gzip"("text" Text) -> types::string, Full(gzip::pack))
        .gives("the text compressed with gzip, in base64. Other programs compress to other bytes, which unpack to the same")
        .example(r#"base64gunzip(base64gzip("test"))"#, r#""test""#),
    function!("csvdecode"("text" Text) -> encodings::rows_type, Full(encodings::csv_decode))
        .gives("a map for each row of a CSV text, with the names of its first row as keys")
        .example(r#"csvdecode("name,size\nmodels,100\n")"#, r#"[{ name = "models", size = "100" }]"#),
    function!("jsondecode"("text" Text) -> types::any, Full(encodings::json_decode))
        .gives("the value of a JSON text")
        .example(r#"jsondecode("{\"a\": [1, true]}")"#, "{ a = [1, true] }"),
    function!("jsonencode"("value" Anything) -> types::string, Full(encodings::json_encode))
        .gives("the value as JSON text with sorted keys")
        .example("jsonencode({ b = [1, null], a = true })", r#""{\"a\":true,\"b\":[1,null]}""#),
    function!("tomldecode"("text" Text) -> types::any, Full(toml_text::decode))
        .gives("the value of a TOML text; a date or a time in it is text")
        .example("tomldecode(\"size = 3\\nzones = ['eu']\\n\")", r#"{ size = 3, zones = ["eu"] }"#),
    function!("urldecode"("text" Text) -> types::string, Full(encodings::url_decode))
        .gives("the text of a part of a URL")
        .example(r#"urldecode("a%2Fb+c")"#, r#""a/b c""#),
    function!("urlencode"("text" Text) -> types::string, Full(encodings::url_encode))
        .gives("the text as a part of a URL, in a query or a form")
        .example(r#"urlencode("a/b c")"#, r#""a%2Fb+c""#),
    function!("yamldecode"("text" Text) -> types::any, Full(yaml::decode))
        .gives("the value of a YAML text with one document")
        .example(r#"yamldecode("size: 3\nzones: [eu, us]\n")"#, r#"{ size = 3, zones = ["eu", "us"] }"#),
    function!("yamlencode"("value" Anything) -> types::string, Full(yaml::encode))
        .gives("the value as YAML text with sorted keys")
        .example(r#"yamlencode({ size = 3, zones = ["eu", "us"] })"#, r#""\"size\": 3\n\"zones\":\n- \"eu\"\n- \"us\"\n""#),
];
