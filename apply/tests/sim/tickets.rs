//! Tickets: objects at the provider port whose ids their specs choose.
//!
//! Like keys they take effect soon or never, because an id passes from one ticket to the next: a late delete
//! would hit the next ticket with that id. Unlike a key, a ticket is read by its id, and its attributes can
//! be changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::api_variant::Harness;
use crate::keys::Drawn;
use crate::rng::Rng;
use crate::schedule::{RunPlan, Spec, Wanted};

/// The name of the type.
pub(crate) const TYPE: &str = "ticket";

const ZONES: [&str; 2] = ["eu", "us"];

/// The tickets that a spec wants: their ids and their zones. No two ids are equal.
pub(crate) type Tickets = BTreeMap<u8, (&'static str, &'static str)>;

/// Gives tickets to some of the schedules, from a random stream of its own.
pub(crate) fn draw(seed: u64, runs: &mut [RunPlan]) {
    let mut rng = Rng::new(Rng::new(seed ^ 0x71c).next());
    if !rng.per_mille(200) {
        return;
    }
    let mut drawn = Drawn::default();
    for run in runs {
        for _ in 0..rng.between(1, 3) {
            drawn.change(&mut rng);
        }
        let ids = drawn.keys.iter();
        run.spec.tickets = ids.map(|(key, id)| (*key, (*id, *rng.pick(&ZONES)))).collect();
    }
}

impl Spec {
    pub(crate) fn ticket_blocks(&self, harness: Harness, out: &mut String) {
        for (key, (id, zone)) in self.tickets_in(harness) {
            writeln!(out, "[resource.ticket.t{key}]\nname = \"{id}\"\nzone = \"{zone}\"").unwrap();
        }
    }

    pub(crate) fn wanted_tickets(
        &self,
        harness: Harness,
    ) -> impl Iterator<Item = (String, Wanted)> {
        let wanted = |(id, zone): (&str, &str)| Wanted {
            name: id.to_owned(),
            texts: BTreeMap::from([("zone", zone.to_owned())]),
            ..Wanted::default()
        };
        self.tickets_in(harness).map(move |(key, own)| (format!("ticket.t{key}"), wanted(*own)))
    }

    fn tickets_in(
        &self,
        harness: Harness,
    ) -> impl Iterator<Item = (&u8, &(&'static str, &'static str))> {
        self.tickets.iter().filter(move |_| harness == Harness::Port)
    }
}
