//! The view of a plan, which every renderer reads and `plan --json` prints.
//!
//! Its serialisation is the format `plumb-plan/1`: no key is ever removed or given another meaning, and new
//! ones may be added. It contains no secret: a sensitive value is [`Shown::Sensitive`] here, so no renderer
//! can leak it. A plan may be large, so the views of its changes and steps are made one by one, when a
//! renderer needs them.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::diagnostics::{Diagnostics, Severity, Sources, Span};
use engine::digest::{Digest, Fingerprint};
use engine::plan::{Action, Cause, Change, Doubt, Drift, OutputChange, Plan, Step};
use engine::schema::Operation;
use engine::value::{Path, Paths};
use serde::{Deserialize, Serialize};

pub use crate::changes::{Changes, Steps};
pub use crate::costs::{CostView, EstimateView};
use crate::diagnostics::DiagnosticView;
use crate::reason;
use crate::shown::{self, Object, Shown};

/// The name of the format, with its version.
pub const FORMAT: &str = "plumb-plan/1";

/// A plan in a form that may be shown.
#[derive(Clone, Debug, Serialize)]
pub struct PlanView<'a> {
    /// [`FORMAT`].
    pub format: &'static str,
    /// The aim of the plan; left out if it is to apply the spec.
    #[serde(skip_serializing_if = "Aim::is_usual")]
    pub aim: Aim,
    /// The services that the providers act on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<LocationView>,
    /// True if the plan covers the whole spec and could be made at all.
    pub complete: bool,
    /// The number of changes of each action.
    pub summary: Counts,
    /// The changes, without no-ops.
    pub changes: Changes<'a>,
    /// The changes outside Plumb since the last run.
    pub drift: Vec<DriftView>,
    /// The cost of all objects with a price, by currency.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostView>,
    /// The changes of outputs.
    pub outputs: BTreeMap<String, OutputView>,
    /// The program.
    pub steps: Steps<'a>,
    /// The calls of earlier runs whose outcome is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<DoubtView>,
    /// Errors, warnings and notes.
    pub diagnostics: Vec<DiagnosticView>,
    /// The plan's digest; none if no plan could be made.
    pub digest: Option<String>,
}

/// The aim of a plan. It decides what an empty plan means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Makes the world what the spec says.
    #[default]
    Apply,
    /// Makes the world what the spec says, with the state in place of the live objects: nothing was looked
    /// at.
    ApplyUnseen,
    /// Deletes everything.
    Destroy,
    /// Accepts the live objects into the state.
    RefreshOnly,
}

impl Aim {
    /// Returns true if this is the aim of a plan without options.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_usual(&self) -> bool {
        *self == Self::Apply
    }
}

/// The service that a provider instance acts on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationView {
    /// The provider instance.
    pub provider: Name,
    /// The name of the service: `local service`, or the hosts of its APIs.
    pub service: String,
    /// The start of the fingerprint of the account; none for the service on this machine, and before the
    /// first apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

impl LocationView {
    /// Returns the view of a location.
    pub fn new(provider: &Name, service: &str, account: Option<&Fingerprint>) -> Self {
        let account = account.map(|account| account.start().to_owned());
        Self { provider: provider.clone(), service: service.to_owned(), account }
    }

    /// Returns the locations in a line: `Acts on local service (serverless).`; none if there is none.
    pub fn line(locations: &[Self]) -> Option<String> {
        let one = |it: &Self| match &it.account {
            Some(account) => format!("{} ({}, account {account})", it.service, it.provider),
            None => format!("{} ({})", it.service, it.provider),
        };
        let all: Vec<_> = locations.iter().map(one).collect();
        (!all.is_empty()).then(|| crate::safe::text(&format!("Acts on {}.", all.join(" and "))))
    }
}

/// Changes by action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names are the actions")]
pub struct Counts {
    pub create: usize,
    pub update: usize,
    pub replace: usize,
    pub delete: usize,
    pub read: usize,
    pub forget: usize,
    pub import: usize,
    /// The number of objects that get another address, including those with another action.
    #[serde(rename = "move")]
    pub moved: usize,
    #[serde(rename = "no-op")]
    pub no_op: usize,
    /// The number of objects that another run is changing right now. This plan does not change them, and they
    /// do not agree with the spec yet.
    #[serde(skip_serializing_if = "is_none")]
    pub running: usize,
    /// The number of changes that wait for the outcome of a call on their object.
    #[serde(rename = "in-doubt", skip_serializing_if = "is_none")]
    pub in_doubt: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A change in a form that may be shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeView {
    /// The address of the object.
    pub address: String,
    /// The earlier address of the object, if the spec moves it; else none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// The resource type.
    #[serde(rename = "type")]
    pub ty: Name,
    /// The provider instance.
    pub provider: Name,
    /// The word of the action.
    pub action: &'static str,
    /// The reason, in a sentence.
    pub reason: String,
    /// The id of the object that exists now.
    pub id: Option<String>,
    /// The live object; none if there is none.
    pub before: Option<Object>,
    /// The planned object; none if there will be none.
    pub after: Option<Object>,
    /// The places of `after` that only apply will know, each with the expression that computes its value.
    pub unknown: BTreeMap<String, String>,
    /// The places of `before` and `after` that hold secrets.
    pub sensitive: Vec<String>,
    /// The attributes that make the action necessary.
    pub causes: Vec<CauseView>,
    /// The side effects of the change.
    pub effects: Vec<String>,
    /// The data that is lost for good; none if no data is lost.
    pub loss: Option<String>,
    /// The cost of the object; none if its type has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostView>,
    /// The number of rules that can only be checked before the call.
    pub deferred_rules: usize,
    /// True if the change is about an object beside the address's current one.
    pub deposed: bool,
    /// For a replace: true if the new object is made before the old one is deleted. None for other actions.
    pub create_first: Option<bool>,
    /// The attributes that the spec, or a default, gives or last gave.
    pub managed: Vec<Name>,
    /// The place of the resource in the spec.
    #[serde(flatten)]
    pub place: Place,
    /// The units of numbers, by attribute; see [`PlanView::with_units`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<Name, String>,
    #[serde(skip)]
    pub(crate) kind: Action,
}

/// A place in a spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The path of the file, as a user would write it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1, in characters.
    pub column: Option<usize>,
}

/// An attribute that makes a change necessary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseView {
    /// The attribute.
    pub attribute: Name,
    /// True if it forces a replace.
    pub replaces: bool,
    /// True if the live value changed, rather than the spec.
    pub drifted: bool,
    /// True if the spec no longer gives the attribute, and the change clears it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unset: bool,
    /// The place in the spec.
    #[serde(flatten)]
    pub place: Place,
}

/// An object that changed outside Plumb.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftView {
    /// The address of the object.
    pub address: String,
    /// The resource type.
    #[serde(rename = "type")]
    pub ty: Name,
    /// `update` if it changed, `delete` if it is gone.
    pub action: &'static str,
    /// The object after the last run.
    pub before: Object,
    /// The object now; none if it is gone.
    pub after: Option<Object>,
    /// The places that hold secrets.
    pub sensitive: Vec<String>,
    /// The managed attributes that differ.
    pub attributes: Vec<Name>,
    /// The lines of TOML for the spec that keep the object as it is now; none if there are none.
    pub proposal: Option<String>,
    /// The units of numbers, by attribute; see [`PlanView::with_units`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<Name, String>,
}

/// A change of an output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputView {
    /// The word of the action.
    pub action: &'static str,
    /// The last value of the output; none if there is none.
    pub before: Option<Shown>,
    /// The next value of the output; none if there is none.
    pub after: Option<Shown>,
    /// The places that only apply will know, with paths that begin with the output's name.
    pub unknown: BTreeMap<String, String>,
    /// True if it is sensitive.
    pub sensitive: bool,
    #[serde(skip)]
    pub(crate) kind: Action,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepView {
    /// The name of the step.
    pub id: String,
    /// The word of the operation.
    pub operation: &'static str,
    /// The address of the object.
    pub address: String,
    /// The steps that must have succeeded before this one.
    pub needs: Vec<String>,
}

/// A call of an earlier run whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoubtView {
    /// The call.
    pub call: String,
    /// The address of the object.
    pub address: String,
    /// The operation of the call.
    pub operation: &'static str,
    /// The reason that its outcome is unknown.
    pub reason: String,
    /// True if another run is performing the call right now.
    pub running: bool,
}

/// The units of numbers, by resource type and attribute.
pub type Units = BTreeMap<Name, BTreeMap<Name, String>>;

impl<'a> PlanView<'a> {
    /// Returns the view of a plan.
    pub fn new(
        plan: &'a Plan,
        sources: &'a Sources,
        diagnostics: &Diagnostics,
        digest: Option<&Digest>,
    ) -> Self {
        Self {
            format: FORMAT,
            aim: Aim::Apply,
            locations: Vec::new(),
            complete: plan.complete && !diagnostics.has_errors(),
            summary: Counts::of(plan),
            changes: Changes::of_plan(plan, sources),
            drift: plan.drift.iter().map(drift_view).collect(),
            costs: plan.costs.iter().map(CostView::from).collect(),
            outputs: plan.outputs.iter().map(|(n, o)| (n.to_string(), output_view(n, o))).collect(),
            steps: Steps(&plan.steps),
            doubts: plan.doubts.iter().map(doubt_view).collect(),
            diagnostics: DiagnosticView::all(diagnostics, sources),
            digest: digest.map(ToString::to_string),
        }
    }

    /// Returns the view if no plan could be made.
    pub fn refused(sources: &Sources, diagnostics: &Diagnostics) -> Self {
        Self {
            format: FORMAT,
            aim: Aim::Apply,
            locations: Vec::new(),
            complete: false,
            summary: Counts::default(),
            changes: Changes::from_iter([]),
            drift: Vec::new(),
            costs: Vec::new(),
            outputs: BTreeMap::new(),
            steps: Steps(&[]),
            doubts: Vec::new(),
            diagnostics: DiagnosticView::all(diagnostics, sources),
            digest: None,
        }
    }

    /// Returns the number of errors; a plan that can be applied has none.
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|found| found.severity == Severity::Error.word()).count()
    }

    /// Returns true if the plan does nothing: it changes no resource and no output.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.steps.is_empty()
            && self.outputs.values().all(|output| output.kind == Action::NoOp)
    }

    /// Sets the aim, which a plan does not contain.
    #[must_use]
    pub fn with_aim(self, aim: Aim) -> Self {
        Self { aim, ..self }
    }

    /// Sets the services that the providers act on, which a plan does not contain.
    #[must_use]
    pub fn with_locations(self, locations: Vec<LocationView>) -> Self {
        Self { locations, ..self }
    }

    /// Sets the units of numbers, which a plan does not contain.
    #[must_use]
    pub fn with_units(mut self, units: &'a Units) -> Self {
        self.changes = self.changes.with_units(units);
        for drift in &mut self.drift {
            drift.units = units_of(units, &drift.ty, drift.attributes.iter());
        }
        self
    }

    /// Takes over the parts of an earlier view that a plan file does not contain: the aim, the services, the
    /// diagnostics, the places in the spec, and the units. `earlier` is the JSON of that view; parts that do
    /// not fit are left out.
    pub fn restore(&mut self, earlier: &serde_json::Value) {
        let told = earlier.get("diagnostics").and_then(serde_json::Value::as_array);
        self.diagnostics = told.into_iter().flatten().filter_map(DiagnosticView::of_json).collect();
        if let Some(aim) = earlier.get("aim").and_then(|aim| Aim::deserialize(aim).ok()) {
            self.aim = aim;
        }
        if let Some(locations) = earlier.get("locations") {
            self.locations = Vec::deserialize(locations).unwrap_or_default();
        }
        let drift = earlier.get("drift").and_then(serde_json::Value::as_array);
        for (drift, earlier) in self.drift.iter_mut().zip(drift.into_iter().flatten()) {
            if earlier.get("address").and_then(serde_json::Value::as_str) == Some(&drift.address) {
                drift.units = units_of_json(earlier);
            }
        }
        let Some(changes) = earlier.get("changes").and_then(serde_json::Value::as_array) else {
            return;
        };
        for (change, earlier) in self.changes.to_mut().iter_mut().zip(changes) {
            change.restore(earlier);
        }
    }
}

impl ChangeView {
    fn restore(&mut self, earlier: &serde_json::Value) {
        if earlier.get("address").and_then(serde_json::Value::as_str) != Some(&self.address) {
            return;
        }
        self.place = Place::of_json(earlier);
        self.units.extend(units_of_json(earlier));
        let causes = earlier.get("causes").and_then(serde_json::Value::as_array);
        for (cause, earlier) in self.causes.iter_mut().zip(causes.into_iter().flatten()) {
            cause.place = Place::of_json(earlier);
        }
    }
}

/// Reads the units of numbers from the JSON of a view.
fn units_of_json(view: &serde_json::Value) -> BTreeMap<Name, String> {
    let units = view.get("units").and_then(serde_json::Value::as_object);
    let text = |(name, unit): (&String, &serde_json::Value)| {
        Some((Name::from(name.as_str()), unit.as_str()?.to_owned()))
    };
    units.into_iter().flatten().filter_map(text).collect()
}

impl Place {
    pub(crate) fn of_json(json: &serde_json::Value) -> Self {
        let number = |key| {
            json.get(key).and_then(serde_json::Value::as_u64).and_then(|n| usize::try_from(n).ok())
        };
        Self {
            file: json.get("file").and_then(serde_json::Value::as_str).map(str::to_owned),
            line: number("line"),
            column: number("column"),
        }
    }
}

impl Counts {
    fn of(plan: &Plan) -> Self {
        let open: BTreeMap<_, _> =
            plan.doubts.iter().map(|doubt| (&doubt.address, doubt.running)).collect();
        let mut counts = Self::default();
        for change in &plan.changes {
            counts.moved += usize::from(change.moved_from.is_some());
            let is_open = change.action == Action::NoOp && !change.deposed;
            match open.get(&change.address).filter(|_| is_open) {
                Some(true) => counts.running += 1,
                Some(false) => counts.in_doubt += 1,
                None => counts.add(change.action),
            }
        }
        counts
    }

    fn add(&mut self, action: Action) {
        let count = match action {
            // A move is counted in `moved`, together with the moves that have another action.
            Action::Move => return,
            Action::Create => &mut self.create,
            Action::Update => &mut self.update,
            Action::Replace => &mut self.replace,
            Action::Delete => &mut self.delete,
            Action::Read => &mut self.read,
            Action::Forget => &mut self.forget,
            Action::Import => &mut self.import,
            Action::NoOp => &mut self.no_op,
        };
        *count += 1;
    }

    /// Returns the words and counts for a summary line: always the four main ones, and others if they are not
    /// zero.
    pub fn named(&self) -> Vec<(&'static str, usize)> {
        let others = [
            ("read", self.read),
            ("forget", self.forget),
            ("import", self.import),
            ("move", self.moved),
        ];
        [
            ("create", self.create),
            ("update", self.update),
            ("replace", self.replace),
            ("delete", self.delete),
        ]
        .into_iter()
        .chain(others.into_iter().filter(|(_, count)| *count > 0))
        .collect()
    }
}

/// Returns the place of a span, as people read it.
pub fn place(span: Option<Span>, sources: &Sources) -> Place {
    let Some(span) = span else { return Place::default() };
    let position = sources.position(span);
    Place {
        file: sources.get(span.file).map(|source| source.path.clone()),
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
    }
}

pub(crate) fn change_view(
    change: &Change,
    sources: &Sources,
    first: Option<Operation>,
) -> ChangeView {
    let show = |attributes| shown::object(attributes, &change.sensitive);
    let before = change.before.as_deref().map(show);
    let after = change.after.as_deref().map(show);
    ChangeView {
        address: change.address.to_string(),
        moved_from: change.moved_from.as_ref().map(ToString::to_string),
        ty: change.address.block.ty.clone(),
        provider: change.provider.clone(),
        action: change.action.word(),
        reason: reason::sentence(change),
        id: change.object.as_ref().map(ToString::to_string),
        unknown: unknown(after.as_ref()),
        sensitive: sensitive(before.iter().chain(&after)),
        before,
        after,
        causes: change.causes.iter().map(|cause| cause_view(cause, sources)).collect(),
        effects: change.effects.clone(),
        loss: change.loss.clone(),
        cost: change.cost.as_ref().map(CostView::from),
        deferred_rules: change.deferred_rules,
        deposed: change.deposed,
        create_first: match first {
            // An object that is let go exists before and after.
            Some(Operation::Forget) => None,
            Some(operation) if change.action == Action::Replace => {
                Some(operation == Operation::Create)
            }
            _ => None,
        },
        managed: change.managed.iter().cloned().collect(),
        place: place(change.span, sources),
        units: BTreeMap::new(),
        kind: change.action,
    }
}

/// Returns the units of some attributes of a type.
pub(crate) fn units_of<'n>(
    units: &Units,
    ty: &Name,
    names: impl Iterator<Item = &'n Name>,
) -> BTreeMap<Name, String> {
    let Some(units) = units.get(ty) else { return BTreeMap::new() };
    names.filter_map(|name| Some((name.clone(), units.get(name)?.clone()))).collect()
}

fn unknown(object: Option<&Object>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, value) in object.into_iter().flatten() {
        value.unknown(Path::attribute(name.clone()), &mut found);
    }
    found
}

fn sensitive<'a>(objects: impl Iterator<Item = &'a Object>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in objects.flatten() {
        value.sensitive(Path::attribute(name.clone()), &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn cause_view(cause: &Cause, sources: &Sources) -> CauseView {
    CauseView {
        attribute: cause.attribute.clone(),
        replaces: cause.replaces,
        drifted: cause.drifted,
        unset: cause.unset,
        place: place(cause.span, sources),
    }
}

fn drift_view(drift: &Drift) -> DriftView {
    // The secrets of a drift are sealed in its values, so no sensitive places are needed.
    let show = |attributes| shown::object(attributes, &Paths::none());
    let (before, after) = (show(&drift.before), drift.after.as_ref().map(show));
    DriftView {
        address: drift.address.to_string(),
        ty: drift.address.block.ty.clone(),
        action: if after.is_some() { Action::Update.word() } else { Action::Delete.word() },
        sensitive: sensitive(std::iter::once(&before).chain(&after)),
        before,
        after,
        attributes: drift.attributes.clone(),
        proposal: drift.proposal.clone(),
        units: BTreeMap::new(),
    }
}

fn output_view(name: &str, output: &OutputChange) -> OutputView {
    let places = if output.sensitive { Paths::whole() } else { Paths::none() };
    let show = |value| Shown::new(value, &places);
    let after = output.after.as_ref().map(show);
    let mut unknown = BTreeMap::new();
    if let Some(value) = &after {
        value.unknown(Path::attribute(name), &mut unknown);
    }
    OutputView {
        action: output.action.word(),
        before: output.before.as_ref().map(show),
        after,
        unknown,
        sensitive: output.sensitive,
        kind: output.action,
    }
}

pub(crate) fn step_view(step: &Step) -> StepView {
    StepView {
        id: step.id.to_string(),
        operation: step.operation.word(),
        address: step.address.to_string(),
        needs: step.needs.iter().map(ToString::to_string).collect(),
    }
}

fn doubt_view(doubt: &Doubt) -> DoubtView {
    DoubtView {
        call: doubt.call.to_string(),
        address: doubt.address.to_string(),
        operation: doubt.operation.word(),
        reason: doubt.reason.clone(),
        running: doubt.running,
    }
}
