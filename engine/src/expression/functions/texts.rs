//! Functions of text.

use std::fmt::Write as _;

use super::Fault;
use crate::expression::evaluate::{BYTES_MAX, word};
use crate::expression::text::text_of;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// The text of an argument. The caller has checked that it is a string.
pub(super) fn text(arguments: &[Value], index: usize) -> &str {
    arguments.get(index).and_then(Value::as_str).unwrap_or_default()
}

/// Refuses a text that would be too long, before it is made.
fn bounded(argument: usize, bytes: Option<usize>) -> Result<(), Fault> {
    if bytes.is_some_and(|bytes| bytes <= BYTES_MAX) {
        return Ok(());
    }
    Err(Fault::new(argument, format!("this makes a text of more than {} MiB", BYTES_MAX >> 20)))
}

pub(super) fn upper(a: &[Value]) -> Out {
    Ok(Value::string(text(a, 0).to_uppercase()))
}

pub(super) fn lower(a: &[Value]) -> Out {
    Ok(Value::string(text(a, 0).to_lowercase()))
}

pub(super) fn trim(a: &[Value]) -> Out {
    let characters: Vec<char> = text(a, 1).chars().collect();
    Ok(Value::string(text(a, 0).trim_matches(characters.as_slice())))
}

pub(super) fn trim_space(a: &[Value]) -> Out {
    Ok(Value::string(text(a, 0).trim()))
}

pub(super) fn trim_prefix(a: &[Value]) -> Out {
    let whole = text(a, 0);
    Ok(Value::string(whole.strip_prefix(text(a, 1)).unwrap_or(whole)))
}

pub(super) fn trim_suffix(a: &[Value]) -> Out {
    let whole = text(a, 0);
    Ok(Value::string(whole.strip_suffix(text(a, 1)).unwrap_or(whole)))
}

pub(super) fn starts_with(a: &[Value]) -> Out {
    Ok(Value::Bool(text(a, 0).starts_with(text(a, 1))))
}

pub(super) fn ends_with(a: &[Value]) -> Out {
    Ok(Value::Bool(text(a, 0).ends_with(text(a, 1))))
}

/// An empty separator parts the characters.
pub(super) fn split(a: &[Value]) -> Out {
    let (separator, whole) = (text(a, 0), text(a, 1));
    let items = if separator.is_empty() {
        whole.chars().map(|character| Value::string(character.to_string())).collect()
    } else {
        whole.split(separator).map(Value::string).collect()
    };
    Ok(Value::list(items))
}

pub(super) fn join(a: &[Value]) -> Out {
    let text = "every item must be a string, number or boolean, and the result not too long";
    joined(a).map_err(|fault| fault.of_secret(text))
}

fn joined(a: &[Value]) -> Out {
    let separator = text(a, 0);
    let items = a.get(1).and_then(Value::as_items).unwrap_or_default();
    bounded(1, separator.len().checked_mul(items.len()))?;
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        let text = text_of(item).ok_or_else(|| {
            let message =
                format!("every item must be a string, number or boolean, found {}", word(item));
            Fault::new(1, message).help("leave the others out: [for x in … : x if x != null]")
        })?;
        joined.push_str(&text);
        bounded(1, Some(joined.len()))?;
    }
    Ok(Value::string(joined))
}

pub(super) fn replace(a: &[Value]) -> Out {
    let (whole, part, replacement) = (text(a, 0), text(a, 1), text(a, 2));
    let times = whole.matches(part).count();
    bounded(
        0,
        replacement.len().checked_mul(times).and_then(|more| more.checked_add(whole.len())),
    )?;
    Ok(Value::string(whole.replace(part, replacement)))
}

/// Counts characters. A negative offset counts from the end; a length of -1 takes the rest.
pub(super) fn substr(a: &[Value]) -> Out {
    let whole = text(a, 0);
    let count = whole.chars().count();
    let offset = a[1].as_integer().unwrap_or(0);
    let start = if offset < 0 {
        let back = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        count.saturating_sub(back)
    } else {
        usize::try_from(offset).unwrap_or(usize::MAX)
    };
    let length = match a[2].as_integer().unwrap_or(-1) {
        -1 => usize::MAX,
        length => usize::try_from(length)
            .map_err(|_| Fault::new(2, "the length is negative").help("-1 takes the rest"))?,
    };
    Ok(Value::string(whole.chars().skip(start).take(length).collect::<String>()))
}

/// `%s` takes a string, number or boolean, `%d` a whole number, `%v` anything; `%%` is a percent sign.
pub(super) fn format(a: &[Value]) -> Out {
    let text = "the format and its values do not fit, or make too long a text";
    formatted(a).map_err(|fault| fault.of_secret(text))
}

fn formatted(a: &[Value]) -> Out {
    let mut made = String::new();
    let mut next = 1;
    let mut characters = text(a, 0).chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            made.push(character);
            continue;
        }
        match characters.next() {
            Some('%') => made.push('%'),
            Some(verb @ ('s' | 'd' | 'v')) => {
                let value = a.get(next).ok_or_else(|| {
                    Fault::new(
                        0,
                        format!("the format has more verbs than the {} values", a.len() - 1),
                    )
                })?;
                made.push_str(&shown(verb, value, next)?);
                next += 1;
            }
            Some(verb) => {
                let message = format!("there is no verb `%{verb}`");
                return Err(
                    Fault::new(0, message).help("write %s, %d, %v, or %% for a percent sign")
                );
            }
            None => {
                let fault = Fault::new(0, "the format ends in the middle of a verb");
                return Err(fault.help("write %% for a percent sign"));
            }
        }
        bounded(next.saturating_sub(1), Some(made.len()))?;
    }
    if next < a.len() {
        return Err(Fault::new(next, format!("the format has only {} verbs", next - 1)));
    }
    Ok(Value::string(made))
}

fn shown(verb: char, value: &Value, argument: usize) -> Result<String, Fault> {
    let wrong = |wanted: &str| {
        Fault::new(argument, format!("`%{verb}` takes {wanted}, found {}", word(value)))
    };
    let mut text = String::new();
    match verb {
        'd' => {
            let number = value.as_integer().ok_or_else(|| wrong("a whole number"))?;
            // Writing to a string cannot fail.
            let _ = write!(text, "{number}");
        }
        's' => text = text_of(value).ok_or_else(|| wrong("a string, number or boolean"))?,
        _ => {
            text = text_of(value).unwrap_or_else(|| crate::stored::to_json(value).to_string());
        }
    }
    Ok(text)
}
