//! Walks over expression trees. A residual may be deeper than any text, so walks recurse to a bounded depth
//! and then continue with a list of the expressions that are left.

use super::{Access, Expr, Kind, Range, Root};
use crate::address::{Block, Name};
use crate::value::Value;

/// The depth to which walks recurse, which saves the list for nearly all expressions.
const RECURSION_MAX: usize = 64;

/// Calls `visit` for the expression and each of its parts, in the order of the text.
pub fn walk<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    walk_below(expr, RECURSION_MAX, visit);
}

fn walk_below<'e>(expr: &'e Expr, left: usize, visit: &mut dyn FnMut(&'e Expr)) {
    if left > 0 {
        visit(expr);
        return each_part(expr, &mut |part| walk_below(part, left - 1, visit));
    }
    let mut stack = vec![expr];
    while let Some(expr) = stack.pop() {
        visit(expr);
        let first = stack.len();
        each_part(expr, &mut |part| stack.push(part));
        stack[first..].reverse();
    }
}

/// Calls `visit` for the beginning of each reference, with its place.
///
/// The variables of `for` expressions are among them, as [`Root::Named`].
pub fn roots<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Root, Range)) {
    walk(expr, &mut |part| {
        if let Kind::Root(root) = &part.kind {
            visit(root, part.range);
        }
    });
}

/// Calls `visit` for each reference to a resource, with the first two names after its block, if they are
/// written as names: a key and an attribute, or an attribute.
pub fn resources<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Block, [Option<&'e Name>; 2])) {
    // The walk meets a chain from its end to its root. These are its names so far, the nearest first.
    let mut names = [None, None];
    let mut base: Option<&Expr> = None;
    walk(expr, &mut |part| {
        if !base.take().is_some_and(|base| std::ptr::eq(base, part)) {
            names = [None, None];
        }
        match &part.kind {
            Kind::Attribute(inner, name) => {
                (names, base) = ([Some(name), names[0]], Some(&**inner));
            }
            Kind::Index(inner, index) => {
                // Names after a computed key belong to any instance.
                let key = match &index.kind {
                    Kind::Literal(Value::String(key)) => Some(key),
                    _ => None,
                };
                (names, base) = ([key, key.and(names[0])], Some(&**inner));
            }
            Kind::Root(Root::Resource(block)) => visit(block, names),
            _ => {}
        }
    });
}

/// Calls `visit` for each whole reference to a variable or a resource: the longest chain of attributes
/// and indexes that begins there.
pub fn references<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    let mut stack = vec![expr];
    while let Some(expr) = stack.pop() {
        if is_reference(expr) {
            visit(expr);
            continue;
        }
        let first = stack.len();
        push_parts(expr, &mut stack);
        stack[first..].reverse();
    }
}

/// Calls `visit` for each whole reference to a variable or a resource, for a change.
pub fn references_mut(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
    let mut stack = vec![expr];
    while let Some(expr) = stack.pop() {
        if is_reference(expr) {
            visit(expr);
            continue;
        }
        let first = stack.len();
        push_parts_mut(expr, &mut stack);
        stack[first..].reverse();
    }
}

/// Calls `change` for the expression and each of its parts, from the outside in. If it returns false, the
/// parts of that expression are left alone.
pub fn change(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr) -> bool) {
    let mut stack = vec![expr];
    while let Some(expr) = stack.pop() {
        if change(expr) {
            push_parts_mut(expr, &mut stack);
        }
    }
}

/// Calls `visit` for each known value that is written in an expression, except the keys of references.
pub fn literals<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Value)) {
    let mut stack = vec![expr];
    while let Some(expr) = stack.pop() {
        match &expr.kind {
            Kind::Literal(value) => visit(value),
            _ if is_reference(expr) => {}
            _ => push_parts(expr, &mut stack),
        }
    }
}

/// Returns an expression with a secret value in a form that people may see: with its references, and without
/// the values that are written in it. It is for reading only, and computes another value.
#[must_use]
pub fn without_literals(expr: &Expr) -> Expr {
    let mut shown = expr.clone();
    let mut stack = vec![&mut shown];
    while let Some(expr) = stack.pop() {
        if is_reference(expr) {
            continue;
        }
        match &mut expr.kind {
            Kind::Literal(Value::Null | Value::Bool(_)) => {}
            Kind::Literal(value) => *value = Value::string("…"),
            _ => push_parts_mut(expr, &mut stack),
        }
    }
    shown
}

fn is_reference(mut expr: &Expr) -> bool {
    while let Kind::Attribute(base, _) | Kind::Index(base, _) = &expr.kind {
        expr = base;
    }
    matches!(&expr.kind, Kind::Root(Root::Var(_) | Root::Resource(_)))
}

/// Changes the place of the expression and each of its parts.
pub fn move_ranges(expr: &mut Expr, place: &dyn Fn(Range) -> Range) {
    expr.range = place(expr.range);
    if matches!(expr.kind, Kind::Literal(_) | Kind::Root(_)) {
        return;
    }
    let mut stack = Vec::new();
    push_parts_mut(expr, &mut stack);
    while let Some(expr) = stack.pop() {
        expr.range = place(expr.range);
        push_parts_mut(expr, &mut stack);
    }
}

/// Adds the parts of an expression, in the order of the text.
pub(crate) fn push_parts<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    each_part(expr, &mut |part| parts.push(part));
}

fn each_part<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        Kind::Literal(_) | Kind::Root(_) => {}
        Kind::Template(items) | Kind::List(items) => items.iter().for_each(visit),
        Kind::Attribute(base, _) | Kind::Unary(_, base) => visit(base),
        Kind::Index(left, right) | Kind::Binary(_, left, right) => {
            visit(left);
            visit(right);
        }
        Kind::Splat(base, rest) => {
            visit(base);
            let indexes = rest.iter().filter_map(|access| match access {
                Access::Attribute(_) => None,
                Access::Index(index) => Some(index),
            });
            indexes.for_each(visit);
        }
        Kind::Conditional(c) => [&c.condition, &c.yes, &c.no].into_iter().for_each(visit),
        Kind::Call(call) => call.arguments.iter().for_each(visit),
        Kind::For(f) => {
            let parts = [Some(&f.collection), f.key.as_ref(), Some(&f.value), f.condition.as_ref()];
            parts.into_iter().flatten().for_each(visit);
        }
        Kind::Map(entries) => {
            for (key, value) in entries {
                visit(key);
                visit(value);
            }
        }
    }
}

pub(super) fn push_parts_mut<'e>(expr: &'e mut Expr, parts: &mut Vec<&'e mut Expr>) {
    match &mut expr.kind {
        Kind::Literal(_) | Kind::Root(_) => {}
        Kind::Template(items) | Kind::List(items) => parts.extend(items),
        Kind::Attribute(base, _) => parts.push(base),
        Kind::Index(base, index) => parts.extend([&mut **base, &mut **index]),
        Kind::Splat(base, rest) => {
            parts.push(base);
            parts.extend(rest.iter_mut().filter_map(|access| match access {
                Access::Attribute(_) => None,
                Access::Index(index) => Some(index),
            }));
        }
        Kind::Unary(_, operand) => parts.push(operand),
        Kind::Binary(_, left, right) => parts.extend([&mut **left, &mut **right]),
        Kind::Conditional(c) => {
            let c = &mut **c;
            parts.extend([&mut c.condition, &mut c.yes, &mut c.no]);
        }
        Kind::Call(call) => parts.extend(&mut call.arguments),
        Kind::For(f) => {
            let f = &mut **f;
            parts.push(&mut f.collection);
            parts.extend(&mut f.key);
            parts.push(&mut f.value);
            parts.extend(&mut f.condition);
        }
        Kind::Map(entries) => {
            parts.extend(entries.iter_mut().flat_map(|(key, value)| [key, value]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::UnaryOp;

    fn root(name: &str) -> Expr {
        Expr::nowhere(Kind::Root(Root::Var(name.into())))
    }

    #[test]
    fn the_order_is_the_order_of_the_text() {
        let index = Expr::nowhere(Kind::Index(Box::new(root("a")), Box::new(root("b"))));
        let expr = Expr::nowhere(Kind::List(vec![index, root("c")]));
        let mut names = Vec::new();
        roots(&expr, &mut |root, _| names.push(format!("{root:?}")));
        assert_eq!(names, [r#"Var("a")"#, r#"Var("b")"#, r#"Var("c")"#]);
    }

    #[test]
    fn a_reference_is_the_whole_chain() {
        let text = r#""${var.a}-${key.k["x"].id}" + upper(for_each(local.l, key.k))"#;
        let expr = crate::expression::parse::residual(text).unwrap();
        let mut found = Vec::new();
        references(&expr, &mut |part| found.push(part.to_string()));
        assert_eq!(found, ["var.a", r#"key.k["x"].id"#, "key.k"]);
        let mut changed = expr.clone();
        references_mut(&mut changed, &mut |part| {
            assert_eq!(part.to_string(), found.remove(0));
            *part = Expr::literal(Value::Null);
        });
        assert!(found.is_empty() && !changed.to_string().contains("key.k"), "{changed}");
    }

    #[test]
    fn depth_does_not_matter() {
        let mut expr = Expr::literal(Value::Bool(true));
        for _ in 0..100_000 {
            expr = Expr::nowhere(Kind::Unary(UnaryOp::Not, Box::new(expr)));
        }
        move_ranges(&mut expr, &|_| Range { start: 1, end: 2 });
        let mut parts = 0;
        walk(&expr, &mut |part| {
            assert_eq!(part.range.start, 1);
            parts += 1;
        });
        assert_eq!(parts, 100_001);
        // Dropping it in the ordinary way would recurse, which this module avoids.
        std::mem::forget(expr);
    }
}
