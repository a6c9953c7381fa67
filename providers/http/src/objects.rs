//! Answers turned into objects, with the attributes that follow from others.

use engine::address::Name;
use engine::expression::evaluate;
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_port::Object;
use serde_json::Value as Json;

use crate::codec;
use crate::descriptor::model::Naming;
use crate::lenient;
use crate::reading::Subject;
use crate::template::CallScope;
use crate::wire::{at, decode};

impl Subject<'_> {
    /// Reads an object out of an answer. The error says what does not fit, without values.
    pub(crate) fn object(
        &self,
        api: &Name,
        json: &Json,
        id: Option<&ObjectId>,
    ) -> Result<Object, String> {
        if !json.is_object() {
            let reason = lenient::trouble(json);
            return Err(reason.unwrap_or("it shows no object where one was expected").to_owned());
        }
        let attributes = self.attributes(api, json)?;
        let shown = attributes.get(&self.model.key).and_then(id_text).map(ObjectId);
        match shown.or_else(|| id.cloned()) {
            Some(id) => Ok(Object { id, attributes }),
            None => Err(format!("it shows no `{}`", self.model.key)),
        }
    }

    /// Whether an answer shows nothing that has an id, as one that only names an operation.
    pub(crate) fn is_nameless(&self, api: &Name, json: &Json) -> bool {
        let key = self.model.attributes.get(&self.model.key);
        let path = key.and_then(|key| key.wires.get(api)?.read_at.as_ref());
        let shown = path.and_then(|path| at(json, path)).filter(|id| !id.is_null());
        json.is_null() || json.is_object() && shown.is_none()
    }

    fn attributes(&self, api: &Name, json: &Json) -> Result<Attributes, String> {
        let naming: Naming = self.caller.api(api).naming;
        let mut attributes = Attributes::new();
        for (name, model) in &self.model.attributes {
            let Some(shape) = model.wires.get(api) else { continue };
            let Some(path) = &shape.read_at else { continue };
            let Some(part) = at(json, path) else { continue };
            if let Some(reason) = lenient::trouble(part) {
                return Err(format!("`{name}`: {reason}"));
            }
            let part = codec::read(&shape.read, part.clone());
            let value = decode(&part, &model.schema.ty, naming).convert(&model.schema.ty);
            let value = value.map_err(|misfit| format!("`{name}`: {misfit}"))?;
            attributes.insert(name.clone(), value);
        }
        Ok(attributes)
    }

    /// The object with its derived attributes, as far as what they derive from is there.
    pub(crate) fn derived(&self, id: ObjectId, mut attributes: Attributes) -> Object {
        for (name, attribute) in &self.schema.attributes {
            let Some(derived) = &attribute.derived else { continue };
            let there = crate::template::names(derived)
                .iter()
                .all(|name| attributes.get(name).is_some_and(|value| !value.is_null()));
            let scope = CallScope { desired: Some(&attributes), ..CallScope::default() };
            if let (true, Ok(datum)) = (there, evaluate::evaluate(derived, &scope)) {
                attributes.insert(name.clone(), datum.value);
            }
        }
        Object { id, attributes }
    }
}

/// Adds what is not known yet.
pub(crate) fn join(known: &mut Attributes, more: Attributes) {
    for (name, value) in more {
        if !known.contains_key(&name) {
            known.insert(name, value);
        }
    }
}

/// An id as text; APIs use numbers too.
pub(crate) fn id_text(value: &Value) -> Option<Name> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string().into()),
        _ => None,
    }
}
