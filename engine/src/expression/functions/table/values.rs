//! Functions of types, of secrets, and of expressions that may fail.

use super::function;
use crate::expression::functions::Body::{Parts, Special as Own, Whole as Full};
use crate::expression::functions::Wants::{Anything, List, Map, Scalar};
use crate::expression::functions::{Function, Special, collections, encodings, sets, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("can"("expression" Anything) -> types::boolean, Own(Special::Can))
        .gives("true if the expression can be evaluated")
        .example(r#"can(tonumber("x"))"#, "false"),
    function!("nonsensitive"("value" Anything) -> types::unified, Own(Special::NonSensitive))
        .gives("the value, no longer as a secret: for what a secret was computed into and may be shown. The text of a sensitive \
                variable is hidden wherever it stands")
        .example(r#"nonsensitive(length(sensitive("abc")))"#, "3"),
    function!("sensitive"("value" Anything) -> types::unified, Own(Special::Sensitive))
        .gives("the value as a secret. A plan can be saved only with `PLUMB_STATE_KEY`, and the value cannot be combined with unknown values")
        .example(r#"length([1, sensitive("a")])"#, "2"),
    function!("tobool"("value" Scalar) -> types::boolean, Full(encodings::to_bool))
        .gives("`\"true\"` and `\"false\"` as booleans")
        .example(r#"tobool("true")"#, "true"),
    function!("tolist"("list" List) -> types::list, Parts(collections::to_list))
        .gives("a set as a list")
        .example("tolist(toset([2, 1, 2]))", "[1, 2]"),
    function!("tomap"("map" Map) -> types::map, Parts(collections::to_map))
        .gives("an object as a map")
        .example("tomap({ a = 1 })", "{ a = 1 }"),
    function!("tonumber"("value" Scalar) -> types::number, Full(encodings::to_number))
        .gives("a text as a number")
        .example(r#"tonumber("0.50")"#, "0.5"),
    function!("toset"("list" List) -> types::set, Full(sets::to_set))
        .gives("a list as a set")
        .example(r#"length(toset(["a", "b", "a"]))"#, "2"),
    function!("tostring"("value" Scalar) -> types::string, Full(encodings::to_string))
        .gives("a number or boolean as text")
        .example("tostring(1.50)", r#""1.5""#),
    function!("try"("expression" Anything) -> types::unified, Own(Special::Try))
        .repeating()
        .gives("the first expression that can be evaluated. The result of `try` and `can` is secret if they looked at a secret. A local \
                that fails because of a secret fails in `try` too")
        .example(r#"try(tonumber("x"), 7)"#, "7"),
];
