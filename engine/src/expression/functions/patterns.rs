//! Regular expressions. Matching takes time in proportion to the text: there are no look-arounds and
//! no back-references.

use regex_lite::{Captures, Regex, RegexBuilder};

use super::Fault;
use super::texts::{bounded, text};
use crate::address::Name;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// The longest pattern, in bytes.
const PATTERN_MAX: usize = 4096;
/// The longest text that is searched, in bytes: an empty match at every place makes as many searches as the
/// text has bytes.
const TEXT_MAX: usize = 1024 * 1024;
/// The largest program of a pattern, in bytes: `(a{1000}){1000}` is refused.
const PROGRAM_MAX: usize = 1024 * 1024;
/// The most matches that are taken.
const MATCHES_MAX: usize = 65_536;

pub(super) fn regex(a: &[Value]) -> Out {
    let text = "the pattern is wrong, or matches no part of the text";
    first(a).map_err(|fault| fault.of_secret(text))
}

fn first(a: &[Value]) -> Out {
    let pattern = compiled(0, text(a, 0))?;
    let found = pattern.captures(searched(a, 1)?);
    let found = found.ok_or_else(|| {
        Fault::new(1, "no part of this text matches the pattern")
            .help("use try(regex(…), …) where there may be none, or regexall(…)")
    })?;
    Ok(matched(&pattern, &found))
}

pub(super) fn regex_all(a: &[Value]) -> Out {
    let text = "the pattern is wrong, or matches too often";
    all(a).map_err(|fault| fault.of_secret(text))
}

fn all(a: &[Value]) -> Out {
    let pattern = compiled(0, text(a, 0))?;
    let mut matches = Vec::new();
    for found in pattern.captures_iter(searched(a, 1)?) {
        if matches.len() == MATCHES_MAX {
            return Err(Fault::new(1, format!("there are more than {MATCHES_MAX} matches")));
        }
        matches.push(matched(&pattern, &found));
    }
    Ok(Value::list(matches))
}

/// Replaces a part of a text. A part between slashes is a pattern.
pub(super) fn replace(a: &[Value]) -> Out {
    let text = "the pattern is wrong, or the result too long";
    replaced(a).map_err(|fault| fault.of_secret(text))
}

fn replaced(a: &[Value]) -> Out {
    let (whole, part, replacement) = (text(a, 0), text(a, 1), text(a, 2));
    let pattern = part.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    if let Some(pattern) = pattern {
        return replaced_matches(&compiled(1, pattern)?, searched(a, 0)?, replacement);
    }
    let times = whole.matches(part).count();
    let added = replacement.len().checked_mul(times);
    bounded(0, added.and_then(|added| added.checked_add(whole.len())))?;
    Ok(Value::string(whole.replace(part, replacement)))
}

fn replaced_matches(pattern: &Regex, whole: &str, replacement: &str) -> Out {
    let (mut replaced, mut end) = (String::new(), 0);
    for found in pattern.captures_iter(whole) {
        let Some(place) = found.get(0) else { continue };
        replaced.push_str(&whole[end..place.start()]);
        found.expand(replacement, &mut replaced);
        bounded(0, Some(replaced.len()))?;
        end = place.end();
    }
    replaced.push_str(&whole[end..]);
    Ok(Value::string(replaced))
}

fn searched(a: &[Value], argument: usize) -> Result<&str, Fault> {
    let text = text(a, argument);
    if text.len() <= TEXT_MAX {
        return Ok(text);
    }
    let message = format!("a pattern searches at most {} MiB of text", TEXT_MAX >> 20);
    Err(Fault::new(argument, message))
}

fn compiled(argument: usize, pattern: &str) -> Result<Regex, Fault> {
    if pattern.len() > PATTERN_MAX {
        let message = format!("the pattern is longer than {} KiB", PATTERN_MAX >> 10);
        return Err(Fault::new(argument, message));
    }
    let compiled = RegexBuilder::new(pattern).size_limit(PROGRAM_MAX).build();
    compiled.map_err(|error| {
        let help = if pattern.contains(r"\p") || pattern.contains(r"\P") {
            Some("classes of Unicode are not there: write the characters, such as [a-zäöü]")
        } else if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| pattern.contains(look)) {
            Some("a pattern cannot look ahead or behind: match more, and take a group of it")
        } else {
            None
        };
        let fault = Fault::new(argument, format!("this pattern is wrong: {error}"));
        match help {
            Some(help) => fault.help(help),
            None => fault,
        }
    })
}

/// Returns the whole match if there are no groups; else the texts of the groups, by name if they have names.
fn matched(pattern: &Regex, found: &Captures<'_>) -> Value {
    let text = |group: usize| match found.get(group) {
        Some(group) => Value::string(group.as_str()),
        None => Value::Null,
    };
    let names = || pattern.capture_names().enumerate().skip(1);
    if pattern.captures_len() == 1 {
        return text(0);
    }
    if names().all(|(_, name)| name.is_none()) {
        return Value::list(names().map(|(group, _)| text(group)).collect());
    }
    let named = names().filter_map(|(group, name)| Some((Name::from(name?), text(group))));
    Value::map(named.collect())
}
