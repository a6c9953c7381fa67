//! Prices: the cost of objects of a type, computed from their attributes.

use crate::address::Name;
use crate::expression::Expr;
use crate::value::Value;

/// The hours of a month, by which an amount for a month is converted to one for an hour.
pub const MONTH_HOURS: u32 = 730;

/// The word for [`Price::rates`] in the expressions of a price.
pub const RATES: &str = "rates";

/// The price of an object. Its expressions see the attributes by name, and `rates`.
#[derive(Clone, Debug)]
pub struct Price {
    /// The currency of all amounts, such as `USD`.
    pub currency: Name,
    /// The amount for an hour, which is added to the amount for a month.
    pub hourly: Option<Expr>,
    /// The amount for a month of [`MONTH_HOURS`].
    pub monthly: Option<Expr>,
    /// The number of units that the amounts are multiplied by, or the lowest of a range; none for 1.
    pub count: Option<Expr>,
    /// The highest number of the range; none if there is no range.
    pub count_max: Option<Expr>,
    /// Tables of numbers in which the expressions look amounts up.
    pub rates: Value,
}

impl Price {
    /// Returns the expressions of the price.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let amounts = self.hourly.iter().chain(&self.monthly);
        amounts.chain(&self.count).chain(&self.count_max)
    }
}
