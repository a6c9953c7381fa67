//! The rates of the faults. A seed turns each class on or off, so that common faults do not always hide rare
//! ones.

use crate::rng::Rng;

/// The class that is drawn from a random stream of its own, so that it does not change the other draws of a
/// seed.
const DRAWN_APART: &str = "accepted";

/// The rates of faults in a thousand, for each call or write.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    /// A mutating call is not sent.
    pub(crate) not_sent: u64,
    /// The server tells the client of a mutating call to slow down.
    pub(crate) throttled: u64,
    /// The server refuses a mutating call for no reason.
    pub(crate) refused: u64,
    /// The server refuses the key of the client.
    pub(crate) unauthenticated: u64,
    /// A mutating call has no effect, and its outcome is unknown.
    pub(crate) lost_before: u64,
    /// A mutating call takes effect, and its outcome is unknown.
    pub(crate) lost_after: u64,
    /// The server executes a mutating call twice.
    pub(crate) doubled: u64,
    /// A mutating call takes effect after its client gave up.
    pub(crate) late: u64,
    /// A call takes up to a minute.
    pub(crate) slow: u64,
    /// The wait of a phase does not come true in time.
    pub(crate) still_waiting: u64,
    /// The answer to a mutating call does not show the object.
    pub(crate) bare: u64,
    /// A create is accepted, and makes its object only later.
    pub(crate) accepted: u64,
    /// A list, a read or a search fails.
    pub(crate) looks_fail: u64,
    /// A list or a read shows the objects of some seconds ago.
    pub(crate) stale: u64,
    /// A list leaves objects out.
    pub(crate) incomplete: u64,
    /// A write of the store fails, and nothing is written.
    pub(crate) write_fails: u64,
    /// A write of the store fails although it is written.
    pub(crate) write_lies: u64,
}

impl Rates {
    /// Draws rates: about half of the classes are on, at one of three strengths.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mut rates = Self::default();
        let strength = *rng.pick(&[10, 60, 200]);
        let classes = rates.classes().into_iter();
        for (_, rate) in classes.filter(|(class, _)| *class != DRAWN_APART) {
            if rng.per_mille(450) {
                *rate = rng.between(1, strength);
            }
        }
        // These faults end a run. At higher rates nothing else would ever be seen.
        for rate in [&mut rates.unauthenticated, &mut rates.write_fails, &mut rates.write_lies] {
            *rate = (*rate).min(20);
        }
        rates
    }

    /// Returns each class with its name and its rate, for drawing and shrinking.
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
