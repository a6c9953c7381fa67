//! Values and their differences as lines.
//!
//! Short values stand on one line, in TOML's notation. Of a change inside a map, a list, a set or a long
//! text, only the changed parts are shown, with a count of the others. Texts that are JSON on both sides are
//! compared as JSON.

use std::fmt::{self, Write as _};

use engine::address::Name;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, group_diff_ops};

use crate::paint::{Label, Line, Page};
use crate::safe;
use crate::shown::{Object, Shown};

/// The widest value that stays on one line.
const INLINE_MAX: usize = 76;
/// The longest text that is compared line by line, in lines.
const TEXT_LINES_MAX: usize = 5_000;
/// The most lines that one attribute gets.
const ROWS_MAX: usize = 120;
/// The depth beyond which values are shown on one line.
const DEPTH_MAX: usize = 10;

/// One attribute, or one entry of a map, with its change.
pub(crate) struct Row<'a> {
    pub(crate) name: String,
    pub(crate) before: Option<&'a Shown>,
    pub(crate) after: Option<&'a Shown>,
    /// The address and the name of the attribute: an unknown value that is computed from itself needs no
    /// explanation. None for an entry of a map.
    pub(crate) own: Option<(&'a str, &'a str)>,
    pub(crate) unit: Option<&'a str>,
    /// The place in the spec; none if there is none.
    pub(crate) origin: Option<String>,
    pub(crate) note: Option<(&'static str, Label)>,
    /// True if the spec no longer gives the attribute, and the change clears it.
    pub(crate) is_unset: bool,
    pub(crate) mark: Option<(&'static str, Label)>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(name: &str, before: Option<&'a Shown>, after: Option<&'a Shown>) -> Self {
        Self {
            name: key(name),
            before,
            after,
            own: None,
            unit: None,
            origin: None,
            note: None,
            is_unset: false,
            mark: None,
        }
    }

    fn marked(mut self, mark: &'static str, label: Label) -> Self {
        self.mark = Some((mark, label));
        self
    }

    /// Returns the row as one line; none if it does not fit.
    fn inline(&self) -> Option<Line> {
        let line = match (self.before, self.after) {
            (Some(before), Some(after)) => self.arrow(before, after)?,
            (None, Some(value)) => Line::new(0).plain(self.with_unit(short(value, self)?)),
            (Some(value), None) => Line::new(0).plain(self.with_unit(short(value, self)?)),
            (None, None) => return None,
        };
        Some(line)
    }

    fn arrow(&self, before: &Shown, after: &Shown) -> Option<Line> {
        if let (Shown::Sensitive(_), Shown::Sensitive(_)) = (before, after) {
            let text = if before.same(after) { "(sensitive)" } else { "(sensitive, changes)" };
            return Some(Line::new(0).then(text, Label::Changed));
        }
        if comparable(before, after) {
            return None;
        }
        let from = short(before, self)?;
        let is_cleared = self.is_unset && *after == Shown::Null;
        let to = if is_cleared { "(unset)".to_owned() } else { short(after, self)? };
        let line = Line::new(0).then(from, Label::Removed).plain(" → ");
        Some(line.then(self.with_unit(to), Label::Added))
    }

    fn with_unit(&self, text: String) -> String {
        match (self.unit, self.after.or(self.before)) {
            (Some(unit), Some(Shown::Integer(_) | Shown::Float(_))) => {
                format!("{text} {}", safe::text(unit))
            }
            _ => text,
        }
    }
}

/// Adds rows as a table: all names begin in one column, and so do values and origins.
pub(crate) fn table(page: &mut Page, depth: usize, rows: &[Row<'_>]) {
    let name_width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(32);
    let inlines: Vec<Option<Line>> = rows.iter().map(Row::inline).collect();
    let widths = rows.iter().zip(&inlines).filter(|(row, _)| row.origin.is_some());
    let value_width =
        widths.filter_map(|(_, line)| Some(line.as_ref()?.width())).max().unwrap_or(0).min(48);
    for (row, inline) in rows.iter().zip(inlines) {
        let Some(value) = inline else {
            let mut line = tail(head(row, depth).plain(row.name.clone()), row, 0);
            if let Some(kind) = kind_note(row) {
                line = line.then(format!("  ({kind})"), Label::Faint);
            }
            if row.is_unset && row.note.is_none() {
                line = line.then("  # unset", Label::Faint);
            }
            page.push(line);
            block(page, depth, row);
            continue;
        };
        let width = value.width();
        let line = head(row, depth).plain(format!("{:name_width$}  ", row.name)).join(value);
        page.push(tail(line, row, value_width.saturating_sub(width)));
    }
}

fn head(row: &Row<'_>, depth: usize) -> Line {
    let line = Line::new(depth);
    match row.mark {
        Some((mark, label)) => line.mark(mark, label),
        None => line,
    }
}

fn tail(mut line: Line, row: &Row<'_>, padding: usize) -> Line {
    if let Some((note, label)) = row.note {
        line = line.then(format!("  {note}"), label);
    }
    match &row.origin {
        Some(origin) => {
            line.then(format!("{}   {}", " ".repeat(padding), safe::text(origin)), Label::Faint)
        }
        None => line,
    }
}

fn kind_note(row: &Row<'_>) -> Option<&'static str> {
    match (row.before, row.after) {
        (Some(Shown::String(a)), Some(Shown::String(b))) => json_pair(a, b).map(|_| "JSON"),
        _ => None,
    }
}

/// Adds the lines below a row whose value does not fit on its line.
fn block(page: &mut Page, depth: usize, row: &Row<'_>) {
    let mut below = Page::new();
    match (row.before, row.after) {
        (Some(before), Some(after)) => changed(&mut below, depth + 1, before, after),
        (None, Some(value)) | (Some(value), None) => whole(&mut below, depth + 1, value),
        (None, None) => {}
    }
    let all = below.lines().len();
    let mut cut = Page::new();
    for line in below.lines().iter().take(ROWS_MAX) {
        cut.push(line.clone());
    }
    if all > ROWS_MAX {
        cut.push(faint(depth + 1, format!("… {} more lines", all - ROWS_MAX)));
    }
    page.append(cut);
}

fn faint(depth: usize, text: String) -> Line {
    Line::new(depth).then(text, Label::Faint)
}

/// Adds a value on several lines.
fn whole(page: &mut Page, depth: usize, value: &Shown) {
    match value {
        Shown::String(text) => {
            for line in text.lines() {
                page.push(Line::new(depth).then("| ", Label::Faint).plain(safe::text(line)));
            }
        }
        Shown::Map(entries) if depth < DEPTH_MAX => {
            let rows: Vec<_> =
                entries.iter().map(|(name, item)| Row::new(name, None, Some(item))).collect();
            table(page, depth, &rows);
        }
        Shown::List(items) | Shown::Set(items) if depth < DEPTH_MAX => {
            let rows: Vec<_> = items
                .iter()
                .enumerate()
                .map(|(index, item)| Row {
                    name: format!("[{index}]"),
                    ..Row::new("", None, Some(item))
                })
                .collect();
            table(page, depth, &rows);
        }
        other => page.push(Line::new(depth).plain(cut(&inline(other)))),
    }
}

/// Adds the difference of two values, on several lines.
fn changed(page: &mut Page, depth: usize, before: &Shown, after: &Shown) {
    match (before, after) {
        (Shown::Map(a), Shown::Map(b)) if depth < DEPTH_MAX => maps(page, depth, a, b),
        (Shown::List(a), Shown::List(b)) if depth < DEPTH_MAX => lists(page, depth, a, b),
        (Shown::List(a) | Shown::Set(a), Shown::List(b) | Shown::Set(b)) if depth < DEPTH_MAX => {
            sets(page, depth, a, b);
        }
        (Shown::String(a), Shown::String(b)) => match json_pair(a, b) {
            Some((a, b)) => changed(page, depth, &a, &b),
            None => texts(page, depth, a, b),
        },
        _ => {
            for (value, mark, label) in [(before, "-", Label::Removed), (after, "+", Label::Added)]
            {
                page.push(Line::new(depth).mark(mark, label).plain(cut(&inline(value))));
            }
        }
    }
}

fn maps(page: &mut Page, depth: usize, before: &Object, after: &Object) {
    let mut names: Vec<&Name> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let mut rows = Vec::new();
    let mut same = 0;
    for name in names {
        let (a, b) = (before.get(name), after.get(name));
        if a.zip(b).is_some_and(|(a, b)| a.same(b)) {
            same += 1;
        } else {
            rows.push(entry(Row::new(name, a, b)));
        }
    }
    table(page, depth, &rows);
    unchanged(page, depth, same);
}

/// Returns a row with the symbol of its change.
fn entry(row: Row<'_>) -> Row<'_> {
    match (row.before, row.after) {
        (Some(_), Some(_)) => row.marked("~", Label::Changed),
        (Some(_), None) => row.marked("-", Label::Removed),
        _ => row.marked("+", Label::Added),
    }
}

fn unchanged(page: &mut Page, depth: usize, count: usize) {
    if count > 0 {
        page.push(faint(depth, format!("({count} unchanged)")));
    }
}

fn lists(page: &mut Page, depth: usize, before: &[Shown], after: &[Shown]) {
    let keys = |items: &[Shown], side: &str| -> Vec<String> {
        items.iter().enumerate().map(|(i, item)| identity(item, side, i)).collect()
    };
    let (a, b) = (keys(before, "a"), keys(after, "b"));
    let (a, b): (Vec<&str>, Vec<&str>) =
        (a.iter().map(String::as_str).collect(), b.iter().map(String::as_str).collect());
    let mut rows = Vec::new();
    let mut same = 0;
    let item = |index: usize, a: Option<usize>, b: Option<usize>| {
        let row = Row::new("", a.and_then(|i| before.get(i)), b.and_then(|i| after.get(i)));
        entry(Row { name: format!("[{index}]"), ..row })
    };
    for op in differences(&a, &b) {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { len, .. } = op {
            same += len;
        } else if old.len() == new.len() {
            rows.extend(old.zip(new).map(|(i, j)| item(j, Some(i), Some(j))));
        } else {
            rows.extend(old.map(|i| item(i, Some(i), None)));
            rows.extend(new.map(|j| item(j, None, Some(j))));
        }
    }
    table(page, depth, &rows);
    unchanged(page, depth, same);
}

fn sets(page: &mut Page, depth: usize, before: &[Shown], after: &[Shown]) {
    let mut same = 0;
    for item in before {
        if after.iter().any(|other| other.same(item)) {
            same += 1;
        } else {
            let line = Line::new(depth).mark("-", Label::Removed);
            page.push(line.then(cut(&inline(item)), Label::Removed));
        }
    }
    for item in after.iter().filter(|item| !before.iter().any(|other| other.same(item))) {
        let line = Line::new(depth).mark("+", Label::Added);
        page.push(line.then(cut(&inline(item)), Label::Added));
    }
    unchanged(page, depth, same);
}

/// Adds the changed lines of a text, with two unchanged lines around them.
fn texts(page: &mut Page, depth: usize, before: &str, after: &str) {
    let (old, new) = (before.lines().count(), after.lines().count());
    if old + new > TEXT_LINES_MAX {
        page.push(faint(depth, format!("{old} lines → {new} lines")));
        return;
    }
    let (a, b): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    for (index, group) in group_diff_ops(differences(&a, &b), 2).iter().enumerate() {
        if index > 0 {
            page.push(faint(depth, "…".to_owned()));
        }
        for op in group {
            let (old, new) = (&a[op.old_range()], &b[op.new_range()]);
            if let DiffOp::Equal { .. } = op {
                push_lines(page, depth, old, None);
            } else {
                push_lines(page, depth, old, Some(("-", Label::Removed)));
                push_lines(page, depth, new, Some(("+", Label::Added)));
            }
        }
    }
}

/// Adds lines of a text: with the symbol of their change, or faint if they do not change.
fn push_lines(page: &mut Page, depth: usize, lines: &[&str], mark: Option<(&'static str, Label)>) {
    for text in lines {
        let text = format!("| {}", safe::text(text.trim_end_matches(['\n', '\r'])));
        let line = Line::new(depth);
        page.push(match mark {
            Some((mark, label)) => line.mark(mark, label).then(text, label),
            None => line.then(text, Label::Faint),
        });
    }
}

/// Returns the difference of two lists, item by item, in order. It calls the one algorithm and the one type
/// of item that are used here, because the crate's general function compiles all six of its algorithms.
fn differences(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    match myers::diff(&mut ops, old, 0..old.len(), new, 0..new.len()) {
        Ok(()) => ops.into_inner().into_inner().into_ops(),
    }
}

/// Returns a text that is equal for equal items, and only for these.
fn identity(item: &Shown, side: &str, index: usize) -> String {
    if item.same(item) { inline_full(item) } else { format!("{side}{index}") }
}

/// Returns true if the parts of two values can be compared, and at least one value is too long for a line.
fn comparable(before: &Shown, after: &Shown) -> bool {
    match (before, after) {
        (Shown::Map(_), Shown::Map(_))
        | (Shown::List(_) | Shown::Set(_), Shown::List(_) | Shown::Set(_)) => true,
        (Shown::String(a), Shown::String(b)) => {
            a.contains('\n') || b.contains('\n') || json_pair(a, b).is_some()
        }
        _ => false,
    }
}

/// Returns two texts as values if both are JSON objects or both are JSON arrays; else none.
fn json_pair(before: &str, after: &str) -> Option<(Shown, Shown)> {
    let read = |text: &str| -> Option<serde_json::Value> {
        text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok()).flatten()
    };
    let (before, after) = (read(before)?, read(after)?);
    if before.is_object() != after.is_object() {
        return None;
    }
    let show = |json| Shown::new(&engine::stored::from_json(json), &engine::value::Paths::none());
    Some((show(&before), show(&after)))
}

/// Returns true if `from` is the reference `address.name`.
pub(crate) fn is_own(from: &str, address: &str, name: &str) -> bool {
    let rest = from.strip_prefix(address).and_then(|rest| rest.strip_prefix('.'));
    rest == Some(name)
}

/// Returns the value's text if it may stand on the row's line; else none.
fn short(value: &Shown, row: &Row<'_>) -> Option<String> {
    match value {
        Shown::Unknown(from) if row.own.is_some_and(|(at, name)| is_own(from, at, name)) => {
            return Some("(known after apply)".to_owned());
        }
        Shown::Unknown(_) | Shown::Sensitive(_) => return Some(inline(value)),
        // A long text without line ends is truncated; one with line ends gets its own lines.
        Shown::String(text) if !text.contains('\n') => return Some(safe::quoted(text, 120)),
        Shown::String(_) => return None,
        _ => {}
    }
    let text = inline(value);
    (text.chars().count() <= INLINE_MAX).then_some(text)
}

/// Returns a value on one line, with truncated texts.
pub(crate) fn inline(value: &Shown) -> String {
    write(value, safe::SHOWN_MAX)
}

/// Returns a value on one line, with nothing truncated.
pub(crate) fn full(value: &Shown) -> String {
    write(value, usize::MAX - 1)
}

fn inline_full(value: &Shown) -> String {
    write(value, usize::MAX)
}

fn write(value: &Shown, max: usize) -> String {
    let mut text = String::new();
    // Writing to memory cannot fail.
    let _ = put(&mut text, value, max);
    text
}

fn put(out: &mut String, value: &Shown, max: usize) -> fmt::Result {
    match value {
        Shown::Null => out.write_str("null"),
        Shown::Bool(value) => write!(out, "{value}"),
        Shown::Integer(number) => write!(out, "{number}"),
        Shown::Float(number) => write!(out, "{number}"),
        Shown::String(text) => out.write_str(&safe::quoted(text, max)),
        Shown::List(items) | Shown::Set(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                put(out, item, max)?;
            }
            out.write_char(']')
        }
        Shown::Map(entries) if entries.is_empty() => out.write_str("{}"),
        Shown::Map(entries) => {
            for (index, (name, item)) in entries.iter().enumerate() {
                out.push_str(if index == 0 { "{ " } else { ", " });
                write!(out, "{} = ", key(name))?;
                put(out, item, max)?;
            }
            out.write_str(" }")
        }
        Shown::Unknown(from) if from.is_empty() => out.write_str("(known after apply)"),
        Shown::Unknown(from) => write!(out, "(known after apply: {})", safe::capped(from, max)),
        // The fingerprint distinguishes two secrets when whole values are compared. It is no secret, but it
        // is of no use to people.
        Shown::Sensitive(mark) if max == usize::MAX => write!(out, "(sensitive {mark:?})"),
        Shown::Sensitive(_) => out.write_str("(sensitive)"),
    }
}

fn cut(text: &str) -> String {
    safe::capped(text, 400)
}

/// Returns a key in TOML's notation.
pub(crate) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        safe::text(name)
    } else {
        safe::quoted(name, safe::SHOWN_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::Colour;
    use engine::stored::from_json;
    use engine::value::{Paths, Value};
    use serde_json::json;

    fn shown(json: &serde_json::Value) -> Shown {
        Shown::new(&from_json(json), &Paths::none())
    }

    fn diff(before: &serde_json::Value, after: &serde_json::Value) -> String {
        let (a, b) = (shown(before), shown(after));
        let mut page = Page::new();
        table(&mut page, 0, &[Row::new("a", Some(&a), Some(&b))]);
        page.text(Colour::Off)
    }

    #[test]
    fn scalars() {
        insta::assert_snapshot!(diff(&json!(1), &json!(2.5)), @"a  1 → 2.5");
        insta::assert_snapshot!(diff(&json!("x"), &json!(null)), @r#"a  "x" → null"#);
    }

    #[test]
    fn maps_show_what_changes() {
        insta::assert_snapshot!(
            diff(&json!({"A": 1, "B": {"x": 1, "y": [1]}, "C": 1}),
                 &json!({"A": 1, "B": {"x": 2, "y": [1]}, "a b": true})),
            @r#"
        a
          ~ B
              ~ x  1 → 2
                (1 unchanged)
          - C      1
          + "a b"  true
            (1 unchanged)
        "#);
    }

    #[test]
    fn lists_are_aligned_before_they_are_compared() {
        insta::assert_snapshot!(diff(&json!(["a", "b", "c"]), &json!(["b", "x"])), @r#"
        a
          - [0]  "a"
          ~ [1]  "c" → "x"
            (1 unchanged)
        "#);
        insta::assert_snapshot!(
            diff(&json!([{"n": 1, "m": 1}, 5]), &json!([{"n": 2, "m": 1}, 5])), @r"
        a
          ~ [0]
              ~ n  1 → 2
                (1 unchanged)
            (1 unchanged)
        ");
    }

    #[test]
    fn sets_have_no_order() {
        let set = |texts: &[&str]| {
            let items = texts.iter().map(|t| Value::string(*t)).collect();
            Shown::new(&Value::set(items), &Paths::none())
        };
        let (a, b) = (set(&["x", "y"]), set(&["y", "z"]));
        let mut page = Page::new();
        table(&mut page, 0, &[Row::new("a", Some(&a), Some(&b))]);
        insta::assert_snapshot!(page.text(Colour::Off), @r#"
        a
          - "x"
          + "z"
            (1 unchanged)
        "#);
    }

    #[test]
    fn texts_show_the_changed_lines() {
        let lines = |n: usize, odd: &str| -> String {
            (0..20)
                .map(|i| if i == n { format!("{odd}\n") } else { format!("line {i}\n") })
                .collect()
        };
        insta::assert_snapshot!(
            diff(&json!(lines(9, "old \u{1b}[0m")), &json!(lines(9, "new"))), @r"
        a
            | line 7
            | line 8
          - | old \u{1b}[0m
          + | new
            | line 10
            | line 11
        ");
    }

    #[test]
    fn json_in_texts_is_compared_as_json() {
        insta::assert_snapshot!(diff(&json!(r#"{"a":1,"b":2}"#), &json!(r#"{"b":2,"a":3}"#)), @r"
        a  (JSON)
          ~ a  1 → 3
            (1 unchanged)
        ");
    }

    #[test]
    fn hostile_keys_and_texts_stay_on_their_line() {
        insta::assert_snapshot!(diff(&json!({}), &json!({"\n::add-mask::": "\n+ value.x"})), @r#"
        a
          + "\n::add-mask::"
                |
                | + value.x
        "#);
    }
}
