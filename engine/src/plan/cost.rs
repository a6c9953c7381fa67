//! The cost of the objects of a plan, by the prices that their types declare.

use serde::{Deserialize, Serialize};

use crate::address::{Block, Name};
use crate::expression::evaluate::{Scope, evaluate};
use crate::expression::{Expr, Root};
use crate::plan::draft::Draft;
use crate::schema::{MONTH_HOURS, Price, RATES};
use crate::value::{Attributes, Datum, Path, Value};

/// The number of parts of one unit of a currency. Amounts are whole numbers of parts, so that sums are exact.
pub const PARTS: u64 = 1_000_000_000;
/// The greatest price for an hour that is accepted; a higher one counts as unknown.
const HOURLY_MAX: f64 = 1e9;

/// The cost of objects before and after a plan, in one currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The currency.
    pub currency: Name,
    /// The cost of the objects that exist now.
    pub before: Estimate,
    /// The cost of the objects that exist after the plan.
    pub after: Estimate,
}

/// An estimated cost: a range for an hour, and the number of objects that the range does not include.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// The lowest cost for an hour, in [`PARTS`].
    pub min: u64,
    /// The highest cost for an hour, in [`PARTS`].
    pub max: u64,
    /// The number of objects with a price that cannot be computed.
    pub unknown: usize,
}

impl Estimate {
    /// The estimate of an object with a price that cannot be computed.
    const UNKNOWN: Self = Self { min: 0, max: 0, unknown: 1 };

    #[expect(clippy::cast_precision_loss, reason = "the digits of an amount come out exactly")]
    fn value(&self) -> Value {
        let amount = |parts: u64| Value::Float(parts as f64 / PARTS as f64);
        let unknown = Value::Integer(i64::try_from(self.unknown).unwrap_or(i64::MAX));
        let amounts = [("hourly_min", amount(self.min)), ("hourly_max", amount(self.max))];
        let entries = amounts.into_iter().chain([("unknown", unknown)]);
        Value::map(entries.map(|(name, value)| (name.into(), value)).collect())
    }

    fn add(&mut self, other: Self) {
        self.min = self.min.saturating_add(other.min);
        self.max = self.max.saturating_add(other.max);
        self.unknown += other.unknown;
    }
}

impl Cost {
    /// Returns the cost of one object as policies see it; an unknown side is null.
    pub(in crate::plan) fn of_one(&self) -> Value {
        self.value(|side| if side.unknown > 0 { Value::Null } else { side.value() })
    }

    /// Returns the cost of many objects as policies see it.
    pub(in crate::plan) fn of_all(&self) -> Value {
        self.value(Estimate::value)
    }

    fn value(&self, side: impl Fn(&Estimate) -> Value) -> Value {
        let currency = Value::String(self.currency.clone());
        let sides = [("before", side(&self.before)), ("after", side(&self.after))];
        let entries = sides.into_iter().chain([("currency", currency)]);
        Value::map(entries.map(|(name, value)| (name.into(), value)).collect())
    }
}

/// Estimates the cost of each object, and returns the sums by currency. Objects that stay as they are count,
/// too.
pub(in crate::plan) fn estimate(drafts: &mut [Draft]) -> Vec<Cost> {
    let mut sums: Vec<Cost> = Vec::new();
    for draft in drafts {
        let Some(price) = &draft.schema.price else { continue };
        let cost = of_draft(price, draft);
        let at = sums.binary_search_by(|sum| sum.currency.cmp(&cost.currency));
        let at = at.unwrap_or_else(|at| {
            let (before, after) = (Estimate::default(), Estimate::default());
            sums.insert(at, Cost { currency: cost.currency.clone(), before, after });
            at
        });
        if let Some(sum) = sums.get_mut(at) {
            sum.before.add(cost.before);
            sum.after.add(cost.after);
        }
        draft.change.cost = Some(cost);
    }
    sums
}

fn of_draft(price: &Price, draft: &Draft) -> Cost {
    let change = &draft.change;
    let of = |attributes| of_object(price, draft, attributes);
    let before = change.before.as_deref().map(of).unwrap_or_default();
    let is_kept = change.action.is_idle() || draft.is_forgotten();
    let mut after = if is_kept { before } else { Estimate::default() };
    if let Some(wanted) = change.after.as_ref().filter(|_| !change.action.is_idle()) {
        after.add(of(wanted));
    }
    Cost { currency: price.currency.clone(), before, after }
}

fn of_object(price: &Price, draft: &Draft, attributes: &Attributes) -> Estimate {
    let scope = PriceScope { price, draft, attributes };
    range(price, &scope).unwrap_or(Estimate::UNKNOWN)
}

fn range(price: &Price, scope: &dyn Scope) -> Option<Estimate> {
    let of = |expr: &Option<Expr>, none| match expr {
        Some(expr) => amount(expr, scope),
        None => Some(none),
    };
    let hourly = of(&price.hourly, 0.0)? + of(&price.monthly, 0.0)? / f64::from(MONTH_HOURS);
    let least = of(&price.count, 1.0)?;
    let most = of(&price.count_max, least)?.max(least);
    Some(Estimate { min: parts(hourly * least)?, max: parts(hourly * most)?, unknown: 0 })
}

/// Returns the number that an expression gives; none if it is not known, is negative, or would reveal a secret.
fn amount(expr: &Expr, scope: &dyn Scope) -> Option<f64> {
    let datum = evaluate(expr, scope).ok()?;
    let number = match datum.value {
        #[expect(clippy::cast_precision_loss, reason = "a price has few digits")]
        Value::Integer(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        _ => None,
    };
    number.filter(|number| *number >= 0.0 && datum.sensitive.is_empty())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is in bounds"
)]
fn parts(hourly: f64) -> Option<u64> {
    (0.0..=HOURLY_MAX).contains(&hourly).then(|| (hourly * 1e9).round() as u64)
}

/// The scope of a price: the attributes of an object, and the table of rates.
struct PriceScope<'a> {
    price: &'a Price,
    draft: &'a Draft,
    attributes: &'a Attributes,
}

impl Scope for PriceScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Named(name) = root else { return Err("a price sees attributes".to_owned()) };
        if &**name == RATES {
            return Ok(Datum::plain(self.price.rates.clone()));
        }
        let attribute = self.draft.schema.attributes.get(name);
        let is_secret = attribute.is_some_and(|it| it.sensitive)
            || self.draft.change.sensitive.touches(&Path::attribute(name.clone()));
        let is_given = self.draft.change.managed.contains(name);
        let value = match self.attributes.get(name) {
            None => Value::Null,
            // The API fills in the attribute, and the price has a default for null.
            Some(Value::Unknown(_)) if !is_given => Value::Null,
            // The attribute holds the id of an object that is still to be made.
            Some(Value::Unknown(_)) if attribute.is_some_and(|it| it.holds.is_some()) => {
                Value::string("")
            }
            Some(value) => value.clone(),
        };
        Ok(if is_secret { Datum::secret(value) } else { Datum::plain(value) })
    }

    fn resource(&self, block: &Block, _key: Option<&str>) -> Result<Datum, String> {
        Err(format!("a price sees no resource, so not `{block}`"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::expression::parse::{Dialect, expression};
    use crate::plan::facts::samples;
    use crate::schema::TypeSchema;
    use crate::types::Type;

    fn price(hourly: &str, count: Option<&str>) -> Price {
        let expr = |text: &str| expression(text, Dialect::Names).unwrap();
        let table = [("a".into(), Value::Float(0.1)), ("b".into(), Value::Float(0.2))];
        Price {
            currency: "USD".into(),
            hourly: Some(expr(hourly)),
            monthly: Some(expr("7.3")),
            count: count.map(expr),
            count_max: count.map(|_| expr("3")),
            rates: Value::map(table.into()),
        }
    }

    /// Returns the estimates of two equal drafts, and the sum.
    fn estimates(
        price: Price,
        (action, note): (&str, [Option<&str>; 2]),
        prepare: impl Fn(&mut Draft),
    ) -> (Cost, Cost) {
        let mut schema = TypeSchema::clone(&samples::holding_type());
        schema.price = Some(price);
        let schema = Arc::new(schema);
        let mut drafts: Vec<Draft> = ["x", "y"]
            .into_iter()
            .map(|name| samples::draft(schema.clone(), action, name, note))
            .collect();
        drafts.iter_mut().for_each(prepare);
        let mut sums = estimate(&mut drafts);
        assert_eq!(sums.len(), 1);
        (drafts[1].change.cost.clone().unwrap(), sums.remove(0))
    }

    fn known(min: u64, max: u64) -> Estimate {
        Estimate { min, max, unknown: 0 }
    }

    #[test]
    fn sums_are_exact() {
        let price = price("rates[note]", Some("1"));
        let sides = [Some("note=a"), Some("note=b")];
        let (one, sum) = estimates(price.clone(), ("update", sides), |_| {});
        assert_eq!(one.before, known(110_000_000, 330_000_000));
        assert_eq!(one.after, known(210_000_000, 630_000_000));
        assert_eq!(sum.after, known(420_000_000, 1_260_000_000));
        let (_, gone) = estimates(price, ("delete", [Some("note=a"), None]), |_| {});
        assert_eq!((gone.before, gone.after), (known(220_000_000, 660_000_000), known(0, 0)));
    }

    /// An object that Plumb leaves alone costs what it did, also beside the one in its place.
    #[test]
    fn an_object_that_is_left_alone_costs_on() {
        let price = price("rates[note]", None);
        let sides = [Some("note=a"), None];
        let (one, _) = estimates(price.clone(), ("forget", sides), |_| {});
        assert_eq!((one.before, one.after), (known(110_000_000, 110_000_000), one.before));
        let sides = [Some("note=a"), Some("note=b")];
        let (one, _) = estimates(price, ("replace", sides), |draft| draft.retains = true);
        assert_eq!(one.after, known(320_000_000, 320_000_000));
    }

    #[test]
    fn what_cannot_be_computed_is_counted() {
        let sides = [None, Some("note=c")];
        for hourly in ["rates[note]", "rates[holder]", "-1", "1e300", "1 / 0", "note"] {
            let (one, sum) = estimates(price(hourly, None), ("create", sides), |_| {});
            assert_eq!((one.after, sum.after.unknown), (Estimate::UNKNOWN, 2), "{hourly}");
        }
    }

    #[test]
    fn a_secret_makes_no_price() {
        let secret = |draft: &mut Draft| {
            draft.change.sensitive = [Path::attribute("note")].into_iter().collect();
        };
        let sides = [None, Some("note=a")];
        let (one, _) = estimates(price("rates[note]", None), ("create", sides), secret);
        assert_eq!(one.after, Estimate::UNKNOWN);
    }

    #[test]
    fn what_the_api_fills_in_is_null_until_it_is_known() {
        let unknown = |attribute: &'static str, is_given: bool| {
            move |draft: &mut Draft| {
                let value = Value::unknown(Type::String, Expr::literal(Value::Null));
                let after = [(attribute.into(), value)].into();
                draft.change.after = Some(Arc::new(after));
                draft.change.managed = is_given.then(|| attribute.into()).into_iter().collect();
            }
        };
        let sides = [None, Some("note=a")];
        let after = |price: &Price, prepare: &dyn Fn(&mut Draft)| {
            estimates(price.clone(), ("create", sides), prepare).0.after
        };
        let filled = price("note == null ? 1 : 2", None);
        assert_eq!(after(&filled, &unknown("note", false)).max, 1_010_000_000);
        assert_eq!(after(&filled, &unknown("note", true)), Estimate::UNKNOWN);
        // The id of an object that is still to be made is unknown, and not null.
        let held = price("holder == null ? 1 : 2", None);
        assert_eq!(after(&held, &unknown("holder", true)).max, 2_010_000_000);
    }
}
