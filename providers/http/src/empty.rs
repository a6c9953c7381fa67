//! The meaning of attributes that an API leaves out of its answers because they are empty.
//!
//! An answer may show only a part of an object, so a missing attribute means nothing unless the descriptor
//! says that the API omits empty ones. Even then it counts only in a look at the object. The answer to a
//! change may show no more than an id: in it, a missing attribute is empty only if the call sent it empty.

use engine::address::Name;
use engine::schema::SeenIn;
use engine::stored::from_json;
use engine::types::Type;
use engine::value::{Attributes, Value};
use serde_json::Value as Json;

use crate::codec::{self, Codec};
use crate::descriptor::model::{AttributeModel, WirePath};
use crate::objects::join;
use crate::subject::Subject;

/// An attribute that an API may leave out.
pub(crate) struct Empty<'a> {
    pub(crate) name: &'a Name,
    path: &'a WirePath,
    /// The value of the attribute if it is left out.
    pub(crate) value: Value,
}

impl<'a> Subject<'a> {
    /// Lists the attributes that an API may leave out of answers that show those `seen_in` them.
    pub(crate) fn empties(&self, api: &Name, seen_in: &[SeenIn]) -> Vec<Empty<'a>> {
        if !self.caller.api(api).omits_empty {
            return Vec::new();
        }
        let model = self.model;
        let attributes = model.attributes.iter();
        attributes
            .filter(|(name, it)| **name != model.key && seen_in.contains(&it.schema.seen_in))
            .filter_map(|(name, attribute)| Empty::of(name, attribute, api))
            .collect()
    }
}

impl<'a> Empty<'a> {
    /// Returns true if an answer leaves the attribute out.
    pub(crate) fn is_left_out_of(&self, answer: &Json) -> bool {
        is_left_out(answer, self.path)
    }

    fn of(name: &'a Name, attribute: &'a AttributeModel, api: &Name) -> Option<Self> {
        let shape = attribute.wires.get(api)?;
        let path = shape.read_at.as_ref().filter(|_| shape.shown.is_none())?;
        // Many APIs show a secret once and never again, so a missing secret is not an empty one.
        if attribute.schema.sensitive {
            return None;
        }
        let value = left_out(&attribute.schema.ty, &shape.read)?;
        Some(Self { name, path, value })
    }
}

/// The attributes that the answers of one look at an object show.
#[derive(Default)]
pub(crate) struct Look {
    attributes: Attributes,
    /// The attributes that some of the answers left out.
    empty: Attributes,
    /// The attributes that do not exist according to some of the answers.
    absent: Attributes,
    /// The number of answers, from the first on without a gap, that showed the object.
    answers: usize,
}

impl Look {
    /// Adds the attributes that an answer shows; the first answer of the look has number 0. If two answers
    /// show an attribute, the first one counts.
    pub(crate) fn add(
        &mut self,
        number: usize,
        attributes: Attributes,
        (empties, json): (&[Empty<'_>], &Json),
    ) {
        if number == self.answers {
            self.answers += 1;
        }
        join(&mut self.attributes, attributes);
        for empty in empties.iter().filter(|empty| is_left_out(json, empty.path)) {
            if !self.empty.contains_key(empty.name) {
                self.empty.insert(empty.name.clone(), empty.value.clone());
            }
        }
    }

    /// Returns the attributes that the answers show so far.
    pub(crate) fn shown(&self) -> &Attributes {
        &self.attributes
    }

    /// Adds the attributes that do not exist according to an answer. If another answer shows such an
    /// attribute, that counts.
    pub(crate) fn lack(&mut self, absent: Attributes) {
        join(&mut self.absent, absent);
    }

    /// Adds attributes that are known from elsewhere.
    pub(crate) fn know(&mut self, attributes: Attributes) {
        join(&mut self.attributes, attributes);
    }

    /// Returns all attributes that are known of the object. An attribute that was left out is empty if all
    /// `answers` showed the object: an answer that did not show it may be out of date, and the attribute may
    /// be in it.
    pub(crate) fn attributes(mut self, answers: usize) -> Attributes {
        join(&mut self.attributes, self.absent);
        if self.answers == answers {
            join(&mut self.attributes, self.empty);
        }
        self.attributes
    }
}

/// Returns true if a JSON value has nothing at a path, and no other value on the way to it.
fn is_left_out(json: &Json, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    match json.get(first) {
        None => json.is_object(),
        Some(Json::Null) => !rest.is_empty(),
        Some(inner) => is_left_out(inner, rest),
    }
}

/// Returns the value of an attribute that an answer leaves out.
fn left_out(ty: &Type, codecs: &[Codec]) -> Option<Value> {
    let empty = match ty {
        Type::Boolean => false.into(),
        Type::Integer | Type::Number => 0.into(),
        Type::String => "".into(),
        Type::List(_) | Type::Set(_) => Json::Array(Vec::new()),
        Type::Map(_) => Json::Object(serde_json::Map::new()),
        // There is no empty value of this type.
        _ => return Some(Value::Null),
    };
    from_json(&undone(codecs, empty)).convert(ty).ok()
}

/// Returns the value that reading an empty value on the wire gives. `empty` is the empty value of the
/// attribute's type. A codec that cannot read the empty value of the wire, such as JSON in an empty text,
/// gives `empty`.
fn undone(codecs: &[Codec], empty: Json) -> Json {
    let Some((first, rest)) = codecs.split_first() else { return empty };
    if let Codec::Split { read, .. } = first {
        return undone(&[read, rest].concat(), empty);
    }
    let inner = codec::read(std::slice::from_ref(first), undone(rest, written(first, &empty)));
    let is_alike = std::mem::discriminant(&inner) == std::mem::discriminant(&empty);
    if inner.is_null() || is_alike { inner } else { empty }
}

/// Returns an empty value in the form that a codec writes.
fn written(codec: &Codec, empty: &Json) -> Json {
    match codec {
        Codec::Join(_) | Codec::JsonText | Codec::NumberText => "".into(),
        Codec::Unjoin(_) | Codec::Pairs(..) => Json::Array(Vec::new()),
        Codec::Values(pairs) => {
            let like = pairs.iter().map(|(wire, _)| wire).find(|wire| !wire.is_null());
            like.map_or_else(|| empty.clone(), empty_like)
        }
        _ => empty.clone(),
    }
}

fn empty_like(json: &Json) -> Json {
    match json {
        Json::Null => Json::Null,
        Json::Bool(_) => false.into(),
        Json::Number(_) => 0.into(),
        Json::String(_) => "".into(),
        Json::Array(_) => Json::Array(Vec::new()),
        Json::Object(_) => Json::Object(serde_json::Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(ty: &str, codecs: &[Codec]) -> String {
        format!("{:?}", left_out(&ty.parse().unwrap(), codecs).unwrap())
    }

    #[test]
    fn each_type_has_its_empty_value() {
        for (ty, value) in [
            ("boolean", "false"),
            ("integer", "0"),
            ("number", "0"),
            ("string", "\"\""),
            ("list(string)", "[]"),
            ("set(object{a = string})", "{}"),
            ("map(integer)", "{}"),
            ("any", "null"),
            ("object{a = string}", "null"),
        ] {
            assert_eq!(of(ty, &[]), value, "{ty}");
        }
    }

    #[test]
    fn what_is_empty_on_the_wire_is_read_like_anything_else() {
        let pairs = || Codec::Pairs("key".into(), "value".into());
        let null = || Codec::NullIs(json!(""));
        let values = |pairs: &[(Json, Json)]| Codec::Values(pairs.to_vec());
        for (ty, codecs, value) in [
            ("list(string)", vec![Codec::Join(",".into())], "[]"),
            ("list(string)", vec![Codec::Join(",".into()), null()], "null"),
            ("string", vec![Codec::Unjoin(",".into())], "\"\""),
            ("string", vec![null(), Codec::Unjoin(",".into())], "null"),
            ("map(string)", vec![pairs()], "{}"),
            ("map(string)", vec![pairs(), Codec::ReadsAsNull(json!([]))], "null"),
            ("map(string)", vec![pairs(), Codec::JsonText], "{}"),
            ("map(string)", vec![Codec::IgnoreKeys(vec!["A".into()])], "{}"),
            ("any", vec![Codec::JsonText], "null"),
            ("boolean", vec![Codec::JsonText], "false"),
            ("integer", vec![Codec::NumberText], "0"),
            ("integer", vec![Codec::NumberText, null()], "null"),
            ("integer", vec![Codec::ReadsAsNull(json!(0))], "null"),
            ("integer", vec![Codec::NullIs(json!(-1))], "0"),
            ("string", vec![Codec::Enum], "\"\""),
            ("string", vec![null()], "null"),
            ("string", vec![Codec::Suffixes(vec!["-x".into()])], "\"\""),
            ("list(string)", vec![Codec::Wrap("id".into())], "[]"),
            ("list(string)", vec![Codec::Split { write: vec![], read: vec![null()] }], "[]"),
            ("string", vec![Codec::Split { write: vec![], read: vec![null()] }], "null"),
            ("boolean", vec![values(&[(json!("ON"), json!(true))])], "false"),
            ("boolean", vec![values(&[(json!(0), json!(true)), (json!(1), json!(false))])], "true"),
            (
                "string",
                vec![values(&[(json!(0), json!("off")), (json!(1), json!("on"))])],
                "\"off\"",
            ),
            ("string", vec![values(&[(json!("-"), json!(null))])], "\"\""),
        ] {
            assert_eq!(of(ty, &codecs), value, "{ty} {codecs:?}");
        }
    }

    /// A parent may be left out because all in it is empty. What cannot be read is not empty.
    #[test]
    fn a_path_may_end_early() {
        let path = ["spec".to_owned(), "limits".to_owned(), "cpu".to_owned()];
        for json in [
            json!({}),
            json!({"spec": {}}),
            json!({"spec": null}),
            json!({"spec": {"limits": {"memory": 1}}}),
        ] {
            assert!(is_left_out(&json, &path), "{json}");
        }
        for json in [
            json!({"spec": {"limits": {"cpu": null}}}),
            json!({"spec": {"limits": {"cpu": 0}}}),
            json!({"spec": "\0plumb: no text"}),
            json!([]),
        ] {
            assert!(!is_left_out(&json, &path), "{json}");
        }
    }
}
