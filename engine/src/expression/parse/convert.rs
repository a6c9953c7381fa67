//! The conversion of `hcl-edit`'s tree to the tree of this crate: first words get their meaning, `%{if}` and
//! `%{for}` become the expressions that they stand for, and parentheses go. The depth is counted on the way
//! down, before a level is built, so no tree gets too deep to walk or to drop.

mod templates;

use std::sync::Arc;

use hcl_edit::expr as hcl;
use hcl_edit::expr::{Expression, ObjectKey, TraversalOperator};
use hcl_edit::{Decorated, Span};

use super::{Dialect, OFFERED, range};
use crate::address::{Block, Name};
use crate::expression::{
    Access, BinaryOp, Call, Conditional, Expr, ExprError, For, Kind, Range, Root, TREE_DEPTH_MAX,
    UnaryOp,
};
use crate::value::{Attributes, Value};

/// The treatment of lists and maps of literals.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Literals {
    /// Kept as expressions whose parts have places, for messages about them.
    AsWritten,
    /// Folded into one literal, as in a printed residual; so is `toset` of them.
    Folded,
}

type Out = Result<Expr, ExprError>;
type Operators<'t> = &'t [Decorated<TraversalOperator>];

/// Converts a template that was read from `text`.
pub(super) fn template(tree: &hcl_edit::template::Template, text: &str, dialect: Dialect) -> Out {
    let literals = Literals::AsWritten;
    let mut converter =
        Converter { text, offset: 0, dialect, literals, bound: Vec::new(), depth: 0 };
    let parts = converter.elements(tree)?;
    Ok(templates::joined(parts, super::whole(text)))
}

/// Converts an expression that was read from `text`, beginning at `offset`.
pub(super) fn expression(
    tree: &Expression,
    text: &str,
    offset: usize,
    dialect: Dialect,
    literals: Literals,
) -> Out {
    Converter { text, offset, dialect, literals, bound: Vec::new(), depth: 0 }.expr(tree)
}

struct Converter<'t> {
    text: &'t str,
    /// The place in the text from which the parser counted.
    offset: usize,
    dialect: Dialect,
    literals: Literals,
    /// The variables of the enclosing `for` expressions.
    bound: Vec<Name>,
    depth: usize,
}

impl Converter<'_> {
    fn range(&self, span: Option<std::ops::Range<usize>>) -> Range {
        let span = span.unwrap_or(0..0);
        range(span.start + self.offset, span.end + self.offset)
    }

    /// Counts `levels` more while `inner` runs.
    fn deeper<T>(
        &mut self,
        levels: usize,
        range: Range,
        inner: impl FnOnce(&mut Self) -> Result<T, ExprError>,
    ) -> Result<T, ExprError> {
        self.depth += levels;
        if self.depth > TREE_DEPTH_MAX {
            return Err(error(
                range,
                format!("the expression is nested more than {TREE_DEPTH_MAX} levels deep"),
                "name a part of it as a local, and refer to that",
            ));
        }
        let result = inner(self);
        self.depth -= levels;
        result
    }

    fn expr(&mut self, tree: &Expression) -> Out {
        let range = self.range(tree.span());
        self.deeper(1, range, |c| c.expr_here(tree, range))
    }

    fn expr_here(&mut self, tree: &Expression, range: Range) -> Out {
        let kind = match tree {
            Expression::Null(_) => Kind::Literal(Value::Null),
            Expression::Bool(value) => Kind::Literal(Value::Bool(*value.value())),
            Expression::Number(_) => Kind::Literal(self.number(range)?),
            Expression::String(text) => Kind::Literal(Value::string(text.value().as_str())),
            Expression::Array(items) => {
                let items = items.iter().map(|item| self.expr(item)).collect::<Result<_, _>>()?;
                self.list(items)
            }
            Expression::Object(object) => self.object(object)?,
            Expression::StringTemplate(template) => {
                let parts = self.elements(template)?;
                return Ok(templates::joined(parts, range));
            }
            Expression::HeredocTemplate(heredoc) => {
                let parts = self.elements(&heredoc.template)?;
                return Ok(templates::joined(parts, range));
            }
            Expression::Parenthesis(inner) => return self.expr(inner.inner()),
            Expression::Variable(word) => Kind::Root(Root::Named(word.as_str().into())),
            Expression::Conditional(conditional) => Kind::Conditional(Box::new(Conditional {
                condition: self.expr(&conditional.cond_expr)?,
                yes: self.expr(&conditional.true_expr)?,
                no: self.expr(&conditional.false_expr)?,
            })),
            Expression::FuncCall(call) => self.call(call, range)?,
            Expression::Traversal(traversal) => return self.traversal(traversal),
            Expression::UnaryOp(unary) => {
                let op = match unary.operator.value() {
                    hcl::UnaryOperator::Neg => UnaryOp::Negate,
                    hcl::UnaryOperator::Not => UnaryOp::Not,
                };
                Kind::Unary(op, Box::new(self.expr(&unary.expr)?))
            }
            Expression::BinaryOp(binary) => {
                let left = Box::new(self.expr(&binary.lhs_expr)?);
                let right = Box::new(self.expr(&binary.rhs_expr)?);
                Kind::Binary(operator(*binary.operator.value()), left, right)
            }
            Expression::ForExpr(walk) => self.walk(walk)?,
        };
        Ok(Expr { kind, range })
    }

    /// Reads a number from its text: the parser's own number does not distinguish `3.0` from `3`.
    fn number(&self, range: Range) -> Result<Value, ExprError> {
        let text = &self.text[range.start as usize..range.end as usize];
        let negative = text.starts_with('-');
        // Spaces and comments may stand between a sign and its digits.
        let start = text
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-')))
            .map_or(0, |at| at + 1);
        let digits = text[start..].trim_start_matches('-');
        let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return signed.parse().map(Value::Integer).map_err(|_| {
                let help = "whole numbers have 64 bits; write a larger one with a `.0`";
                error(range, "this number is too large".to_owned(), help)
            });
        }
        signed.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float).ok_or_else(
            || error(range, "this number is too large".to_owned(), "the largest is about 1.8e308"),
        )
    }

    fn list(&self, items: Vec<Expr>) -> Kind {
        if self.literals == Literals::Folded
            && let Some(values) = items.iter().map(as_literal).collect()
        {
            return Kind::Literal(Value::list(values));
        }
        Kind::List(items)
    }

    fn map(&self, entries: Vec<(Expr, Expr)>) -> Kind {
        if self.literals == Literals::Folded {
            let entry = |(key, value): &(Expr, Expr)| match as_literal(key) {
                Some(Value::String(key)) => Some((key, as_literal(value)?)),
                _ => None,
            };
            // A duplicate key is a mistake, and stays one.
            if let Some(values) = entries.iter().map(entry).collect::<Option<Attributes>>()
                && values.len() == entries.len()
            {
                return Kind::Literal(Value::map(values));
            }
        }
        Kind::Map(entries)
    }

    fn object(&mut self, object: &hcl::Object) -> Result<Kind, ExprError> {
        let mut entries = Vec::with_capacity(object.len());
        for (key, value) in object {
            let key = match key {
                ObjectKey::Ident(word) => Expr {
                    kind: Kind::Literal(Value::string(word.as_str())),
                    range: self.range(word.span()),
                },
                ObjectKey::Expression(key) => self.expr(key)?,
            };
            entries.push((key, self.expr(value.expr())?));
        }
        Ok(self.map(entries))
    }

    fn call(&mut self, call: &hcl::FuncCall, range: Range) -> Result<Kind, ExprError> {
        if call.name.is_namespaced() {
            return Err(error(
                range,
                "functions have no namespaces".to_owned(),
                "write the function's name alone",
            ));
        }
        let arguments =
            call.args.iter().map(|argument| self.expr(argument)).collect::<Result<Vec<_>, _>>()?;
        let name: Name = call.name.name.as_str().into();
        let spread = call.args.expand_final();
        if self.literals == Literals::Folded
            && !spread
            && let Some(kind) = self.collection(&name, &arguments)
        {
            return Ok(kind);
        }
        Ok(Kind::Call(Box::new(Call { name, arguments, spread })))
    }

    /// Reads the forms of a set and of a large map that [`crate::expression::print`] writes.
    fn collection(&self, name: &str, arguments: &[Expr]) -> Option<Kind> {
        let [argument] = arguments else { return None };
        match (name, &argument.kind) {
            ("toset", Kind::Literal(Value::List(items))) => {
                Some(Kind::Literal(Value::set(items.to_vec())))
            }
            ("tomap", Kind::List(pairs)) => {
                let entries = pairs.iter().map(as_pair).collect::<Option<Vec<_>>>()?;
                Some(self.map(entries))
            }
            ("tomap", Kind::Literal(Value::List(pairs))) => {
                let entries = pairs.iter().map(as_known_pair).collect::<Option<Vec<_>>>()?;
                Some(self.map(entries))
            }
            _ => None,
        }
    }

    fn walk(&mut self, walk: &hcl::ForExpr) -> Result<Kind, ExprError> {
        let collection = self.expr(&walk.intro.collection_expr)?;
        let key_variable: Option<Name> =
            walk.intro.key_var.as_ref().map(|word| word.as_str().into());
        let value_variable: Name = walk.intro.value_var.as_str().into();
        let outside = self.bound.len();
        self.bound.extend(key_variable.iter().cloned());
        self.bound.push(Arc::clone(&value_variable));
        let key = walk.key_expr.as_ref().map(|key| self.expr(key)).transpose()?;
        let value = self.expr(&walk.value_expr)?;
        let condition = walk.cond.as_ref().map(|cond| self.expr(&cond.expr)).transpose()?;
        self.bound.truncate(outside);
        Ok(Kind::For(Box::new(For {
            key_variable,
            value_variable,
            collection,
            key,
            value,
            condition,
            grouped: walk.grouping,
        })))
    }

    fn traversal(&mut self, traversal: &hcl::Traversal) -> Out {
        let operators = traversal.operators.as_slice();
        let range = self.range(traversal.span());
        self.deeper(operators.len(), range, |c| {
            let (mut base, mut rest) = c.base(&traversal.expr, operators)?;
            while let Some((first, after)) = rest.split_first() {
                (base, rest) = c.access(base, first, after)?;
            }
            Ok(base)
        })
    }

    /// Returns the beginning of a chain, and the rest of its operators.
    fn base<'t>(
        &mut self,
        first: &Expression,
        operators: Operators<'t>,
    ) -> Result<(Expr, Operators<'t>), ExprError> {
        let Expression::Variable(word) = first else {
            return Ok((self.expr(first)?, operators));
        };
        let text = word.as_str();
        let start = self.range(first.span());
        let named = self.dialect == Dialect::Names
            || OFFERED.contains(&text)
            || self.bound.iter().any(|bound| &**bound == text);
        let (second, after) = match operators.split_first() {
            Some((operator, after)) if !named => match operator.value() {
                TraversalOperator::GetAttr(second) => ((second, operator), after),
                _ => return Ok((named_root(text, start), operators)),
            },
            _ => return Ok((named_root(text, start), operators)),
        };
        let (second, operator) = second;
        let mut range = Range { start: start.start, end: self.range(operator.span()).end };
        if text == "data" {
            let third = after.split_first().and_then(|(third, rest)| match third.value() {
                TraversalOperator::GetAttr(name) => Some((name, third, rest)),
                _ => None,
            });
            let (name, third, rest) = third.ok_or_else(|| no_data_name(second.as_str(), range))?;
            range.end = self.range(third.span()).end;
            let block = Block::data(second.as_str(), name.as_str());
            return Ok((Expr { kind: Kind::Root(Root::Resource(block)), range }, rest));
        }
        let root = root(text, second.as_str(), range)?;
        Ok((Expr { kind: Kind::Root(root), range }, after))
    }

    fn access<'t>(
        &mut self,
        base: Expr,
        first: &Decorated<TraversalOperator>,
        after: Operators<'t>,
    ) -> Result<(Expr, Operators<'t>), ExprError> {
        let end = self.range(first.span()).end;
        let range = Range { start: base.range.start, end };
        let kind = match first.value() {
            TraversalOperator::GetAttr(name) => {
                Kind::Attribute(Box::new(base), name.as_str().into())
            }
            TraversalOperator::Index(index) => {
                Kind::Index(Box::new(base), Box::new(self.expr(index)?))
            }
            TraversalOperator::LegacyIndex(number) => {
                let index = legacy_index(*number.value(), range)?;
                Kind::Index(Box::new(base), Box::new(index))
            }
            TraversalOperator::AttrSplat(_) => return self.splat(base, after, range, false),
            TraversalOperator::FullSplat(_) => return self.splat(base, after, range, true),
        };
        Ok((Expr { kind, range }, after))
    }

    /// Converts a splat. It takes the attributes that follow, and a full splat indexes, too, up to the next
    /// splat.
    fn splat<'t>(
        &mut self,
        base: Expr,
        after: Operators<'t>,
        mut range: Range,
        full: bool,
    ) -> Result<(Expr, Operators<'t>), ExprError> {
        let mut accesses = Vec::new();
        let mut rest = after;
        while let Some((operator, after)) = rest.split_first() {
            accesses.push(match operator.value() {
                TraversalOperator::GetAttr(name) => Access::Attribute(name.as_str().into()),
                TraversalOperator::Index(index) if full => Access::Index(self.expr(index)?),
                TraversalOperator::LegacyIndex(number) if full => {
                    Access::Index(legacy_index(*number.value(), range)?)
                }
                _ => break,
            });
            range.end = self.range(operator.span()).end;
            rest = after;
        }
        Ok((Expr { kind: Kind::Splat(Box::new(base), accesses), range }, rest))
    }
}

fn named_root(word: &str, range: Range) -> Expr {
    Expr { kind: Kind::Root(Root::Named(word.into())), range }
}

/// Returns the error of a reference to data that ends after its type.
fn no_data_name(ty: &str, range: Range) -> ExprError {
    error(
        range,
        format!("`data.{ty}` is no data block"),
        "write the name of the block behind its type, and an attribute: `data.TYPE.NAME.id`",
    )
}

/// Returns the root that `first.second` means in a spec.
fn root(first: &str, second: &str, range: Range) -> Result<Root, ExprError> {
    match (first, second) {
        ("var", name) => Ok(Root::Var(name.into())),
        ("local", name) => Ok(Root::Local(name.into())),
        ("each", "key") => Ok(Root::EachKey),
        ("each", "value") => Ok(Root::EachValue),
        ("each", _) => Err(error(
            range,
            format!("`each` has no `{second}`"),
            "write `each.key` or `each.value`",
        )),
        ("module", name) => Ok(Root::Module(name.into())),
        ("provider", _) => Err(error(
            range,
            format!("`{first}` cannot be referred to"),
            "refer to variables (`var.x`), locals (`local.x`) and resources (`type.name`)",
        )),
        (ty, name) => Ok(Root::Resource(Block::new(ty, name))),
    }
}

fn legacy_index(number: u64, range: Range) -> Out {
    let number = i64::try_from(number)
        .map_err(|_| error(range, "this index is too large".to_owned(), "write a smaller one"))?;
    Ok(Expr { kind: Kind::Literal(Value::Integer(number)), range })
}

fn operator(operator: hcl::BinaryOperator) -> BinaryOp {
    match operator {
        hcl::BinaryOperator::Plus => BinaryOp::Add,
        hcl::BinaryOperator::Minus => BinaryOp::Subtract,
        hcl::BinaryOperator::Mul => BinaryOp::Multiply,
        hcl::BinaryOperator::Div => BinaryOp::Divide,
        hcl::BinaryOperator::Mod => BinaryOp::Remainder,
        hcl::BinaryOperator::Eq => BinaryOp::Equal,
        hcl::BinaryOperator::NotEq => BinaryOp::NotEqual,
        hcl::BinaryOperator::Less => BinaryOp::Less,
        hcl::BinaryOperator::LessEq => BinaryOp::LessOrEqual,
        hcl::BinaryOperator::Greater => BinaryOp::Greater,
        hcl::BinaryOperator::GreaterEq => BinaryOp::GreaterOrEqual,
        hcl::BinaryOperator::And => BinaryOp::And,
        hcl::BinaryOperator::Or => BinaryOp::Or,
    }
}

fn as_literal(expr: &Expr) -> Option<Value> {
    if let Kind::Literal(value) = &expr.kind { Some(value.clone()) } else { None }
}

/// Returns the key and the value of `[key, value]`, whether it was folded or not.
fn as_pair(expr: &Expr) -> Option<(Expr, Expr)> {
    match &expr.kind {
        Kind::List(items) => match items.as_slice() {
            [key, value] => Some((key.clone(), value.clone())),
            _ => None,
        },
        Kind::Literal(pair) => as_known_pair(pair),
        _ => None,
    }
}

fn as_known_pair(pair: &Value) -> Option<(Expr, Expr)> {
    let Value::List(items) = pair else { return None };
    match items.as_slice() {
        [key, value] => Some((Expr::literal(key.clone()), Expr::literal(value.clone()))),
        _ => None,
    }
}

fn error(range: Range, message: String, help: &str) -> ExprError {
    ExprError { range, message, help: Some(help.to_owned()), meant: None }
}
