//! The request of a phase: its call with all parts filled in, and the body made from attributes.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::schema::{Presence, Unset};
use engine::stored::to_json;
use engine::value::{Attributes, Value};
use provider_port::Kind;

use crate::bodies::{self, Body, BodyForm};
use crate::calls::{Payload, Prepared, unwritable};
use crate::classify::Failure;
use crate::codec;
use crate::descriptor::model::{
    Argument, AttributeModel, CallModel, Inside, Request, SendsModel, WirePath, takes_sends,
};
use crate::graphql::Selection;
use crate::perform::Act;
use crate::subject::{headers, what};
use crate::template::{PathScope, Unfilled, ValueTemplate};
use crate::wire::{Unwritable, Wire, encode, put};

impl Act<'_> {
    /// Returns the call of the phase, ready to be made.
    pub(crate) fn prepare<'m>(&'m self, model: &'m CallModel) -> Result<Prepared<'m>, Failure> {
        let words = what(model);
        let body = if takes_sends(&model.request) { self.body(model, &words)? } else { None };
        let scope = self.scope();
        let caller = self.subject.caller;
        let naming = caller.api(&model.api).naming;
        let payload = match &model.request {
            Request::Rest { method, path } => Payload::Rest {
                method: *method,
                path: path
                    .fill_each(&PathScope { call: scope, naming: &self.naming }, &scope)
                    .map_err(|reason| self.unfilled(&words, &reason))?,
                body: body.map(|body| self.fitting(model, &body, &words)).transpose()?,
            },
            Request::Graphql { fields, arguments, .. } => Payload::Graphql {
                fields,
                arguments: arguments
                    .iter()
                    .map(|(name, argument)| {
                        let wire = match argument {
                            Argument::Sends => {
                                body.clone().unwrap_or_else(|| Wire::Object(BTreeMap::new()))
                            }
                            Argument::Value(template) => {
                                let value = template.fill(&scope);
                                let value =
                                    value.map_err(|reason| self.unfilled(&words, &reason))?;
                                encode(&value, &engine::types::Type::Any, naming)
                                    .map_err(|reason| unwritable(&words, &reason))?
                            }
                        };
                        Ok((name.clone(), wire))
                    })
                    .collect::<Result<_, Failure>>()?,
                selection: self
                    .phase
                    .item
                    .as_ref()
                    .map(|_| Selection::of(self.subject.model, &model.api, naming)),
            },
        };
        let of_type = headers(&self.subject.model.headers, &scope);
        let of_phase = headers(&self.phase.headers, &scope);
        let mut headers = of_type.map_err(|reason| self.unfilled(&words, &reason))?;
        headers.extend(of_phase.map_err(|reason| self.unfilled(&words, &reason))?);
        let header = self.subject.model.idempotency_header.clone().filter(|_| self.creates());
        Ok(Prepared {
            api: &model.api,
            what: words,
            payload,
            mutation: true,
            names_object: self.call.id.is_some() && matches!(model.request, Request::Rest { .. }),
            headers,
            header: header.zip(self.call.nonce.map(ToString::to_string)),
            masker: self.subject.masker(),
            permit: Some(self.call.permit),
        })
    }

    /// Writes a body; refuses one that is larger than the API is known to accept.
    fn fitting(&self, model: &CallModel, body: &Wire, words: &str) -> Result<Body, Failure> {
        let body = self.phase.body.write(body).map_err(|reason| unwritable(words, &reason))?;
        let most = self.subject.caller.api(&model.api).body_max.unwrap_or(usize::MAX);
        let bytes = body.bytes.len();
        if bytes <= most {
            return Ok(body);
        }
        let sent = self.sends(&model.api, words)?;
        let size = |value: &Value| to_json(value).to_string().len();
        let largest = sent.iter().max_by_key(|(_, value)| size(value));
        let help = largest.map(|(name, _)| format!("make `{name}` shorter: it takes the most"));
        let message =
            format!("{words} would send {bytes} bytes, and this API takes {most} at most");
        let failure = Failure::new(Kind::Rejected, message);
        Err(match help {
            Some(help) => failure.help(help),
            None => failure,
        })
    }

    /// Returns true if the phase sends only changes, and none of them is for its call. This happens if the
    /// spec no longer wants a change that an earlier run began. An API may refuse an empty change.
    pub(crate) fn changes_nothing(&self, model: &CallModel) -> Result<bool, Failure> {
        let is_change = matches!(self.phase.sends, SendsModel::Changed)
            && takes_sends(&model.request)
            && self.call.id.is_some()
            && !self.deletes();
        if !is_change {
            return Ok(false);
        }
        let path = model.names_in_path().into_iter().filter(|name| !self.naming.contains(name));
        let mut in_address = path.chain(model.names_beside_path());
        let attributes = &self.subject.model.attributes;
        // An id and a version identify the object that is changed; they are no change.
        let is_news = |name: &Name| {
            let attribute = attributes.get(name).filter(|_| *name != self.subject.model.key);
            attribute.is_some_and(|it| !it.schema.volatile && it.is_written_to(&model.api))
        };
        let sends = self.sends(&model.api, &what(model))?;
        let is_in_address = in_address.any(|name| self.call.changed.contains(&name));
        let beside = self.phase.sends_beside();
        let is_beside = self.call.changed.iter().any(|name| beside.contains(name));
        Ok(!is_in_address && !is_beside && !sends.keys().any(is_news))
    }

    /// Returns the body of the phase; none if it sends none.
    fn body(&self, model: &CallModel, words: &str) -> Result<Option<Wire>, Failure> {
        if self.phase.body == BodyForm::JsonPatch {
            return self.changes(model, words).map(|changes| Some(Wire::List(changes)));
        }
        let mut body = BTreeMap::new();
        for (name, value) in self.sends(&model.api, words)? {
            self.put_attribute(&mut body, model, words, (&name, &value))?;
        }
        let naming = self.subject.caller.api(&model.api).naming;
        for (path, template) in &self.phase.fields {
            let value = template.fill(&self.scope()).map_err(|e| self.unfilled(words, &e))?;
            let wire = encode(&value, &engine::types::Type::Any, naming);
            put(&mut body, path, wire.map_err(|reason| unwritable(words, &reason))?);
        }
        if body.is_empty() && matches!(self.phase.sends, SendsModel::Nothing) {
            return Ok(None);
        }
        let body = Wire::Object(body);
        Ok(Some(match &self.phase.inside {
            Some(Inside { key, is_list }) => {
                let body = if *is_list { Wire::List(vec![body]) } else { body };
                Wire::Object([(key.clone(), body)].into())
            }
            None => body,
        }))
    }

    /// Returns the body as a list of changes of the object: one for each path that attributes are written to.
    fn changes(&self, model: &CallModel, words: &str) -> Result<Vec<Wire>, Failure> {
        let (mut body, mut paths) = (BTreeMap::new(), Vec::new());
        for (name, value) in self.sends(&model.api, words)? {
            let shape = self.subject.model.attributes.get(&name);
            let shape = shape.and_then(|it| it.wires.get(&model.api));
            let Some(path) = shape.and_then(|shape| shape.write_at.as_ref()) else { continue };
            self.put_attribute(&mut body, model, words, (&name, &value))?;
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let body = Wire::Object(body);
        let changes = paths.into_iter().filter_map(|path| Some((path, at_path(&body, path)?)));
        Ok(changes.map(|(path, value)| bodies::change(path, value)).collect())
    }

    /// Puts an attribute into a body: its own value, or the one that the descriptor composes.
    fn put_attribute(
        &self,
        body: &mut BTreeMap<String, Wire>,
        model: &CallModel,
        words: &str,
        (name, value): (&Name, &Value),
    ) -> Result<(), Failure> {
        let written = match self.composed(&model.api, name) {
            Some((path, template)) => {
                let value = template.fill(&self.scope());
                let value = value.map_err(|reason| self.unfilled(words, &reason))?;
                self.compose(body, &model.api, path, &value)
            }
            None => self.write(body, &model.api, name, value),
        };
        written.map_err(|reason| with_attribute(unwritable(words, &reason), name))
    }

    /// Returns the attributes that are sent, with their values.
    fn sends(&self, api: &Name, words: &str) -> Result<Attributes, Failure> {
        let scope = self.scope();
        let mut sends = Attributes::new();
        match &self.phase.sends {
            SendsModel::Nothing => {}
            SendsModel::All | SendsModel::Changed => {
                let all = matches!(self.phase.sends, SendsModel::All);
                for (name, attribute) in &self.subject.model.attributes {
                    // If an attribute follows one that changes, the API derives it anew, whatever its value
                    // is now.
                    let changed =
                        self.call.changed.contains(name) || self.follows_change(name, api);
                    let given = attribute.schema.presence != Presence::Computed;
                    if self.is_stale(name, api) {
                        continue;
                    }
                    let drawn = self.drawn_id().filter(|_| *name == self.subject.model.key);
                    let drawn = drawn.map(Value::string);
                    let Some(value) = drawn.as_ref().or_else(|| scope.attribute(name)) else {
                        continue;
                    };
                    // A value that the server chooses is not sent.
                    if attribute.schema.server_default && !value.is_known() {
                        continue;
                    }
                    // Null is sent only if it is a change. Otherwise the API has null anyway; a create leaves
                    // it out, unless the API would fill in a value.
                    let filled = attribute.schema.server_default;
                    let is_news = !self.creates() || filled && has_word_for_null(attribute, api);
                    let is_reset = all && attribute.schema.unset == Some(Unset::Absent);
                    let tells = !value.is_null() || (changed && is_news && !is_reset);
                    if given && tells && (all || changed) {
                        sends.insert(name.clone(), value.clone());
                    }
                }
            }
            SendsModel::These(templates) => {
                for (name, template) in templates {
                    let value = template.fill(&scope).map_err(|e| self.unfilled(words, &e))?;
                    if !value.is_null() || self.call.changed.contains(name) && !self.creates() {
                        sends.insert(name.clone(), value);
                    }
                }
            }
        }
        for (name, template) in &self.phase.with {
            let value = template.fill(&scope).map_err(|e| self.unfilled(words, &e))?;
            sends.insert(name.clone(), value);
        }
        Ok(sends)
    }

    /// Returns true if the API chooses the value of an attribute anew, and the spec does not give one: the
    /// attribute follows one that changes, or it is cleared by being left out. Its live value belongs to the
    /// old state.
    fn is_stale(&self, name: &Name, api: &Name) -> bool {
        let is_unset = || {
            let unset = &self.subject.model.attributes[name].schema.unset;
            self.call.changed.contains(name) && *unset == Some(Unset::Absent)
        };
        let is_chosen_anew = self.follows_change(name, api) || is_unset();
        is_chosen_anew && !self.deletes() && !self.call.desired.contains_key(name)
    }

    /// Returns true if an attribute follows one that changes and that this call sends.
    fn follows_change(&self, name: &Name, api: &Name) -> bool {
        let attributes = &self.subject.model.attributes;
        let follows = attributes[name].schema.follows.as_ref();
        let changes = follows.filter(|name| self.call.changed.contains(*name));
        changes
            .and_then(|name| attributes.get(name))
            .is_some_and(|it| !it.is_written_elsewhere(api))
    }

    fn unfilled(&self, words: &str, reason: &Unfilled) -> Failure {
        self.subject.unfilled(words, self.call.id.map(|id| &*id.0), reason)
    }

    /// Returns the place of an attribute and the template of its value, if the descriptor composes the value
    /// from all attributes; else none.
    fn composed(&self, api: &Name, name: &Name) -> Option<(&WirePath, &ValueTemplate)> {
        let shape = self.subject.model.attributes.get(name)?.wires.get(api)?;
        shape.write_at.as_ref().zip(shape.value.as_ref())
    }

    fn compose(
        &self,
        body: &mut BTreeMap<String, Wire>,
        api: &Name,
        path: &WirePath,
        value: &Value,
    ) -> Result<(), Unwritable> {
        if !value.is_null() {
            let naming = self.subject.caller.api(api).naming;
            put(body, path, encode(value, &engine::types::Type::Any, naming)?);
        }
        Ok(())
    }

    fn write(
        &self,
        body: &mut BTreeMap<String, Wire>,
        api: &Name,
        name: &Name,
        value: &Value,
    ) -> Result<(), Unwritable> {
        let Some(attribute) = self.subject.model.attributes.get(name) else { return Ok(()) };
        let Some(shape) = attribute.wires.get(api) else { return Ok(()) };
        let Some(path) = &shape.write_at else { return Ok(()) };
        let naming = self.subject.caller.api(api).naming;
        let live = self.call.live.filter(|_| attribute.merges).and_then(|live| live.get(name));
        let value = live.map_or_else(|| value.clone(), |live| without_the_rest(live, value));
        let wire = encode(&value, &attribute.schema.ty, naming)?;
        put(body, path, codec::write(&shape.write, wire)?);
        Ok(())
    }
}

/// Returns the value to send to an API that merges it (RFC 7396): the wanted value, with null for each key
/// that only the live object has.
fn without_the_rest(live: &Value, wanted: &Value) -> Value {
    let (Value::Map(live), Value::Map(wanted)) = (live, wanted) else { return wanted.clone() };
    let mut sent = Attributes::new();
    for (key, live) in live.iter() {
        sent.insert(
            key.clone(),
            match wanted.get(key) {
                Some(wanted) => without_the_rest(live, wanted),
                None => Value::Null,
            },
        );
    }
    let news = wanted.iter().filter(|(key, _)| !live.contains_key(*key));
    sent.extend(news.map(|(key, wanted)| (key.clone(), wanted.clone())));
    Value::map(sent)
}

/// Returns the value at a path.
fn at_path<'w>(wire: &'w Wire, path: &[String]) -> Option<&'w Wire> {
    let Some((first, rest)) = path.split_first() else { return Some(wire) };
    let Wire::Object(entries) = wire else { return None };
    at_path(entries.get(first)?, rest)
}

/// Returns true if null is written as another value, such as "".
fn has_word_for_null(attribute: &AttributeModel, api: &Name) -> bool {
    let written = attribute.wires.get(api).map(|shape| codec::write(&shape.write, Wire::Null));
    written.is_some_and(|written| written.is_ok_and(|wire| wire != Wire::Null))
}

fn with_attribute(mut failure: Failure, name: &Name) -> Failure {
    failure.error.message = format!("{} (`{name}`)", failure.error.message);
    failure
}
