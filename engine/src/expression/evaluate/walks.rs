//! `for` expressions: unrolled over a known collection, kept as they are over an unknown one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::access::{entry_of, item_at};
use super::{Eval, Evaluator, Part, SECRET_WORD, Source, Stop, stop, word};
use crate::address::Name;
use crate::expression::parse::OFFERED;
use crate::expression::typing::item_of;
use crate::expression::visit::roots;
use crate::expression::{Expr, For, Kind, Range, Root};
use crate::types::Type;
use crate::value::{Attributes, Path, Paths, Value};

/// The collections that can be walked over, for messages.
const WALKED: &str = "`for` walks over lists, sets, maps and objects";

/// The result of a walk for one item that is kept.
struct Kept {
    key: Option<Part>,
    value: Part,
}

/// The result of a walk.
#[derive(Default)]
struct Walked {
    kept: Vec<Kept>,
    /// True if a condition or a key is not known: the number of items is not known then either.
    undecided: bool,
    /// True if a condition or a key is secret: the selection of items reveals something about it.
    secret: bool,
}

impl Evaluator<'_> {
    pub(super) fn walk(&mut self, walk: &For, range: Range) -> Eval {
        let collection = self.eval(&walk.collection)?;
        let hidden = self.looks_at_items(&collection);
        let items = match &collection.value {
            Value::Unknown(_) | Value::Sealed(_) => {
                refuse_scalar(&collection.value.type_of(), self.word(&collection), walk)?;
                let residual = self.kept_as_is(walk, &collection, range)?;
                return Ok(Part::unknown(walk_type(walk), residual.0, residual.1));
            }
            value if hidden => entries(value, &collection, walk).map_err(not_walked(walk))?,
            value => entries(value, &collection, walk)?,
        };
        let found = self.walk_items(walk, items)?;
        if found.undecided {
            let residual = self.kept_as_is(walk, &collection, range)?;
            return Ok(Part::unknown(walk_type(walk), residual.0, residual.1));
        }
        // A collection that is secret as a whole shows in the selection of items.
        let whole = found.secret || hidden;
        let kept = found.kept;
        let mut part = match &walk.key {
            None => self.list_of(kept.into_iter().map(|kept| kept.value).collect(), range),
            Some(key) => self.map_of(kept, key.range, walk.grouped, range)?,
        };
        if whole {
            part.sensitive = Paths::whole();
            part.source = match self.kept_as_is(walk, &collection, range) {
                Ok((residual, _)) => Source::built(residual),
                Err(_) => Source::Barred,
            };
        }
        Ok(part)
    }

    /// Computes keys and values of the items whose condition holds.
    fn walk_items(&mut self, walk: &For, items: Vec<(Part, Part)>) -> Result<Walked, Stop> {
        let mut found = Walked::default();
        for (key, value) in items {
            self.budget.step(walk.collection.range)?;
            self.with_bound(walk, key, value, |evaluator| evaluator.item(walk, &mut found))?;
        }
        self.budget.items(found.kept.len(), walk.collection.range)?;
        Ok(found)
    }

    /// Computes one item. If it is not known that the item stays, the rest of the walk is still computed, so
    /// that mistakes in it are found in any case.
    fn item(&mut self, walk: &For, found: &mut Walked) -> Result<(), Stop> {
        if let Some(condition) = &walk.condition {
            let part = self.eval(condition)?;
            self.expect(&part, &Type::Boolean, condition.range)?;
            found.secret |= self.looks_into(&part);
            match part.value {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(()),
                _ => {
                    found.undecided = true;
                    return Ok(());
                }
            }
        }
        let key = walk.key.as_ref().map(|key| self.eval(key)).transpose()?;
        if let (Some(part), Some(key)) = (&key, &walk.key) {
            found.secret |= self.looks_into(part);
            if self.key_text(part, key.range)?.is_none() {
                found.undecided = true;
                return Ok(());
            }
        }
        let value = self.eval(&walk.value)?;
        found.kept.push(Kept { key, value });
        Ok(())
    }

    fn map_of(&mut self, kept: Vec<Kept>, place: Range, grouped: bool, range: Range) -> Eval {
        let mut groups: BTreeMap<Name, Vec<Part>> = BTreeMap::new();
        for item in kept {
            let Some(name) = item.key.map(|key| self.key_text(&key, place)).transpose()?.flatten()
            else {
                continue;
            };
            match groups.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(vec![item.value]);
                }
                Entry::Occupied(mut entry) if grouped => entry.get_mut().push(item.value),
                Entry::Occupied(_) => {
                    let help = "make the keys distinct, or collect the values with `...`";
                    return Err(stop(place, "two items have the same key", Some(help)));
                }
            }
        }
        let mut names = Vec::with_capacity(groups.len());
        let mut parts = Vec::with_capacity(groups.len());
        for (name, mut group) in groups {
            names.push(name);
            let alone = if grouped { None } else { group.pop() };
            parts.push(alone.unwrap_or_else(|| self.list_of(group, range)));
        }
        let keys = names.clone();
        let source = self.source_if(&parts, range, |exprs| {
            let keys = keys.into_iter().map(|key| Expr::literal(Value::String(key)));
            Kind::Map(keys.zip(exprs).collect())
        });
        let (mut map, mut sensitive) = (Attributes::new(), Paths::none());
        for (name, part) in names.into_iter().zip(parts) {
            if !part.sensitive.is_empty() {
                sensitive.extend_below(&Path::attribute(name.clone()), &part.sensitive);
            }
            map.insert(name, part.value);
        }
        Ok(Part { value: Value::map(map), sensitive, source })
    }

    fn with_bound<T>(
        &mut self,
        walk: &For,
        key: Part,
        value: Part,
        inner: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let outside = self.bound.len();
        if let Some(name) = &walk.key_variable {
            self.bound.push((name.clone(), key));
        }
        self.bound.push((walk.value_variable.clone(), value));
        let result = inner(self);
        self.bound.truncate(outside);
        result
    }

    /// Returns the walk as a residual, and true if something in it is secret. Its variables get names that
    /// have no other meaning in it.
    fn kept_as_is(
        &mut self,
        walk: &For,
        collection: &Part,
        range: Range,
    ) -> Result<(Expr, bool), Stop> {
        let item = match &collection.value {
            Value::Map(_) => Type::Any,
            value => item_of(&value.type_of()),
        };
        let collected = self.reify(collection, range)?;
        let mut attempt = 0;
        loop {
            let value_name = self.fresh(&walk.value_variable, attempt, &[]);
            let taken = [value_name.clone()];
            let key_name = walk.key_variable.as_ref().map(|name| self.fresh(name, attempt, &taken));
            let outside = self.residual_names.len();
            self.residual_names.push(value_name.clone());
            self.residual_names.extend(key_name.iter().cloned());
            let variable = |name: &Name, ty: Type| {
                let root = Expr::nowhere(Kind::Root(Root::Named(name.clone())));
                Part::unknown(ty, root, false)
            };
            let key = variable(key_name.as_ref().unwrap_or(&value_name), Type::Any);
            let value = variable(&value_name, item.clone());
            let body = self.with_bound(walk, key, value, |evaluator| evaluator.body(walk));
            self.residual_names.truncate(outside);
            let (key, value, condition, secret) = body?;
            let names: Vec<&Name> = key_name.iter().chain([&value_name]).collect();
            let parts = key.iter().chain([&value]).chain(&condition);
            if parts.into_iter().any(|part| captured(part, &names)) {
                attempt += 1;
                continue;
            }
            let kind = Kind::For(Box::new(For {
                key_variable: key_name,
                value_variable: value_name,
                collection: collected,
                key,
                value,
                condition,
                grouped: walk.grouped,
            }));
            return Ok((Expr { kind, range }, secret || self.secret(collection)));
        }
    }

    fn body(&mut self, walk: &For) -> Result<(Option<Expr>, Expr, Option<Expr>, bool), Stop> {
        let mut secret = false;
        let mut fold = |evaluator: &mut Self, expr: &Expr| {
            let part = evaluator.eval(expr)?;
            secret |= evaluator.secret(&part);
            evaluator.reify(&part, expr.range)
        };
        let key = walk.key.as_ref().map(|key| fold(self, key)).transpose()?;
        let value = fold(self, &walk.value)?;
        let condition =
            walk.condition.as_ref().map(|condition| fold(self, condition)).transpose()?;
        Ok((key, value, condition, secret))
    }

    /// Returns a name for a variable in a residual that no enclosing walk uses.
    fn fresh(&self, name: &Name, attempt: usize, taken: &[Name]) -> Name {
        let mut number = attempt;
        loop {
            let candidate: Name =
                if number == 0 { name.clone() } else { format!("{name}_{number}").into() };
            let free = !self.residual_names.contains(&candidate)
                && !taken.contains(&candidate)
                && !OFFERED.contains(&&*candidate);
            if free {
                return candidate;
            }
            number += 1;
        }
    }
}

/// Returns true if a resource in a residual would be read as one of the variables.
pub(super) fn captured(expr: &Expr, names: &[&Name]) -> bool {
    let mut found = false;
    roots(expr, &mut |root, _| {
        if let Root::Resource(block) = root {
            found |= names.contains(&&block.ty);
        }
    });
    found
}

/// Returns the items of a walk, each with its key or index.
fn entries(value: &Value, part: &Part, walk: &For) -> Result<Vec<(Part, Part)>, Stop> {
    let place = walk.collection.range;
    let index = |at: usize| Part::plain(Value::Integer(i64::try_from(at).unwrap_or(i64::MAX)));
    match value {
        Value::List(items) => Ok(items
            .iter()
            .enumerate()
            .map(|(at, item)| (index(at), item_at(part, at, item, place)))
            .collect()),
        // As in HCL, the key of a set's item is the item.
        Value::Set(items) => {
            let item = |item: &Value| Part::plain(item.clone());
            Ok(items.iter().map(|value| (item(value), item(value))).collect())
        }
        Value::Map(map) => Ok(map
            .iter()
            .map(|(name, item)| {
                let key = Part::plain(Value::String(name.clone()));
                (key, entry_of(part, name, item, place))
            })
            .collect()),
        Value::Null => {
            let help = "use coalesce(…, []) where null is possible";
            Err(stop(place, "null cannot be walked over", Some(help)))
        }
        other => Err(stop(place, format!("{} cannot be walked over", word(other)), Some(WALKED))),
    }
}

/// Returns the error of a walk over a secret, which does not reveal its type.
fn not_walked(walk: &For) -> impl Fn(Stop) -> Stop {
    let place = walk.collection.range;
    move |stop| {
        let message = format!("{SECRET_WORD} cannot be walked over");
        stop.over_a_secret(place, message, Some(WALKED))
    }
}

fn refuse_scalar(ty: &Type, word: &str, walk: &For) -> Result<(), Stop> {
    if matches!(ty, Type::Boolean | Type::Integer | Type::Number | Type::String) {
        let message = format!("{word} cannot be walked over");
        return Err(stop(walk.collection.range, message, Some(WALKED)));
    }
    Ok(())
}

fn walk_type(walk: &For) -> Type {
    match (&walk.key, walk.grouped) {
        (None, _) => Type::list(Type::Any),
        (Some(_), false) => Type::map(Type::Any),
        (Some(_), true) => Type::map(Type::list(Type::Any)),
    }
}
