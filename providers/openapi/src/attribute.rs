//! Attributes of a type, from the properties in bodies and answers.

use serde_json::Value as Json;

use crate::marks::{FILLED, NO_UPDATE, ORDER};
use crate::names::{is_hidden, one_line};
use crate::shape::{Kind, Property, Shape, Shapes};
use crate::types::{Naming, Types};

/// The most values that a list of allowed values has.
const VALUES_MAX: usize = 200;
/// The words of names that hold secrets.
const SECRETS: [&str; 6] = ["password", "passwd", "secret", "token", "private_key", "api_key"];
/// The words in names of values that change by themselves.
const VOLATILE: [&str; 14] = [
    "status",
    "state",
    "health",
    "updated_at",
    "modified_at",
    "pushed_at",
    "last_used",
    "last_seen",
    "updated",
    "modified",
    "usage",
    "progress",
    "etag",
    "version_number",
];

/// An attribute.
#[derive(Clone, Debug)]
pub(crate) struct AttributeDraft {
    pub(crate) name: String,
    /// The type as a descriptor writes it.
    pub(crate) ty: String,
    pub(crate) presence: Presence,
    /// True if a change of the attribute replaces the object.
    pub(crate) replaces: bool,
    /// Further keys of the descriptor, with their values as TOML.
    pub(crate) keys: Vec<(&'static str, String)>,
    /// The facts about the attribute that are still to be proved.
    pub(crate) proofs: Vec<&'static str>,
}

/// An attribute for a parameter.
#[derive(Clone)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) ty: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Presence {
    Required,
    Optional,
    Computed,
}

/// The properties with one name, in all calls of a type.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sources<'s, 'a> {
    pub(crate) create: Option<&'s Property<'a>>,
    pub(crate) update: Option<&'s Property<'a>>,
    pub(crate) listed: Option<&'s Property<'a>>,
    pub(crate) read: Option<&'s Property<'a>>,
}

/// The facts about the type of an attribute.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'s, 'a> {
    pub(crate) shapes: &'s Shapes<'a>,
    pub(crate) naming: Naming,
    pub(crate) has_update: bool,
    /// True if the attribute is a part of a path.
    pub(crate) is_key: bool,
}

/// Returns the attribute for some properties, or the reason that there is none.
pub(crate) fn attribute<'a>(
    name: String,
    wire: &str,
    sources: Sources<'_, 'a>,
    around: Surroundings<'_, 'a>,
) -> Result<AttributeDraft, &'static str> {
    let shape = |property: Option<&Property<'a>>| property.map(|it| around.shapes.of_property(it));
    let taken = |property| shape(property).filter(|shape| !shape.access.is_read_only).zip(property);
    let shown =
        |property| shape(property).filter(|shape| !shape.access.is_write_only).zip(property);
    let (create, update) = (taken(sources.create), taken(sources.update));
    let (listed, read) = (shown(sources.listed), shown(sources.read));
    let answer = listed.as_ref().or(read.as_ref());
    let Some((main, property)) = create.as_ref().or(answer) else {
        return Err(if update.is_some() {
            "only an update takes it, and no answer shows it"
        } else {
            "no call takes it, and no answer shows it"
        });
    };
    let types = Types { shapes: around.shapes, naming: around.naming, is_given: create.is_some() };
    let ty = types.of(property);
    let mut draft = AttributeDraft {
        name,
        presence: match &create {
            None => Presence::Computed,
            Some(_) if sources.create.is_some_and(|it| it.is_required) => Presence::Required,
            Some(_) => Presence::Optional,
        },
        replaces: false,
        keys: Vec::new(),
        proofs: Vec::new(),
        ty,
    };
    let answered = Types { is_given: false, ..types };
    let is_alike = answer.is_none_or(|(_, answer)| is_alike(&draft.ty, &answered.of(answer)));
    let is_shown = answer.is_some() && is_alike;
    if create.is_some() {
        given(&mut draft, main, (update.is_some(), is_shown), around);
    } else if is_volatile(&draft.name, main) {
        draft.add("volatile", "true");
    }
    match (is_shown, listed.is_some()) {
        (false, _) if !around.is_key => draft.add("seen_in", "\"never\""),
        (true, false) if !around.is_key => draft.add("seen_in", "\"read\""),
        _ => {}
    }
    if create.is_some() && is_shown && draft.ty.contains("? = ") {
        draft.proofs.push("whether fields are filled in");
    }
    if !is_alike {
        draft.proofs.push("answers show it in another form");
    }
    if create.is_none() && update.is_some() {
        draft.proofs.push("an update takes it, a create does not");
    }
    wire_key(&mut draft, wire, around.naming);
    if let Some(words) = main.description.map(one_line).filter(|words| !words.is_empty()) {
        draft.add("description", &quoted(&words));
    }
    Ok(draft)
}

/// Adds the keys for an attribute that a spec gives.
fn given<'a>(
    draft: &mut AttributeDraft,
    shape: &Shape<'a>,
    (is_updated, is_shown): (bool, bool),
    around: Surroundings<'_, 'a>,
) {
    let values = allowed(shape, around.shapes);
    if draft.presence == Presence::Optional {
        match default(shape, values.as_deref()).filter(|_| is_shown) {
            Some(default) => draft.add("default", &default),
            None if is_shown => {
                draft.add("server_default", "true");
                draft.proofs.push(FILLED);
            }
            None => {}
        }
    }
    if !around.is_key && is_secret(&draft.name, shape) {
        draft.add("sensitive", "true");
    }
    if around.is_key || !is_updated {
        draft.replaces = true;
        draft.add("on_change", "\"replace\"");
        if around.has_update && !around.is_key {
            draft.proofs.push(NO_UPDATE);
        }
    }
    if is_shown && draft.ty.starts_with("list(") {
        draft.proofs.push(ORDER);
    }
    bounds(draft, shape);
    if let Some(values) = values {
        let texts: Vec<String> = values.iter().map(|text| quoted(text)).collect();
        draft.add("one_of", &format!("[{}]", texts.join(", ")));
    }
}

impl AttributeDraft {
    pub(crate) fn add(&mut self, key: &'static str, value: &str) {
        self.keys.push((key, value.to_owned()));
    }

    /// Makes the attribute a key that a spec must give.
    pub(crate) fn require(&mut self) {
        self.presence = Presence::Required;
        self.keys.retain(|(key, _)| !matches!(*key, "default" | "server_default"));
        self.proofs.retain(|proof| *proof != FILLED);
    }
}

/// Adds the wire name if it does not follow from the attribute's name.
fn wire_key(draft: &mut AttributeDraft, wire: &str, naming: Naming) {
    if naming.wire(&draft.name) != wire {
        draft.add("wire", &quoted(wire));
    }
}

fn bounds(draft: &mut AttributeDraft, shape: &Shape<'_>) {
    let kind = shape.kind();
    let is_integer = kind == Kind::Integer;
    if matches!(kind, Kind::Integer | Kind::Number) {
        for (key, bound) in [("min", shape.bounds.min), ("max", shape.bounds.max)] {
            let bound = bound.filter(|it| it.abs() < 1e15 && (!is_integer || it.fract() == 0.0));
            if let Some(bound) = bound {
                draft.add(key, &bound.to_string());
            }
        }
    }
    if matches!(kind, Kind::Text | Kind::List) {
        let lengths =
            [("length_min", shape.bounds.length_min), ("length_max", shape.bounds.length_max)];
        for (key, bound) in lengths {
            if let Some(bound) = bound.filter(|bound| *bound < 1_000_000_000) {
                draft.add(key, &bound.to_string());
            }
        }
    }
}

/// Returns the allowed texts of a text, or of the items of a list of texts.
fn allowed<'a>(shape: &Shape<'a>, shapes: &Shapes<'a>) -> Option<Vec<String>> {
    let values = match shape.kind() {
        Kind::Text => shape.values.clone()?,
        Kind::List => {
            let item = shapes.of(shape.items?);
            if item.kind() != Kind::Text {
                return None;
            }
            item.values.clone()?
        }
        _ => return None,
    };
    let texts = values.iter().filter(|value| !value.is_null());
    let texts: Vec<String> =
        texts.map(|it| it.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let is_fine = !texts.is_empty()
        && texts.len() <= VALUES_MAX
        && !texts.iter().any(|text| text.starts_with('@'));
    is_fine.then_some(texts)
}

/// Returns the default as TOML, if it is a plain value that the attribute can have.
fn default(shape: &Shape<'_>, allowed: Option<&[String]>) -> Option<String> {
    let default = shape.default?;
    match (shape.kind(), default) {
        (Kind::Text, Json::String(text)) => {
            let length = text.chars().count() as u64;
            let fits = shape.bounds.length_min.is_none_or(|min| length >= min)
                && shape.bounds.length_max.is_none_or(|max| length <= max)
                && allowed.is_none_or(|values| values.contains(text));
            fits.then(|| quoted(text))
        }
        (Kind::Boolean, Json::Bool(value)) => Some(value.to_string()),
        (Kind::Integer | Kind::Number, Json::Number(number)) => {
            let value = number.as_f64()?;
            let fits = shape.bounds.min.is_none_or(|min| value >= min)
                && shape.bounds.max.is_none_or(|max| value <= max)
                && (shape.kind() == Kind::Number || number.is_i64());
            fits.then(|| number.to_string())
        }
        (Kind::List, Json::Array(items)) if items.is_empty() => {
            shape.bounds.length_min.is_none().then(|| "[]".to_owned())
        }
        _ => None,
    }
}

fn is_secret(name: &str, shape: &Shape<'_>) -> bool {
    let has_word = SECRETS.iter().any(|word| name == *word || name.ends_with(&format!("_{word}")));
    let is_hidden = shape.format == Some("password") || shape.access.is_write_only;
    shape.kind() == Kind::Text && (is_hidden || has_word)
}

fn is_volatile(name: &str, shape: &Shape<'_>) -> bool {
    let is_time = shape.format == Some("date-time") && !name.contains("creat");
    let is_count = name.ends_with("_count") && shape.kind() == Kind::Integer;
    is_time
        || is_count
        || VOLATILE.iter().any(|word| name == *word || name.ends_with(&format!("_{word}")))
}

/// Returns true if a value of one type may be one of another, by the first words of the types.
fn is_alike(given: &str, shown: &str) -> bool {
    let word = |ty: &str| ty.split(['(', '{', ')']).next().unwrap_or_default().to_owned();
    let (one, other) = (word(given), word(shown));
    let inner = |ty: &str| ty.split_once('(').map(|(_, inner)| inner.to_owned());
    match (one.as_str(), other.as_str()) {
        ("any", _) | (_, "any") | ("integer" | "number", "integer" | "number") => true,
        ("list" | "set", "list" | "set") | ("map", "map") => {
            inner(given).zip(inner(shown)).is_none_or(|(one, other)| is_alike(&one, &other))
        }
        _ => one == other,
    }
}

/// Returns a text as TOML, without characters that control a terminal or are invisible.
pub(crate) fn quoted(text: &str) -> String {
    // Every JSON string is a TOML string.
    let letters = Json::from(text).to_string();
    let shown = letters.chars().map(|letter| match u32::from(letter) {
        _ if !is_hidden(letter) => letter.to_string(),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_are_alike() {
        for (one, other, alike) in [
            ("string", "string", true),
            ("string", "integer", false),
            ("integer", "number", true),
            ("list(string)", "set(string)", true),
            ("list(integer)", "list(object{id? = integer})", false),
            ("list(any)", "list(string)", true),
            ("object{a = string}", "object{b? = string}", true),
            ("object{a = string}", "string", false),
        ] {
            assert_eq!(is_alike(one, other), alike, "{one} {other}");
        }
    }
}
