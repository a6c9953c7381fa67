//! Functions of numbers.

use super::function;
use crate::expression::functions::Body::Whole as Full;
use crate::expression::functions::Function;
use crate::expression::functions::Wants::{Number, Numbers, Text, Whole};
use crate::expression::functions::{numbers, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("abs"("number" Number) -> types::numeric, Full(numbers::abs))
        .gives("the number without its sign")
        .example("abs(-3)", "3"),
    function!("ceil"("number" Number) -> types::integer, Full(numbers::ceil))
        .gives("the number rounded up")
        .example("ceil(1.2)", "2"),
    function!("floor"("number" Number) -> types::integer, Full(numbers::floor))
        .gives("the number rounded down")
        .example("floor(-1.2)", "-2"),
    function!("log"("number" Number, "base" Number) -> types::number, Full(numbers::log))
        .gives("the logarithm to that base")
        .example("log(16, 2)", "4"),
    function!("max"("number" Number) -> types::numeric, Full(numbers::max))
        .repeating()
        .gives("the greatest number")
        .example("max(1, 5, 2.5)", "5"),
    function!("min"("number" Number) -> types::numeric, Full(numbers::min))
        .repeating()
        .gives("the least number")
        .example("min([3, 1, 2]...)", "1"),
    function!("parseint"("text" Text, "base" Whole) -> types::integer, Full(numbers::parse_int))
        .gives("the whole number that a text spells to a base from 2 to 62")
        .example(r#"parseint("ff", 16)"#, "255"),
    function!("pow"("number" Number, "exponent" Number) -> types::number, Full(numbers::pow))
        .gives("the power of a number")
        .example("pow(2, 10)", "1024"),
    function!("range"("start" Number, "limit" Number, "step" Number) -> numbers::range_type, Full(numbers::range))
        .requiring(1)
        .gives("numbers from start up to, not including, limit; with one argument from 0")
        .example("range(1, 6, 2)", "[1, 3, 5]"),
    function!("signum"("number" Number) -> types::integer, Full(numbers::signum))
        .gives("-1, 0 or 1: the sign of a number")
        .example("signum(-7)", "-1"),
    function!("sum"("list" Numbers) -> types::numeric, Full(numbers::sum))
        .gives("the sum; 0 for an empty list")
        .example("sum([1, 2, 3])", "6"),
];
