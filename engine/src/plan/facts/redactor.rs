//! Redaction of objects as they were: values that the state has in clear, or that are live, and that are
//! sensitive by the spec or the schema as they are now.
//!
//! Plans are made with clear values, so that a secret that stays the same is no change. This module seals the
//! values of an object before its change, which a plan shows and keeps, at the sensitive paths of the planned
//! object. A path through a list is valid only if the list stays the same: an item has another index as soon
//! as one before it comes or goes. In a list that changes, the whole list is sealed. A value that the state
//! has sealed stays sealed, whatever the spec says now.

use std::sync::Arc;

use crate::address::Name;
use crate::digest::{Fingerprint, SealKey};
use crate::plan::decide::diff::agree;
use crate::plan::draft::Draft;
use crate::plan::evaluate::desired::Wanted;
use crate::plan::evaluate::scope::object;
use crate::plan::input::PlanInput;
use crate::plan::{Change, Drift};
use crate::secret_words::is_secret_entry;
use crate::stored::{KnownSecrets, SecretScanner, seal};
use crate::value::{Attributes, Datum, Path, Paths, Segment, Value};

/// Seals the secrets of objects as they were.
pub(in crate::plan) struct Redactor<'a> {
    key: &'a SealKey,
    /// The secrets of the variables: each is sealed in every place.
    known: KnownSecrets,
}

/// A planned object, which says which places of the prior object are sensitive.
pub(in crate::plan) struct Planned<'n> {
    pub(in crate::plan) wanted: &'n Wanted,
    /// The planned object, in clear as far as its values are known.
    pub(in crate::plan) attributes: &'n Attributes,
    pub(in crate::plan) draft: &'n Draft,
}

impl Planned<'_> {
    /// Returns the value of an attribute whose sensitive places are known.
    fn value(&self, name: &Name) -> Option<&Value> {
        self.wanted.attributes.get(name).or_else(|| self.attributes.get(name))
    }

    /// Returns true if the spec gives an attribute in clear, with the value that it had. An ignored
    /// attribute, and an object that is left alone, do not follow the spec.
    fn shows(&self, name: &Name, was: &Value) -> bool {
        let Draft { change, deferral, .. } = self.draft;
        let is_given = self.wanted.attributes.contains_key(name) && !change.ignored.contains(name);
        let shown = change.after.as_ref().and_then(|after| after.get(name));
        is_given && deferral.is_none() && shown == Some(was)
    }
}

impl<'a> Redactor<'a> {
    /// Returns a redactor that knows the secrets of the spec's variables.
    pub(in crate::plan) fn new(input: &PlanInput<'a>) -> Self {
        let variables = input.config.variables.values().map(|variable| &variable.value);
        Self { key: &input.snapshot.seal_key, known: KnownSecrets::of(variables) }
    }

    /// Seals the secrets of an object that is planned; returns the same object if it has none.
    pub(in crate::plan) fn redact(
        &self,
        was: &Arc<Attributes>,
        planned: &Planned<'_>,
    ) -> Arc<Attributes> {
        let sensitive = &planned.draft.change.sensitive;
        let named = named_secrets(was, planned);
        let mut all = sensitive.clone();
        all.extend_below(&Path::root(), &named);
        self.each(was, &all, &|name, value, places| {
            let is_same = planned.value(name).is_some_and(|is| agree(is, value, self.key));
            let sealed = if is_same {
                seal(value, places, self.key)
            } else {
                seal(value, &places.around_lists(value), self.key)
            };
            if planned.shows(name, value) { sealed } else { self.scan(&sealed, value) }
        })
    }

    /// Seals the secrets of an object that goes, or that stays without a decision.
    pub(in crate::plan) fn redact_at(
        &self,
        was: &Arc<Attributes>,
        sensitive: &Paths,
    ) -> Arc<Attributes> {
        self.each(was, sensitive, &|_, value, places| {
            self.scan(&seal(value, &places.around_lists(value), self.key), value)
        })
    }

    /// Seals the secrets of an object that changed outside Plumb.
    pub(in crate::plan) fn redact_drift(&self, drift: &mut Drift, planned: &Planned<'_>) {
        let Drift { before, after, wanted, .. } = drift;
        for object in [Some(before), after.as_mut(), Some(wanted)].into_iter().flatten() {
            let was = Arc::new(std::mem::take(object));
            *object = Arc::unwrap_or_clone(self.redact(&was, planned));
        }
    }

    /// Seals a value that belongs to no object, such as that of an output.
    pub(in crate::plan) fn redact_value(&self, was: &Value, is_sensitive: bool) -> Value {
        let paths = if is_sensitive { Paths::whole() } else { Paths::none() };
        self.scan(&seal(was, &paths, self.key), was)
    }

    fn each(
        &self,
        was: &Arc<Attributes>,
        sensitive: &Paths,
        redact: &dyn Fn(&Name, &Value, &Paths) -> Value,
    ) -> Arc<Attributes> {
        let mut redacted = was.clone();
        if sensitive.is_empty() && self.known.is_empty() {
            return redacted;
        }
        for (name, value) in was.iter() {
            let places = sensitive.inside(&Segment::Key(name.clone()));
            let sealed = redact(name, value, &places);
            if sealed != *value {
                Arc::make_mut(&mut redacted).insert(name.clone(), sealed);
            }
        }
        redacted
    }

    fn scan(&self, sealed: &Value, clear: &Value) -> Value {
        if self.known.is_empty() {
            return sealed.clone();
        }
        SecretScanner::new(self.key, &self.known).seal_part_of(sealed, clear)
    }
}

/// Returns the entries of maps that the spec does not have, and that count as secrets by their names or texts,
/// such as an entry `DB_PASSWORD` that somebody added outside.
fn named_secrets(was: &Attributes, planned: &Planned<'_>) -> Paths {
    let mut places = Paths::none();
    for (name, value) in was {
        let Value::Map(entries) = value else { continue };
        let wanted = planned.value(name);
        let has = |key| matches!(wanted, Some(Value::Map(wanted)) if wanted.contains_key(key));
        let secrets = entries.iter().filter(|(key, entry)| is_secret_entry(key, entry));
        for (key, _) in secrets.filter(|(key, _)| !has(*key)) {
            places.insert(Path::attribute(name.clone()).join(Segment::Key(key.clone())));
        }
    }
    places
}

/// Returns an attribute of a draft that becomes a secret and gets another secret at the same time: the old
/// secret is not known in other places. None if there is no such attribute.
pub(in crate::plan) fn changed_secret<'d>(draft: &'d Draft, key: &SealKey) -> Option<&'d Name> {
    let (was, redacted) = (draft.change.before.as_ref()?, draft.redacted.as_ref()?);
    let after = draft.change.after.as_ref().filter(|_| !Arc::ptr_eq(was, redacted))?;
    draft.changed.iter().find(|name| {
        let (Some(old), Some(new)) = (was.get(*name), after.get(*name)) else { return false };
        redacted.get(*name) != Some(old) && has_new_secret(new, old, key)
    })
}

/// Returns true if a value has more secrets than are known of the old value, and one of them is not in the
/// old value.
fn has_new_secret(new: &Value, old: &Value, key: &SealKey) -> bool {
    let count = |value: &Value| {
        let mut count = 0;
        value.each_part(&mut |part| count += usize::from(matches!(part, Value::Sealed(_))));
        count
    };
    let mut is_new = false;
    new.each_part(&mut |part| {
        if let Value::Sealed(sealed) = part {
            let mut is_old = false;
            old.each_part(&mut |part| is_old |= is(part, &sealed.fingerprint, key));
            is_new |= !is_old;
        }
    });
    is_new && count(new) > count(old)
}

fn is(part: &Value, fingerprint: &Fingerprint, key: &SealKey) -> bool {
    match part {
        Value::Sealed(sealed) => sealed.fingerprint == *fingerprint,
        part => Fingerprint::of(part, key) == *fingerprint,
    }
}

/// Returns the current object as rules see it: in clear, and sensitive in each place that is redacted.
pub(in crate::plan) fn in_clear(
    change: &Change,
    was: &Arc<Attributes>,
    redacted: Option<&Attributes>,
) -> Datum {
    let mut sensitive = change.sensitive.clone();
    let is_redacted =
        |name: &&Name| redacted.is_some_and(|redacted| redacted.get(*name) != was.get(*name));
    for name in was.keys().filter(is_redacted) {
        sensitive.insert(Path::attribute(name.clone()));
    }
    object(was.clone(), sensitive)
}

/// Replaces the clear object by the redacted one, once all is decided: calls are chosen, and put in order, by
/// clear values.
pub(in crate::plan) fn hide(draft: &mut Draft) {
    let Draft { change: Change { before, after, .. }, redacted, deferral, .. } = draft;
    let (Some(redacted), Some(was)) = (redacted.take(), before.take()) else { return };
    if let Some(after) = after {
        // An attribute that stays as it is looks the same before and after.
        let stays = |name: &Name| deferral.is_some() || after.get(name) == was.get(name);
        let is_other = |name: &Name, value: &Value| after.get(name) != Some(value);
        let others = redacted.iter().filter(|(name, value)| stays(name) && is_other(name, value));
        let others: Vec<_> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !others.is_empty() {
            Arc::make_mut(after).extend(others);
        }
    }
    *before = Some(redacted);
}
