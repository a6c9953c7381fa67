//! Facts about the server that no mark asks for: the time until an object shows in lists, the texts of
//! refusals, and the limit on the number of calls.

use std::time::{Duration, Instant};

use engine::address::Name;
use engine::state::ObjectId;
use provider_http::HttpProvider;
use provider_openapi::{message_place, with_message, with_settle};
use provider_port::conformance::{Attempt, Suite, make, remove};
use provider_port::sample::Sample;
use provider_port::{Kind, Object, Provider as _};

use super::{Proof, loads};

/// The longest wait for an object to show.
const SHOWN_WITHIN: Duration = Duration::from_mins(1);
/// The first pause between looks. It doubles after each look.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The shortest delay that is reported.
const DELAY_MIN: Duration = Duration::from_millis(50);

impl Proof<'_> {
    /// Waits until a list and a read show an object. Returns the object that the read shows.
    pub(super) async fn shown(
        &mut self,
        provider: &HttpProvider,
        ty: &Name,
        made: Object,
    ) -> Object {
        let (began, mut pause) = (Instant::now(), PAUSE);
        let mut looks = 0_u32;
        loop {
            let asked = began.elapsed();
            let listed = provider.list(ty).await;
            let is_listed = listed.is_ok_and(|all| all.iter().any(|it| it.id == made.id));
            if is_listed && let Ok(read) = provider.read(ty, &made.id).await {
                if looks > 0 && asked >= DELAY_MIN {
                    let seconds = asked.as_secs_f64();
                    self.tell(&**ty, format!("shows in lists after {seconds:.1} s"));
                    self.delay = self.delay.max(asked);
                }
                let mut attributes = made.attributes;
                attributes.extend(read.attributes);
                return Object { id: made.id, attributes };
            }
            if asked > SHOWN_WITHIN {
                let seconds = SHOWN_WITHIN.as_secs();
                self.tell(&**ty, format!("does not show in lists within {seconds} s"));
                return made;
            }
            looks += 1;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Requests a missing object and sends invalid attributes, to see the refusals of the server.
    pub(super) async fn refusals(
        &mut self,
        provider: &HttpProvider,
        suite: &Suite<'_>,
        sample: &Sample,
        object: &Object,
    ) {
        let ty = &sample.schema.name;
        let above = object.id.0.rsplit_once('|').map_or("", |(above, _)| above);
        let bar = if above.is_empty() { "" } else { "|" };
        let nobody = ObjectId(format!("{above}{bar}nobody-has-this-id").into());
        self.recorder.take_refusal();
        match provider.read(ty, &nobody).await {
            Err(error) if error.kind == Kind::NotFound => {}
            Err(error) => self.tell(&**ty, format!("a read of what is not there fails: {error}")),
            Ok(_) => self.tell(&**ty, "a read of what is not there shows something"),
        }
        self.refused(sample, "a read of what is not there");
        let Some((name, value)) = sample.misfit() else { return };
        let Ok(mut wanted) = sample.another(&self.made, &object.attributes) else { return };
        wanted.insert(name.clone(), value);
        self.creates += 1;
        let what = format!("a value that is not allowed of `{name}`");
        match make(suite, ty, self.creates, wanted).await {
            Ok(Attempt::Made(second)) => {
                self.tell(&**ty, format!("{what} is taken"));
                if let Err(why) = remove(suite, ty, &second).await {
                    self.tell(&**ty, why);
                }
            }
            Ok(Attempt::Refused(_)) | Err(_) => self.refused(sample, &what),
        }
    }

    /// Reports the last refusal, and writes down the place of its text in the answer. The text itself is not
    /// shown, as it may repeat what was sent.
    pub(super) fn refused(&mut self, sample: &Sample, what: &str) {
        let Some(refusal) = self.recorder.take_refusal() else { return };
        let ty = &sample.schema.name;
        let place = refusal.body.as_ref().and_then(message_place);
        let text = match &place {
            Some(place) => format!("the text at `{place}`"),
            None => "no text at a known place".to_owned(),
        };
        let doubt = if refusal.status >= 500 {
            "; that does not prove that nothing happened: a row of `error` can say so"
        } else {
            ""
        };
        self.tell(&**ty, format!("{what} is answered with {}, {text}{doubt}", refusal.status));
        let changed = refusal.body.as_ref().and_then(|body| with_message(&self.text, ty, body));
        if let Some(text) = changed.filter(|text| loads(text)) {
            self.text = text;
        }
    }

    /// Writes down the time that an object takes to show, with a margin, and reports the limits.
    pub(super) fn conclude(&mut self) {
        if !self.delay.is_zero() {
            let seconds = (self.delay * 2).as_secs() + 1;
            if let Some(text) = with_settle(&self.text, seconds).filter(|text| loads(text)) {
                self.text = text;
                self.tell("provider", format!("`settle` is {seconds} s"));
            }
        }
        for (header, value) in self.recorder.limits() {
            self.tell("provider", format!("calls are limited: {header}: {value}"));
        }
    }
}
