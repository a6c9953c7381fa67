//! The expression language: one language for specs, descriptors, rules, checks and policies.
//!
//! Its grammar is HCL's template and expression grammar. [`parse`] reads text into the tree below, [`print`]
//! writes the tree back, [`check`] proves types before anything runs, and [`evaluate`] computes values,
//! including unknown and sensitive ones. Pure, total, deterministic; text length, depth and the steps of an
//! evaluation are bounded.
//!
//! A *residual* is an ordinary tree: known parts are literals, and unknown parts are references to resources
//! (the slots that apply fills) and to sensitive variables.

pub mod check;
pub mod evaluate;
mod file_request;
pub mod functions;
mod keys;
pub mod parse;
pub mod print;
mod text;
mod typing;
pub mod visit;

pub use file_request::FileRequest;

use crate::address::{Block, Name};
use crate::diagnostics::Correction;
use crate::value::Value;

/// The longest expression text, in bytes.
pub const TEXT_MAX: usize = 64 * 1024;
/// The deepest nesting of an expression: brackets, arguments, parts of templates.
pub const DEPTH_MAX: usize = 64;
/// The deepest tree of an expression; the operators and accesses of a chain count, too.
pub const TREE_DEPTH_MAX: usize = 4 * DEPTH_MAX;

/// A place in an expression's text, in bytes: start and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

/// An expression. Two expressions are equal if their trees are, whatever their places.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its kind.
    pub kind: Kind,
    /// The place in the text; empty in residuals.
    pub range: Range,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Expr {
    /// Returns an expression without a place in a text.
    pub fn nowhere(kind: Kind) -> Self {
        Self { kind, range: Range::default() }
    }

    /// Returns the expression of a known value.
    pub fn literal(value: Value) -> Self {
        Self::nowhere(Kind::Literal(value))
    }

    /// Returns the reference to the attribute `name` of a resource instance.
    pub fn slot(address: &crate::address::Address, name: &Name) -> Self {
        let mut base = Self::nowhere(Kind::Root(Root::Resource(address.block.clone())));
        if let Some(key) = &address.key {
            let key = Self::literal(Value::String(key.clone()));
            base = Self::nowhere(Kind::Index(Box::new(base), Box::new(key)));
        }
        Self::nowhere(Kind::Attribute(Box::new(base), name.clone()))
    }
}

/// The kind of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A known value that is not sensitive; never unknown, never sealed.
    Literal(Value),
    /// A text with parts to fill in, joined into one string. A template that consists of one part is that
    /// part, not a template.
    Template(Vec<Expr>),
    /// The beginning of a reference.
    Root(Root),
    /// `base.name`.
    Attribute(Box<Expr>, Name),
    /// `base[index]`.
    Index(Box<Expr>, Box<Expr>),
    /// `base[*].rest…`: the rest applied to each item. A null base gives an empty list; any other base that
    /// is no list or set counts as a list with itself as the only item.
    Splat(Box<Expr>, Vec<Access>),
    /// `-x`, `!x`.
    Unary(UnaryOp, Box<Expr>),
    /// `a + b` and the like.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `condition ? yes : no`.
    Conditional(Box<Conditional>),
    /// `name(arguments…)`; with `spread`, the last argument is a list of further arguments.
    Call(Box<Call>),
    /// `[for …]` and `{for …}`.
    For(Box<For>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `{ a = b }`; keys are expressions (a bare word means its own text).
    Map(Vec<(Expr, Expr)>),
}

impl Kind {
    /// Returns a template, whose value is always a string: neighbouring texts are joined, empty ones are
    /// dropped, and text alone is a literal.
    fn template(parts: Vec<Expr>) -> Self {
        let mut joined: Vec<Expr> = Vec::with_capacity(parts.len());
        for part in parts {
            match (joined.last_mut().map(|last| (&mut last.kind, &mut last.range)), &part.kind) {
                (_, Kind::Literal(Value::String(text))) if text.is_empty() => {}
                (
                    Some((Kind::Literal(Value::String(before)), range)),
                    Kind::Literal(Value::String(text)),
                ) => {
                    *before = format!("{before}{text}").into();
                    range.end = part.range.end;
                }
                _ => joined.push(part),
            }
        }
        match joined.as_mut_slice() {
            [] => return Kind::Literal(Value::string("")),
            [Expr { kind: Kind::Literal(Value::String(text)), .. }] => {
                return Kind::Literal(Value::String(std::mem::replace(text, "".into())));
            }
            // The empty text keeps the expression a template.
            [_] => joined.push(Expr::literal(Value::string(""))),
            _ => {}
        }
        Kind::Template(joined)
    }
}

/// The beginning of a reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// `var.x`.
    Var(Name),
    /// `local.x`; also an input or an output of a module, by its path (`module.m.var.x`, `module.m.x`).
    Local(Name),
    /// `each.key`.
    EachKey,
    /// `each.value`.
    EachValue,
    /// `type.name`: a resource.
    Resource(Block),
    /// `module.x`: the outputs of a module. Appears only in texts: the resolution replaces it by the
    /// definitions of the outputs.
    Module(Name),
    /// Any other first word: a variable of `for`, or a name that a scope offers (`old`, `new`, `action`,
    /// `self`, `job`, an attribute in a descriptor).
    Named(Name),
}

/// One step of a splat's rest.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// `.name`.
    Attribute(Name),
    /// `[index]`.
    Index(Expr),
}

/// `condition ? yes : no`.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditional {
    /// The condition.
    pub condition: Expr,
    /// The value when true.
    pub yes: Expr,
    /// The value when false.
    pub no: Expr,
}

/// A function call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function.
    pub name: Name,
    /// The arguments.
    pub arguments: Vec<Expr>,
    /// True if the last argument stands for a list of further arguments (`…`).
    pub spread: bool,
}

/// `[for k, v in collection : value if condition]`, or `{for … : key => value}`.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// The variable for the key or the index; none if the expression does not use it.
    pub key_variable: Option<Name>,
    /// The variable for the value.
    pub value_variable: Name,
    /// The collection that is walked.
    pub collection: Expr,
    /// The key of each entry; none in the form that makes a list.
    pub key: Option<Expr>,
    /// The value of each entry.
    pub value: Expr,
    /// The condition for entries to be kept; none if all are.
    pub condition: Option<Expr>,
    /// True if values of one key are collected in a list (`…`).
    pub grouped: bool,
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`.
    Negate,
    /// `!`.
    Not,
}

/// An operator between its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the operators")]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

/// An error in an expression, and its place in the text. Contains no values: they may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// The place.
    pub range: Range,
    /// The error, in a short sentence without a full stop.
    pub message: String,
    /// The advice; none if there is none.
    pub help: Option<String>,
    /// The advice for programs; none unless the advice is to write another word.
    pub meant: Option<Correction>,
}
