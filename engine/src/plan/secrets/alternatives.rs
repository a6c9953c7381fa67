//! What an expression chooses among: a value that is written down in one of the alternatives is the value
//! itself, whatever else stands in the expression.

use crate::expression::{Call, Expr, Kind};
use crate::value::{Paths, Value};

/// The alternatives of an expression that hands one of its parts on, each with its sensitive places; none
/// of one that makes something else of them, or that is a reference.
pub(super) fn alternatives(expr: &Expr, sensitive: &Paths) -> Option<Vec<(Expr, Paths)>> {
    let all = |parts: Vec<Expr>| parts.into_iter().map(|part| (part, sensitive.clone())).collect();
    match &expr.kind {
        Kind::Conditional(conditional) => {
            Some(all(vec![conditional.yes.clone(), conditional.no.clone()]))
        }
        Kind::Attribute(..) | Kind::Index(..) => step(expr).map(|taken| all(taken.found)),
        Kind::Call(call) => match (&*call.name, call.arguments.as_slice()) {
            ("coalesce" | "coalescelist" | "try" | "merge", arguments) if !call.spread => {
                Some(all(arguments.to_vec()))
            }
            // Where an item stands in the end may not be known.
            ("concat", arguments) if !call.spread => {
                let whole = |part: &Expr| (part.clone(), Paths::whole());
                Some(arguments.iter().map(whole).collect())
            }
            ("lookup", [map, key, default]) => {
                let taken = taken(map, literal(key)).unwrap_or_default();
                let default = (!taken.is_sure).then(|| default.clone());
                Some(all(taken.found.into_iter().chain(default).collect()))
            }
            ("lookup", [map, key]) => taken(map, literal(key)).map(|taken| all(taken.found)),
            ("one", [list]) => taken(list, None).map(|taken| all(taken.found)),
            ("element", [list, index]) => {
                let index = literal(index).map(|index| wrapped(index, list));
                taken(list, index.as_ref()).map(|taken| all(taken.found))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What may be taken out of something.
#[derive(Default)]
struct Taken {
    found: Vec<Expr>,
    /// Whether it is among these for sure.
    is_sure: bool,
}

impl Taken {
    /// What may be taken out of one of several things.
    fn of_either(parts: impl Iterator<Item = Option<Taken>>) -> Option<Self> {
        let (mut all, mut is_sure, mut found) = (Vec::new(), true, false);
        for part in parts {
            found |= part.is_some();
            let part = part.unwrap_or_default();
            is_sure &= part.is_sure;
            all.extend(part.found);
        }
        found.then_some(Taken { found: all, is_sure })
    }
}

/// `base.name` or `base[index]`, where the base is written down.
fn step(expr: &Expr) -> Option<Taken> {
    match &expr.kind {
        Kind::Attribute(base, name) => taken(base, Some(&Value::String(name.clone()))),
        Kind::Index(base, index) => taken(base, literal(index)),
        _ => None,
    }
}

/// What stands at `key` of a list or map that is written down, or at any place; none where it is not.
fn taken(base: &Expr, key: Option<&Value>) -> Option<Taken> {
    match &base.kind {
        Kind::Literal(Value::List(items)) => {
            Some(item(items.iter().cloned().map(Expr::literal), key))
        }
        Kind::List(items) => Some(item(items.iter().cloned(), key)),
        Kind::Literal(Value::Map(entries)) => {
            let entry = |(name, value): (&_, &Value)| {
                (Some(Value::String(Clone::clone(name))), Expr::literal(value.clone()))
            };
            Some(entry_at(entries.iter().map(entry), key))
        }
        Kind::Map(entries) => {
            let entry = |(name, value): &(Expr, Expr)| (literal(name).cloned(), Expr::clone(value));
            Some(entry_at(entries.iter().map(entry), key))
        }
        Kind::Conditional(conditional) => {
            let arms = [&conditional.yes, &conditional.no];
            Taken::of_either(arms.into_iter().map(|arm| taken(arm, key)))
        }
        Kind::Attribute(..) | Kind::Index(..) => {
            Taken::of_either(step(base)?.found.iter().map(|part| taken(part, key)))
        }
        Kind::Call(call) if !call.spread => taken_of_call(call, key),
        _ => None,
    }
}

fn taken_of_call(call: &Call, key: Option<&Value>) -> Option<Taken> {
    match &*call.name {
        "coalesce" | "coalescelist" | "try" => {
            Taken::of_either(call.arguments.iter().map(|part| taken(part, key)))
        }
        "merge" => {
            // The last one that has it wins.
            let mut all: Option<Taken> = None;
            for argument in call.arguments.iter().rev() {
                let Some(part) = taken(argument, key) else { continue };
                let all = all.get_or_insert_default();
                all.found.extend(part.found);
                if part.is_sure && key.is_some() {
                    all.is_sure = true;
                    break;
                }
            }
            all
        }
        "concat" => {
            let mut left = key.and_then(place);
            let mut parts = Vec::new();
            for argument in &call.arguments {
                let count = length(argument);
                match (left, count) {
                    (Some(at), Some(count)) if at >= count => left = Some(at - count),
                    (Some(at), Some(_)) => {
                        let at = Value::Integer(i64::try_from(at).unwrap_or(i64::MAX));
                        parts.push(taken(argument, Some(&at)));
                        break;
                    }
                    _ => {
                        left = None;
                        parts.push(taken(argument, None));
                    }
                }
            }
            Taken::of_either(parts.into_iter())
        }
        _ => None,
    }
}

fn item(mut items: impl Iterator<Item = Expr>, key: Option<&Value>) -> Taken {
    match key {
        Some(key) => {
            let found: Vec<Expr> = place(key).and_then(|at| items.nth(at)).into_iter().collect();
            Taken { is_sure: !found.is_empty(), found }
        }
        None => Taken { found: items.collect(), is_sure: true },
    }
}

fn entry_at(entries: impl Iterator<Item = (Option<Value>, Expr)>, key: Option<&Value>) -> Taken {
    let mut taken = Taken { is_sure: key.is_none(), ..Taken::default() };
    for (name, value) in entries {
        taken.is_sure |= name.is_some() && name.as_ref() == key;
        if name.is_none() || key.is_none() || name.as_ref() == key {
            taken.found.push(value);
        }
    }
    taken
}

/// How many items a list has that is written down.
fn length(list: &Expr) -> Option<usize> {
    match &list.kind {
        Kind::List(items) => Some(items.len()),
        Kind::Literal(Value::List(items)) => Some(items.len()),
        _ => None,
    }
}

/// The index of `element`, which wraps around.
fn wrapped(index: &Value, list: &Expr) -> Value {
    let count = length(list).and_then(|count| i64::try_from(count).ok());
    let wrapped =
        index.as_integer().zip(count).and_then(|(at, count)| at.checked_rem_euclid(count));
    wrapped.map_or_else(|| index.clone(), Value::Integer)
}

fn place(key: &Value) -> Option<usize> {
    key.as_integer().and_then(|at| usize::try_from(at).ok())
}

fn literal(expr: &Expr) -> Option<&Value> {
    if let Kind::Literal(value) = &expr.kind { Some(value) } else { None }
}
