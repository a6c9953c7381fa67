//! What goes wrong, how often: drawn per seed, each class on or off, so that rare ones are not
//! always drowned by common ones.

use crate::rng::Rng;

/// A class with dice of its own, so that what a seed draws beside it stays what it was.
const DRAWN_APART: &str = "accepted";

/// Rates in a thousand, for each call or write.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    /// A mutating call is not sent.
    pub(crate) not_sent: u64,
    /// It is told to slow down.
    pub(crate) throttled: u64,
    /// It is refused for no reason.
    pub(crate) refused: u64,
    /// The key is refused.
    pub(crate) unauthenticated: u64,
    /// It does not happen, and nobody knows.
    pub(crate) lost_before: u64,
    /// It happens, and nobody knows.
    pub(crate) lost_after: u64,
    /// It is done twice.
    pub(crate) doubled: u64,
    /// It happens after the client gave up.
    pub(crate) late: u64,
    /// It takes long.
    pub(crate) slow: u64,
    /// Its wait does not come true in time.
    pub(crate) still_waiting: u64,
    /// The answer does not show the object.
    pub(crate) bare: u64,
    /// A create is accepted, and makes its object only later.
    pub(crate) accepted: u64,
    /// A list, a read or a search fails.
    pub(crate) looks_fail: u64,
    /// A list shows what was, some seconds ago.
    pub(crate) stale: u64,
    /// A list leaves objects out.
    pub(crate) incomplete: u64,
    /// A write of the store fails, and nothing was written.
    pub(crate) write_fails: u64,
    /// A write of the store fails, and it was written.
    pub(crate) write_lies: u64,
}

impl Rates {
    /// About half of the classes on, at one of three strengths.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mut rates = Self::default();
        let strength = *rng.pick(&[10, 60, 200]);
        let classes = rates.classes().into_iter();
        for (_, rate) in classes.filter(|(class, _)| *class != DRAWN_APART) {
            if rng.per_mille(450) {
                *rate = rng.between(1, strength);
            }
        }
        // These end runs, so that nothing else would ever be seen.
        for rate in [&mut rates.unauthenticated, &mut rates.write_fails, &mut rates.write_lies] {
            *rate = (*rate).min(20);
        }
        rates
    }

    /// Each class by name, for drawing and shrinking.
    pub(crate) fn classes(&mut self) -> [(&'static str, &mut u64); 17] {
        [
            ("not_sent", &mut self.not_sent),
            ("throttled", &mut self.throttled),
            ("refused", &mut self.refused),
            ("unauthenticated", &mut self.unauthenticated),
            ("lost_before", &mut self.lost_before),
            ("lost_after", &mut self.lost_after),
            ("doubled", &mut self.doubled),
            ("late", &mut self.late),
            ("slow", &mut self.slow),
            ("still_waiting", &mut self.still_waiting),
            ("bare", &mut self.bare),
            (DRAWN_APART, &mut self.accepted),
            ("looks_fail", &mut self.looks_fail),
            ("stale", &mut self.stale),
            ("incomplete", &mut self.incomplete),
            ("write_fails", &mut self.write_fails),
            ("write_lies", &mut self.write_lies),
        ]
    }
}
