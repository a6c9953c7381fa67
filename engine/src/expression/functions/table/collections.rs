//! Functions of lists, sets, maps and objects.

use super::function;
use crate::expression::functions::Body::{Parts, Whole as Full};
use crate::expression::functions::Function;
use crate::expression::functions::Wants::{
    Anything, Booleans, Countable, List, ListOrNull, Map, MapOrNull, Text, Texts, Whole,
};
use crate::expression::functions::{collections, products, sets, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("alltrue"("list" Booleans) -> types::boolean, Full(collections::all_true))
        .gives("true if all items are true, also for an empty list")
        .example("alltrue([true, false])", "false"),
    function!("anytrue"("list" Booleans) -> types::boolean, Full(collections::any_true))
        .gives("true if one item is true")
        .example("anytrue([true, false])", "true"),
    function!("chunklist"("list" List, "size" Whole) -> types::chunks, Parts(collections::chunks))
        .gives("the list split into lists of that size")
        .example("chunklist([1, 2, 3], 2)", "[[1, 2], [3]]"),
    function!("coalesce"("value" Anything) -> types::unified, Parts(collections::coalesce))
        .repeating()
        .gives("the first value that is neither null nor an empty text")
        .example(r#"coalesce(null, "", "a")"#, r#""a""#),
    function!("coalescelist"("list" ListOrNull) -> types::unified, Parts(collections::coalesce_list))
        .repeating()
        .gives("the first list that is not empty")
        .example("coalescelist([], [1])", "[1]"),
    function!("compact"("list" Texts) -> types::strings, Full(collections::compact))
        .gives("the texts without null and empty ones")
        .example(r#"compact(["a", "", null])"#, r#"["a"]"#),
    function!("concat"("list" List) -> types::concatenated, Parts(collections::concat))
        .requiring(0)
        .repeating()
        .gives("the lists joined in order")
        .example("concat([1], [2, 3])", "[1, 2, 3]"),
    function!("contains"("list" List, "value" Anything) -> types::boolean, Full(collections::contains))
        .gives("true if the value is in the list")
        .example(r#"contains(["a", "b"], "b")"#, "true"),
    function!("distinct"("list" List) -> types::list, Full(collections::distinct))
        .gives("the list without duplicates")
        .example(r#"distinct(["b", "a", "b"])"#, r#"["b", "a"]"#),
    function!("element"("list" List, "index" Whole) -> types::item, Parts(collections::element))
        .gives("the item at the index, which wraps around")
        .example(r#"element(["a", "b"], 3)"#, r#""b""#),
    function!("flatten"("list" List) -> types::flattened, Parts(collections::flatten))
        .gives("the list with nested lists expanded")
        .example("flatten([[1, [2]], 3])", "[1, 2, 3]"),
    function!("index"("list" List, "value" Anything) -> types::integer, Full(collections::index))
        .gives("the index of the first item that is that value")
        .example(r#"index(["a", "b"], "b")"#, "1"),
    function!("keys"("map" Map) -> types::strings, Parts(collections::keys))
        .gives("the sorted keys")
        .example("keys({ b = 1, a = 2 })", r#"["a", "b"]"#),
    function!("length"("value" Countable) -> types::integer, Parts(collections::length))
        .gives("the number of items, entries or characters")
        .example("length([1, 2])", "2"),
    function!("lookup"("map" Map, "key" Text, "default" Anything) -> types::looked_up, Parts(collections::lookup))
        .requiring(2)
        .gives("the entry, or the default")
        .example(r#"lookup({ a = 1 }, "b", 0)"#, "0"),
    function!("matchkeys"("values" List, "keys" List, "wanted" List) -> types::list, Full(products::match_keys))
        .gives("the values whose keys, at the same index of the second list, are in the third")
        .example(r#"matchkeys(["x", "y", "z"], ["eu", "us", "eu"], ["eu"])"#, r#"["x", "z"]"#),
    function!("merge"("map" MapOrNull) -> types::merged, Parts(collections::merge))
        .requiring(0)
        .repeating()
        .gives("all entries; later maps win")
        .example("merge({ a = 1, b = 1 }, { b = 2 })", "{ a = 1, b = 2 }"),
    function!("one"("list" ListOrNull) -> types::item, Parts(collections::one))
        .gives("the only item; null for an empty list")
        .example("one([5])", "5"),
    function!("reverse"("list" List) -> types::list, Parts(collections::reverse))
        .gives("the list in reverse order")
        .example("reverse([1, 2])", "[2, 1]"),
    function!("setintersection"("set" List) -> types::set, Full(sets::intersection))
        .repeating()
        .gives("the items that all sets share")
        .example("setintersection([1, 2], [2, 3])", "toset([2])"),
    function!("setproduct"("set" List, "other" List) -> products::product_type, Full(products::product))
        .repeating()
        .gives("all lists of one item from each set, as a set if all of them are sets, else as a list")
        .example(r#"setproduct(["eu", "us"], ["a", "b"])"#, r#"[["eu", "a"], ["eu", "b"], ["us", "a"], ["us", "b"]]"#),
    function!("setsubtract"("set" List, "less" List) -> sets::subtract_type, Full(sets::subtract))
        .gives("the items of the first set only")
        .example("setsubtract([1, 2], [2])", "toset([1])"),
    function!("setunion"("set" List) -> types::set, Full(sets::union))
        .repeating()
        .gives("the items of any set")
        .example("setunion([1, 2], [2, 3])", "toset([1, 2, 3])"),
    function!("slice"("list" List, "start" Whole, "end" Whole) -> types::list, Parts(collections::slice))
        .gives("the items from start up to, not including, end")
        .example("slice([1, 2, 3], 1, 3)", "[2, 3]"),
    function!("sort"("list" Texts) -> types::strings, Full(collections::sort))
        .gives("the texts in order")
        .example(r#"sort(["b", "a"])"#, r#"["a", "b"]"#),
    function!("transpose"("map" Map) -> products::transposed_type, Full(products::transpose))
        .gives("a map of lists of texts turned round: each item with the keys that had it")
        .example(r#"transpose({ a = ["x", "y"], b = ["y"] })"#, r#"{ x = ["a"], y = ["a", "b"] }"#),
    function!("values"("map" Map) -> types::list, Parts(collections::values))
        .gives("the values in the order of their keys")
        .example("values({ b = 1, a = 2 })", "[2, 1]"),
    function!("zipmap"("keys" Texts, "values" List) -> types::zipped, Parts(collections::zip_map))
        .gives("a map from a list of keys and a list of values")
        .example(r#"zipmap(["a", "b"], [1, 2])"#, "{ a = 1, b = 2 }"),
];
