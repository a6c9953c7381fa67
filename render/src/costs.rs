//! The cost of a plan, as people and programs read it.

use std::fmt::Write as _;

use engine::address::Name;
use engine::plan::cost::PARTS;
use engine::plan::{Cost, Estimate};
use engine::schema::MONTH_HOURS;
use serde::Serialize;

use crate::safe;

/// The cost before and after, in one currency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostView {
    /// The currency.
    pub currency: Name,
    /// The cost of the objects that exist now.
    pub before: EstimateView,
    /// The cost of the objects that exist after the plan.
    pub after: EstimateView,
}

/// An estimated cost for an hour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EstimateView {
    /// The lowest cost.
    pub hourly_min: f64,
    /// The highest cost.
    pub hourly_max: f64,
    /// The number of objects whose cost is not known.
    pub unknown: usize,
    #[serde(skip)]
    exact: Estimate,
}

impl From<&Cost> for CostView {
    fn from(cost: &Cost) -> Self {
        let of = |exact: Estimate| EstimateView {
            hourly_min: number(exact.min),
            hourly_max: number(exact.max),
            unknown: exact.unknown,
            exact,
        };
        Self { currency: cost.currency.clone(), before: of(cost.before), after: of(cost.after) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "nine digits behind the point come out exactly")]
fn number(parts: u64) -> f64 {
    parts as f64 / PARTS as f64
}

impl CostView {
    /// Returns the cost of one object: `7.00 → 14.00 USD a month`; none if it does not change.
    pub(crate) fn of_object(&self) -> Option<String> {
        let (before, after) = (self.before.exact, self.after.exact);
        if before == after {
            return None;
        }
        let side = |it: Estimate| if it.unknown > 0 { "unknown".to_owned() } else { month(it) };
        let none = Estimate::default();
        let sides = match (before == none, after == none) {
            (true, _) => side(after),
            (_, true) => format!("{} → 0.00", side(before)),
            _ => format!("{} → {}", side(before), side(after)),
        };
        Some(safe::text(&format!("costs {sides} {} a month", self.currency)))
    }

    /// Returns the cost of a plan, in a line: `Cost: 7.00 → 14.00 USD a month (0.0096 → 0.0192 an hour).`
    pub(crate) fn of_plan(&self) -> String {
        let (before, after) = (self.before.exact, self.after.exact);
        let mut text = if (before.min, before.max) == (after.min, after.max) {
            format!("Cost: {} {} a month ({} an hour)", month(after), self.currency, hour(after))
        } else {
            format!(
                "Cost: {} → {} {} a month ({} → {} an hour)",
                month(before),
                month(after),
                self.currency,
                hour(before),
                hour(after)
            )
        };
        let _infallible = match after.unknown {
            0 => Ok(()),
            1 => write!(text, ", and 1 object whose cost is not known"),
            many => write!(text, ", and {many} objects whose cost is not known"),
        };
        safe::text(&format!("{text}."))
    }
}

/// Returns the amount for a month, with two digits after the point.
fn month(estimate: Estimate) -> String {
    range(estimate, |parts| decimal(u128::from(parts) * u128::from(MONTH_HOURS), 2))
}

/// Returns the amount for an hour, with four digits after the point.
fn hour(estimate: Estimate) -> String {
    range(estimate, |parts| decimal(u128::from(parts), 4))
}

fn range(estimate: Estimate, text: impl Fn(u64) -> String) -> String {
    if estimate.min == estimate.max {
        return text(estimate.max);
    }
    format!("{}–{}", text(estimate.min), text(estimate.max))
}

/// Returns a number of parts as a decimal number, rounded.
fn decimal(parts: u128, digits: u32) -> String {
    let scale = 10_u128.pow(digits);
    let rounded = (parts * scale + u128::from(PARTS) / 2) / u128::from(PARTS);
    format!("{}.{:0width$}", rounded / scale, rounded % scale, width = digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(before: (u64, u64, usize), after: (u64, u64, usize)) -> CostView {
        let of = |(min, max, unknown)| Estimate { min, max, unknown };
        CostView::from(&Cost { currency: "USD".into(), before: of(before), after: of(after) })
    }

    #[test]
    fn amounts_for_people() {
        let grows = cost((9_589_041, 9_589_041, 0), (19_178_082, 3_319_178_082, 1));
        assert_eq!(
            grows.of_plan(),
            "Cost: 7.00 → 14.00–2423.00 USD a month (0.0096 → 0.0192–3.3192 an hour), \
             and 1 object whose cost is not known."
        );
        let same = cost((9_589_041, 9_589_041, 0), (9_589_041, 9_589_041, 2));
        assert_eq!(
            same.of_plan(),
            "Cost: 7.00 USD a month (0.0096 an hour), and 2 objects whose cost is not known."
        );
        let none = (0, 0, 0);
        let text = |before, after| cost(before, after).of_object().unwrap_or_default();
        assert_eq!(text(none, (690_000_000, 690_000_000, 0)), "costs 503.70 USD a month");
        assert_eq!(text(none, (0, 0, 1)), "costs unknown USD a month");
        assert_eq!(text((9_589_041, 9_589_041, 0), none), "costs 7.00 → 0.00 USD a month");
        assert_eq!(text((0, 0, 1), (0, 0, 1)), "");
    }

    #[test]
    fn amounts_for_programs_have_no_noise() {
        let json = serde_json::to_string(&cost((0, 0, 0), (9_589_041, 3_300_000_001, 0))).unwrap();
        assert_eq!(
            json,
            "{\"currency\":\"USD\",\"before\":{\"hourly_min\":0.0,\"hourly_max\":0.0,\"unknown\":0},\
             \"after\":{\"hourly_min\":0.009589041,\"hourly_max\":3.300000001,\"unknown\":0}}"
        );
    }
}
