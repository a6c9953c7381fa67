//! References: attributes, indexes and splats.
//!
//! A chain of accesses is walked from its root, without recursion. One instance of a resource is asked for by
//! its key, so that no map of all instances is made for it.

use super::below::Below;
use super::operators::chosen;
use super::part::{index_of, is_secret};
use super::{Eval, Evaluator, Part, Source, Stop, stop, word};
use crate::address::{Block, Name};
use crate::diagnostics::nearest;
use crate::expression::typing::{self, attribute_of, item_of};
use crate::expression::{Access, Expr, Kind, Range, Root};
use crate::types::Type;
use crate::value::{Attributes, Paths, Segment, Value};

/// The message in place of details about a secret.
const UNSAID: &str = "what there is instead is not said, because it tells of a secret";

/// One step of a chain.
enum Step<'e> {
    Attribute(&'e Name),
    Index(&'e Expr),
}

impl Evaluator<'_> {
    pub(super) fn chain(&mut self, expr: &Expr) -> Eval {
        let (mut steps, mut base) = (Vec::new(), expr);
        loop {
            match &base.kind {
                Kind::Attribute(inner, name) => {
                    steps.push((base.range, Step::Attribute(name)));
                    base = inner;
                }
                Kind::Index(inner, index) => {
                    steps.push((base.range, Step::Index(index)));
                    base = inner;
                }
                _ => break,
            }
        }
        self.budget.steps(steps.len(), expr.range)?;
        let mut steps = steps.into_iter().rev().peekable();
        let mut part = match (&base.kind, steps.peek()) {
            (Kind::Root(root @ Root::Resource(_)), Some((range, Step::Index(index)))) => {
                let (range, index) = (*range, *index);
                steps.next();
                self.instance(root, base, index, range)?
            }
            _ => self.eval(base)?,
        };
        let mut object = is_object(base);
        for (range, step) in steps {
            part = match step {
                Step::Attribute(name) => self.attribute(&part, name, range, object)?,
                Step::Index(index) => self.index(&part, index, range)?,
            };
            object = false;
        }
        Ok(part)
    }

    /// Returns one instance of a resource.
    fn instance(&mut self, root: &Root, base: &Expr, index: &Expr, range: Range) -> Eval {
        let Root::Resource(block) = root else { return self.eval(base) };
        let key = self.eval(index)?;
        self.looks_into(&key);
        let reference =
            |key: Expr| Expr { kind: Kind::Index(Box::new(base.clone()), Box::new(key)), range };
        let text = match &key.value {
            Value::String(text) => text.clone(),
            Value::Unknown(_) | Value::Sealed(_) => {
                self.scope.touch_all(block);
                let residual = reference(self.reify(&key, index.range)?);
                return Ok(Part::unknown(Type::Any, residual, self.secret(&key)));
            }
            _ if self.secret(&key) => return Err(no_such_key(block, range)),
            other => {
                let help = format!("write the instance's key as text: {block}[\"key\"]");
                let message = format!("an instance's key is text, and this is {}", word(other));
                return Err(stop(index.range, message, Some(&help)));
            }
        };
        let is_secret = self.secret(&key);
        let datum = self.scope.resource(block, Some(&text)).map_err(|message| {
            // The message names the key.
            if is_secret { no_such_key(block, range) } else { stop(range, message, None) }
        })?;
        if is_secret {
            let key = self.reify(&key, index.range)?;
            let source = Source::built(reference(key));
            return Ok(chosen(datum.value, source));
        }
        Ok(Part::referred(datum, || reference(Expr::literal(key.value))))
    }

    /// Computes `part.name`. If `object` is true (a resource, or `old` and `new` of a rule), a missing
    /// attribute is null: the type checker has proven that the type has it.
    pub(super) fn attribute(
        &mut self,
        part: &Part,
        name: &Name,
        range: Range,
        object: bool,
    ) -> Eval {
        let found = self.attribute_of(part, name, range, object);
        if !is_secret(part) || is_open(part) {
            return found;
        }
        found.map_err(|stop| {
            let message = format!("there is no `{name}` in this secret");
            stop.over_a_secret(range, message, Some(UNSAID))
        })
    }

    fn attribute_of(&mut self, part: &Part, name: &Name, range: Range, object: bool) -> Eval {
        let step = Below::Name(self.scope, name);
        self.looks_at(part);
        let entries = match &part.value {
            Value::Map(entries) => entries,
            Value::Unknown(_) | Value::Sealed(_) => {
                let ty = attribute_of(&part.value.type_of(), name);
                return self.deferred(part, ty, Some(Segment::Key(name.clone())), range, step);
            }
            Value::Null => return Err(null_base(name, range)),
            other => {
                let message = format!("{} has no attributes, so no `{name}`", word(other));
                return Err(stop(range, message, None));
            }
        };
        match entries.get(name) {
            Some(value) => {
                let segment = Segment::Key(name.clone());
                Ok(picked(part, value, &part.sensitive.inside(&segment), range, step))
            }
            None if object => Ok(Part::plain(Value::Null)),
            None => {
                Err(missing(name, entries, self.secret(part), typing::end_of(range, name.len())))
            }
        }
    }

    pub(super) fn index(&mut self, part: &Part, index: &Expr, range: Range) -> Eval {
        let key = self.eval(index)?;
        self.index_by(part, &key, index.range, range)
    }

    fn index_by(&mut self, part: &Part, key: &Part, place: Range, range: Range) -> Eval {
        self.looks_at(part);
        self.looks_into(key);
        let known = !matches!(part.value, Value::Unknown(_) | Value::Sealed(_));
        if known && !matches!(key.value, Value::Unknown(_) | Value::Sealed(_)) {
            let secret = self.hides_items(part) || self.secret(key);
            let found = self.index_known(part, key, place, range);
            return found.map_err(|stop| if secret { none_here(stop, range) } else { stop });
        }
        let ty = match &part.value {
            Value::Map(_) => Type::Any,
            other => item_of(&other.type_of()),
        };
        let segment = segment_of(&key.value);
        if segment.is_some() && !self.secret(key) {
            return self.deferred(part, ty, segment, range, Below::Index(&key.value));
        }
        let secret = self.secret(part) || self.secret(key);
        let base = Box::new(self.reify(part, range)?);
        let key = Box::new(self.reify(key, place)?);
        Ok(Part::unknown(ty, Expr { kind: Kind::Index(base, key), range }, secret))
    }

    fn index_known(&mut self, part: &Part, key: &Part, place: Range, range: Range) -> Eval {
        let found = match (&part.value, &key.value) {
            (Value::List(items), Value::Integer(_) | Value::Float(_)) => key
                .value
                .as_integer()
                .and_then(|at| usize::try_from(at).ok())
                .and_then(|at| Some((items.get(at)?, Segment::Index(at))))
                .ok_or_else(|| {
                    let message = format!("the list has {} items, and none here", items.len());
                    stop(place, message, Some("the first item has the index 0"))
                })?,
            (Value::Map(entries), Value::String(name)) => entries
                .get(name)
                .map(|value| (value, Segment::Key(name.clone())))
                .ok_or_else(|| {
                    let help = "use lookup(map, key, default) where a key may be missing";
                    stop(place, "there is no entry with this key", Some(help))
                })?,
            (Value::Null, _) => {
                let help = "test it first: `x == null ? … : x[…]`, or use try(x[…], …)";
                return Err(stop(range, "null has no items", Some(help)));
            }
            (Value::Set(_), _) => {
                let help = "make it a list first: tolist(…)[0]";
                return Err(stop(range, "a set has no order, so no index", Some(help)));
            }
            (base, key) => {
                let message = format!("{} cannot be an index of {}", word(key), word(base));
                return Err(stop(place, message, None));
            }
        };
        let (value, segment) = found;
        if self.secret(key) {
            let source = match (self.reify(part, range), self.reify(key, place)) {
                (Ok(base), Ok(key)) => {
                    let kind = Kind::Index(Box::new(base), Box::new(key));
                    Source::built(Expr { kind, range })
                }
                _ => Source::Barred,
            };
            return Ok(chosen(value.clone(), source));
        }
        let inside = part.sensitive.inside(&segment);
        Ok(picked(part, value, &inside, range, Below::Index(&key.value)))
    }

    /// Returns the result of a step into an unknown or sealed value.
    fn deferred(
        &mut self,
        part: &Part,
        ty: Type,
        segment: Option<Segment>,
        range: Range,
        step: Below<'_>,
    ) -> Eval {
        let sealed = matches!(part.value, Value::Sealed(_));
        let secret =
            sealed || segment.is_some_and(|segment| !part.sensitive.inside(&segment).is_empty());
        let base = self.reify(part, range)?;
        Ok(Part::unknown(ty, Expr { kind: step.kind(Box::new(base)), range }, secret))
    }

    pub(super) fn splat(&mut self, base: &Expr, rest: &[Access], range: Range) -> Eval {
        let part = self.eval(base)?;
        self.looks_at_items(&part);
        let items = match &part.value {
            Value::Null => Vec::new(),
            Value::Unknown(_) | Value::Sealed(_) => {
                return self.splat_unknown(&part, rest, range);
            }
            Value::List(items) => {
                items.iter().enumerate().map(|(at, item)| item_at(&part, at, item, range)).collect()
            }
            Value::Set(items) => items.iter().map(|item| Part::plain(item.clone())).collect(),
            _ => vec![part.clone()],
        };
        let mut list = self.splat_items(items, rest, range, is_object(base))?;
        // The number of items is as secret as the collection.
        if self.hides_items(&part) {
            list.sensitive = Paths::whole();
            list.source = self.splat_source(&part, rest, range);
        }
        Ok(list)
    }

    fn splat_items(
        &mut self,
        items: Vec<Part>,
        rest: &[Access],
        range: Range,
        object: bool,
    ) -> Eval {
        self.budget.items(items.len(), range)?;
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            let mut part = item;
            let mut first = object;
            for access in rest {
                self.budget.step(range)?;
                part = match access {
                    Access::Attribute(name) => self.attribute(&part, name, range, first)?,
                    Access::Index(index) => self.index(&part, index, range)?,
                };
                first = false;
            }
            parts.push(part);
        }
        Ok(self.list_of(parts, range))
    }

    fn splat_unknown(&mut self, part: &Part, rest: &[Access], range: Range) -> Eval {
        let item = rest.iter().fold(item_of(&part.value.type_of()), |ty, access| match access {
            Access::Attribute(name) => attribute_of(&ty, name),
            Access::Index(_) => item_of(&ty),
        });
        let base = Box::new(self.reify(part, range)?);
        let (rest, secret) = self.fold_rest(rest)?;
        let residual = Expr { kind: Kind::Splat(base, rest), range };
        Ok(Part::unknown(Type::list(item), residual, secret || self.secret(part)))
    }

    fn splat_source(&mut self, part: &Part, rest: &[Access], range: Range) -> Source {
        let base = self.reify(part, range);
        match (base, self.fold_rest(rest)) {
            (Ok(base), Ok((rest, _))) => {
                Source::built(Expr { kind: Kind::Splat(Box::new(base), rest), range })
            }
            _ => Source::Barred,
        }
    }

    fn fold_rest(&mut self, rest: &[Access]) -> Result<(Vec<Access>, bool), Stop> {
        let mut secret = false;
        let mut folded = Vec::with_capacity(rest.len());
        for access in rest {
            folded.push(match access {
                Access::Attribute(name) => Access::Attribute(name.clone()),
                Access::Index(index) => {
                    let key = self.eval(index)?;
                    secret |= self.secret(&key);
                    Access::Index(self.reify(&key, index.range)?)
                }
            });
        }
        Ok((folded, secret))
    }
}

/// Returns a part of a part, with its own sensitive places and its own source.
fn picked(part: &Part, value: &Value, sensitive: &Paths, range: Range, step: Below<'_>) -> Part {
    let collection =
        matches!(value, Value::List(_) | Value::Set(_) | Value::Map(_) | Value::Sealed(_));
    let source = if collection || !sensitive.is_empty() {
        part.source.step(range, step)
    } else {
        Source::None
    };
    Part { value: value.clone(), sensitive: sensitive.clone(), source }
}

/// Returns an item of a list.
pub(super) fn item_at(part: &Part, at: usize, item: &Value, range: Range) -> Part {
    let inside = part.sensitive.inside(&Segment::Index(at));
    picked(part, item, &inside, range, Below::Index(&index_of(at)))
}

/// Returns an entry of a map.
pub(super) fn entry_of(part: &Part, name: &Name, value: &Value, range: Range) -> Part {
    let inside = part.sensitive.inside(&Segment::Key(name.clone()));
    picked(part, value, &inside, range, Below::Index(&Value::String(name.clone())))
}

/// Returns true if `base` refers to an object with the attributes of a schema.
fn is_object(base: &Expr) -> bool {
    match &base.kind {
        Kind::Root(Root::Resource(_)) => true,
        Kind::Root(Root::Named(name)) => matches!(&**name, "old" | "new" | "self"),
        _ => false,
    }
}

fn segment_of(key: &Value) -> Option<Segment> {
    match key {
        Value::String(name) => Some(Segment::Key(name.clone())),
        _ => key.as_integer().and_then(|at| usize::try_from(at).ok()).map(Segment::Index),
    }
}

/// Returns true if a part is not known yet, so that a mistake in a step into it reveals nothing about it.
fn is_open(part: &Part) -> bool {
    matches!(part.value, Value::Unknown(_) | Value::Sealed(_))
}

fn none_here(stop: Stop, range: Range) -> Stop {
    stop.over_a_secret(range, "of what this index or key names there is none here", Some(UNSAID))
}

fn no_such_key(block: &Block, range: Range) -> Stop {
    stop(range, format!("`{block}` has no such key"), None)
}

fn null_base(name: &str, range: Range) -> Stop {
    let help = format!(
        "test it first: `x == null ? null : x.{name}`, or use try(x.{name}, …); \
         a resource with `lifecycle.enabled = false` is null"
    );
    stop(range, format!("this is null, so it has no `{name}`"), Some(&help))
}

/// Returns the error of a missing name. If the value is secret, the names in it are not shown.
fn missing(name: &str, entries: &Attributes, secret: bool, range: Range) -> Stop {
    let known = if secret { None } else { nearest(name, entries.keys().map(|k| &**k)) };
    let help = known.map(|known| format!("did you mean `{known}`?"));
    stop(range, format!("there is no `{name}` here"), help.as_deref())
}
