//! The next attempt of a step whose call was in doubt and did nothing: its time, and its events.
//!
//! The pauses grow with each attempt, vary by the run's random name, and are at least as long as the API
//! asked for. If the run is stopped during a pause, the step does not begin again.

use std::time::Duration;

use engine::digest::Digest;
use engine::doubt::Resolution;
use engine::event::Event;
use engine::plan::StepId;
use provider_port::Error;

use super::call::{Doubt, InFlight};
use super::{Answer, Run};
use crate::step_error::StepError;

/// The maximum number of attempts of one step. Each after the first follows a look-up that found no effect.
const ATTEMPTS_MAX: usize = 3;

/// The maximum pause before the second attempt. It doubles before each next attempt.
const PAUSE_FIRST: Duration = Duration::from_secs(2);

impl Run<'_> {
    /// Begins the step of a call that did nothing once more after a pause, or gives the step up. If the API
    /// refused the call, the step fails with the refusal.
    pub(super) fn try_again(&mut self, id: StepId, flight: &InFlight, looked_up: &Resolution) {
        if let Some(Doubt::Refused(error)) = &flight.doubt {
            return self.fail_step(id, StepError::from(error));
        }
        let looked_up = match looked_up {
            Resolution::Unproven => "looked it up: nothing shows whether it happened",
            _ => "looked it up: nothing changed",
        };
        let (tries, last) = (flight.tries, flight.doubt.as_ref().map(Doubt::error));
        let last_words = words(last);
        if tries + 1 >= ATTEMPTS_MAX {
            let message = format!(
                "gave up after {ATTEMPTS_MAX} attempts; {looked_up}; the last: {last_words}"
            );
            let help = last.and_then(|last| last.help.as_deref());
            let help = help.map_or_else(String::new, |help| format!("{help}; then "));
            let help = Some(format!("{help}apply again: what is done stays done"));
            return self.fail_step(id, StepError { message, help });
        }
        let seed = Digest::of(format!("{} {id} {tries}", self.input.run).as_bytes());
        let requested = last.and_then(|last| last.retry_after);
        let after = pause(tries, &seed, requested);
        let (step, address) = (id.to_string(), self.scheduler.step(id).address.clone());
        let (attempt, attempts) = (count(tries + 2), Some(count(ATTEMPTS_MAX)));
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let reason = format!("{last_words}; {looked_up}");
        self.reporter.events.push(Event::StepRetried {
            step,
            address,
            reason,
            after_ms,
            attempt,
            attempts,
        });
        // The step counts as not begun during the pause.
        self.scheduler.give_back(id);
        let stop = self.input.stop.clone();
        self.calls.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(after) => {}
                () = stop.cancelled() => {}
            }
            (id, Answer::RetryDue(tries + 1))
        });
    }

    /// Begins a step again after its pause, unless the run has stopped.
    pub(super) fn retry_due(&mut self, id: StepId, tries: usize) {
        if !self.halted && !self.input.stop.is_cancelled() {
            self.scheduler.take_back(id);
            self.calls.retries.push((id, tries));
        }
    }
}

/// Returns the reason why a call was in doubt, for an error message.
pub(crate) fn words(last: Option<&Error>) -> String {
    last.map_or_else(|| "there was no answer".to_owned(), ToString::to_string)
}

/// Returns the pause after `tries` + 1 attempts: between half and all of a time that doubles with each
/// attempt, and no shorter than the API asked for.
fn pause(tries: usize, seed: &Digest, requested: Option<Duration>) -> Duration {
    let longest = PAUSE_FIRST.saturating_mul(1 << tries.min(16));
    let byte =
        seed.to_string().bytes().fold(0, |sum: u32, byte| (sum * 31 + u32::from(byte)) % 256);
    let spread = longest.mul_f64(0.5 + f64::from(byte) / 512.0);
    requested.map_or(spread, |requested| requested.max(spread))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_are_spread_and_heed_the_api() {
        let ms = |tries, seed: &str| pause(tries, &Digest::of(seed.as_bytes()), None).as_millis();
        for seed in ["a", "b", "c"] {
            assert!((1000..2000).contains(&ms(0, seed)) && (2000..4000).contains(&ms(1, seed)));
        }
        assert_ne!(ms(0, "a"), ms(0, "b"));
        let minute = Duration::from_mins(1);
        assert_eq!(pause(0, &Digest::of(b"a"), Some(minute)), minute);
    }
}
