//! The table of functions, in the order of their names.

use super::parameters::Wants::{
    Anything, Booleans, Countable, List, ListOrNull, Map, MapOrNull, Number, Numbers, Scalar, Text,
    Texts, Whole,
};
use super::{Body, Function, Parameter, Special, Wants};
use super::{collections, encodings, numbers, sets, texts, types};
use crate::types::Type;

type Result = fn(&[Type]) -> Type;
type P = (&'static str, Wants);

const fn parameter((name, wants): P) -> Parameter {
    Parameter { name, wants }
}

/// A function whose parameters are all required; `…` after the last one takes more of it.
macro_rules! function {
    ($name:literal ( $($p:literal $w:expr),* ) -> $result:expr, $body:expr) => {
        function(
            $name,
            const { &[$(parameter(($p, $w))),*] },
            $result,
            $body,
        )
    };
}

const fn function(
    name: &'static str,
    parameters: &'static [Parameter],
    result: Result,
    body: Body,
) -> Function {
    Function { name, parameters, required: parameters.len(), repeats: false, result, body }
}

const fn repeating(mut function: Function) -> Function {
    function.repeats = true;
    function
}

const fn requiring(required: usize, mut function: Function) -> Function {
    function.required = required;
    function
}

use Body::{Parts, Whole as Full};

/// All functions, sorted by name.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("abs"("number" Number) -> types::numeric, Full(numbers::abs)),
    function!("alltrue"("list" Booleans) -> types::boolean, Full(collections::all_true)),
    function!("anytrue"("list" Booleans) -> types::boolean, Full(collections::any_true)),
    function!("base64decode"("text" Text) -> types::string, Full(encodings::base64_decode)),
    function!("base64encode"("text" Text) -> types::string, Full(encodings::base64_encode)),
    function!("can"("expression" Anything) -> types::boolean, Body::Special(Special::Can)),
    function!("ceil"("number" Number) -> types::integer, Full(numbers::ceil)),
    function!("chunklist"("list" List, "size" Whole) -> types::chunks, Parts(collections::chunks)),
    repeating(
        function!("coalesce"("value" Anything) -> types::unified, Parts(collections::coalesce)),
    ),
    repeating(
        function!("coalescelist"("list" ListOrNull) -> types::unified, Parts(collections::coalesce_list)),
    ),
    function!("compact"("list" Texts) -> types::strings, Full(collections::compact)),
    requiring(
        0,
        repeating(
            function!("concat"("list" List) -> types::concatenated, Parts(collections::concat)),
        ),
    ),
    function!("contains"("list" List, "value" Anything) -> types::boolean, Full(collections::contains)),
    function!("distinct"("list" List) -> types::list, Full(collections::distinct)),
    function!("element"("list" List, "index" Whole) -> types::item, Parts(collections::element)),
    function!("endswith"("text" Text, "suffix" Text) -> types::boolean, Full(texts::ends_with)),
    function!("file"("path" Text) -> types::string, Body::Special(Special::File)),
    function!("flatten"("list" List) -> types::flattened, Parts(collections::flatten)),
    function!("floor"("number" Number) -> types::integer, Full(numbers::floor)),
    requiring(
        1,
        repeating(
            function!("format"("format" Text, "value" Anything) -> types::string, Full(texts::format)),
        ),
    ),
    function!("join"("separator" Text, "list" List) -> types::string, Full(texts::join)),
    function!("jsondecode"("text" Text) -> types::any, Full(encodings::json_decode)),
    function!("jsonencode"("value" Anything) -> types::string, Full(encodings::json_encode)),
    function!("keys"("map" Map) -> types::strings, Parts(collections::keys)),
    function!("length"("value" Countable) -> types::integer, Parts(collections::length)),
    requiring(
        2,
        function!("lookup"("map" Map, "key" Text, "default" Anything) -> types::looked_up, Parts(collections::lookup)),
    ),
    function!("lower"("text" Text) -> types::string, Full(texts::lower)),
    repeating(function!("max"("number" Number) -> types::numeric, Full(numbers::max))),
    requiring(
        0,
        repeating(function!("merge"("map" MapOrNull) -> types::merged, Parts(collections::merge))),
    ),
    repeating(function!("min"("number" Number) -> types::numeric, Full(numbers::min))),
    function!("one"("list" ListOrNull) -> types::item, Parts(collections::one)),
    requiring(
        1,
        function!("range"("start" Number, "limit" Number, "step" Number) -> numbers::range_type, Full(numbers::range)),
    ),
    function!("replace"("text" Text, "part" Text, "replacement" Text) -> types::string, Full(texts::replace)),
    function!("reverse"("list" List) -> types::list, Parts(collections::reverse)),
    function!("sensitive"("value" Anything) -> types::unified, Body::Special(Special::Sensitive)),
    repeating(function!("setintersection"("set" List) -> types::set, Full(sets::intersection))),
    function!("setsubtract"("set" List, "less" List) -> sets::subtract_type, Full(sets::subtract)),
    repeating(function!("setunion"("set" List) -> types::set, Full(sets::union))),
    function!("slice"("list" List, "start" Whole, "end" Whole) -> types::list, Parts(collections::slice)),
    function!("sort"("list" Texts) -> types::strings, Full(collections::sort)),
    function!("split"("separator" Text, "text" Text) -> types::strings, Full(texts::split)),
    function!("startswith"("text" Text, "prefix" Text) -> types::boolean, Full(texts::starts_with)),
    function!("substr"("text" Text, "offset" Whole, "length" Whole) -> types::string, Full(texts::substr)),
    function!("sum"("list" Numbers) -> types::numeric, Full(numbers::sum)),
    function!("tobool"("value" Scalar) -> types::boolean, Full(encodings::to_bool)),
    function!("tolist"("list" List) -> types::list, Parts(collections::to_list)),
    function!("tomap"("map" Map) -> types::map, Parts(collections::to_map)),
    function!("tonumber"("value" Scalar) -> types::number, Full(encodings::to_number)),
    function!("toset"("list" List) -> types::set, Full(sets::to_set)),
    function!("tostring"("value" Scalar) -> types::string, Full(encodings::to_string)),
    function!("trim"("text" Text, "characters" Text) -> types::string, Full(texts::trim)),
    function!("trimprefix"("text" Text, "prefix" Text) -> types::string, Full(texts::trim_prefix)),
    function!("trimspace"("text" Text) -> types::string, Full(texts::trim_space)),
    function!("trimsuffix"("text" Text, "suffix" Text) -> types::string, Full(texts::trim_suffix)),
    repeating(
        function!("try"("expression" Anything) -> types::unified, Body::Special(Special::Try)),
    ),
    function!("upper"("text" Text) -> types::string, Full(texts::upper)),
    function!("values"("map" Map) -> types::list, Parts(collections::values)),
    function!("zipmap"("keys" Texts, "values" List) -> types::zipped, Parts(collections::zip_map)),
];
