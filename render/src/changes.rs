//! The views of a plan's changes and steps, each made when a renderer needs it.
//!
//! A view needs several times the memory of the change that it shows. Renderers look at one view after the
//! other, so no more than the needed ones exist at a time.

use std::borrow::Cow;

use engine::address::Block;
use engine::diagnostics::Sources;
use engine::plan::{Action, Change, Plan, Step};
use engine::schema::Operation;
use serde::{Serialize, Serializer};

use crate::shown::Object;
use crate::view::{ChangeView, StepView, Units, change_view, step_view, units_of};

/// The views of the changes of a plan, without no-ops.
#[derive(Clone, Debug)]
pub struct Changes<'a> {
    /// The plan that the views are made from; none if no plan could be made.
    of_plan: Option<OfPlan<'a>>,
    /// All views, if somebody changed them: these count then. Else none.
    whole: Option<Vec<ChangeView>>,
}

/// The parts of a plan that views are made from.
#[derive(Clone, Debug)]
struct OfPlan<'a> {
    plan: &'a Plan,
    sources: &'a Sources,
    units: Option<&'a Units>,
    /// The changes that are no no-ops, each with its first step that makes or removes an object.
    shown: Vec<(usize, Option<Operation>)>,
}

impl<'a> Changes<'a> {
    /// Returns the views of the changes of a plan.
    pub fn of_plan(plan: &'a Plan, sources: &'a Sources) -> Self {
        let mut first = vec![None; plan.changes.len()];
        for step in &plan.steps {
            let tells = matches!(
                step.operation,
                Operation::Create | Operation::Delete | Operation::Drain | Operation::Forget
            );
            if let (true, Some(slot @ None)) = (tells, first.get_mut(step.change)) {
                *slot = Some(step.operation);
            }
        }
        let changes = plan.changes.iter().zip(first).enumerate();
        let shown = changes
            .filter(|(_, (change, _))| change.action != Action::NoOp)
            .map(|(index, (_, first))| (index, first))
            .collect();
        Self { of_plan: Some(OfPlan { plan, sources, units: None, shown }), whole: None }
    }

    /// Sets the units of numbers.
    #[must_use]
    pub fn with_units(mut self, units: &'a Units) -> Self {
        if let Some(of_plan) = &mut self.of_plan {
            of_plan.units = Some(units);
        }
        self
    }

    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        match (&self.whole, &self.of_plan) {
            (Some(views), _) => views.len(),
            (None, Some(of_plan)) => of_plan.shown.len(),
            (None, None) => 0,
        }
    }

    /// Returns true if there is no change.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the views, by address.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, ChangeView>> {
        self.iter_from(0)
    }

    /// Returns the views from the one at `from` on.
    pub(crate) fn iter_from(&self, from: usize) -> impl Iterator<Item = Cow<'_, ChangeView>> {
        (from..self.len()).filter_map(|at| self.at(at))
    }

    /// Returns the views of the changes of the instances of a block.
    pub fn of_block(&self, block: &Block) -> impl Iterator<Item = Cow<'_, ChangeView>> {
        let of_block = |change: &Change| change.address.block == *block;
        let changes = self.of_plan.iter().flat_map(OfPlan::changes).enumerate();
        changes.filter(move |(_, it)| of_block(it)).filter_map(|(at, _)| self.at(at))
    }

    /// Returns the views of the changes with one of these actions; no other views are made.
    pub(crate) fn of(&self, actions: &[Action]) -> impl Iterator<Item = Cow<'_, ChangeView>> {
        let wanted = |at: &usize| self.action(*at).is_some_and(|action| actions.contains(&action));
        (0..self.len()).filter(wanted).filter_map(|at| self.at(at))
    }

    /// Returns the address and the loss of each change that loses something.
    pub(crate) fn losses(&self) -> Vec<(String, String)> {
        if let Some(views) = &self.whole {
            let lost = |view: &ChangeView| Some((view.address.clone(), view.loss.clone()?));
            return views.iter().filter_map(lost).collect();
        }
        let changes = self.of_plan.iter().flat_map(OfPlan::changes);
        // Few changes lose something, so the address is written as text only then.
        let lost = |change: &Change| {
            let loss = change.loss.clone()?;
            Some((change.address.to_string(), loss))
        };
        changes.filter_map(lost).collect()
    }

    /// Returns all views at once, for changes to them.
    pub fn to_mut(&mut self) -> &mut Vec<ChangeView> {
        let of_plan = &self.of_plan;
        self.whole.get_or_insert_with(|| {
            let views = of_plan.iter();
            views.flat_map(|of| (0..of.shown.len()).filter_map(|at| of.view(at))).collect()
        })
    }

    fn action(&self, at: usize) -> Option<Action> {
        match (&self.whole, &self.of_plan) {
            (Some(views), _) => views.get(at).map(|view| view.kind),
            (None, Some(of_plan)) => of_plan.change(at).map(|change| change.action),
            (None, None) => None,
        }
    }

    fn at(&self, at: usize) -> Option<Cow<'_, ChangeView>> {
        match (&self.whole, &self.of_plan) {
            (Some(views), _) => views.get(at).map(Cow::Borrowed),
            (None, Some(of_plan)) => of_plan.view(at).map(Cow::Owned),
            (None, None) => None,
        }
    }
}

impl OfPlan<'_> {
    fn changes(&self) -> impl Iterator<Item = &Change> {
        (0..self.shown.len()).filter_map(|at| self.change(at))
    }

    fn change(&self, at: usize) -> Option<&Change> {
        self.plan.changes.get(self.shown.get(at)?.0)
    }

    fn view(&self, at: usize) -> Option<ChangeView> {
        let (_, first) = *self.shown.get(at)?;
        let mut view = change_view(self.change(at)?, self.sources, first);
        if let Some(units) = self.units {
            let names = view.before.iter().chain(&view.after).flat_map(Object::keys);
            view.units = units_of(units, &view.ty, names);
        }
        Some(view)
    }
}

impl FromIterator<ChangeView> for Changes<'_> {
    fn from_iter<I: IntoIterator<Item = ChangeView>>(views: I) -> Self {
        Self { of_plan: None, whole: Some(views.into_iter().collect()) }
    }
}

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// The views of the steps of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a>(pub(crate) &'a [Step]);

impl Steps<'_> {
    /// Returns the views, in the order of the program.
    pub fn iter(&self) -> impl Iterator<Item = StepView> {
        self.0.iter().map(step_view)
    }

    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there is no step.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
