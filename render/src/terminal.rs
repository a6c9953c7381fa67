//! A plan as text for people: the changes with reasons, values before and after, losses, and a summary line.
//!
//! It is written for reviews. Changes outside Plumb stand apart from the changes that the spec wants; each
//! attribute row names the line of the spec that gives it; unchanged attributes are only counted; and losses
//! that cannot be undone are shown twice, the second time right above the summary.

use std::panic::resume_unwind;
use std::thread;

use engine::address::Name;
use engine::plan::Action;

use crate::costs::CostView;
use crate::paint::{Colour, Label, Line, Page};
use crate::safe;
use crate::shown::{Object, Shown};
use crate::steps;
use crate::values::{self, Row};
use crate::view::{
    Aim, CauseView, ChangeView, Changes, DoubtView, DriftView, LocationView, OutputView, PlanView,
};

/// The number of attributes filled in by the API that are named; the others are counted.
const NAMES_MAX: usize = 6;

/// The parts of a plan's text besides the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The switch for colours.
    pub colour: Colour,
    /// True if the steps are listed.
    pub steps: bool,
}

/// Returns the whole plan as text. Another renderer shows the diagnostics.
pub fn plan(view: &PlanView<'_>, options: Options) -> String {
    plan_in_parts(view, options).concat()
}

/// Returns the whole plan in parts, to be written one after the other: the text of a large plan is large.
pub fn plan_in_parts(view: &PlanView<'_>, options: Options) -> Vec<String> {
    let mut page = Page::new();
    locations(&mut page, &view.locations);
    drift(&mut page, &view.drift);
    doubts(&mut page, &view.doubts);
    let mut parts = vec![page.text(options.colour)];
    parts.extend(changes(&view.changes, options.colour));
    let mut page = Page::new();
    outputs(&mut page, view);
    if options.steps && !view.steps.is_empty() {
        page.gap();
        page.heading("Steps:", Label::Strong);
        for step in view.steps.iter() {
            page.push(Line::new(0).plain(steps::line(&step)));
        }
    }
    losses(&mut page, view);
    page.gap();
    page.heading(summary(view), Label::Strong);
    for cost in costs(view) {
        page.heading(cost, Label::Plain);
    }
    if !view.complete && view.errors() == 0 {
        page.heading(INCOMPLETE, Label::Caution);
    }
    parts.push(page.text(options.colour));
    set_apart(&mut parts);
    parts
}

/// Adds a line with the services that the providers act on.
pub(crate) fn locations(page: &mut Page, locations: &[LocationView]) {
    if let Some(line) = LocationView::line(locations) {
        page.heading(line, Label::Strong);
    }
}

/// Adds an empty line after each part with text, unless the part ends with one or is the last.
fn set_apart(parts: &mut [String]) {
    let Some((_, before)) = parts.split_last_mut() else { return };
    for part in before {
        if !part.is_empty() && !part.ends_with("\n\n") {
            part.push('\n');
        }
    }
}

/// The number of changes that are written at a time; so few fit into the caches of the processor.
const PART: usize = 256;

/// The number of threads that write the changes of a large plan.
const WRITERS_MAX: usize = 4;

/// Returns the texts of the changes, in order, several in one text. Several threads write those of a large
/// plan. Each change is written by itself, so the text is the same.
fn changes(changes: &Changes<'_>, colour: Colour) -> Vec<String> {
    let parts: Vec<_> = (0..changes.len()).step_by(PART).collect();
    let write = |from: usize| {
        let mut page = Page::new();
        for change in changes.iter_from(from).take(PART) {
            page.gap();
            self::change(&mut page, &change);
        }
        page.text(colour)
    };
    let writers = thread::available_parallelism().map_or(1, usize::from).min(WRITERS_MAX);
    if writers == 1 || parts.len() <= writers {
        return parts.into_iter().map(write).collect();
    }
    thread::scope(|scope| {
        let shares = parts.chunks(parts.len().div_ceil(writers));
        let all = |share: &[usize]| share.iter().copied().map(write).collect::<Vec<_>>();
        let begin = |share| thread::Builder::new().spawn_scoped(scope, move || all(share));
        let shares: Vec<_> = shares.map(|share| (share, begin(share))).collect();
        let texts = shares.into_iter().flat_map(|(share, writer)| match writer {
            // A panic of a writer is a bug, and continues here.
            Ok(writer) => writer.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // The system gave no thread.
            Err(_) => all(share),
        });
        texts.collect()
    })
}

pub(crate) const INCOMPLETE: &str =
    "This plan is incomplete: it does not cover the whole spec, so more may differ than it shows.";

/// Returns the summary line, without its end.
pub fn summary(view: &PlanView<'_>) -> String {
    match view.errors() {
        0 => {}
        1 => return "Refused because of 1 error. Nothing is changed.".to_owned(),
        count => return format!("Refused because of {count} errors. Nothing is changed."),
    }
    if view.is_empty() {
        let text = if view.doubts.iter().any(|doubt| doubt.running) {
            "No changes beside what another run is doing right now."
        } else if !view.doubts.is_empty() {
            "No changes, but a call of an earlier run is in doubt."
        } else if !view.drift.is_empty() {
            "Nothing to change. An apply updates the state with what changed outside."
        } else {
            nothing(view.aim)
        };
        return text.to_owned();
    }
    if view.changes.is_empty() {
        return "No changes of resources; only outputs change.".to_owned();
    }
    let counts = view.summary.named();
    let words: Vec<_> = counts.iter().map(|(word, count)| format!("{count} to {word}")).collect();
    format!("Plan: {}.", words.join(", "))
}

/// Returns the cost of a plan that changes resources, in a line for each currency.
pub(crate) fn costs(view: &PlanView<'_>) -> Vec<String> {
    let is_shown = !view.changes.is_empty() && view.errors() == 0;
    view.costs.iter().filter(|_| is_shown).map(CostView::of_plan).collect()
}

/// Returns the sentence of a plan without changes.
fn nothing(aim: Aim) -> &'static str {
    match aim {
        Aim::Apply => "No changes. What is live agrees with the spec.",
        Aim::ApplyUnseen => {
            "No changes. The state agrees with the spec; nothing live was looked at."
        }
        Aim::Destroy => "Nothing to destroy.",
        Aim::RefreshOnly => "Nothing changed outside.",
    }
}

/// Adds the changes outside Plumb, as `drift` shows them, too.
pub(crate) fn drift(page: &mut Page, drift: &[DriftView]) {
    if drift.is_empty() {
        return;
    }
    page.heading("Changed outside since the last run:", Label::Strong);
    drift_objects(page, drift);
    page.gap();
}

/// Adds the objects that changed outside Plumb, without the heading.
pub(crate) fn drift_objects(page: &mut Page, drift: &[DriftView]) {
    for object in drift {
        page.push(drift_headline(object));
        let Some(after) = &object.after else { continue };
        let rows: Vec<_> = object
            .attributes
            .iter()
            .map(|name| Row {
                unit: object.units.get(name).map(String::as_str),
                ..Row::new(name, object.before.get(name), after.get(name))
            })
            .collect();
        values::table(page, 1, &rows);
        proposals(page, object.proposal.as_deref().unwrap_or_default());
    }
}

/// The longest line that is proposed, in characters: nobody copies a longer one from a page.
const PROPOSAL_MAX: usize = 120;

/// Adds the lines that keep an object as it is. They can be pasted into the spec. A value that is not shown
/// in full is not proposed, because a part of it would be another value.
fn proposals(page: &mut Page, proposal: &str) {
    let mut says = "to keep it as it is, write: ";
    for line in proposal.lines() {
        let line = safe::toml(line);
        if line.chars().count() <= PROPOSAL_MAX {
            page.push(Line::new(1).then(says, Label::Faint).then(line, Label::Strong));
        } else {
            let name = line.split(' ').next().unwrap_or_default();
            let advice = format!(
                "{says}`{}` as it is now, which `plumb drift --json` has in full",
                safe::text(name)
            );
            page.push(Line::new(1).then(advice, Label::Faint));
        }
        says = "and: ";
    }
}

pub(crate) fn drift_headline(object: &DriftView) -> Line {
    let (mark, label, what) = match object.after {
        Some(_) => ("~", Label::Changed, " changed"),
        None => ("-", Label::Removed, " is gone"),
    };
    Line::new(0).mark(mark, label).then(safe::text(&object.address), Label::Strong).plain(what)
}

fn doubts(page: &mut Page, doubts: &[DoubtView]) {
    if doubts.is_empty() {
        return;
    }
    let running = doubts.iter().all(|doubt| doubt.running);
    let heading = if running { "Under way in another run:" } else { "In doubt:" };
    page.heading(heading, Label::Danger);
    for doubt in doubts {
        let DoubtView { call, operation, running, .. } = doubt;
        let address = safe::text(&doubt.address);
        let what = if *running {
            format!(": {operation} ({call}) is running now")
        } else {
            format!(": it is not known whether {operation} ({call}) happened")
        };
        let line = Line::new(0).mark("?", Label::Danger);
        page.push(line.then(address, Label::Strong).plain(what));
        page.push(Line::new(1).then(safe::text(&doubt.reason), Label::Faint));
        if !running {
            page.push(Line::new(1).then("to decide it: ", Label::Faint).plain(format!(
                "plumb resolve '{}' --adopt ID, or --absent",
                safe::text(&doubt.address)
            )));
        }
    }
    page.gap();
}

/// Returns the symbol of an action and its colour.
pub(crate) fn mark(action: Action) -> (&'static str, Label) {
    let label = match action {
        Action::Create | Action::Import => Label::Added,
        Action::Update | Action::Move => Label::Changed,
        Action::Delete => Label::Removed,
        Action::Replace | Action::Forget => Label::Replaced,
        Action::NoOp | Action::Read => Label::Plain,
    };
    (action.symbol(), label)
}

/// Adds one change.
pub(crate) fn change(page: &mut Page, change: &ChangeView) {
    page.push(headline(change));
    page.push(Line::new(1).then(safe::text(&change.reason), Label::Faint));
    if change.kind == Action::Move {
        return;
    }
    if let Some(from) = &change.moved_from {
        let line = Line::new(1).mark(Action::Move.symbol(), Label::Changed);
        page.push(line.plain(format!("moved from {}", safe::text(from))));
    }
    if let Some(loss) = &change.loss {
        let line = Line::new(1).mark("!", Label::Danger);
        page.push(line.then(safe::text(loss), Label::Danger));
    }
    for effect in &change.effects {
        page.push(Line::new(1).mark("!", Label::Caution).then(safe::text(effect), Label::Caution));
    }
    rows(page, change);
    if let Some(cost) = change.cost.as_ref().and_then(CostView::of_object) {
        page.push(faint(cost));
    }
    if change.deferred_rules > 0 {
        let (rules, are) =
            if change.deferred_rules == 1 { ("rule", "is") } else { ("rules", "are") };
        let count = change.deferred_rules;
        page.push(faint(format!("({count} {rules} {are} checked before the call)")));
    }
}

/// Returns the first line of a change.
pub(crate) fn headline(change: &ChangeView) -> Line {
    let (mark, label) = mark(change.kind);
    let mut line = Line::new(0).mark(mark, label).then(safe::text(&change.address), Label::Strong);
    if change.deposed {
        line = line.plain(" (an object left behind)");
    }
    line = line.then(format!(" {}", verdict(change)), label);
    match &change.id {
        Some(id) => line.then(format!("  (id {})", safe::text(id)), Label::Faint),
        None => line,
    }
}

fn verdict(change: &ChangeView) -> &'static str {
    match (change.kind, change.create_first) {
        (Action::NoOp, _) => "stays as it is",
        (Action::Create, _) => "will be created",
        (Action::Update, _) => "will be updated in place",
        (Action::Replace, Some(true)) => "will be replaced: the new one is made first",
        (Action::Replace, Some(false)) => "will be replaced: the old one is deleted first",
        (Action::Replace, None) => "will be replaced",
        (Action::Delete, _) => "will be deleted",
        (Action::Forget, _) => "will leave the state, and stays where it is",
        (Action::Import, _) if change.causes.is_empty() => "will be taken over",
        (Action::Import, _) => "will be taken over, and updated in place",
        (Action::Move, _) => "gets this address",
        (Action::Read, _) => "will be read",
    }
}

fn rows(page: &mut Page, change: &ChangeView) {
    match (&change.before, &change.after) {
        (None, Some(after)) => creation(page, change, after),
        (Some(before), None) => removal(page, change, before),
        (Some(before), Some(after)) => differences(page, change, before, after),
        (None, None) => {}
    }
}

/// Adds the attributes of a new object. Those that the API fills in are only named, because they have no
/// value yet to review.
fn creation(page: &mut Page, change: &ChangeView, after: &Object) {
    let given = |(name, value): &(&Name, &Shown)| match value {
        Shown::Null => false,
        Shown::Unknown(from) => !values::is_own(from, &change.address, name),
        _ => true,
    };
    let rows: Vec<_> =
        after.iter().filter(given).map(|(n, v)| row(change, n, None, Some(v))).collect();
    values::table(page, 1, &rows);
    let filled = after.iter().filter(|(_, v)| **v != Shown::Null).filter(|entry| !given(entry));
    filled_in(page, filled.map(|(name, _)| name));
}

/// Adds the attributes of an object that goes, as far as the spec gave them. The API's own attributes are
/// only counted.
fn removal(page: &mut Page, change: &ChangeView, before: &Object) {
    let said = |name: &Name| change.managed.is_empty() || change.managed.contains(name);
    let known = || before.iter().filter(|(_, value)| **value != Shown::Null);
    let rows: Vec<_> = known()
        .filter(|(name, _)| said(name))
        .map(|(name, value)| row(change, name, Some(value), None))
        .collect();
    values::table(page, 1, &rows);
    match known().count() - rows.len() {
        0 => {}
        1 => page.push(faint("(1 more attribute)".to_owned())),
        many => page.push(faint(format!("({many} more attributes)"))),
    }
}

/// Adds the names of the attributes that the API fills in.
fn filled_in<'a>(page: &mut Page, names: impl Iterator<Item = &'a Name>) {
    let names: Vec<_> = names.map(|name| values::key(name)).collect();
    let shown = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 if names.is_empty() => {}
        0 => page.push(faint(format!("(known after apply: {shown})"))),
        more => page.push(faint(format!("(known after apply: {shown} and {more} more)"))),
    }
}

/// Adds the attributes that differ. One that is missing in `after` counts only if it is a cause; otherwise it
/// is not managed.
fn differences(page: &mut Page, change: &ChangeView, before: &Object, after: &Object) {
    let (mut rows, mut filled, mut same) = (Vec::new(), Vec::new(), 0);
    for (name, value) in after {
        let is_own = |from: &str| values::is_own(from, &change.address, name);
        let is_unset = || change.causes.iter().any(|cause| cause.unset && cause.attribute == *name);
        if matches!(value, Shown::Unknown(from) if is_own(from)) && !is_unset() {
            filled.push(name);
            continue;
        }
        let old = before.get(name);
        let unset = old.is_none() && *value == Shown::Null;
        if unset || old.is_some_and(|old| old.same(value)) {
            same += usize::from(!unset);
        } else {
            rows.push(row(change, name, Some(old.unwrap_or(&Shown::Null)), Some(value)));
        }
    }
    let gone = change.causes.iter().filter(|cause| !after.contains_key(&cause.attribute));
    for cause in gone {
        let old = before.get(&cause.attribute).unwrap_or(&Shown::Null);
        rows.push(row(change, &cause.attribute, Some(old), Some(&Shown::Null)));
    }
    values::table(page, 1, &rows);
    filled_in(page, filled.into_iter());
    match same {
        0 => {}
        1 => page.push(faint("(1 attribute is unchanged)".to_owned())),
        many => page.push(faint(format!("({many} attributes are unchanged)"))),
    }
}

fn faint(text: String) -> Line {
    Line::new(1).then(text, Label::Faint)
}

fn row<'a>(
    change: &'a ChangeView,
    name: &'a Name,
    before: Option<&'a Shown>,
    after: Option<&'a Shown>,
) -> Row<'a> {
    let cause = change.causes.iter().find(|cause| cause.attribute == *name);
    let note = match cause {
        Some(CauseView { replaces: true, .. }) if change.kind == Action::Replace => {
            Some(("# forces the replace", Label::Danger))
        }
        Some(CauseView { drifted: true, .. }) => Some(("# changed outside", Label::Caution)),
        Some(CauseView { unset: true, .. }) if after != Some(&Shown::Null) => {
            Some(("# unset", Label::Faint))
        }
        _ => None,
    };
    Row {
        own: Some((&change.address, name)),
        unit: change.units.get(name).map(String::as_str),
        origin: cause.and_then(origin),
        note,
        is_unset: cause.is_some_and(|cause| cause.unset),
        ..Row::new(name, before, after)
    }
}

fn origin(cause: &CauseView) -> Option<String> {
    let file = cause.place.file.as_ref()?;
    match cause.place.line {
        Some(line) => Some(format!("{file}:{line}")),
        None => Some(file.clone()),
    }
}

fn outputs(page: &mut Page, view: &PlanView<'_>) {
    let mut rows = Page::new();
    output_rows(&mut rows, view);
    if !rows.lines().is_empty() {
        page.gap();
        page.heading("Outputs:", Label::Strong);
        page.append(rows);
    }
}

/// Adds the outputs that change, without the heading.
pub(crate) fn output_rows(page: &mut Page, view: &PlanView<'_>) {
    let changed = view.outputs.iter().filter(|(_, output)| output.kind != Action::NoOp);
    let rows: Vec<_> = changed.map(|(name, output)| output_row(name, output)).collect();
    values::table(page, 0, &rows);
}

fn output_row<'a>(name: &str, output: &'a OutputView) -> Row<'a> {
    let (before, after) = match output.kind {
        Action::Create => (None, output.after.as_ref()),
        Action::Delete => (output.before.as_ref(), None),
        _ => (output.before.as_ref(), output.after.as_ref()),
    };
    Row { mark: Some(mark(output.kind)), ..Row::new(name, before, after) }
}

fn losses(page: &mut Page, view: &PlanView<'_>) {
    let lost = view.changes.losses();
    if lost.is_empty() {
        return;
    }
    page.gap();
    page.heading("Lost for good when this is applied:", Label::Danger);
    for (address, loss) in lost {
        let line = Line::new(0).mark("!", Label::Danger);
        let line = line.then(safe::text(&address), Label::Strong);
        page.push(line.then(format!(": {}", safe::text(&loss)), Label::Danger));
    }
}

#[cfg(test)]
pub(crate) mod tests;
