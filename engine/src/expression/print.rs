//! Tree to text: `Display` of an [`Expr`] is a bare expression that [`super::parse::residual`] reads back to
//! an equal tree.
//!
//! This is true for the trees that parsing and folding make: in them, a list or map of literals is one
//! literal, and neighbouring texts in a template are joined. Sets are printed as `toset([…])`. Maps with more
//! than [`ENTRIES_MAX`] entries are printed as `tomap([[key, value], …])`, because the parser compares every
//! key of `{…}` with every other; so are maps with a duplicate key, which the parser would refuse.

use std::fmt::{self, Write as _};

use super::parse::OFFERED;
use super::{Access, BinaryOp, Call, Conditional, Expr, For, Kind, Root, UnaryOp, keys};
use crate::address::{Block, Name, local_shown};
use crate::value::{Attributes, Value};

/// The most entries of a map that is printed in braces.
pub(super) const ENTRIES_MAX: usize = 64;

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer { out: f, bound: Vec::new() }.expr(self)
    }
}

/// The precedence of an expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tightness {
    /// `a ? b : c` and `for` bodies, which extend as far to the right as possible.
    Conditional,
    /// A binary operator of the given precedence.
    Binary(u8),
    /// `-a`, `!a`, and numbers with a sign.
    Unary,
    /// A number. A dot after it, or a sign before it, would become part of it.
    Number,
    /// A splat. An access after it would become part of it.
    Splat,
    /// A term that `.x` and `[x]` can follow.
    Term,
}

/// Returns the precedence of an operator; a higher one binds tighter.
pub(super) fn precedence(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        BinaryOp::Equal | BinaryOp::NotEqual => 3,
        BinaryOp::Less | BinaryOp::LessOrEqual | BinaryOp::Greater | BinaryOp::GreaterOrEqual => 4,
        BinaryOp::Add | BinaryOp::Subtract => 5,
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder => 6,
    }
}

/// Returns the operator as it is written.
pub(super) fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Remainder => "%",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        BinaryOp::Less => "<",
        BinaryOp::LessOrEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterOrEqual => ">=",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
    }
}

fn tightness(expr: &Expr) -> Tightness {
    match &expr.kind {
        Kind::Conditional(_) => Tightness::Conditional,
        Kind::Binary(op, ..) => Tightness::Binary(precedence(*op)),
        Kind::Unary(..) => Tightness::Unary,
        Kind::Literal(Value::Integer(number)) if *number < 0 => Tightness::Unary,
        Kind::Literal(Value::Float(number)) if number.is_sign_negative() => Tightness::Unary,
        Kind::Literal(Value::Integer(_) | Value::Float(_)) => Tightness::Number,
        Kind::Splat(..) => Tightness::Splat,
        _ => Tightness::Term,
    }
}

struct Printer<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    /// The variables of the enclosing `for` expressions.
    bound: Vec<Name>,
}

impl Printer<'_, '_> {
    fn expr(&mut self, expr: &Expr) -> fmt::Result {
        match &expr.kind {
            Kind::Literal(value) => self.literal(value),
            Kind::Template(parts) => self.template(parts),
            Kind::Root(root) => self.root(root),
            Kind::Attribute(base, name) => {
                self.base(base)?;
                self.attribute(name)
            }
            Kind::Index(base, index) => {
                self.operand(base, Tightness::Term)?;
                self.index(index)
            }
            Kind::Splat(base, accesses) => {
                // A splat of a splat reads back as one, so it needs no parentheses.
                self.operand(base, Tightness::Splat)?;
                self.out.write_str("[*]")?;
                accesses.iter().try_for_each(|access| match access {
                    Access::Attribute(name) => self.attribute(name),
                    Access::Index(index) => self.index(index),
                })
            }
            Kind::Unary(op, operand) => self.unary(*op, operand),
            Kind::Binary(op, left, right) => self.binary(*op, left, right),
            Kind::Conditional(conditional) => self.conditional(conditional),
            Kind::Call(call) => self.call(call),
            Kind::For(walk) => self.walk(walk),
            Kind::List(items) => self.list(items, Printer::expr),
            Kind::Map(entries)
                if entries.len() > ENTRIES_MAX || keys::repeated(entries).is_some() =>
            {
                self.out.write_str("tomap(")?;
                self.list(entries, |printer, (key, value)| {
                    printer.out.write_str("[")?;
                    printer.expr(key)?;
                    printer.out.write_str(", ")?;
                    printer.expr(value)?;
                    printer.out.write_str("]")
                })?;
                self.out.write_str(")")
            }
            Kind::Map(entries) => self.map(entries),
        }
    }

    /// Prints an operand, in parentheses if it binds less tightly than `least`.
    fn operand(&mut self, expr: &Expr, least: Tightness) -> fmt::Result {
        if tightness(expr) >= least { self.expr(expr) } else { self.parenthesised(expr) }
    }

    fn parenthesised(&mut self, expr: &Expr) -> fmt::Result {
        self.out.write_str("(")?;
        self.expr(expr)?;
        self.out.write_str(")")
    }

    /// Prints the base of an attribute. A first word that is neither a variable of `for` nor an offered name
    /// would be read as a resource, together with the name after it.
    fn base(&mut self, base: &Expr) -> fmt::Result {
        match &base.kind {
            Kind::Root(Root::Named(name))
                if !OFFERED.contains(&&**name) && !self.bound.contains(name) =>
            {
                self.parenthesised(base)
            }
            _ => self.operand(base, Tightness::Term),
        }
    }

    fn root(&mut self, root: &Root) -> fmt::Result {
        match root {
            Root::Var(name) => write!(self.out, "var.{name}"),
            Root::Local(name) => self.out.write_str(&local_shown(name)),
            Root::Module(name) => write!(self.out, "module.{name}"),
            Root::EachKey => self.out.write_str("each.key"),
            Root::EachValue => self.out.write_str("each.value"),
            Root::Resource(block) => self.block(block),
            Root::Named(name) => self.out.write_str(name),
        }
    }

    /// Prints a block. A key in the path of its module is printed as a text.
    fn block(&mut self, block: &Block) -> fmt::Result {
        let text = block.to_string();
        if block.module.is_root() {
            return self.out.write_str(&text);
        }
        self.out.write_str(&text.replace("${", "$${").replace("%{", "%%{"))
    }

    fn attribute(&mut self, name: &str) -> fmt::Result {
        if is_word(name) {
            return write!(self.out, ".{name}");
        }
        self.out.write_str("[")?;
        self.text(name, false)?;
        self.out.write_str("]")
    }

    fn index(&mut self, index: &Expr) -> fmt::Result {
        self.out.write_str("[")?;
        self.expr(index)?;
        self.out.write_str("]")
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) -> fmt::Result {
        self.out.write_str(if op == UnaryOp::Negate { "-" } else { "!" })?;
        // Without parentheses the sign would become part of the number.
        if matches!(operand.kind, Kind::Literal(Value::Integer(_) | Value::Float(_))) {
            return self.parenthesised(operand);
        }
        self.operand(operand, Tightness::Unary)
    }

    /// Prints a binary operation. Operators of one precedence are read from the left.
    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> fmt::Result {
        let own = precedence(op);
        self.operand(left, Tightness::Binary(own))?;
        write!(self.out, " {} ", symbol(op))?;
        self.operand(right, Tightness::Binary(own + 1))
    }

    fn conditional(&mut self, conditional: &Conditional) -> fmt::Result {
        self.operand(&conditional.condition, Tightness::Binary(0))?;
        self.out.write_str(" ? ")?;
        self.expr(&conditional.yes)?;
        self.out.write_str(" : ")?;
        self.expr(&conditional.no)
    }

    fn call(&mut self, call: &Call) -> fmt::Result {
        write!(self.out, "{}(", call.name)?;
        for (index, argument) in call.arguments.iter().enumerate() {
            if index > 0 {
                self.out.write_str(", ")?;
            }
            if call.spread && index + 1 == call.arguments.len() {
                self.operand(argument, Tightness::Term)?;
                self.out.write_str("...")?;
            } else {
                self.expr(argument)?;
            }
        }
        self.out.write_str(")")
    }

    fn walk(&mut self, walk: &For) -> fmt::Result {
        self.out.write_str(if walk.key.is_some() { "{for " } else { "[for " })?;
        if let Some(variable) = &walk.key_variable {
            write!(self.out, "{variable}, ")?;
        }
        write!(self.out, "{} in ", walk.value_variable)?;
        self.operand(&walk.collection, Tightness::Binary(0))?;
        self.out.write_str(" : ")?;
        let outside = self.bound.len();
        self.bound.extend(walk.key_variable.iter().cloned());
        self.bound.push(Name::clone(&walk.value_variable));
        if let Some(key) = &walk.key {
            self.operand(key, Tightness::Term)?;
            self.out.write_str(" => ")?;
        }
        self.operand(
            &walk.value,
            if walk.grouped { Tightness::Term } else { Tightness::Binary(0) },
        )?;
        if walk.grouped {
            self.out.write_str("...")?;
        }
        if let Some(condition) = &walk.condition {
            self.out.write_str(" if ")?;
            self.expr(condition)?;
        }
        self.bound.truncate(outside);
        self.out.write_str(if walk.key.is_some() { "}" } else { "]" })
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T) -> fmt::Result,
    ) -> fmt::Result {
        self.out.write_str("[")?;
        for (index, value) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.write_str(", ")?;
            }
            item(self, value)?;
        }
        self.out.write_str("]")
    }

    fn map(&mut self, entries: &[(Expr, Expr)]) -> fmt::Result {
        self.out.write_str("{")?;
        for (index, (key, value)) in entries.iter().enumerate() {
            self.out.write_str(if index > 0 { ", " } else { " " })?;
            match &key.kind {
                Kind::Literal(Value::String(text)) => self.key(text)?,
                _ => self.parenthesised(key)?,
            }
            self.out.write_str(" = ")?;
            self.expr(value)?;
        }
        self.out.write_str(if entries.is_empty() { "}" } else { " }" })
    }

    fn key(&mut self, key: &str) -> fmt::Result {
        // These words mean something else in the place of a key.
        if is_word(key) && !matches!(key, "for" | "true" | "false" | "null") {
            return self.out.write_str(key);
        }
        self.text(key, false)
    }

    fn literal(&mut self, value: &Value) -> fmt::Result {
        match value {
            // A literal holds neither an unknown nor a sealed value; null reveals nothing about them.
            Value::Null | Value::Unknown(_) | Value::Sealed(_) => self.out.write_str("null"),
            Value::Bool(value) => write!(self.out, "{value}"),
            Value::Integer(number) => write!(self.out, "{number}"),
            Value::Float(number) => write!(self.out, "{number:?}"),
            Value::String(text) => self.text(text, false),
            Value::List(items) => self.list(items.iter(), Printer::literal),
            Value::Set(items) => {
                self.out.write_str("toset(")?;
                self.list(items.iter(), Printer::literal)?;
                self.out.write_str(")")
            }
            Value::Map(entries) => self.literal_map(entries),
        }
    }

    fn literal_map(&mut self, entries: &Attributes) -> fmt::Result {
        if entries.len() > ENTRIES_MAX {
            self.out.write_str("tomap(")?;
            self.list(entries, |printer, (key, value)| {
                printer.out.write_str("[")?;
                printer.text(key, false)?;
                printer.out.write_str(", ")?;
                printer.literal(value)?;
                printer.out.write_str("]")
            })?;
            return self.out.write_str(")");
        }
        self.out.write_str("{")?;
        for (index, (key, value)) in entries.iter().enumerate() {
            self.out.write_str(if index > 0 { ", " } else { " " })?;
            self.key(key)?;
            self.out.write_str(" = ")?;
            self.literal(value)?;
        }
        self.out.write_str(if entries.is_empty() { "}" } else { " }" })
    }

    fn template(&mut self, parts: &[Expr]) -> fmt::Result {
        self.out.write_str("\"")?;
        for (index, part) in parts.iter().enumerate() {
            match &part.kind {
                Kind::Literal(Value::String(text)) if !text.is_empty() => {
                    let before_part = index + 1 < parts.len();
                    self.escaped(text, before_part)?;
                }
                _ => {
                    self.out.write_str("${")?;
                    self.expr(part)?;
                    self.out.write_str("}")?;
                }
            }
        }
        self.out.write_str("\"")
    }

    fn text(&mut self, text: &str, before_part: bool) -> fmt::Result {
        self.out.write_str("\"")?;
        self.escaped(text, before_part)?;
        self.out.write_str("\"")
    }

    /// Prints text between quotes. A character that would begin a part is doubled. A dollar right before a
    /// part would double the part's own dollar, so it is written by its number.
    fn escaped(&mut self, text: &str, before_part: bool) -> fmt::Result {
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match (character, characters.peek()) {
                ('$', None) if before_part => self.out.write_str("\\u0024")?,
                ('$', Some('{')) => self.out.write_str("$$")?,
                ('%', Some('{')) => self.out.write_str("%%")?,
                ('"', _) => self.out.write_str("\\\"")?,
                ('\\', _) => self.out.write_str("\\\\")?,
                ('\n', _) => self.out.write_str("\\n")?,
                ('\r', _) => self.out.write_str("\\r")?,
                ('\t', _) => self.out.write_str("\\t")?,
                (control, _) if control.is_control() => {
                    write!(self.out, "\\u{:04x}", u32::from(control))?;
                }
                (plain, _) => self.out.write_char(plain)?,
            }
        }
        Ok(())
    }
}

/// Returns true if a name can stand, without quotes, after a dot and before an equals sign.
fn is_word(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests;
