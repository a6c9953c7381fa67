//! The conversion of answers to objects, with their derived attributes.

use engine::address::Name;
use engine::expression::{Expr, Kind, evaluate};
use engine::state::ObjectId;
use engine::stored::from_json;
use engine::types::Type;
use engine::value::{Attributes, Value};
use provider_port::Object;
use serde_json::Value as Json;

use crate::codec;
use crate::conditions::filled;
use crate::descriptor::model::Api;
use crate::key_parts;
use crate::partial_json;
use crate::subject::Subject;
use crate::template::{ANSWER, CallScope};
use crate::wire::{at, decode, is_cut_short};

impl Subject<'_> {
    /// Reads an object from an answer. The error describes the mistake, without values.
    pub(crate) fn object(
        &self,
        api: &Name,
        json: &Json,
        id: Option<&ObjectId>,
    ) -> Result<Object, String> {
        self.object_below(api, json, id, &Attributes::new())
    }

    /// Reads an object, and adds the attributes that it repeats of its parent.
    pub(crate) fn object_below(
        &self,
        api: &Name,
        json: &Json,
        id: Option<&ObjectId>,
        of_parent: &Attributes,
    ) -> Result<Object, String> {
        if !json.is_object() {
            let reason = partial_json::unreadable(json);
            return Err(reason.unwrap_or("it shows no object where one was expected").to_owned());
        }
        let mut attributes = self.attributes(api, json)?;
        attributes.extend(of_parent.clone());
        match self.shown_id(&attributes).or_else(|| id.cloned()) {
            Some(id) => Ok(Object { id, attributes }),
            None => Err(format!("it shows no `{}`", self.model.key)),
        }
    }

    /// Returns the id that an answer shows: the key attribute, or the attributes that the key is made of.
    fn shown_id(&self, attributes: &Attributes) -> Option<ObjectId> {
        let shown = match self.derived_key() {
            Some(derived) => derive(derived, attributes),
            None => attributes.get(&self.model.key).cloned(),
        };
        shown.as_ref().and_then(id_text).map(ObjectId)
    }

    /// Returns the expression of the key if it is made of several attributes; else none.
    pub(crate) fn derived_key(&self) -> Option<&Expr> {
        self.schema.attributes.get(&self.model.key)?.derived.as_ref()
    }

    /// Returns the attributes that an id is made of. None if the key is one attribute, or if the id can be
    /// split in more than one way.
    pub(crate) fn key_parts(&self, id: &ObjectId) -> Option<Attributes> {
        let parts = key_parts::split(self.derived_key()?, &id.0)?;
        let typed = parts.into_iter().map(|(name, text)| {
            let ty = &self.schema.attributes.get(name)?.ty;
            let value = match ty {
                Type::Integer => Value::Integer(text.parse().ok()?),
                ty => Value::string(text).convert(ty).ok()?,
            };
            Some((name.clone(), value))
        });
        typed.collect()
    }

    /// Returns true if an answer shows no object with an id, for example because it only names an operation.
    pub(crate) fn is_nameless(&self, api: &Name, json: &Json) -> bool {
        if self.derived_key().is_some() && json.is_object() {
            return self.attributes(api, json).is_ok_and(|shown| self.shown_id(&shown).is_none());
        }
        let key = self.model.attributes.get(&self.model.key);
        let path = key.and_then(|key| key.wires.get(api)?.read_at.as_ref());
        let shown = path.and_then(|path| at(json, path)).filter(|id| !id.is_null());
        json.is_null() || json.is_object() && shown.is_none()
    }

    fn attributes(&self, api: &Name, json: &Json) -> Result<Attributes, String> {
        let naming = self.caller.api(api).naming;
        let mut attributes = Attributes::new();
        for (name, model) in &self.model.attributes {
            let Some(shape) = model.wires.get(api) else { continue };
            let Some(path) = &shape.read_at else { continue };
            let Some(part) = at(json, path) else { continue };
            if let Some(reason) = partial_json::unreadable(part) {
                return Err(format!("`{name}`: {reason}"));
            }
            let shown = match &shape.shown {
                // If a part that the expression needs is missing, the answer does not show the attribute.
                Some(shown) => match filled(shown, ANSWER, &from_json(part)) {
                    Some(value) => value,
                    None => continue,
                },
                None => decode(&codec::read(&shape.read, part.clone()), &model.schema.ty, naming),
            };
            let value = shown.convert(&model.schema.ty);
            let value = value.map_err(|misfit| {
                let misfit = misfit.shown(model.schema.sensitive);
                format!("`{name}`: {misfit}")
            })?;
            attributes.insert(name.clone(), value);
        }
        Ok(attributes)
    }

    /// Returns the attributes that do not exist according to an answer, because null stands in place of their
    /// parent. Another answer of the same look may still show them.
    pub(crate) fn absent(&self, api: &Name, json: &Json) -> Attributes {
        let Api { naming, omits_empty, .. } = *self.caller.api(api);
        let attributes = self.model.attributes.iter().filter(|_| !omits_empty);
        let absent = attributes.filter_map(|(name, model)| {
            let shape = model.wires.get(api)?;
            shape.read_at.as_ref().filter(|path| is_cut_short(json, path))?;
            let null = codec::read(&shape.read, Json::Null);
            let value = decode(&null, &model.schema.ty, naming).convert(&model.schema.ty);
            Some((name.clone(), value.ok()?))
        });
        absent.collect()
    }

    /// Returns the id of a created object if the answer shows a part of the key and the call knew the others.
    pub(crate) fn made_id(
        &self,
        api: &Name,
        json: &Json,
        desired: &Attributes,
    ) -> Option<ObjectId> {
        let derived = self.derived_key().filter(|_| json.is_object())?;
        let mut shown = self.attributes(api, json).ok()?;
        shown.retain(|name, _| crate::template::names(derived).contains(name));
        if shown.is_empty() {
            return None;
        }
        join(&mut shown, desired.clone());
        derive(derived, &shown).as_ref().and_then(id_text).map(ObjectId)
    }

    /// Returns true if an id may belong to a key of several attributes: it contains the texts between them.
    pub(crate) fn may_be_key(&self, id: &ObjectId) -> bool {
        let Some(Kind::Template(parts)) = self.derived_key().map(|derived| &derived.kind) else {
            return true;
        };
        parts.iter().all(|part| match &part.kind {
            Kind::Literal(Value::String(text)) => id.0.contains(&**text),
            _ => true,
        })
    }

    /// Returns the object with its key, which an answer to a read need not repeat, and with its derived
    /// attributes, as far as their inputs are known.
    pub(crate) fn derived(&self, id: ObjectId, mut attributes: Attributes) -> Object {
        if self.derived_key().is_none() {
            join(&mut attributes, self.key_of(&id));
        }
        for (name, attribute) in &self.schema.attributes {
            let value = attribute.derived.as_ref().and_then(|derived| derive(derived, &attributes));
            if let Some(value) = value {
                attributes.insert(name.clone(), value);
            }
        }
        Object { id, attributes }
    }

    /// Returns the key attribute with the id as a value of its type.
    fn key_of(&self, id: &ObjectId) -> Attributes {
        let key = &self.model.key;
        let typed = self.schema.attributes.get(key).and_then(|attribute| match &attribute.ty {
            Type::Integer => id.0.parse().ok().map(Value::Integer),
            ty => Value::String(id.0.clone()).convert(ty).ok(),
        });
        typed.map(|value| (key.clone(), value)).into_iter().collect()
    }
}

/// Evaluates a derived attribute; returns none if one of its inputs is missing.
fn derive(derived: &Expr, attributes: &Attributes) -> Option<Value> {
    let is_there = |name: &Name| attributes.get(name).is_some_and(|value| !value.is_null());
    if !crate::template::names(derived).iter().all(is_there) {
        return None;
    }
    let scope = CallScope { desired: Some(attributes), ..CallScope::default() };
    evaluate::evaluate(derived, &scope).ok().map(|datum| datum.value)
}

/// Adds the attributes of `more` that `known` does not have.
pub(crate) fn join(known: &mut Attributes, more: Attributes) {
    for (name, value) in more {
        if !known.contains_key(&name) {
            known.insert(name, value);
        }
    }
}

/// Returns an id as text; some APIs use numbers.
pub(crate) fn id_text(value: &Value) -> Option<Name> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string().into()),
        _ => None,
    }
}
