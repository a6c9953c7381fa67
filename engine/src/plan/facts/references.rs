//! What goes on being used: whoever stays as it is keeps what it uses.
//!
//! An object stays as it is when the plan leaves it out, when a call on it is in doubt, or when it
//! ignores changes of the attribute that names what it uses. Nothing that it uses may go, neither
//! by a delete nor by the delete of a replace; and what stays for that reason uses things itself.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use crate::address::{Address, Name};
use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostics;
use crate::plan::check::names;
use crate::plan::context::Context;
use crate::plan::decide::decisions::Decisions;
use crate::plan::decide::diff;
use crate::plan::draft::Draft;
use crate::plan::evaluate::desired::Wanted;
use crate::plan::facts::prior::stored_attributes;
use crate::plan::input::{Mode, PlanInput};
use crate::plan::{Action, Change, Staying, Use, diagnostics};
use crate::schema::Presence;
use crate::sorted::Set;
use crate::state::{Entry, Object, ObjectId, Progress};
use crate::value::{Attributes, Value};

/// The objects of the state that somebody goes on using, each with who does.
#[derive(Default)]
pub(in crate::plan) struct Uses(BTreeMap<Address, BTreeMap<ObjectId, Use>>);

impl Uses {
    /// Who goes on using an object, if somebody does.
    pub(in crate::plan) fn of(&self, address: &Address, object: &ObjectId) -> Option<&Use> {
        self.0.get(address)?.get(object)
    }
}

/// Finds them, after the walk and before anything is removed.
pub(in crate::plan) fn find<'a>(context: &Context<'a>, decisions: &Decisions<'a>) -> Uses {
    if context.input.options.mode == Mode::RefreshOnly {
        return Uses::default();
    }
    let mut search = Search::new(context, decisions);
    // What is said of a doubt comes first: it is what has to be decided before anything else.
    search.doubts();
    search.waiting();
    search.left_out();
    search.ignoring();
    search.uses
}

struct Search<'p, 'a> {
    context: &'p Context<'a>,
    decisions: &'p Decisions<'a>,
    uses: Uses,
    /// Objects that stay, whose own uses were not looked at yet.
    open: Vec<(&'a Address, &'a Object, Staying)>,
    replaced: FxHashSet<&'p Address>,
    /// Whose object an id is; only where something stays as it is.
    by_id: OnceCell<BTreeMap<&'a str, Vec<&'a Address>>>,
}

impl<'p, 'a> Search<'p, 'a> {
    fn new(context: &'p Context<'a>, decisions: &'p Decisions<'a>) -> Self {
        let changes = decisions.drafts.iter().map(|draft| &draft.change);
        let replaced = changes.filter(|change| change.action == Action::Replace);
        Self {
            context,
            decisions,
            uses: Uses::default(),
            open: Vec::new(),
            replaced: replaced.map(|change| &change.address).collect(),
            by_id: OnceCell::new(),
        }
    }

    /// What a call in doubt is about may still be there, and what waits for it stays as it was.
    fn doubts(&mut self) {
        let context = self.context;
        for pending in context.input.snapshot.pending.values() {
            for dependency in &pending.started.dependencies {
                for object in self.objects(dependency) {
                    self.mark(dependency, object, &pending.started.address, Staying::InDoubt);
                }
            }
        }
        for address in &self.decisions.held {
            self.stays(address, Staying::InDoubt);
        }
        self.follow();
    }

    fn waiting(&mut self) {
        for (address, user) in &self.context.waiting {
            self.stays(address, user.why);
        }
        self.follow();
    }

    fn left_out(&mut self) {
        let options = self.context.input.options;
        if options.cover_all() {
            return;
        }
        for address in self.context.input.snapshot.entries.keys() {
            if !self.decisions.is_chosen(self.context, address) {
                self.stays(address, Staying::LeftOut);
            }
        }
        self.follow();
    }

    /// What is changed, or stays, and keeps the id of an object in an attribute that it ignores.
    fn ignoring(&mut self) {
        let context = self.context;
        let resources = &context.input.config.resources;
        if resources.values().all(|resource| resource.lifecycle.ignore_changes.is_empty()) {
            return;
        }
        for draft in &self.decisions.drafts {
            let change = &draft.change;
            let Some(resource) = resources.get(&change.address.block) else { continue };
            let kept = kept_by_ignoring(context.input, resource, change, &Set::new());
            for (dependency, object) in kept {
                self.mark(dependency, object, &change.address, Staying::Ignores);
            }
        }
        self.follow();
    }

    fn entry(&self, address: &Address) -> Option<(&'a Address, &'a Entry)> {
        self.context.input.snapshot.entries.get_key_value(address)
    }

    fn objects(&self, address: &Address) -> Vec<&'a Object> {
        self.entry(address).into_iter().flat_map(|(_, entry)| objects(entry)).collect()
    }

    fn stays(&mut self, address: &Address, why: Staying) {
        let Some((address, entry)) = self.entry(address) else { return };
        self.open.extend(objects(entry).map(|object| (address, object, why)));
    }

    fn follow(&mut self) {
        while let Some((address, object, why)) = self.open.pop() {
            for dependency in self.dependencies(address, object) {
                for used in self.used(dependency, object) {
                    self.mark(dependency, used, address, why);
                }
            }
        }
    }

    /// What an object was made from. One that was put aside may name what its address has let go
    /// of since, and what the spec no longer says of an attribute stays as it was.
    fn dependencies(&self, address: &Address, object: &'a Object) -> BTreeSet<&'a Address> {
        let Some((_, entry)) = self.entry(address) else { return BTreeSet::new() };
        let mut dependencies: BTreeSet<&Address> = entry.dependencies.iter().collect();
        // What the spec says stands among them.
        let is_current = is_current(entry, object);
        let by_id = self.by_id.get_or_init(|| by_id(self.context.input));
        for (name, value) in object.attributes.json.as_map().into_iter().flat_map(|map| map.iter())
        {
            let is_said = is_current && object.managed.contains(&**name);
            if is_said || self.is_computed(address, entry, name) {
                continue;
            }
            each_text(value, &mut |text| {
                dependencies.extend(by_id.get(text).into_iter().flatten());
            });
        }
        dependencies.remove(address);
        dependencies
    }

    /// Whether the API alone says an attribute: an id in it may be that of who uses the object.
    fn is_computed(&self, address: &Address, entry: &Entry, name: &str) -> bool {
        let schema = self.context.input.providers.get(&entry.provider);
        let ty = schema.and_then(|schema| schema.types.get(&address.block.ty));
        let attribute = ty.and_then(|ty| ty.attributes.get(name));
        attribute.is_some_and(|attribute| attribute.presence == Presence::Computed)
    }

    /// The objects of a dependency that an object uses: those that it names; all where it names none,
    /// because it may know them by something else.
    fn used(&self, dependency: &Address, object: &Object) -> Vec<&'a Object> {
        let all = self.objects(dependency);
        if all.len() < 2 {
            return all;
        }
        let mut names = BTreeSet::new();
        each_text(&object.attributes.json, &mut |text| {
            names.insert(text);
        });
        let named: Vec<&Object> =
            all.iter().copied().filter(|used| names.contains(&*used.id.0)).collect();
        if named.is_empty() { all } else { named }
    }

    fn mark(&mut self, address: &Address, object: &'a Object, by: &Address, why: Staying) {
        let Some((address, entry)) = self.entry(address) else { return };
        let users = self.uses.0.entry(address.clone()).or_default();
        if users.contains_key(&object.id) {
            return;
        }
        users.insert(object.id.clone(), Use { by: by.clone(), why });
        // What the walk decided follows what it uses by itself, but for an object that it replaces.
        let follows = is_current(entry, object)
            && self.decisions.handled.contains(address)
            && !self.replaced.contains(address);
        if !follows {
            self.open.push((address, object, why));
        }
    }
}

fn objects(entry: &Entry) -> impl Iterator<Item = &Object> {
    entry.current.iter().chain(&entry.deposed)
}

fn is_current(entry: &Entry, object: &Object) -> bool {
    entry.current.as_ref().is_some_and(|current| current.id == object.id)
}

fn by_id<'a>(input: &PlanInput<'a>) -> BTreeMap<&'a str, Vec<&'a Address>> {
    let mut by_id: BTreeMap<&str, Vec<&Address>> = BTreeMap::new();
    for (address, entry) in &input.snapshot.entries {
        for object in objects(entry) {
            by_id.entry(&*object.id.0).or_default().push(address);
        }
    }
    by_id
}

/// The objects that an instance goes on naming because it ignores changes of an attribute, among
/// those that it depended on, will depend on, or refers to.
fn kept_by_ignoring<'a>(
    input: &PlanInput<'a>,
    resource: &ResourceConfig,
    change: &Change,
    referred: &Set<Address>,
) -> Vec<(&'a Address, &'a Object)> {
    let stays = matches!(change.action, Action::NoOp | Action::Update | Action::Import);
    let ignored = &resource.lifecycle.ignore_changes;
    if ignored.is_empty() || !stays || change.deposed {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    for value in ignored.iter().filter_map(|name| change.after.as_ref()?.get(name)) {
        each_text(value, &mut |text| {
            names.insert(text);
        });
    }
    let entries = &input.snapshot.entries;
    let before = entries.get(&change.address).into_iter().flat_map(|entry| &entry.dependencies);
    let dependencies: BTreeSet<&Address> =
        before.chain(&change.dependencies).chain(referred).collect();
    let known = dependencies.into_iter().filter_map(|on| entries.get_key_value(on));
    known
        .flat_map(|(address, entry)| objects(entry).map(move |object| (address, object)))
        .filter(|(_, object)| names.contains(&*object.id.0))
        .collect()
}

/// What the spec refers to in an attribute whose changes are ignored is not sent to an object that
/// exists. Such an instance depends on what the live value came from instead, also when that left
/// the spec: to write down a reference that was never sent could close a circle in the state.
pub(in crate::plan) fn remember_ignored(
    input: &PlanInput<'_>,
    resource: &ResourceConfig,
    wanted: &Wanted,
    change: &mut Change,
) {
    let is_new = change.object.is_none() || change.action == Action::Replace;
    let mut referred = Set::new();
    for (name, touched) in &wanted.ignored {
        referred.extend(touched.iter().cloned());
        let sent = |on: &&Address| is_new || came_from(input, wanted, change, (name, on));
        let sent: Vec<Address> = touched.iter().filter(sent).cloned().collect();
        change.dependencies.extend(sent);
    }
    for (address, _) in kept_by_ignoring(input, resource, change, &referred) {
        // What else the spec has may come after this instance in it.
        if referred.contains(address) || !input.config.resources.contains_key(&address.block) {
            change.dependencies.insert(address.clone());
        }
    }
}

/// Whether the live value of an attribute came from what the spec still refers to there. What the
/// reference is may show after apply only; what the state says of it holds then.
fn came_from(
    input: &PlanInput<'_>,
    wanted: &Wanted,
    change: &Change,
    (name, on): (&Name, &Address),
) -> bool {
    let Some(value) = wanted.attributes.get(name) else { return false };
    if !value.is_known() {
        let entry = input.snapshot.entries.get(&change.address);
        return entry.is_some_and(|entry| entry.dependencies.contains(on));
    }
    let live = change.before.as_ref().and_then(|before| before.get(name));
    live.is_some_and(|live| diff::agree(value, live, &input.snapshot.seal_key))
}

/// Calls `visit` for each text in a value.
pub(in crate::plan) fn each_text<'v>(value: &'v Value, visit: &mut dyn FnMut(&'v str)) {
    match value {
        Value::String(text) => visit(text),
        Value::List(items) | Value::Set(items) => {
            for item in items.iter() {
                each_text(item, visit);
            }
        }
        Value::Map(entries) => {
            for item in entries.values() {
                each_text(item, visit);
            }
        }
        _ => {}
    }
}

/// Decides what becomes of changes that meet an object which is still used. A replace that creates
/// first leaves it beside the new one; one that deletes first is refused. What has to wait until
/// the object is free is returned, and must be planned as waiting.
pub(in crate::plan) fn settle(
    context: &Context<'_>,
    uses: &Uses,
    decisions: &mut Decisions<'_>,
    found: &mut Diagnostics,
) -> BTreeMap<Address, Use> {
    let mut waiting = BTreeMap::new();
    for draft in &mut decisions.drafts {
        let Some(user) = met(context.input, uses, draft) else { continue };
        let change = &mut draft.change;
        if user.why == Staying::InDoubt || change.action != Action::Replace {
            waiting.insert(change.address.clone(), user.clone());
        } else if draft.create_first && (user.why == Staying::LeftOut || !takes_its_name(draft)) {
            draft.change.loss = None;
            draft.keeps_old = true;
            found.push(diagnostics::old_object_stays(&draft.change, user));
        } else {
            found.push(diagnostics::replace_takes_what_is_used(draft, takes_its_name(draft), user));
        }
    }
    waiting
}

/// Who uses the object that a draft would delete, or that has the name which it would take.
fn met<'u>(input: &PlanInput<'_>, uses: &'u Uses, draft: &Draft) -> Option<&'u Use> {
    let change = &draft.change;
    match change.action {
        // What is retained is not deleted.
        Action::Replace if draft.retains => None,
        Action::Replace => uses.of(&change.address, change.object.as_ref()?),
        Action::Update if matches!(change.progress, Progress::Created { .. }) => {
            let deposed = &input.snapshot.entries.get(&change.address)?.deposed;
            let has_it = |object: &&Object| has_a_name_of(draft, object);
            deposed.iter().filter(has_it).find_map(|object| uses.of(&change.address, &object.id))
        }
        _ => None,
    }
}

/// Whether a draft gives a name that an object has, and there can be only one.
fn has_a_name_of(draft: &Draft, object: &Object) -> bool {
    let attributes = stored_attributes(&object.attributes, &draft.schema).unwrap_or_default();
    takes_a_name_of(draft, Some(&attributes))
}

/// Whether a replace gives the new object a name of the old one, and there can be only one.
pub(in crate::plan) fn takes_its_name(draft: &Draft) -> bool {
    takes_a_name_of(draft, draft.change.before.as_deref())
}

/// The same where a name of the new object is known only after apply, and may be that.
pub(in crate::plan) fn may_take_its_name(draft: &Draft) -> bool {
    takes_its_name(draft) || has_an_unknown_name(draft)
}

/// Whether a name that there can be only one of is known only after apply.
pub(in crate::plan) fn has_an_unknown_name(draft: &Draft) -> bool {
    let after = draft.change.after.as_ref();
    let is_unknown =
        |name: &Name| after.and_then(|after| after.get(name)).is_some_and(|name| !name.is_known());
    draft.schema.own_names().any(is_unknown)
}

fn takes_a_name_of(draft: &Draft, object: Option<&Attributes>) -> bool {
    let mut wanted = names::own(&draft.schema, draft.change.after.as_deref());
    wanted.any(|(attribute, name)| names::named(object, attribute) == Some(name))
}
