//! Constraints on attribute values: ranges, lengths and lists of allowed texts.
//!
//! They are checked on known values, while planning and again before a call, when residuals are filled. They
//! do not check types: a value already has its type here.

use crate::diagnostics::{Correction, nearest};
use crate::schema::{Constraint, OneOf};
use crate::value::{Path, Value};

/// The number of allowed texts that a message lists.
const LISTED_MAX: usize = 12;

/// A value that breaks a constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The place in the attribute's value.
    pub path: Path,
    /// The message, such as "size is 5000 and may be at most 4000 GB".
    pub message: String,
    /// The bound, such as "may be at most 4000 GB"; none for a list of texts, because the nearest text would
    /// reveal the value.
    pub bound: Option<String>,
    /// The advice.
    pub help: Option<String>,
    /// The text of the list that was probably meant; none if none is similar.
    pub correction: Option<Correction>,
    /// True if the value is a text outside its list, which `lifecycle.allow_unknown` turns into a warning.
    pub outside_list: bool,
}

impl Violation {
    /// Returns a violation with the message that `what`, a text such as "size is 5000", breaks the bound.
    fn of_bound(what: &str, bound: String, help: Option<String>) -> Self {
        let message = format!("{what} and {bound}");
        Self {
            path: Path::root(),
            message,
            bound: Some(bound),
            help,
            correction: None,
            outside_list: false,
        }
    }

    /// Returns the message for a value that must not be shown; `subject` stands in its place.
    pub fn without_value(&self, subject: &str) -> String {
        format!("{subject} {}", self.bound.as_deref().unwrap_or("is not allowed"))
    }
}

/// Returns the parts of a value that break the constraint. Unknown, sealed and null parts break nothing.
///
/// The messages show the parts. For a sensitive value a caller shows only what is allowed.
pub fn violations(
    name: &str,
    unit: Option<&str>,
    constraint: &Constraint,
    value: &Value,
) -> Vec<Violation> {
    let mut found: Vec<Violation> = number(name, unit, constraint, value).into_iter().collect();
    found.extend(length(name, constraint, value));
    if let Some(one_of) = &constraint.one_of {
        listed(name, one_of, value, &Path::root(), &mut found);
    }
    found
}

fn number(
    name: &str,
    unit: Option<&str>,
    constraint: &Constraint,
    value: &Value,
) -> Option<Violation> {
    let number = match value {
        #[expect(clippy::cast_precision_loss, reason = "the bounds are floats")]
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return None,
    };
    let unit = unit.map_or(String::new(), |unit| format!(" {unit}"));
    let is = format!("{name} is {}", shown_number(value));
    if let Some(min) = constraint.min.filter(|min| number < *min) {
        let min = shown_number(&Value::Float(min));
        let bound = format!("must be at least {min}{unit}");
        return Some(Violation::of_bound(&is, bound, Some(format!("write {min} or more"))));
    }
    let max = constraint.max.filter(|max| number > *max)?;
    let max = shown_number(&Value::Float(max));
    let bound = format!("may be at most {max}{unit}");
    Some(Violation::of_bound(&is, bound, Some(format!("write {max} or less"))))
}

/// Returns the text of a number, without a fraction if it is zero.
fn shown_number(value: &Value) -> String {
    match (value.as_integer(), value) {
        (Some(whole), _) => whole.to_string(),
        (None, Value::Float(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Returns the violation of a bound on the length. Unknown items count: their number is known.
fn length(name: &str, constraint: &Constraint, value: &Value) -> Option<Violation> {
    let (count, one, many) = match value {
        Value::String(text) => (text.chars().count(), "character", "characters"),
        Value::List(items) | Value::Set(items) => (items.len(), "item", "items"),
        Value::Map(entries) => (entries.len(), "entry", "entries"),
        _ => return None,
    };
    let counted = |count: usize| format!("{count} {}", if count == 1 { one } else { many });
    if let Some(min) = constraint.length_min.filter(|min| count < *min) {
        // Unknown items of a set may turn out to be the same, but never more.
        let has = if count == 0 { format!("no {many}") } else { counted(count) };
        let bound = format!("must have at least {}", counted(min));
        return Some(Violation::of_bound(&format!("{name} has {has}"), bound, None));
    }
    let max = constraint.length_max.filter(|max| count > *max)?;
    if matches!(value, Value::Set(_)) && !value.is_known() {
        return None;
    }
    let bound = format!("may have at most {}", counted(max));
    Some(Violation::of_bound(&format!("{name} has {}", counted(count)), bound, None))
}

/// Each text of the value must be in the list.
fn listed(name: &str, one_of: &OneOf, value: &Value, path: &Path, found: &mut Vec<Violation>) {
    match value {
        Value::String(text) => found.extend(
            parts(one_of, text)
                .filter_map(|part| outside(name, one_of, part))
                .map(|violation| Violation { path: path.clone(), ..violation }),
        ),
        Value::List(items) | Value::Set(items) => {
            for (index, item) in items.iter().enumerate() {
                listed(name, one_of, item, &path.join(index), found);
            }
        }
        Value::Map(entries) => {
            for (key, item) in entries.iter() {
                listed(name, one_of, item, &path.join(key.clone()), found);
            }
        }
        _ => {}
    }
}

/// The texts that one text holds, without those that exclude something. An empty one holds none, as an
/// empty list does.
fn parts<'t>(one_of: &'t OneOf, text: &'t str) -> impl Iterator<Item = &'t str> {
    let parts: Vec<&str> = match one_of.separator.as_deref() {
        Some(_) if text.is_empty() => Vec::new(),
        Some(separator) if !separator.is_empty() => text.split(separator).map(str::trim).collect(),
        _ => vec![text],
    };
    let excludes = |part: &&str| {
        one_of.exclusion.as_deref().is_some_and(|mark| !mark.is_empty() && part.starts_with(mark))
    };
    parts.into_iter().filter(move |part| !excludes(part))
}

fn outside(name: &str, one_of: &OneOf, part: &str) -> Option<Violation> {
    if one_of.values.iter().any(|allowed| &**allowed == part) {
        return None;
    }
    let allowed = || one_of.values.iter().map(|allowed| &**allowed);
    // Names differ in case more often than in letters.
    let near = allowed()
        .find(|allowed| allowed.eq_ignore_ascii_case(part))
        .or_else(|| nearest(part, allowed()));
    let help = near.map_or_else(|| listing(one_of), |near| format!("did you mean \"{near}\"?"));
    let what = if part.is_empty() { "an empty text".to_owned() } else { format!("\"{part}\"") };
    let message =
        format!("{name} is {what}, which is not one of the {} known values", one_of.values.len());
    Some(Violation {
        path: Path::root(),
        message,
        bound: None,
        help: Some(help),
        correction: near
            .filter(|_| !part.is_empty())
            .map(|near| Correction { word: part.to_owned(), meant: near.to_owned() }),
        outside_list: true,
    })
}

fn listing(one_of: &OneOf) -> String {
    let listed: Vec<String> =
        one_of.values.iter().take(LISTED_MAX).map(|text| format!("\"{text}\"")).collect();
    let more = if one_of.values.len() > LISTED_MAX { ", …" } else { "" };
    format!("write one of {}{more}", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse;
    use crate::types::Type;

    fn constraint(change: impl FnOnce(&mut Constraint)) -> Constraint {
        let mut constraint = Constraint::default();
        change(&mut constraint);
        constraint
    }

    fn one_of(separator: Option<&str>) -> Constraint {
        constraint(|c| {
            c.one_of = Some(OneOf {
                values: ["ADA_24", "AMPERE_48", "NVIDIA L4"].map(Into::into).to_vec(),
                separator: separator.map(str::to_owned),
                exclusion: Some("-".to_owned()),
            });
        })
    }

    fn check(constraint: &Constraint, json: &str, expected: &[&str]) {
        let value = crate::stored::from_json(&serde_json::from_str(json).unwrap());
        check_value(constraint, &value, expected);
    }

    fn check_value(constraint: &Constraint, value: &Value, expected: &[&str]) {
        let shown: Vec<String> = violations("size", Some("GB"), constraint, value)
            .into_iter()
            .map(|v| format!("{} {} ({})", v.path, v.message, v.help.unwrap_or_default()))
            .map(|line| line.trim_start().trim_end_matches(" ()").to_owned())
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn numbers_show_their_unit() {
        let range = constraint(|c| (c.min, c.max) = (Some(1.0), Some(4000.0)));
        check(&range, "5000", &["size is 5000 and may be at most 4000 GB (write 4000 or less)"]);
        check(&range, "0", &["size is 0 and must be at least 1 GB (write 1 or more)"]);
        check(&range, "0.5", &["size is 0.5 and must be at least 1 GB (write 1 or more)"]);
        check(&range, "4000", &[]);
        check(&range, "\"text\"", &[]);
        check(&range, "null", &[]);
        let half = constraint(|c| c.max = Some(0.5));
        check(&half, "1", &["size is 1 and may be at most 0.5 GB (write 0.5 or less)"]);
    }

    #[test]
    fn lengths_count_characters_and_items() {
        let length = constraint(|c| (c.length_min, c.length_max) = (Some(1), Some(2)));
        check(&length, "\"äöü\"", &["size has 3 characters and may have at most 2 characters"]);
        check(&length, "\"äö\"", &[]);
        check(&length, "\"\"", &["size has no characters and must have at least 1 character"]);
        check(&length, "[1, 2, 3]", &["size has 3 items and may have at most 2 items"]);
        check(&length, "{}", &["size has no entries and must have at least 1 entry"]);
    }

    #[test]
    fn what_is_not_known_breaks_nothing() {
        let unknown = || Value::unknown(Type::String, parse::residual("value.a.id").unwrap());
        let length = constraint(|c| c.length_max = Some(1));
        check_value(&one_of(None), &unknown(), &[]);
        check_value(&one_of(None), &Value::list(vec![unknown(), Value::Null]), &[]);
        check_value(&length, &Value::set(vec![unknown(), Value::string("a")]), &[]);
        let two = Value::list(vec![unknown(), unknown()]);
        check_value(&length, &two, &["size has 2 items and may have at most 1 item"]);
    }

    #[test]
    fn texts_outside_their_list() {
        let message =
            |text: &str| format!("size is {text}, which is not one of the 3 known values");
        let near = format!("{} (did you mean \"ADA_24\"?)", message("\"ADA_25\""));
        check(&one_of(None), "\"ADA_25\"", &[&near]);
        let case = format!("{} (did you mean \"ADA_24\"?)", message("\"ada_24\""));
        check(&one_of(None), "\"ada_24\"", &[&case]);
        let far = format!(
            "{} (write one of \"ADA_24\", \"AMPERE_48\", \"NVIDIA L4\")",
            message("\"zzz\"")
        );
        check(&one_of(None), "\"zzz\"", &[&far]);
        check(
            &one_of(None),
            "\"ADA_24,AMPERE_48\"",
            &[&format!(
                "{} (write one of \"ADA_24\", \"AMPERE_48\", \"NVIDIA L4\")",
                message("\"ADA_24,AMPERE_48\"")
            )],
        );
        let found = violations("gpu", None, &one_of(None), &Value::string("x"));
        assert!(found[0].outside_list);
    }

    #[test]
    fn one_text_may_hold_several() {
        let list = one_of(Some(","));
        check(&list, "\"ADA_24, AMPERE_48,-NVIDIA L4,-anything\"", &[]);
        check(
            &list,
            "\"ADA_24,AMPERE_49\"",
            &[
                "size is \"AMPERE_49\", which is not one of the 3 known values (did you mean \"AMPERE_48\"?)",
            ],
        );
        check(&list, "\"\"", &[]);
        check(
            &list,
            "\"ADA_24,\"",
            &[
                "size is an empty text, which is not one of the 3 known values (write one of \"ADA_24\", \"AMPERE_48\", \"NVIDIA L4\")",
            ],
        );
    }

    #[test]
    fn items_are_checked_one_by_one() {
        check(
            &one_of(None),
            "[\"ADA_24\", \"ADA_2\", {\"k\": \"ADA_4\"}]",
            &[
                "[1] size is \"ADA_2\", which is not one of the 3 known values (did you mean \"ADA_24\"?)",
                "[2].k size is \"ADA_4\", which is not one of the 3 known values (did you mean \"ADA_24\"?)",
            ],
        );
    }
}
