//! What has become a secret since it was written down: plain in the state, or live, and sensitive by the spec
//! or the schema as they are now.
//!
//! Plans are made with it in clear, so that a secret that stays the same is no change. What a plan shows and
//! keeps of an object as it was is sealed here by what is secret now. What the state has sealed stays so,
//! whatever the spec says by now: there is nothing to open.

use std::sync::Arc;

use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::digest::SealKey;
use crate::plan::decide::diff::agree;
use crate::plan::draft::Draft;
use crate::plan::evaluate::scope::object;
use crate::plan::input::PlanInput;
use crate::plan::{Change, Drift, diagnostics};
use crate::sorted::Set;
use crate::stored::{KnownSecrets, SecretScanner, seal};
use crate::value::{Attributes, Datum, Path, Paths, Segment, Value};

/// Seals what has become a secret.
pub(in crate::plan) struct Turned<'a> {
    key: &'a SealKey,
    /// What the variables give: it is secret wherever it stands.
    known: KnownSecrets,
}

/// What is secret of one object now.
pub(in crate::plan) struct Now<'n> {
    /// What the spec gives, in clear or sealed.
    pub(in crate::plan) wanted: &'n Attributes,
    /// The object as it is to be, for what follows from something secret without being given; none where it goes.
    pub(in crate::plan) planned: Option<&'n Attributes>,
    /// The sensitive places of those two.
    pub(in crate::plan) sensitive: &'n Paths,
    /// What a plan shows of it: what the spec says there in clear is no secret.
    pub(in crate::plan) shown: Option<&'n Attributes>,
    /// What is as it was whatever the spec says there.
    pub(in crate::plan) ignored: Option<&'n Set<Name>>,
}

impl<'a> Turned<'a> {
    /// With the secrets that a spec knows.
    pub(in crate::plan) fn new(input: &PlanInput<'a>) -> Self {
        let variables = input.config.variables.values().map(|variable| &variable.value);
        Self { key: &input.snapshot.seal_key, known: KnownSecrets::of(variables) }
    }

    /// An object as it was, without what has become a secret; the same one where nothing has.
    pub(in crate::plan) fn seal(&self, was: &Arc<Attributes>, now: &Now<'_>) -> Arc<Attributes> {
        let mut sealed = was.clone();
        if now.sensitive.is_empty() && self.known.is_empty() {
            return sealed;
        }
        for (name, value) in was.iter() {
            let hidden = self.attribute(name, value, now);
            if hidden != *value {
                Arc::make_mut(&mut sealed).insert(name.clone(), hidden);
            }
        }
        sealed
    }

    /// The same of an object that changed outside, and of what to write to keep it so.
    pub(in crate::plan) fn seal_drift(&self, drift: &mut Drift, now: &Now<'_>) {
        drift.before = Attributes::clone(&self.seal(&Arc::new(drift.before.clone()), now));
        let after = drift.after.take();
        drift.after = after.map(|after| Attributes::clone(&self.seal(&Arc::new(after), now)));
    }

    /// A value that stands nowhere in an object, such as that of an output.
    pub(in crate::plan) fn seal_value(&self, was: &Value, sensitive: bool) -> Value {
        let paths = if sensitive { Paths::whole() } else { Paths::none() };
        SecretScanner::new(self.key, &self.known).seal_part_of(&seal(was, &paths, self.key), was)
    }

    fn attribute(&self, name: &Name, was: &Value, now: &Now<'_>) -> Value {
        let places = now.sensitive.inside(&Segment::Key(name.clone()));
        let of_planned = || now.planned.and_then(|planned| planned.get(name));
        let is = now.wanted.get(name).or_else(of_planned);
        let sealed = match is {
            Some(is) => self.like((was, is), &places),
            // Nothing says what is to be there, so the places are those of what was.
            None => seal(was, &places, self.key),
        };
        let is_ignored = now.ignored.is_some_and(|ignored| ignored.contains(name));
        let shown = now.shown.filter(|_| now.wanted.contains_key(name) && !is_ignored);
        if self.known.is_empty() || shown.and_then(|shown| shown.get(name)) == Some(was) {
            return sealed;
        }
        SecretScanner::new(self.key, &self.known).seal_part_of(&sealed, was)
    }

    /// A value with that sealed which is secret in the one that is to be there: at the same place, where both
    /// have one.
    fn like(&self, (was, is): (&Value, &Value), places: &Paths) -> Value {
        if places.is_empty() {
            return was.clone();
        }
        match (was, is) {
            _ if places.covers(&Path::root()) => seal(was, places, self.key),
            (Value::Map(was), Value::Map(is)) => {
                let entry = |(name, item): (&Name, &Value)| {
                    let places = places.inside(&Segment::Key(name.clone()));
                    let is = is.get(name).unwrap_or(&Value::Null);
                    (name.clone(), self.like((item, is), &places))
                };
                Value::map(was.iter().map(entry).collect())
            }
            (Value::List(was), Value::List(is)) => self.list_like((was, is), places),
            // A set, or something of another shape: nobody can say which part of it was the secret.
            _ => seal(was, &Paths::whole(), self.key),
        }
    }

    /// Items stand elsewhere as soon as another comes or goes. Those that are the same at both ends belong
    /// together. Where there are more secrets between them than were known, any item there may have been one.
    fn list_like(&self, (was, is): (&[Value], &[Value]), places: &Paths) -> Value {
        let same = |(was, is): &(&Value, &Value)| agree(is, was, self.key);
        let first = was.iter().zip(is).take_while(same).count();
        let ends = was[first..].iter().rev().zip(is[first..].iter().rev());
        let last = ends.take_while(same).count();
        let (was_end, is_end) = (was.len() - last, is.len() - last);
        let inside = |at: usize| places.inside(&Segment::Index(at));
        let secret = (first..is_end).filter(|at| !inside(*at).is_empty()).count();
        let known = was[first..was_end].iter().filter(|item| item.holds_sealed()).count();
        let item = |(at, item): (usize, &Value)| match at {
            at if at >= was_end => {
                let at = at - was_end + is_end;
                self.like((item, &is[at]), &inside(at))
            }
            at if at >= first && secret > known => seal(item, &Paths::whole(), self.key),
            at if at < first || was_end == is_end => self.like((item, &is[at]), &inside(at)),
            _ => item.clone(),
        };
        Value::list(was.iter().enumerate().map(item).collect())
    }
}

/// Warns of what becomes a secret and changes at once: nothing tells the old value where it stands elsewhere.
pub(in crate::plan) fn warn(drafts: &[Draft], key: &SealKey, found: &mut Diagnostics) {
    let changed = drafts.iter().find_map(|draft| {
        let Draft { change, turned, changed, .. } = draft;
        let (was, sealed) = (change.before.as_ref()?, turned.as_ref()?);
        let after = change.after.as_ref().filter(|_| !Arc::ptr_eq(was, sealed))?;
        let is_other = |name: &&Name| {
            let of = |object: &Attributes| object.get(*name).cloned().unwrap_or(Value::Null);
            is_another((&of(was), &of(sealed)), &of(after), key)
        };
        Some((change.span, change.address.clone(), changed.iter().find(is_other)?.clone()))
    });
    if let Some((span, address, name)) = changed {
        found.push(diagnostics::turned_and_changed(span, &address, &name));
    }
}

/// Whether a part of a value that is hidden only now is another one afterwards.
fn is_another((was, sealed): (&Value, &Value), after: &Value, key: &SealKey) -> bool {
    match (was, sealed, after) {
        (Value::Sealed(_), ..) => false,
        (was, Value::Sealed(_), after) => !agree(was, after, key),
        (Value::Map(was), Value::Map(sealed), Value::Map(after)) => {
            was.iter().any(|(name, was)| {
                let pair = sealed.get(name).zip(after.get(name));
                pair.is_some_and(|(sealed, after)| is_another((was, sealed), after, key))
            })
        }
        (Value::List(was), Value::List(sealed), Value::List(after)) => {
            let parts = was.iter().zip(sealed.iter()).zip(after.iter());
            parts.into_iter().any(|(pair, after)| is_another(pair, after, key))
        }
        _ => false,
    }
}

/// The object that is there as rules see it: they hold or not by what stands in it, and say nothing of what is
/// secret.
pub(in crate::plan) fn in_clear(
    change: &Change,
    was: &Arc<Attributes>,
    sealed: Option<&Attributes>,
) -> Datum {
    let mut sensitive = change.sensitive.clone();
    let is_sealed = |name: &&Name| sealed.is_some_and(|sealed| sealed.get(*name) != was.get(*name));
    for name in was.keys().filter(is_sealed) {
        sensitive.insert(Path::attribute(name.clone()));
    }
    object(was.clone(), sensitive)
}

/// Lets a draft be without what has become a secret, once nothing is decided any more: calls are chosen, and
/// put in order, by what stands there in clear.
pub(in crate::plan) fn hide(draft: &mut Draft) {
    let Draft { change: Change { before, after, .. }, turned, held, .. } = draft;
    let (Some(sealed), Some(was)) = (turned.take(), before.take()) else { return };
    if let Some(after) = after {
        // What stays as it is shows the same, and what is held back stays so whatever the spec says.
        let stays = |name: &Name| held.is_some() || after.get(name) == was.get(name);
        let is_other = |name: &Name, value: &Value| after.get(name) != Some(value);
        let others = sealed.iter().filter(|(name, value)| stays(name) && is_other(name, value));
        let others: Vec<_> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !others.is_empty() {
            Arc::make_mut(after).extend(others);
        }
    }
    *before = Some(sealed);
}
