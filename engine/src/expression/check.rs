//! Types of expressions, proven before anything runs.
//!
//! Every expression has a type. A value of type `any` is checked only when it becomes known. All mistakes of
//! an expression are found at once: a wrong part counts as `any` from there on, so one mistake is reported
//! once.

mod access;
mod calls;

use super::evaluate::{NO_TEXT_HELP, NULL_TEXT_HELP};
use super::print::symbol;
use super::typing::{binary_of, end_of, item_of, type_word};
use super::{BinaryOp, Conditional, Expr, ExprError, For, Kind, Range, Root, UnaryOp};
use crate::address::Name;
use crate::diagnostics::{Advice, Correction};
use crate::types::{Field, Type};
use crate::value::Value;

/// The types of the names that an expression may refer to.
pub trait Types {
    /// Returns the type of the value that `root` names: for a resource with `for_each`, a map of objects.
    fn root(&self, root: &Root) -> Result<Type, Unresolved>;

    /// Returns the type of `base.name` if it is known without computing the type of all of `base`; else none.
    fn attribute(&self, base: &Expr, name: &Name) -> Option<Type> {
        let _ = (base, name);
        None
    }

    /// Returns true if a type is that of a resource's objects: its schema lists all attributes that exist.
    fn is_resource(&self, ty: &Type) -> bool {
        let _ = ty;
        false
    }
}

/// The error of a name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The message, such as "there is no variable `rgion`".
    pub message: String,
    /// The advice, such as "did you mean `region`?".
    pub help: Option<String>,
    /// The advice for programs; none unless the advice is to write another word.
    pub meant: Option<Correction>,
}

impl Unresolved {
    /// Returns an error with a message and advice.
    pub fn advised(message: String, advice: impl Into<Advice>) -> Self {
        let Advice { text, correction } = advice.into();
        Self { message, help: Some(text), meant: correction }
    }
}

/// Returns the type of an expression. Mistakes in it are added to `errors`, and a wrong part has the type
/// `any`.
pub fn check(expr: &Expr, types: &dyn Types, errors: &mut Vec<ExprError>) -> Type {
    Checker { types, errors, bound: Vec::new(), tries: false }.expr(expr)
}

struct Checker<'c> {
    types: &'c dyn Types,
    errors: &'c mut Vec<ExprError>,
    /// The variables of the enclosing `for` expressions, the innermost last.
    bound: Vec<(Name, Type)>,
    /// True inside `try` or `can`, which catch failures: an attribute that a value lacks is no mistake there.
    tries: bool,
}

impl Checker<'_> {
    /// Adds a mistake; returns the type `any` for the wrong part.
    fn wrong(&mut self, range: Range, message: impl Into<String>, help: Option<String>) -> Type {
        self.errors.push(ExprError { range, message: message.into(), help, meant: None });
        Type::Any
    }

    /// Adds a mistake with advice; returns the type `any` for the wrong part.
    fn advise(&mut self, range: Range, message: impl Into<String>, advice: Advice) -> Type {
        let Advice { text, correction: meant } = advice;
        self.errors.push(ExprError { range, message: message.into(), help: Some(text), meant });
        Type::Any
    }

    fn expr(&mut self, expr: &Expr) -> Type {
        match &expr.kind {
            Kind::Literal(value) => value.type_of(),
            Kind::Template(parts) => self.template(parts),
            Kind::Root(root) => self.root(root, expr.range),
            Kind::Attribute(base, name) => {
                if let Some(ty) = self.types.attribute(base, name) {
                    return ty;
                }
                let ty = self.expr(base);
                self.attribute(&ty, Some(base), name, end_of(expr.range, name.len()))
            }
            Kind::Index(base, index) => self.index(base, index, expr.range),
            Kind::Splat(base, rest) => self.splat(base, rest, expr.range),
            Kind::Unary(op, operand) => self.unary(*op, operand),
            Kind::Binary(op, left, right) => self.binary(*op, left, right, expr.range),
            Kind::Conditional(conditional) => self.conditional(conditional, expr.range),
            Kind::Call(call) => self.call(call, expr.range),
            Kind::For(walk) => self.walk(walk),
            Kind::List(items) => {
                let unify = |ty: Type, item| ty.unify(&self.expr(item));
                Type::list(items.iter().fold(Type::Null, unify))
            }
            Kind::Map(entries) => self.map(entries),
        }
    }

    fn root(&mut self, root: &Root, range: Range) -> Type {
        if let Root::Named(name) = root
            && let Some((_, ty)) = self.bound.iter().rev().find(|(bound, _)| bound == name)
        {
            return ty.clone();
        }
        match self.types.root(root) {
            Ok(ty) => ty,
            Err(Unresolved { message, help: Some(text), meant: correction }) => {
                self.advise(range, message, Advice { text, correction })
            }
            Err(Unresolved { message, .. }) => self.wrong(range, message, None),
        }
    }

    fn template(&mut self, parts: &[Expr]) -> Type {
        for part in parts {
            match self.expr(part) {
                Type::Null => {
                    let help = Some(NULL_TEXT_HELP.to_owned());
                    self.wrong(part.range, "null cannot stand in a text", help);
                }
                ty @ (Type::List(_) | Type::Set(_) | Type::Map(_) | Type::Object(_)) => {
                    let message = format!("{} cannot stand in a text", type_word(&ty));
                    self.wrong(part.range, message, Some(NO_TEXT_HELP.to_owned()));
                }
                _ => {}
            }
        }
        Type::String
    }

    /// Checks that an expression has a type; adds a mistake if it does not.
    fn expect(&mut self, expr: &Expr, want: &Type) -> Type {
        let found = self.expr(expr);
        let fits = match (&found, want) {
            (Type::Any, _) => true,
            (Type::Integer, Type::Number) => true,
            (found, want) => found == want,
        };
        if !fits {
            let message = format!("expected {}, found {}", type_word(want), type_word(&found));
            self.wrong(expr.range, message, help_for(&found, want));
        }
        found
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) -> Type {
        match op {
            UnaryOp::Not => {
                self.expect(operand, &Type::Boolean);
                Type::Boolean
            }
            UnaryOp::Negate => match self.expect(operand, &Type::Number) {
                Type::Integer => Type::Integer,
                _ => Type::Number,
            },
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, range: Range) -> Type {
        match op {
            BinaryOp::And | BinaryOp::Or => {
                self.expect(left, &Type::Boolean);
                self.expect(right, &Type::Boolean);
                Type::Boolean
            }
            BinaryOp::Equal | BinaryOp::NotEqual => {
                let (a, b) = (self.expr(left), self.expr(right));
                if !comparable(&a, &b) {
                    let (a, b) = (type_word(&a), type_word(&b));
                    let message =
                        format!("{a} never equals {b}, so `{}` tells nothing", symbol(op));
                    self.wrong(range, message, equality_help(a, b));
                }
                Type::Boolean
            }
            _ => {
                let left = self.expect(left, &Type::Number);
                let right = self.expect(right, &Type::Number);
                binary_of(op, &left, &right)
            }
        }
    }

    fn conditional(&mut self, conditional: &Conditional, range: Range) -> Type {
        self.expect(&conditional.condition, &Type::Boolean);
        let (yes, no) = (self.expr(&conditional.yes), self.expr(&conditional.no));
        let lists = |ty: &Type| matches!(ty, Type::List(_) | Type::Set(_));
        let alike = comparable(&yes, &no) || (lists(&yes) && lists(&no));
        if !alike {
            let message = format!(
                "one arm is {}, the other {}: both must have one type",
                type_word(&yes),
                type_word(&no)
            );
            let help = "convert one: tostring(…), tonumber(…), or write null";
            return self.wrong(range, message, Some(help.to_owned()));
        }
        yes.unify(&no)
    }

    fn map(&mut self, entries: &[(Expr, Expr)]) -> Type {
        let mut fields = std::collections::BTreeMap::new();
        let (mut items, mut fixed) = (Type::Null, true);
        for (key, value) in entries {
            let key_ty = self.expr(key);
            self.key(&key_ty, key.range);
            let ty = self.expr(value);
            items = items.unify(&ty);
            match &key.kind {
                Kind::Literal(Value::String(name)) => {
                    let field = Field { ty, optional: false };
                    if fields.insert(name.clone(), field).is_some() {
                        let message = format!("the key `{name}` stands twice");
                        self.wrong(key.range, message, Some("remove one of the two".to_owned()));
                    }
                }
                _ => fixed = false,
            }
        }
        if fixed { Type::Object(fields) } else { Type::map(items) }
    }

    fn key(&mut self, ty: &Type, range: Range) {
        let scalar =
            matches!(ty, Type::Any | Type::String | Type::Integer | Type::Number | Type::Boolean);
        if !scalar {
            self.wrong(range, format!("a key is text, and this is {}", type_word(ty)), None);
        }
    }

    fn walk(&mut self, walk: &For) -> Type {
        let collection = self.expr(&walk.collection);
        let key = match &collection {
            Type::List(_) => Type::Integer,
            Type::Set(item) => member(item),
            Type::Map(_) | Type::Object(_) => Type::String,
            Type::Any | Type::Null => Type::Any,
            other => {
                let message = format!("{} cannot be walked over", type_word(other));
                let help = "`for` walks over lists, sets, maps and objects";
                self.wrong(walk.collection.range, message, Some(help.to_owned()))
            }
        };
        let outside = self.bound.len();
        if let Some(variable) = &walk.key_variable {
            self.bound.push((variable.clone(), key));
        }
        self.bound.push((walk.value_variable.clone(), member(&item_of(&collection))));
        if let Some(condition) = &walk.condition {
            self.expect(condition, &Type::Boolean);
        }
        if let Some(key) = &walk.key {
            let ty = self.expr(key);
            self.key(&ty, key.range);
        }
        let value = self.expr(&walk.value);
        self.bound.truncate(outside);
        match (&walk.key, walk.grouped) {
            (None, _) => Type::list(value),
            (Some(_), false) => Type::map(value),
            (Some(_), true) => Type::map(Type::list(value)),
        }
    }
}

/// Returns the type of an item that is taken out of a collection. The items of an empty collection have the
/// type null, and become `any` here: nothing is taken out of an empty collection, and with other values it is
/// not empty.
fn member(item: &Type) -> Type {
    match item {
        Type::Null => Type::Any,
        item => item.clone(),
    }
}

/// Returns true if values of the two types can be equal.
fn comparable(a: &Type, b: &Type) -> bool {
    let class = |ty: &Type| match ty {
        Type::Any | Type::Null => 0,
        Type::Boolean => 1,
        Type::Integer | Type::Number => 2,
        Type::String => 3,
        Type::List(_) => 4,
        Type::Set(_) => 5,
        Type::Map(_) | Type::Object(_) => 6,
    };
    let (a, b) = (class(a), class(b));
    a == b || a == 0 || b == 0
}

fn equality_help(a: &str, b: &str) -> Option<String> {
    let words = [a, b];
    if words.contains(&"a list") && words.contains(&"a set") {
        return Some("make both sets: toset(…)".to_owned());
    }
    if words.contains(&"a string") && words.contains(&"a number") {
        return Some("convert one: tostring(…) or tonumber(…)".to_owned());
    }
    None
}

fn help_for(found: &Type, want: &Type) -> Option<String> {
    let help = match (found, want) {
        (Type::Null, _) => "use coalesce(…, default) where null is possible",
        (Type::String, Type::Number) => {
            "convert it with tonumber(…); texts are joined by a template: \"${a}${b}\""
        }
        (Type::String, Type::Boolean) => "convert it with tobool(…), or compare it: x == \"…\"",
        (Type::List(_) | Type::Set(_) | Type::Map(_) | Type::Object(_), Type::Boolean) => {
            "compare its length: length(…) > 0"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

#[cfg(test)]
mod tests;
