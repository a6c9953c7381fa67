//! Functions of text.

use super::function;
use crate::expression::functions::Body::Whole as Full;
use crate::expression::functions::Function;
use crate::expression::functions::Wants::{Anything, List, Text, Whole};
use crate::expression::functions::{formats, patterns, texts, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("basename"("path" Text) -> types::string, Full(texts::basename))
        .gives("the last part of a path")
        .example(r#"basename("conf/prompt.txt")"#, r#""prompt.txt""#),
    function!("chomp"("text" Text) -> types::string, Full(texts::chomp))
        .gives("the text without line breaks at its end")
        .example(r#"chomp("hello\n\n")"#, r#""hello""#),
    function!("dirname"("path" Text) -> types::string, Full(texts::dirname))
        .gives("a path without its last part")
        .example(r#"dirname("conf/prompt.txt")"#, r#""conf""#),
    function!("endswith"("text" Text, "suffix" Text) -> types::boolean, Full(texts::ends_with))
        .gives("true if the text has that suffix")
        .example(r#"endswith("model.bin", ".bin")"#, "true"),
    function!("format"("format" Text, "value" Anything) -> types::string, Full(formats::format))
        .requiring(1)
        .repeating()
        .gives("the text with its verbs filled in: `%s` text, `%d` a whole number, `%f` `%e` `%g` other numbers, \
                `%b` `%o` `%x` `%X` a whole number to base 2, 8 and 16, `%t` a boolean, `%q` a text in quotes, `%v` \
                any value, `%#v` any value as JSON, `%%` a percent sign. `%5d`, `%-5s`, `%05d`, `%+d`, `%.2f` set width, side, zeros, \
                sign and precision; `%[2]s` takes the second value")
        .example(r#"format("%s-%03d %.1f%%", "gpu", 7, 99.5)"#, r#""gpu-007 99.5%""#),
    function!("formatlist"("format" Text, "value" Anything) -> types::strings, Full(formats::format_list))
        .requiring(1)
        .repeating()
        .gives("a list of texts: the format filled in with the items of each list, one by one. What is no list is the same in all")
        .example(r#"formatlist("%s:%d", ["a", "b"], 80)"#, r#"["a:80", "b:80"]"#),
    function!("indent"("count" Whole, "text" Text) -> types::string, Full(texts::indent))
        .gives("the text with so many blanks before each line but the first")
        .example(r#"indent(2, "a:\nb")"#, r#""a:\n  b""#),
    function!("join"("separator" Text, "list" List) -> types::string, Full(texts::join))
        .gives("the items joined into one text")
        .example(r#"join("-", ["a", "b"])"#, r#""a-b""#),
    function!("lower"("text" Text) -> types::string, Full(texts::lower))
        .gives("the text in lower case")
        .example(r#"lower("Chat")"#, r#""chat""#),
    function!("regex"("pattern" Text, "text" Text) -> types::any, Full(patterns::regex))
        .gives("the first match of a [pattern](#patterns): a text; with groups `( )` the list of their texts, with named groups \
                `(?P<name> )` a map. No match is an error")
        .example(r#"regex("([a-z]+)-([0-9]+)", "gpu-12")"#, r#"["gpu", "12"]"#),
    function!("regexall"("pattern" Text, "text" Text) -> types::anys, Full(patterns::regex_all))
        .gives("the list of all matches of a [pattern](#patterns), each as `regex` gives it")
        .example(r#"regexall("[a-z]+", "12ab34cd")"#, r#"["ab", "cd"]"#),
    function!("replace"("text" Text, "part" Text, "replacement" Text) -> types::string, Full(patterns::replace))
        .gives("the text with every such part replaced. A part in slashes, `\"/…/\"`, is a [pattern](#patterns), and `$1` or \
                `${name}` in the replacement stands for a group of it")
        .example(r#"replace("eu-ro-1", "/([a-z]+)-([a-z]+)/", "$2.$1")"#, r#""ro.eu-1""#),
    function!("split"("separator" Text, "text" Text) -> types::strings, Full(texts::split))
        .gives("the parts of the text")
        .example(r#"split(",", "a,b")"#, r#"["a", "b"]"#),
    function!("startswith"("text" Text, "prefix" Text) -> types::boolean, Full(texts::starts_with))
        .gives("true if the text has that prefix")
        .example(r#"startswith("gpu-1", "gpu-")"#, "true"),
    function!("strcontains"("text" Text, "part" Text) -> types::boolean, Full(texts::contains))
        .gives("true if the part is in the text")
        .example(r#"strcontains("llama-70b", "70b")"#, "true"),
    function!("strrev"("text" Text) -> types::string, Full(texts::reverse))
        .gives("the characters in reverse order")
        .example(r#"strrev("abc")"#, r#""cba""#),
    function!("substr"("text" Text, "offset" Whole, "length" Whole) -> types::string, Full(texts::substr))
        .gives("a part; a negative offset counts from the end, a length of -1 takes the rest")
        .example(r#"substr("llama-70b", -3, 2)"#, r#""70""#),
    function!("title"("text" Text) -> types::string, Full(texts::title))
        .gives("the text with the first letter of each word in upper case")
        .example(r#"title("my chat")"#, r#""My Chat""#),
    function!("trim"("text" Text, "characters" Text) -> types::string, Full(texts::trim))
        .gives("the text without these characters at both ends")
        .example(r#"trim("--a--", "-")"#, r#""a""#),
    function!("trimprefix"("text" Text, "prefix" Text) -> types::string, Full(texts::trim_prefix))
        .gives("the text without that prefix")
        .example(r#"trimprefix("v1.2", "v")"#, r#""1.2""#),
    function!("trimspace"("text" Text) -> types::string, Full(texts::trim_space))
        .gives("the text without blanks and line breaks at both ends")
        .example(r#"trimspace(" a\n")"#, r#""a""#),
    function!("trimsuffix"("text" Text, "suffix" Text) -> types::string, Full(texts::trim_suffix))
        .gives("the text without that suffix")
        .example(r#"trimsuffix("a.txt", ".txt")"#, r#""a""#),
    function!("upper"("text" Text) -> types::string, Full(texts::upper))
        .gives("the text in upper case")
        .example(r#"upper("eu")"#, r#""EU""#),
];
