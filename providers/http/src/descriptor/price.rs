//! Reading `[type.<name>.price]`.

use engine::diagnostics::Span;
use engine::expression::check::{self, Types, Unresolved};
use engine::expression::{Expr, ExprError, Root};
use engine::schema::{Price, RATES};
use engine::stored::from_json;
use engine::types::Type;
use engine::value::Value;

use super::diagnostics;
use super::model::TypeModel;
use super::reader::{Keys, Node, Reader};
use super::texts::bare;

/// The currency of a price without one.
const CURRENCY: &str = "USD";

pub(super) fn read(reader: &mut Reader, node: Node<'_>) -> Option<(Price, Span)> {
    let mut keys = Keys::of(reader, node, "price")?;
    let is_given = keys.node("hourly").is_some() || keys.node("monthly").is_some();
    let mut expression = |reader: &mut Reader, key| {
        let node = keys.node(key)?;
        bare(reader, node, key)
    };
    let [hourly, monthly] = ["hourly", "monthly"].map(|key| expression(reader, key));
    let [count, count_max] = ["count", "count_max"].map(|key| expression(reader, key));
    let currency = currency(reader, &mut keys);
    let rates = keys.node("rates").and_then(|node| {
        reader.table(node, "rates")?;
        reader.json(node, "rates")
    });
    keys.finish(reader);
    let span = reader.span(node.span());
    if !is_given {
        reader.push(diagnostics::missing_key(span, "price", "hourly"));
    }
    let price = Price {
        currency: currency.into(),
        hourly,
        monthly,
        count,
        count_max,
        rates: rates.map_or_else(|| Value::map([].into()), |json| from_json(&json)),
    };
    Some((price, span))
}

/// Reads the three capital letters of a currency.
fn currency(reader: &mut Reader, keys: &mut Keys<'_>) -> String {
    let Some(node) = keys.node("currency") else { return CURRENCY.to_owned() };
    let text = reader.text(node, "currency").unwrap_or(CURRENCY);
    if text.len() != 3 || !text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        reader.wrong(node, "currency", "three capital letters, such as \"EUR\"");
    }
    text.to_owned()
}

/// Checks that the expressions of a price give numbers, and use only attributes and rates that exist.
pub(super) fn check(reader: &mut Reader, name: &str, model: &TypeModel) {
    let Some((price, span)) = &model.price else { return };
    let mut errors = Vec::new();
    price.expressions().for_each(|expr| amount(expr, &PriceTypes(model), &mut errors));
    for error in &errors {
        let mut diagnostic = diagnostics::bad_expression(*span, error);
        diagnostic.summary = format!("type `{name}`: a price does not hold");
        reader.push(diagnostic);
    }
}

fn amount(expr: &Expr, types: &PriceTypes<'_>, errors: &mut Vec<ExprError>) {
    let known = errors.len();
    let ty = check::check(expr, types, errors);
    if errors.len() == known && !ty.fits(&Type::Number) {
        errors.push(ExprError {
            range: expr.range,
            message: format!("`{expr}` is of type {ty}, not a number"),
            help: None,
            meant: None,
        });
    }
}

/// The scope of a price: the attributes by name, and the table of rates.
struct PriceTypes<'a>(&'a TypeModel);

impl Types for PriceTypes<'_> {
    fn root(&self, root: &Root) -> Result<Type, Unresolved> {
        let known = "a price sees the attributes and `rates`";
        match root {
            Root::Named(name) if &**name == RATES => Ok(Type::Any),
            Root::Named(name) => match self.0.attributes.get(name) {
                Some(attribute) => Ok(attribute.schema.ty.clone()),
                None => Err(Unresolved::advised(format!("there is no `{name}` here"), known)),
            },
            _ => Err(Unresolved::advised("a price sees no resources".to_owned(), known)),
        }
    }
}
