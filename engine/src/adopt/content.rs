//! The attributes of one object as its block says them.

use std::collections::BTreeMap;

use super::model::{AdoptedVariable, Content, Found, Place, Surroundings, Text};
use super::names::Names;
use super::notes;
use super::references::{self, Links};
use crate::address::{Address, Block, Name};
use crate::config::written;
use crate::constraint::violations;
use crate::schema::{Attribute, Presence, TypeSchema};
use crate::secret_words::{holds_secret, is_secret_entry};
use crate::state::ObjectId;
use crate::value::Value;

/// Writes what the block of an object says: what the spec may give, and what is not as it would be without.
pub(super) fn content(
    surroundings: &Surroundings<'_>,
    found: &Found,
    block: Block,
    (links, names): (&Links, &mut Names),
) -> Content {
    let mut content = Content {
        place: found.place(),
        block,
        provider: surroundings.is_shared(&found.ty).then(|| found.provider.clone()),
        name: None,
        attributes: BTreeMap::new(),
        required: Vec::new(),
        ignore_changes: Vec::new(),
        allow_unknown: Vec::new(),
        variables: Vec::new(),
        notes: Vec::new(),
    };
    let Some(schema) = surroundings.schema(found) else { return content };
    if let Some(attribute) = &schema.name_attribute
        && let Some(Value::String(name)) = found.attributes.get(attribute)
    {
        content.name = Some((attribute.clone(), name.clone()));
    }
    let mut writer = Writer { surroundings, found, schema, links, names, content };
    for (name, attribute) in &schema.attributes {
        if attribute.presence != Presence::Computed {
            writer.attribute(name, attribute);
        }
    }
    writer.content
}

struct Writer<'a, 'n> {
    surroundings: &'a Surroundings<'a>,
    found: &'a Found,
    schema: &'a TypeSchema,
    links: &'a Links,
    names: &'n mut Names,
    content: Content,
}

impl Writer<'_, '_> {
    /// The address of the block of its own.
    fn address(&self) -> Address {
        self.content.block.instance(None)
    }

    fn attribute(&mut self, name: &Name, attribute: &Attribute) {
        let is_required = attribute.presence == Presence::Required;
        if is_required {
            self.content.required.push(name.clone());
        }
        let live = self.found.attributes.get(name).filter(|value| !value.is_null());
        let Some(live) = live else {
            if is_required {
                self.unreadable(name, attribute);
            } else if attribute.default.is_some() {
                // Without a word of the spec, the default would be wanted.
                self.content.ignore_changes.push(name.clone());
            }
            return;
        };
        if !is_required && self.is_implied(attribute, live) {
            return;
        }
        // Of a map, only the secret entries are variables.
        let is_secret = !matches!(live, Value::Map(_)) && holds_secret(live);
        if attribute.sensitive || is_secret {
            let reference = self.variable(&[name], (Some(live), true), attribute.ty.to_string());
            self.content.attributes.insert(name.clone(), Text::Plain(reference));
            return;
        }
        self.check_list(name, attribute, live);
        if let Some(text) = self.text(name, attribute, live) {
            self.content.attributes.insert(name.clone(), text);
        } else {
            let note = notes::unwritable(&self.address(), name);
            self.content.notes.push(note);
        }
    }

    /// Returns true if the object has the value without a word of the spec.
    fn is_implied(&self, attribute: &Attribute, live: &Value) -> bool {
        let is_empty = match live {
            Value::String(text) => text.is_empty(),
            Value::List(items) | Value::Set(items) => items.is_empty(),
            Value::Map(entries) => entries.is_empty(),
            _ => false,
        };
        let leads = |name: &Name| {
            self.found.attributes.get(name).is_some_and(|value| !value.is_null())
                && self
                    .schema
                    .attributes
                    .get(name)
                    .is_some_and(|it| it.presence != Presence::Computed)
        };
        attribute.volatile
            || attribute.default.as_ref().is_some_and(|default| default.same(live))
            || match &attribute.server_value {
                Some(value) => value.same(live),
                None => attribute.server_default && is_empty,
            }
            || attribute.follows.as_ref().is_some_and(leads)
    }

    /// Notes a value outside its list: the API may know more than the schema.
    fn check_list(&mut self, name: &Name, attribute: &Attribute, live: &Value) {
        let broken = violations(name, None, &attribute.constraint, live);
        if broken.iter().any(|violation| violation.outside_list) {
            self.content.allow_unknown.push(name.clone());
        }
    }

    /// A value that nothing shows comes from a variable; the object keeps its own.
    fn unreadable(&mut self, name: &Name, attribute: &Attribute) {
        let reference =
            self.variable(&[name], (None, attribute.sensitive), attribute.ty.to_string());
        self.content.attributes.insert(name.clone(), Text::Plain(reference));
        self.content.ignore_changes.push(name.clone());
        let variable = self.content.variables.last().map(|variable| variable.name.clone());
        let note = notes::unreadable(&self.address(), name, &variable.unwrap_or_default());
        self.content.notes.push(note);
    }

    /// Declares a variable for a part of the object; returns the reference to it.
    fn variable(
        &mut self,
        parts: &[&str],
        (value, sensitive): (Option<&Value>, bool),
        ty: String,
    ) -> String {
        let block = &self.content.block;
        let words: Vec<&str> =
            [&*block.ty, &*block.name].into_iter().chain(parts.iter().copied()).collect();
        let name = self.names.variable(&words);
        let reference = written::expression(&format!("var.{name}"));
        let (value, address, attribute) = (value.cloned(), self.address(), parts.join("."));
        self.content.variables.push(AdoptedVariable {
            name,
            value,
            sensitive,
            ty,
            address,
            attribute,
        });
        reference
    }

    /// A value as TOML; none where no literal says it.
    fn text(&mut self, name: &Name, attribute: &Attribute, live: &Value) -> Option<Text> {
        let target = references::target(self.surroundings, &self.found.provider, (name, attribute));
        let target = target.cloned();
        let part = |value: &Value| {
            let reference = target.as_ref().zip(value.as_str()).and_then(|(ty, id)| {
                let id = ObjectId(id.into());
                let place = Place { provider: self.found.provider.clone(), ty: ty.clone(), id };
                self.links.reference(&place).filter(|_| place != self.content.place)
            });
            reference.or_else(|| written::value(value))
        };
        match live {
            Value::List(items) | Value::Set(items) => {
                Some(Text::Items(items.iter().map(part).collect::<Option<_>>()?))
            }
            Value::Map(entries) => {
                let mut texts = Vec::new();
                for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
                    let text = if is_secret_entry(key, value) {
                        let ty = if value.as_str().is_some() { "string" } else { "any" };
                        self.variable(&[name, key], (Some(value), true), ty.to_owned())
                    } else {
                        written::value(value)?
                    };
                    texts.push((key.clone(), text));
                }
                Some(Text::Entries(texts))
            }
            other => part(other).map(Text::Plain),
        }
    }
}
