//! The limit on simultaneous calls to one API address, and on their rate.
//!
//! There is one limiter for each address in a network, shared by all provider instances. It adapts to answers
//! with status 429: it halves the number of simultaneous calls, makes all calls pause as long as the API
//! asks, and spaces calls at the rate that the API has accepted. Then both grow again, slowly. [`Window`]
//! does the arithmetic and takes the time as an argument; [`Limiter`] waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The time over which the accepted rate is measured.
const MEASURE: Duration = Duration::from_secs(1);
/// The share of the accepted rate that is used after a refusal.
const SHARE: f64 = 0.9;
/// The growth of the rate in each [`MEASURE`] without a refusal.
const GROWTH: f64 = 1.05;
/// The rate, in calls for a second, above which calls are not spaced any more.
const RATE_MAX: f64 = 500.0;

/// The limiters of the network that all real clients of the process share.
static LIMITERS: LazyLock<Limiters> = LazyLock::new(Limiters::default);

/// Makes calls to one API address wait for their turn.
#[derive(Debug)]
pub(crate) struct Limiter {
    window: Mutex<Window>,
    changed: Notify,
}

/// The permission for one call; returned when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    limiter: Arc<Limiter>,
    began: Began,
}

/// The start of a turn, as its window records it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Began {
    epoch: u64,
    /// The earliest start of the next turn because of this one; none if calls are not spaced.
    next_start: Option<Instant>,
}

impl Limiter {
    /// Returns a limiter for an API about which nothing is known.
    pub(crate) fn new(bound: usize) -> Self {
        Self { window: Mutex::new(Window::new(bound)), changed: Notify::new() }
    }

    /// Returns the limiter of an address in the network of this process.
    pub(crate) fn of(address: &str, bound: usize) -> Arc<Self> {
        LIMITERS.of(address, bound)
    }

    /// Allows at least `bound` simultaneous calls.
    pub(crate) fn raise(&self, bound: usize) {
        self.with(|window| window.raise(bound));
    }

    /// Returns the time for which the API has refused everything; zero if its last answer was no refusal.
    pub(crate) fn refused_for(&self) -> Duration {
        self.with(|window| window.refused_since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Window) -> T) -> T {
        work(&mut self.window.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until a call may begin.
    pub(crate) async fn turn(self: &Arc<Self>) -> Turn {
        loop {
            let changed = self.changed.notified();
            match self.with(|window| window.start(Instant::now())) {
                Start::Now(began) => return Turn { limiter: self.clone(), began },
                Start::After(pause) => tokio::time::sleep(pause).await,
                Start::WhenFree => changed.await,
            }
        }
    }
}

impl Turn {
    /// Records that the API accepted the call.
    pub(crate) fn accepted(&self) {
        self.limiter.with(|window| window.accepted(Instant::now()));
        self.limiter.changed.notify_waiters();
    }

    /// Records that nothing was sent: the next call need not wait for this one.
    pub(crate) fn unused(&self) {
        self.limiter.with(|window| window.unused(self.began));
    }

    /// Records that the API refused the call with 429 and asked to wait.
    pub(crate) fn throttled(&self, after: Duration) {
        self.limiter.with(|window| window.throttled(Instant::now(), self.began.epoch, after));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.limiter.with(|window| window.running = window.running.saturating_sub(1));
        self.limiter.changed.notify_waiters();
    }
}

/// One limiter for each API address.
#[derive(Default)]
pub(crate) struct Limiters(Mutex<BTreeMap<String, Arc<Limiter>>>);

impl Limiters {
    /// Returns the limiter of an address. The largest bound that any instance asks for counts.
    pub(crate) fn of(&self, address: &str, bound: usize) -> Arc<Limiter> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let limiter =
            all.entry(address.to_owned()).or_insert_with(|| Arc::new(Limiter::new(bound)));
        limiter.raise(bound);
        limiter.clone()
    }
}

/// The answer to a request for a turn.
#[derive(Debug, PartialEq)]
enum Start {
    Now(Began),
    After(Duration),
    WhenFree,
}

/// The state of a limiter.
#[derive(Debug)]
struct Window {
    bound: usize,
    /// The allowed number of simultaneous calls; grows by fractions.
    allowed: f64,
    running: usize,
    /// Raised with each halving: a refusal of a call from before the halving changes nothing.
    epoch: u64,
    paused_until: Option<Instant>,
    /// The allowed calls for a second; none until a refusal has shown that there is a limit.
    rate: Option<f64>,
    grown_at: Option<Instant>,
    next_start: Option<Instant>,
    recent: VecDeque<Instant>,
    /// The time since which no call was accepted; none if the last one was.
    refused_since: Option<Instant>,
}

impl Window {
    fn new(bound: usize) -> Self {
        let bound = bound.max(1);
        Self {
            bound,
            allowed: as_float(bound),
            running: 0,
            epoch: 0,
            paused_until: None,
            rate: None,
            grown_at: None,
            next_start: None,
            recent: VecDeque::new(),
            refused_since: None,
        }
    }

    fn raise(&mut self, bound: usize) {
        if bound > self.bound {
            self.bound = bound;
            self.allowed = self.allowed.max(as_float(bound));
        }
    }

    fn start(&mut self, now: Instant) -> Start {
        for until in [self.paused_until, self.next_start].into_iter().flatten() {
            if until > now {
                return Start::After(until - now);
            }
        }
        if as_float(self.running) + 1.0 > self.allowed.max(1.0) {
            return Start::WhenFree;
        }
        self.running += 1;
        if let Some(rate) = self.rate {
            self.next_start = Some(now + Duration::from_secs_f64(1.0 / rate));
        }
        Start::Now(Began { epoch: self.epoch, next_start: self.next_start })
    }

    fn unused(&mut self, began: Began) {
        if self.next_start == began.next_start {
            self.next_start = None;
        }
    }

    fn accepted(&mut self, now: Instant) {
        self.refused_since = None;
        self.allowed = (self.allowed + 1.0 / self.allowed.max(1.0)).min(as_float(self.bound));
        self.recent.push_back(now);
        self.forget(now);
        let Some(rate) = self.rate else { return };
        if self.grown_at.is_none_or(|at| now.saturating_duration_since(at) >= MEASURE) {
            self.grown_at = Some(now);
            let grown = rate * GROWTH;
            self.rate = (grown < RATE_MAX).then_some(grown);
            if self.rate.is_none() {
                self.next_start = None;
            }
        }
    }

    fn throttled(&mut self, now: Instant, epoch: u64, after: Duration) {
        self.refused_since.get_or_insert(now);
        let until = now + after;
        self.paused_until = Some(self.paused_until.map_or(until, |known| known.max(until)));
        if epoch != self.epoch {
            return;
        }
        self.epoch += 1;
        self.allowed = (self.allowed / 2.0).max(1.0);
        self.forget(now);
        let seen = as_float(self.recent.len()).max(1.0) / MEASURE.as_secs_f64();
        // A second refusal shows that the rate itself was too high, and not only a burst before it.
        let rate = self.rate.map_or(seen * SHARE, |rate| (rate * SHARE).min(seen.max(rate / 2.0)));
        self.rate = Some(rate.max(0.2));
        self.grown_at = Some(until);
    }

    /// Drops starts that are older than the measured time, so that the queue stays short at any rate.
    fn forget(&mut self, now: Instant) {
        while self.recent.front().is_some_and(|at| now.saturating_duration_since(*at) > MEASURE) {
            self.recent.pop_front();
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of calls are small")]
fn as_float(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_once_for_calls_of_one_time_and_grows_back() {
        let start = Instant::now();
        let mut window = Window::new(8);
        for _ in 0..8 {
            assert!(matches!(window.start(start), Start::Now(Began { epoch: 0, .. })));
        }
        assert_eq!(window.start(start), Start::WhenFree);
        for _ in 0..8 {
            window.throttled(start, 0, Duration::from_secs(1));
        }
        window.running = 0;
        assert!((window.allowed - 4.0).abs() < 1e-9);
        assert_eq!(window.start(start), Start::After(Duration::from_secs(1)));
        let mut now = start + Duration::from_secs(2);
        for _ in 0..200 {
            now += Duration::from_millis(50);
            window.accepted(now);
        }
        assert!((window.allowed - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_turn_in_which_nothing_was_sent_holds_no_call_back() {
        let (now, mut window) = (Instant::now(), Window::new(4));
        window.rate = Some(0.2);
        let Start::Now(unused) = window.start(now) else { panic!() };
        assert_eq!(window.start(now), Start::After(Duration::from_secs(5)));
        window.unused(unused);
        let Start::Now(used) = window.start(now + Duration::from_secs(1)) else { panic!() };
        assert_ne!(used, unused);
        window.unused(unused);
        assert_eq!(
            window.start(now + Duration::from_secs(1)),
            Start::After(Duration::from_secs(5))
        );
    }

    /// The limiter learns the rate of a server: a thousand calls that take no time go to a server that allows
    /// 20 a second and asks to wait one second when it refuses.
    #[test]
    fn learns_the_rate_of_a_server() {
        let start = Instant::now();
        let (mut now, mut window) = (start, Window::new(16));
        let (mut done, mut refused) = (0, 0);
        let (mut tokens, mut filled) = (20.0_f64, start);
        while done < 1000 {
            match window.start(now) {
                Start::After(pause) => now += pause,
                Start::WhenFree => unreachable!("no call takes time"),
                Start::Now(began) => {
                    tokens = (tokens + (now - filled).as_secs_f64() * 20.0).min(20.0);
                    filled = now;
                    if tokens >= 1.0 {
                        tokens -= 1.0;
                        done += 1;
                        window.accepted(now);
                    } else {
                        refused += 1;
                        window.throttled(now, began.epoch, Duration::from_secs(1));
                    }
                    window.running = 0;
                }
            }
        }
        let seconds = (now - start).as_secs_f64();
        assert!(refused <= 30, "{refused} refused");
        assert!(seconds < 75.0, "{seconds} s for 1000 calls at 20 a second");
    }

    #[tokio::test]
    async fn one_limiter_per_address() {
        let a = Limiter::of("http://limits.test/a", 1);
        let same = Limiter::of("http://limits.test/a", 1);
        let other = Limiter::of("http://limits.test/b", 1);
        let turn = a.turn().await;
        let waiting = tokio::spawn(async move { same.turn().await });
        other.turn().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        drop(turn);
        waiting.await.unwrap();
    }
}
