//! The types of references to attributes and items.

use super::{Checker, member};
use crate::address::{ModulePath, Name};
use crate::diagnostics::{Advice, nearest};
use crate::expression::typing::{end_of, item_of, type_word};
use crate::expression::visit::change;
use crate::expression::{Access, Expr, Kind, Range, Root};
use crate::types::{Field, Type};
use crate::value::Value;

/// The number of names that a message lists.
const NAMES_MAX: usize = 12;

impl Checker<'_> {
    /// Returns the type of `base.name`, where the name has the range `place`; `subject` is the base if a
    /// message can name it.
    pub(super) fn attribute(
        &mut self,
        base: &Type,
        subject: Option<&Expr>,
        name: &Name,
        place: Range,
    ) -> Type {
        match base {
            // Null has no attribute, but a condition may prevent the access; if it does not, evaluation
            // reports it.
            Type::Any | Type::Null => Type::Any,
            Type::Object(fields) => match fields.get(name) {
                Some(field) => field.ty.clone(),
                None if self.may_lack(base, subject) => Type::Any,
                None => self.unknown_attribute(fields, subject, name, place),
            },
            Type::Map(_) if subject.is_some_and(is_resource) => {
                self.missing_key(subject, name, place)
            }
            Type::Map(item) => member(item),
            Type::List(_) | Type::Set(_) => {
                let message = format!("{} has no attribute `{name}`", type_word(base));
                let help = format!("take it of all items, `[*].{name}`, or of one, `[0].{name}`");
                self.wrong(place, message, Some(help))
            }
            other if self.may_lack(other, subject) => Type::Any,
            other => {
                let message = format!("{} has no attributes, so no `{name}`", type_word(other));
                self.wrong(place, message, None)
            }
        }
    }

    /// Returns true if a missing attribute is no mistake here, because its failure is caught. For a resource
    /// it is a mistake all the same: no object of its type will ever have an attribute that the type lacks.
    fn may_lack(&self, base: &Type, subject: Option<&Expr>) -> bool {
        self.tries && !subject.is_some_and(is_of_resource) && !self.types.is_resource(base)
    }

    fn unknown_attribute(
        &mut self,
        fields: &std::collections::BTreeMap<Name, Field>,
        subject: Option<&Expr>,
        name: &str,
        place: Range,
    ) -> Type {
        let whose = subject.and_then(name_of).map_or("this".to_owned(), |name| format!("`{name}`"));
        let names: Vec<&str> = fields.keys().map(|name| &**name).collect();
        let message = format!("{whose} has no attribute `{name}`");
        match nearest(name, names.iter().copied()) {
            Some(known) => self.advise(place, message, Advice::meant(name, known)),
            None if names.is_empty() => self.wrong(place, message, None),
            None => {
                let more = if names.len() > NAMES_MAX { ", …" } else { "" };
                let names = &names[..names.len().min(NAMES_MAX)];
                let help = format!("there are: {}{more}", names.join(", "));
                self.wrong(place, message, Some(help))
            }
        }
    }

    /// Reports an attribute of all instances of a resource at once.
    fn missing_key(&mut self, subject: Option<&Expr>, name: &str, place: Range) -> Type {
        let start = subject.map_or(place.start, |subject| subject.range.start);
        let range = Range { start, end: place.end };
        let resource = subject.and_then(name_of).unwrap_or_default();
        let message = format!("`{resource}` has for_each, so it is a map of its instances");
        let help = format!(
            "write {resource}[\"key\"].{name} for one, values({resource})[*].{name} for all"
        );
        self.wrong(range, message, Some(help))
    }

    pub(super) fn index(&mut self, base: &Expr, index: &Expr, range: Range) -> Type {
        let ty = self.expr(base);
        let key = self.expr(index);
        if is_resource(base) && matches!(ty, Type::Object(_)) {
            let resource = name_of(base).unwrap_or_default();
            let message = format!("`{resource}` has no for_each, so it has no instances");
            let help = format!("write {resource}.… for its attributes");
            return self.wrong(range, message, Some(help));
        }
        self.item(&ty, &key, Some(base), index, range)
    }

    fn item(
        &mut self,
        base: &Type,
        key: &Type,
        subject: Option<&Expr>,
        index: &Expr,
        range: Range,
    ) -> Type {
        let number = matches!(key, Type::Integer | Type::Number | Type::Any);
        let text = matches!(key, Type::String | Type::Any);
        match base {
            Type::Any | Type::Null => Type::Any,
            Type::List(item) if number => member(item),
            Type::Map(item) if text => member(item),
            Type::Object(fields) => match &index.kind {
                Kind::Literal(Value::String(name)) => match fields.get(name) {
                    Some(field) => field.ty.clone(),
                    None if self.may_lack(base, subject) => Type::Any,
                    None => self.unknown_attribute(fields, subject, name, index.range),
                },
                _ if text => member(&item_of(base)),
                _ => self.wrong_key(base, key, index.range),
            },
            Type::List(_) | Type::Map(_) => self.wrong_key(base, key, index.range),
            Type::Set(_) => {
                let help = "make it a list first: tolist(…)[0]".to_owned();
                self.wrong(range, "a set has no order, so no index", Some(help))
            }
            other => self.wrong(range, format!("{} has no items", type_word(other)), None),
        }
    }

    fn wrong_key(&mut self, base: &Type, key: &Type, range: Range) -> Type {
        let wanted = if matches!(base, Type::List(_)) { "a number" } else { "a string" };
        let message =
            format!("the index of {} is {wanted}, and this is {}", type_word(base), type_word(key));
        self.wrong(range, message, None)
    }

    pub(super) fn splat(&mut self, base: &Expr, rest: &[Access], range: Range) -> Type {
        let ty = self.expr(base);
        let (mut item, subject) = match &ty {
            Type::List(item) | Type::Set(item) => (member(item), None),
            Type::Map(_) if is_resource(base) => {
                let resource = name_of(base).unwrap_or_default();
                let message = format!("`{resource}` has for_each, so it is a map of its instances");
                let help = format!("write values({resource})[*] for a list of them");
                (self.wrong(range, message, Some(help)), None)
            }
            Type::Null => (Type::Any, None),
            other => (other.clone(), Some(base)),
        };
        for (index, access) in rest.iter().enumerate() {
            // Only the place of the last name in the chain is kept.
            let last = index + 1 == rest.len();
            item = match access {
                Access::Attribute(name) => {
                    let place = if last { end_of(range, name.len()) } else { range };
                    self.attribute(&item, subject, name, place)
                }
                Access::Index(index) => {
                    let key = self.expr(index);
                    self.item(&item, &key, None, index, range)
                }
            };
        }
        Type::list(item)
    }
}

fn is_resource(expr: &Expr) -> bool {
    matches!(expr.kind, Kind::Root(Root::Resource(_)))
}

/// Returns true if an expression is a part of a resource's object.
fn is_of_resource(mut expr: &Expr) -> bool {
    loop {
        match &expr.kind {
            Kind::Attribute(base, _) | Kind::Index(base, _) | Kind::Splat(base, _) => expr = base,
            _ => return is_resource(expr),
        }
    }
}

/// Returns a reference as its own module writes it: `value.a` for `module.x["eu"].value.a`. So a mistake in a module
/// has the same words in all instances.
fn as_in_its_module(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    change(&mut expr, &mut |part| {
        match &mut part.kind {
            Kind::Root(Root::Resource(block)) => *block = block.within(&ModulePath::root()),
            Kind::Root(Root::Local(name)) => {
                let own = |word: &str, root: fn(Name) -> Root| {
                    let at = name.starts_with("module.").then(|| name.rfind(word)).flatten()?;
                    Some(root(name[at + word.len()..].into()))
                };
                let own = own(".var.", Root::Var).or_else(|| own(".local.", Root::Local));
                if let Some(root) = own {
                    part.kind = Kind::Root(root);
                }
            }
            _ => {}
        }
        true
    });
    expr
}

/// Returns the text of a reference, short enough for a message; none for other expressions.
fn name_of(expr: &Expr) -> Option<String> {
    let mut base = expr;
    for _ in 0..8 {
        match &base.kind {
            Kind::Root(_) => return Some(as_in_its_module(expr).to_string()),
            Kind::Attribute(inner, _) => base = inner,
            Kind::Index(inner, index) => match &index.kind {
                Kind::Literal(_) | Kind::Root(_) => base = inner,
                _ => return None,
            },
            _ => return None,
        }
    }
    None
}
