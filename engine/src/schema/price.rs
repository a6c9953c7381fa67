//! Prices: what the objects of a type cost, by their attributes.

use crate::address::Name;
use crate::expression::Expr;
use crate::value::Value;

/// The hours of a month, where an amount for a month becomes one for an hour.
pub const MONTH_HOURS: u32 = 730;

/// The word by which expressions of a price see [`Price::rates`].
pub const RATES: &str = "rates";

/// The price of an object. Its expressions see the attributes by name, and `rates`.
#[derive(Clone, Debug)]
pub struct Price {
    /// The currency of all amounts, such as `USD`.
    pub currency: Name,
    /// The amount for an hour; added to that for a month.
    pub hourly: Option<Expr>,
    /// The amount for a month of [`MONTH_HOURS`].
    pub monthly: Option<Expr>,
    /// The number that the amounts are for, or the least of a range; none for 1.
    pub count: Option<Expr>,
    /// The most of the range.
    pub count_max: Option<Expr>,
    /// Tables of numbers that the expressions look amounts up in.
    pub rates: Value,
}

impl Price {
    /// Its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let amounts = self.hourly.iter().chain(&self.monthly);
        amounts.chain(&self.count).chain(&self.count_max)
    }
}
