//! Functions of text.

use super::Fault;
use crate::expression::evaluate::{BYTES_MAX, word};
use crate::expression::text::text_of;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// Returns the text of an argument. The caller has checked that it is a string.
pub(super) fn text(arguments: &[Value], index: usize) -> &str {
    arguments.get(index).and_then(Value::as_str).unwrap_or_default()
}

/// Refuses a text that would be too long before it is made.
pub(super) fn bounded(argument: usize, bytes: Option<usize>) -> Result<(), Fault> {
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

/// Splits a text. An empty separator splits it into characters.
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

/// Returns a part of a text, counted in characters. A negative offset counts from the end; a length of -1
/// takes the rest.
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

pub(super) fn contains(a: &[Value]) -> Out {
    Ok(Value::Bool(text(a, 0).contains(text(a, 1))))
}

pub(super) fn reverse(a: &[Value]) -> Out {
    Ok(Value::string(text(a, 0).chars().rev().collect::<String>()))
}

pub(super) fn chomp(a: &[Value]) -> Out {
    Ok(Value::string(text(a, 0).trim_end_matches(['\n', '\r'])))
}

/// Indents every line but the first, including empty ones.
pub(super) fn indent(a: &[Value]) -> Out {
    let text = "the number of blanks is negative, or makes too long a text";
    indented(a).map_err(|fault| fault.of_secret(text))
}

fn indented(a: &[Value]) -> Out {
    let whole = text(a, 1);
    let blanks = usize::try_from(a[0].as_integer().unwrap_or(0))
        .map_err(|_| Fault::new(0, "the number of blanks is negative"))?;
    let added = whole.matches('\n').count().checked_mul(blanks);
    bounded(0, added.and_then(|added| added.checked_add(whole.len())))?;
    if added == Some(0) {
        return Ok(a[1].clone());
    }
    Ok(Value::string(whole.replace('\n', &format!("\n{}", " ".repeat(blanks)))))
}

/// Turns the first letter of each word into upper case. A word begins after a character that is neither a
/// letter, a digit nor `_`.
pub(super) fn title(a: &[Value]) -> Out {
    let mut titled = String::with_capacity(text(a, 0).len());
    let mut begins = true;
    for character in text(a, 0).chars() {
        if begins {
            titled.extend(character.to_uppercase());
        } else {
            titled.push(character);
        }
        begins = match character {
            '_' => false,
            ascii if ascii.is_ascii() => !ascii.is_ascii_alphanumeric(),
            other => other.is_whitespace(),
        };
    }
    Ok(Value::string(titled))
}

pub(super) fn basename(a: &[Value]) -> Out {
    let path = text(a, 0);
    let trimmed = path.trim_end_matches('/');
    Ok(Value::string(match (path, trimmed) {
        ("", _) => ".",
        (_, "") => "/",
        (_, trimmed) => trimmed.rsplit_once('/').map_or(trimmed, |(_, last)| last),
    }))
}

pub(super) fn dirname(a: &[Value]) -> Out {
    let Some((folder, _)) = text(a, 0).rsplit_once('/') else { return Ok(Value::string(".")) };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match parts.last() {
            Some(&last) if part == ".." && last != ".." => drop(parts.pop()),
            None if part == ".." && folder.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if folder.is_empty() || folder.starts_with('/') { "/" } else { "" };
    let path = format!("{root}{}", parts.join("/"));
    Ok(Value::string(if path.is_empty() { ".".to_owned() } else { path }))
}
