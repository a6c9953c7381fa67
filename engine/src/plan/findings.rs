//! Findings: the results of a pass beside its decisions.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::diagnostics::Diagnostics;
use crate::journal::Record;
use crate::plan::data_request::DataRequest;
use crate::plan::facts::selection::Selection;
use crate::plan::{Drift, Lack};
use crate::state::ObjectId;
use crate::value::Datum;

/// The results of a pass beside its decisions.
#[derive(Default)]
pub(in crate::plan) struct Findings {
    pub(in crate::plan) diagnostics: Diagnostics,
    /// The changes outside Plumb since the last run.
    pub(in crate::plan) drift: Vec<Drift>,
    /// The records that the state takes over without a call.
    pub(in crate::plan) seen: Vec<Record>,
    /// The values that calls would send and that no run has.
    pub(in crate::plan) lacks: Vec<Lack>,
    /// The reads that look-ups need beside the observations.
    pub(in crate::plan) requests: Vec<DataRequest>,
    /// The answers that look-ups fetched, in clear.
    pub(in crate::plan) looked_up: BTreeMap<Address, Datum>,
    /// The objects outside the state that have a name which the plan gives to another object, by the address
    /// of that object.
    pub(in crate::plan) namesakes: BTreeMap<Address, BTreeSet<ObjectId>>,
}

impl Findings {
    /// Adds the findings of another pass, or of one instance.
    pub(in crate::plan) fn add(&mut self, other: Self) {
        self.diagnostics.extend(other.diagnostics);
        self.drift.extend(other.drift);
        self.seen.extend(other.seen);
        self.lacks.extend(other.lacks);
        self.requests.extend(other.requests);
        self.looked_up.extend(other.looked_up);
        self.namesakes.extend(other.namesakes);
    }

    /// Removes the observations of objects outside the selection, because a refresh-only plan accepts only
    /// selected objects into the state.
    pub(in crate::plan) fn narrow(&mut self, selection: &Selection) {
        self.drift.retain(|drift| selection.includes(&drift.address));
        self.seen.retain(|record| match record {
            Record::Seen { address, .. } | Record::Vanished { address, .. } => {
                selection.includes(address)
            }
            _ => true,
        });
    }

    /// Sorts drift and lacks by address.
    pub(in crate::plan) fn sort(&mut self) {
        self.drift.sort_by(|a, b| a.address.cmp(&b.address));
        self.lacks.sort_by(|a, b| (&a.address, &a.attribute).cmp(&(&b.address, &b.attribute)));
    }
}
