//! The context of a plan: borrowed inputs, and the facts that are computed from them before anything is
//! decided. Nothing changes it once it is built.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::address::{Address, Name};
use crate::diagnostics::Diagnostics;
use crate::journal::Record;
use crate::plan::evaluate::Evaluation;
use crate::plan::evaluate::scope::SpecScope;
use crate::plan::facts::deferrals::UsedObjects;
use crate::plan::facts::names::NamesInDoubt;
use crate::plan::facts::prior::{Live, overlay, stored_attributes};
use crate::plan::facts::redactor::Redactor;
use crate::plan::facts::selection::{self, Selection};
use crate::plan::facts::sensitivity::Taint;
use crate::plan::findings::Findings;
use crate::plan::input::{Mode, Observed, PlanInput};
use crate::plan::{Doubt, diagnostics};
use crate::schema::TypeSchema;
use crate::state::{Object, ObjectId, Which};
use crate::value::Attributes;

/// The inputs of a plan, and the facts computed from them.
pub(in crate::plan) struct Context<'a> {
    pub(in crate::plan) input: &'a PlanInput<'a>,
    /// The instances that the plan is about.
    pub(in crate::plan) selection: Selection,
    /// The calls in doubt, in their order.
    pub(in crate::plan) doubts: Vec<Doubt>,
    /// The addresses that calls in doubt are about.
    pub(in crate::plan) blocked: BTreeSet<Address>,
    /// The names that nothing else can take while a call is in doubt.
    pub(in crate::plan) names_in_doubt: NamesInDoubt<'a>,
    /// The objects that stay in use, whatever is decided.
    pub(in crate::plan) used: UsedObjects,
    /// Seals values that became secret after the state recorded them.
    pub(in crate::plan) redactor: Redactor<'a>,
    taint: OnceLock<Taint<'a>>,
    /// The address of each object of the state.
    managers: OnceLock<BTreeMap<Which<'a>, &'a Address>>,
}

impl<'a> Context<'a> {
    /// Computes the facts. Adds a diagnostic for each call in doubt, and for each option that names nothing.
    pub(in crate::plan) fn new(input: &'a PlanInput<'a>, found: &mut Diagnostics) -> Self {
        let doubts = doubts(input, found);
        let selection = selection::select(input, found);
        let used = match input.options.mode {
            Mode::Apply => UsedObjects::before_deciding(input, &|address| {
                let is_wanted = input.config.resources.contains_key(&address.block);
                !(if is_wanted {
                    selection.includes(address)
                } else {
                    selection.includes_removal(address)
                })
            }),
            Mode::Destroy | Mode::RefreshOnly => UsedObjects::default(),
        };
        Self {
            input,
            selection,
            blocked: doubts.iter().map(|doubt| doubt.address.clone()).collect(),
            doubts,
            names_in_doubt: NamesInDoubt::new(input.snapshot),
            used,
            redactor: Redactor::new(input),
            taint: OnceLock::new(),
            managers: OnceLock::new(),
        }
    }

    /// Returns the address of the state whose object has this provider instance, type and id.
    pub(in crate::plan) fn manager(
        &self,
        provider: &Name,
        ty: &Name,
        id: &ObjectId,
    ) -> Option<&'a Address> {
        let objects = || self.input.snapshot.objects();
        let managers = self.managers.get_or_init(|| objects().map(|(at, it)| (it, at)).collect());
        managers.get(&Which::new(provider, ty, id)).copied()
    }

    /// Returns the scope of the spec's expressions, outside any instance.
    pub(in crate::plan) fn scope<'s>(&'s self, evaluation: &'s Evaluation<'_>) -> SpecScope<'s> {
        SpecScope::new(self.input.config, &evaluation.planned, &evaluation.locals)
    }

    /// Returns the attributes that may be made of a secret, computed when they are first asked for.
    pub(in crate::plan) fn taint(&self) -> &Taint<'a> {
        self.taint.get_or_init(|| Taint::of(self.input.config))
    }

    /// Returns an object of the state with its live attributes; none if it is confirmed gone.
    pub(in crate::plan) fn live<'o>(
        &self,
        address: &Address,
        object: &'o Object,
        schema: &TypeSchema,
        found: &mut Findings,
    ) -> Option<Live<'o>> {
        let stored = match stored_attributes(&object.attributes, schema) {
            Ok(stored) => Arc::new(stored),
            Err(error) => {
                found.diagnostics.push(diagnostics::state_is_damaged(address, &error));
                return None;
            }
        };
        let key = (address.clone(), object.id.clone());
        match self.input.observations.objects.get(&key) {
            // While a call on the object is in doubt, only the look-up of that call decides about the object.
            Some(Observed::Gone) if self.blocked.contains(address) => None,
            Some(Observed::Gone) => {
                let id = object.id.clone();
                found.seen.push(Record::Vanished { address: address.clone(), object: id });
                None
            }
            Some(Observed::Live(observed)) => {
                let attributes = Arc::new(overlay(&stored, observed));
                Some(Live { object, attributes, stored })
            }
            None => Some(Live { object, attributes: stored.clone(), stored }),
        }
    }

    /// Returns the attributes of an object that refresh looked at and found.
    pub(in crate::plan) fn observed(
        &self,
        address: &Address,
        object: &Object,
    ) -> Option<&'a Attributes> {
        let key = (address.clone(), object.id.clone());
        match self.input.observations.objects.get(&key)? {
            Observed::Live(attributes) => Some(attributes),
            Observed::Gone => None,
        }
    }
}

fn doubts(input: &PlanInput<'_>, found: &mut Diagnostics) -> Vec<Doubt> {
    let doubt = |(call, pending): (&crate::journal::CallId, &crate::journal::Pending)| {
        let running = input.observations.running.contains(call);
        Doubt {
            call: *call,
            address: pending.started.address.clone(),
            operation: pending.started.operation,
            reason: pending.why(running).to_owned(),
            running,
        }
    };
    let doubts: Vec<Doubt> = input.snapshot.pending.iter().map(doubt).collect();
    let (running, ended): (Vec<&Doubt>, Vec<_>) = doubts.iter().partition(|doubt| doubt.running);
    found.extend(diagnostics::running(&running).into_iter().collect());
    for doubt in ended {
        found.push(diagnostics::in_doubt(doubt));
    }
    doubts
}
