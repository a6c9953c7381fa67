//! Templates: literal text, `${…}`, and the directives `%{if}` and `%{for}`.

use hcl_edit::Span;
use hcl_edit::template::{Directive, Element, ForDirective, IfDirective, Strip, Template};

use super::{Converter, Out};
use crate::address::Name;
use crate::expression::{Call, Conditional, Expr, ExprError, For, Kind, Range};
use crate::value::Value;

impl Converter<'_> {
    /// Returns the parts of a template, without the spaces that `~` removes.
    pub(super) fn elements(&mut self, template: &Template) -> Result<Vec<Expr>, ExprError> {
        let elements: Vec<&Element> = template.iter().collect();
        let mut parts = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            match element {
                Element::Literal(text) => {
                    let before = index.checked_sub(1).and_then(|at| elements.get(at));
                    let after = elements.get(index + 1);
                    let mut kept = text.value().as_str();
                    if before.is_some_and(|element| strips_after(element)) {
                        kept = kept.trim_start();
                    }
                    if after.is_some_and(|element| strips_before(element)) {
                        kept = kept.trim_end();
                    }
                    let kind = Kind::Literal(Value::string(kept));
                    parts.push(Expr { kind, range: self.range(text.span()) });
                }
                Element::Interpolation(part) => parts.push(self.expr(&part.expr)?),
                Element::Directive(directive) => {
                    let range = self.range(element.span());
                    let part = self.deeper(1, range, |c| match &**directive {
                        Directive::If(choice) => c.choice(choice, range),
                        Directive::For(walk) => c.repetition(walk, range),
                    })?;
                    parts.push(part);
                }
            }
        }
        Ok(parts)
    }

    fn choice(&mut self, choice: &IfDirective, range: Range) -> Out {
        let condition = self.expr(&choice.if_expr.cond_expr)?;
        let after = choice.else_expr.as_ref().map_or(choice.endif_expr.strip, |e| e.strip);
        let yes = self.body(&choice.if_expr.template, choice.if_expr.strip, after, range)?;
        let no = match &choice.else_expr {
            Some(other) => {
                self.body(&other.template, other.strip, choice.endif_expr.strip, range)?
            }
            None => text("", range),
        };
        let kind = Kind::Conditional(Box::new(Conditional { condition, yes, no }));
        Ok(Expr { kind, range })
    }

    /// Converts `%{for}`, which joins the results of its body for all items.
    fn repetition(&mut self, walk: &ForDirective, range: Range) -> Out {
        let head = &walk.for_expr;
        let collection = self.expr(&head.collection_expr)?;
        let key_variable: Option<Name> = head.key_var.as_ref().map(|word| word.as_str().into());
        let value_variable: Name = head.value_var.as_str().into();
        let outside = self.bound.len();
        self.bound.extend(key_variable.iter().cloned());
        self.bound.push(value_variable.clone());
        let value = self.body(&head.template, head.strip, walk.endfor_expr.strip, range)?;
        self.bound.truncate(outside);
        let walk = For {
            key_variable,
            value_variable,
            collection,
            key: None,
            value,
            condition: None,
            grouped: false,
        };
        let items = Expr { kind: Kind::For(Box::new(walk)), range };
        let arguments = vec![text("", range), items];
        let call = Call { name: "join".into(), arguments, spread: false };
        Ok(Expr { kind: Kind::Call(Box::new(call)), range })
    }

    /// Returns the text inside a directive: always a string, even if it consists of one part.
    fn body(&mut self, template: &Template, before: Strip, after: Strip, range: Range) -> Out {
        let mut parts = self.deeper(1, range, |c| c.elements(template))?;
        if before.strip_end()
            && let Some(first) = parts.first_mut()
        {
            trim(first, str::trim_start);
        }
        if after.strip_start()
            && let Some(last) = parts.last_mut()
        {
            trim(last, str::trim_end);
        }
        let place = self.range(template.span());
        if !parts.iter().any(|part| matches!(part.kind, Kind::Literal(Value::String(_)))) {
            parts.push(text("", place));
        }
        Ok(joined(parts, if template.is_empty() { range } else { place }))
    }
}

fn trim(part: &mut Expr, how: fn(&str) -> &str) {
    if let Kind::Literal(Value::String(text)) = &part.kind {
        part.kind = Kind::Literal(Value::string(how(text)));
    }
}

fn text(text: &str, range: Range) -> Expr {
    Expr { kind: Kind::Literal(Value::string(text)), range }
}

fn strips_before(element: &Element) -> bool {
    match element {
        Element::Literal(_) => false,
        Element::Interpolation(part) => part.strip.strip_start(),
        Element::Directive(directive) => match &**directive {
            Directive::If(choice) => choice.if_expr.strip.strip_start(),
            Directive::For(walk) => walk.for_expr.strip.strip_start(),
        },
    }
}

fn strips_after(element: &Element) -> bool {
    match element {
        Element::Literal(_) => false,
        Element::Interpolation(part) => part.strip.strip_end(),
        Element::Directive(directive) => match &**directive {
            Directive::If(choice) => choice.endif_expr.strip.strip_end(),
            Directive::For(walk) => walk.endfor_expr.strip.strip_end(),
        },
    }
}

/// Returns one expression for a template's parts. A single part keeps its type.
pub(super) fn joined(mut parts: Vec<Expr>, range: Range) -> Expr {
    match parts.pop() {
        Some(part) if parts.is_empty() => part,
        last => {
            parts.extend(last);
            Expr { kind: Kind::template(parts), range }
        }
    }
}
