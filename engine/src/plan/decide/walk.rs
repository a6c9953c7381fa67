//! The walk over the blocks in dependency order: evaluates and decides each instance.
//!
//! An instance is evaluated and decided at the same time, because a decision changes later evaluations: the
//! id of an object that is replaced is unknown to every instance after it. Instances of one wave do not
//! depend on one another, so they are decided in any order, and in parallel.

use crate::config::{DataConfig, ResourceConfig};
use crate::graph::Declared;
use crate::plan::check::budget;
use crate::plan::context::Context;
use crate::plan::decide::decisions::Decisions;
use crate::plan::decide::{self, Outcome, Reached};
use crate::plan::diagnostics;
use crate::plan::evaluate::Evaluation;
use crate::plan::evaluate::desired::{self, Instance};
use crate::plan::facts::deferrals::Deferral;
use crate::plan::findings::Findings;
use crate::plan::limits::{self, INSTANCES_MAX};
use crate::plan::look_up::{LookedUp, look_up};
use crate::work::{self, InTurn, Workers};

/// The number of instances that one worker decides before it asks for more.
const PART: usize = 128;

/// The approximate number of instances that are decided before their outcomes are taken over. More would need
/// much memory.
const OPEN_MAX: usize = 8_192;

/// The state of a walk.
struct Walk<'c, 'a> {
    context: &'c Context<'a>,
    evaluation: Evaluation<'a>,
    decisions: Decisions,
    found: Findings,
}

/// An instance that is to be decided, with its block.
type Open<'a> = (&'a ResourceConfig, Instance<'a>);

/// Evaluates and decides every instance of the spec.
pub(in crate::plan) fn walk<'a>(
    context: &Context<'a>,
    workers: &dyn Workers,
    found: &mut Findings,
) -> (Evaluation<'a>, Decisions) {
    let mut walk = Walk {
        context,
        evaluation: Evaluation::default(),
        decisions: Decisions::new(context),
        found: Findings::default(),
    };
    walk.decide_all(workers);
    found.add(walk.found);
    (walk.evaluation, walk.decisions)
}

impl<'a> Walk<'_, 'a> {
    /// Decides every block in dependency order, every instance by key.
    fn decide_all(&mut self, workers: &dyn Workers) {
        let input = self.context.input;
        let (mut count, mut open) = (0, Vec::new());
        self.evaluation.planned.reserve(input.config.resources.len());
        self.decisions.handled.reserve(input.snapshot.entries.len());
        for wave in input.graph.waves(input.config) {
            for declared in wave {
                let resource = match declared {
                    Declared::Resource(resource) => resource,
                    Declared::Data(data) => {
                        count += self.look_up(data);
                        continue;
                    }
                };
                let instances = self.expand(resource);
                count += instances.len();
                if count > INSTANCES_MAX {
                    self.decide(&mut open, workers);
                    self.found.diagnostics.push(diagnostics::too_many_instances(resource));
                    return;
                }
                // A list that grows step by step would be copied often.
                self.decisions.drafts.reserve(instances.len());
                open.extend(instances.into_iter().map(|instance| (resource, instance)));
                if open.len() >= OPEN_MAX && !self.decide(&mut open, workers) {
                    return;
                }
            }
            if !self.decide(&mut open, workers) {
                return;
            }
        }
    }

    /// Looks up the objects of a data block. Returns the number of its instances.
    fn look_up(&mut self, data: &'a DataConfig) -> usize {
        let scope = self.context.scope(&self.evaluation);
        let block = (&data.block, data.for_each.as_ref());
        let instances = desired::expand_block(block, &scope, &mut self.found.diagnostics);
        let instances = instances.unwrap_or_default();
        if data.for_each.is_some() {
            self.evaluation.planned.declare_many(&data.block);
        }
        for instance in instances.iter().take(INSTANCES_MAX) {
            let Self { context, evaluation, decisions, found } = self;
            let reached = Reached { context, evaluation, decisions };
            let LookedUp { object, unavailable, touched } =
                look_up(&reached, data, instance, found);
            let planned = &mut self.evaluation.planned;
            planned.spent.add(limits::weight(&object.value));
            planned.unavailable.insert(unavailable, &object.value);
            planned.insert(&data.block, instance.address.key.as_ref(), object);
            planned.add_origin(instance.address.clone(), touched);
        }
        instances.len()
    }

    /// Returns the instances of a block.
    fn expand(&mut self, resource: &'a ResourceConfig) -> Vec<Instance<'a>> {
        let scope = self.context.scope(&self.evaluation);
        let expanded = desired::expand(resource, &scope, &mut self.found.diagnostics);
        if resource.for_each.is_some() {
            self.evaluation.planned.declare_many(&resource.block);
        }
        expanded.unwrap_or_default()
    }

    /// Decides instances that do not depend on one another. Returns false if the plan would hold too many
    /// values.
    fn decide(&mut self, open: &mut Vec<Open<'a>>, workers: &dyn Workers) -> bool {
        let outcomes = self.outcomes(open, workers);
        if self.evaluation.planned.spent.is_over() {
            let (config, locals) = (self.context.input.config, &self.evaluation.locals);
            let exceeded = budget::exceeded(config, &self.decisions.drafts, locals, open);
            self.found.diagnostics.push(exceeded);
            return false;
        }
        for ((resource, instance), outcome) in open.drain(..).zip(outcomes.into_iter().flatten()) {
            self.take(resource, instance, outcome);
        }
        true
    }

    /// Returns the outcomes of instances, in parts.
    fn outcomes(&self, open: &[Open<'a>], workers: &dyn Workers) -> Vec<Vec<Outcome>> {
        let workers = if open.len() < PART * 2 { &InTurn } else { workers };
        let parts: Vec<_> = open.chunks(PART).collect();
        let Self { context, evaluation, decisions, .. } = self;
        let reached = Reached { context, evaluation, decisions };
        work::map(workers, parts.len(), |part| {
            let instances = parts[part].iter();
            instances.map(|(resource, it)| decide::decide(&reached, resource, it)).collect()
        })
    }

    /// Takes over the outcome of an instance.
    fn take(&mut self, resource: &'a ResourceConfig, instance: Instance<'_>, outcome: Outcome) {
        let Instance { address, .. } = instance;
        let Outcome { object, draft, unavailable, is_enabled, found } = outcome;
        self.found.add(found);
        let decisions = &mut self.decisions;
        self.evaluation.planned.unavailable.insert(unavailable, &object.value);
        self.evaluation.planned.insert(&resource.block, address.key.as_ref(), object);
        if let Some(draft) = draft {
            if draft.deferral == Some(Deferral::InDoubt) {
                decisions.in_doubt.insert(address.clone());
            }
            decisions.changing.note(&draft);
            decisions.drafts.push(draft);
        }
        // The set of decided addresses matters only for addresses in the state.
        if is_enabled && !self.context.input.snapshot.entries.is_empty() {
            decisions.handled.insert(address);
        }
    }
}
