//! Edits of a TOML document that leave the rest of it as it is.

use toml_edit::{Array, DocumentMut, Item, TableLike, Value as TomlValue};

use super::edits::{Edit, Edits};
use crate::address::{Block, Name};
use crate::config::written;
use crate::value::{Segment, Value};

/// Applies edits to an attribute of a block; returns none if the text has a form that cannot be edited.
pub(super) fn edit(
    document: &mut DocumentMut,
    block: &Block,
    attribute: &Name,
    edits: &Edits<'_>,
) -> Option<()> {
    let types = document.as_table_mut().get_mut("resource")?;
    let names = types.as_table_like_mut()?.get_mut(&block.ty)?;
    let block = names.as_table_like_mut()?.get_mut(&block.name)?;
    for (path, edit) in &edits.edits {
        in_entry(block, attribute, &path.0, edit)?;
    }
    Some(())
}

/// Applies an edit below a key of a table, inline or not.
fn in_entry(item: &mut Item, key: &str, path: &[Segment], edit: &Edit) -> Option<()> {
    match item {
        Item::Value(TomlValue::InlineTable(table)) => in_table(table, true, (key, path), edit),
        item => in_table(item.as_table_like_mut()?, false, (key, path), edit),
    }
}

fn in_table(
    table: &mut dyn TableLike,
    is_inline: bool,
    (key, path): (&str, &[Segment]),
    edit: &Edit,
) -> Option<()> {
    match (table.get_mut(key), path, edit) {
        (_, [], Edit::Remove) => table.remove(key).map(drop),
        (None, [], Edit::Put(value)) if is_inline => add_inline(table, key, value),
        (None, [], Edit::Put(value)) => {
            table.insert(key, Item::Value(toml(value)?));
            Some(())
        }
        (Some(item), path, edit) => in_item(item, path, edit),
        _ => None,
    }
}

fn in_item(item: &mut Item, path: &[Segment], edit: &Edit) -> Option<()> {
    match path {
        [] => replace(item, edit),
        [Segment::Key(key), rest @ ..] => in_entry(item, key, rest, edit),
        [Segment::Index(at), rest @ ..] => match item {
            Item::Value(TomlValue::Array(items)) => {
                let value = items.get_mut(*at)?;
                let mut part = Item::Value(value.clone());
                in_item(&mut part, rest, edit)?;
                *value = part.into_value().ok()?;
                Some(())
            }
            Item::ArrayOfTables(tables) => {
                let [Segment::Key(key), rest @ ..] = rest else { return None };
                in_table(tables.get_mut(*at)?, false, (key, rest), edit)
            }
            _ => None,
        },
    }
}

fn replace(item: &mut Item, edit: &Edit) -> Option<()> {
    match (edit, item) {
        (Edit::Remove, _) => None,
        (Edit::Items(items), Item::Value(TomlValue::Array(array))) => set_items(array, items),
        (Edit::Items(items), item) => put(item, &Value::list(items.clone())),
        (Edit::Put(value), item) => put(item, value),
    }
}

/// Replaces a value; the comment and the blanks around it stay.
fn put(item: &mut Item, value: &Value) -> Option<()> {
    let mut new = toml(value)?;
    let old = item.as_value()?;
    *new.decor_mut() = old.decor().clone();
    *item = Item::Value(new);
    Some(())
}

/// Adds a key at the end of an inline table. The blank before the closing brace belongs to the last value.
fn add_inline(table: &mut dyn TableLike, key: &str, value: &Value) -> Option<()> {
    let mut new = toml(value)?;
    let last = last_value(table);
    let suffix = last.and_then(|last| {
        let suffix = last.decor().suffix().cloned();
        last.decor_mut().set_suffix("");
        suffix
    });
    new.decor_mut().set_prefix(" ");
    match suffix {
        Some(suffix) => new.decor_mut().set_suffix(suffix),
        None => new.decor_mut().set_suffix(" "),
    }
    table.insert(key, Item::Value(new));
    let mut key = table.key_mut(key)?;
    key.leaf_decor_mut().set_prefix(" ");
    key.leaf_decor_mut().set_suffix(" ");
    Some(())
}

fn last_value(table: &mut dyn TableLike) -> Option<&mut TomlValue> {
    table.iter_mut().last().and_then(|(_, item)| item.as_value_mut())
}

/// Gives an array other items: those that remain keep their places, comments and line breaks.
fn set_items(array: &mut Array, items: &[Value]) -> Option<()> {
    let new: Vec<TomlValue> = items.iter().map(toml).collect::<Option<_>>()?;
    let text = |value: &TomlValue| bare(value).to_string();
    let wanted: Vec<String> = new.iter().map(text).collect();
    let is_same = |at: usize, other: usize, array: &Array| {
        array.get(at).is_some_and(|value| wanted.get(other).is_some_and(|it| *it == text(value)))
    };
    let mut start = 0;
    while start < array.len().min(new.len()) && is_same(start, start, array) {
        start += 1;
    }
    let mut end = 0;
    while end < array.len().min(new.len()) - start
        && is_same(array.len() - 1 - end, new.len() - 1 - end, array)
    {
        end += 1;
    }
    let first = array.get(0).and_then(|value| value.decor().prefix().cloned());
    let (old_middle, new_middle) = (array.len() - start - end, new.len() - start - end);
    let fresh = &new[start..start + new_middle];
    for (at, value) in fresh.iter().take(old_middle).enumerate() {
        let place = array.get_mut(start + at)?;
        let decor = place.decor().clone();
        *place = value.clone();
        *place.decor_mut() = decor;
    }
    for at in (new_middle..old_middle).rev() {
        array.remove(start + at);
    }
    for (at, value) in fresh.iter().enumerate().skip(old_middle) {
        insert(array, start + at, value.clone());
    }
    if let (Some(prefix), Some(value)) = (first, array.get_mut(0)) {
        value.decor_mut().set_prefix(prefix);
    }
    Some(())
}

/// Inserts an item in the layout of its neighbours: on a line of its own if they have one each.
fn insert(array: &mut Array, at: usize, mut value: TomlValue) {
    let prefix = |value: &TomlValue| {
        let prefix = value.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        prefix.rfind('\n').map(|newline| prefix[newline..].to_owned())
    };
    let own_line = array.get(at.saturating_sub(1)).and_then(prefix);
    let blank = if array.is_empty() { "" } else { " " };
    let prefix = own_line.as_deref().unwrap_or(blank);
    value.decor_mut().set_prefix(prefix);
    value.decor_mut().set_suffix("");
    if at == 0
        && let Some(next) = array.get_mut(0)
    {
        next.decor_mut().set_prefix(prefix);
    }
    array.insert_formatted(at, value);
}

fn bare(value: &TomlValue) -> TomlValue {
    let mut value = value.clone();
    value.decor_mut().clear();
    value
}

fn toml(value: &Value) -> Option<TomlValue> {
    written::value(value)?.parse().ok()
}

/// Returns the text of an edited document with the byte order mark and the line ends of the text that it was
/// read from. Mixed line ends are left as the library writes them.
pub(super) fn text(document: &DocumentMut, old: &str) -> String {
    let mark = if old.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let text = document.to_string();
    let is_crlf = old.contains('\n') && old.matches('\n').count() == old.matches("\r\n").count();
    let text = if is_crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text };
    format!("{mark}{}", text.trim_start_matches('\u{feff}'))
}
