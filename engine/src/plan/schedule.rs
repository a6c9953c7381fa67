//! Lowering: changes become steps, one for each phase, in an order that can be run.
//!
//! The executor knows no "replace" and no dependency: it sees steps and what each needs. All
//! ordering is decided here:
//! - what an object is made from is ready before it is made or changed;
//! - what is deleted is deleted after everything that depended on it let go of it (`letting_go`);
//! - a name that must be unique is taken after whoever had it is gone;
//! - in a replace that creates first, dependants follow the new object before the old one goes;
//!   one that is still used stays, for a later plan.

mod delete_order;
pub(super) mod unused_secrets;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::{Address, Name};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::journal::{PhaseRef, ProgramKind, Wait};
use crate::plan::check::names;
use crate::plan::decide::programs::choose;
use crate::plan::decide::resume::Rest;
use crate::plan::draft::Draft;
use crate::plan::facts::references;
use crate::plan::{Action, Step, StepId, diagnostics};
use crate::schema::Operation;
use crate::sorted::Set;
use crate::state::{ObjectId, Snapshot};

/// Turns changes into steps.
pub(in crate::plan) fn lower(
    drafts: &[Draft],
    snapshot: &Snapshot,
    found: &mut Diagnostics,
) -> Vec<Step> {
    let mut lowering = Lowering::default();
    lowering.nodes.reserve(drafts.len());
    lowering.roles.reserve(drafts.len());
    for (index, draft) in drafts.iter().enumerate() {
        let role = lowering.draft(index, draft, found);
        lowering.roles.push(role);
    }
    lowering.take_over_names(drafts);
    lowering.follow_dependencies(drafts);
    let waits = lowering.delete_after_release(drafts, snapshot, found);
    let steps = lowering.order(drafts).or_else(|stuck| {
        lowering.give_way((stuck, &waits), drafts, snapshot, found);
        lowering.order(drafts)
    });
    steps.unwrap_or_else(|stuck| {
        found.push(lowering.circle(&stuck, drafts));
        Vec::new()
    })
}

type NodeId = usize;

/// A step before it has its place.
struct Node {
    draft: usize,
    operation: Operation,
    phase: Option<PhaseRef>,
    object: Option<ObjectId>,
    deposes: bool,
    needs: Set<NodeId>,
}

/// The nodes of one draft that others wait for.
#[derive(Default)]
struct Role {
    /// The first node that makes or changes the object.
    first_up: Option<NodeId>,
    /// The node after which what depends on the object can use it.
    ready: Option<NodeId>,
    /// The nodes of a create, as far as this plan goes: one of them gives the object its name.
    created: Vec<NodeId>,
    /// The first and the last node that delete.
    deletes: Option<(NodeId, NodeId)>,
    /// The node after which the object no longer depends on what it depended on.
    release: Option<NodeId>,
    /// Whether this is a replace that deletes, or lets go, before it creates.
    delete_first: bool,
}

#[derive(Default)]
struct Lowering {
    nodes: Vec<Node>,
    roles: Vec<Role>,
    /// Who takes a unique name, after whom.
    handovers: Vec<(NodeId, NodeId)>,
}

impl Role {
    /// The node after which the object no longer bears a name that it has now.
    fn frees(&self, draft: &Draft, attribute: &Name) -> Option<NodeId> {
        let name = |object| names::named(object, attribute);
        let (before, after) = (draft.change.before.as_deref(), draft.change.after.as_deref());
        let renamed = name(before) != name(after);
        let renames = matches!(draft.change.action, Action::Update | Action::Import) && renamed;
        self.deletes.map(|(_, gone)| gone).or(self.release.filter(|_| renames))
    }
}

impl Lowering {
    fn draft(&mut self, index: usize, draft: &Draft, found: &mut Diagnostics) -> Role {
        match draft.change.action {
            Action::Create => {
                let created = self.create(index, draft, false, found);
                Role {
                    first_up: created.first().copied(),
                    ready: created.last().copied(),
                    created,
                    ..Role::default()
                }
            }
            Action::Import if draft.changed.is_empty() => Role::default(),
            Action::Update | Action::Import => {
                let updated = self.update(index, draft, found);
                let last = updated.last().copied();
                let first_up = updated.first().copied();
                Role { first_up, ready: last, release: last, ..Role::default() }
            }
            Action::Replace if draft.retains => self.replace_retaining(index, draft, found),
            Action::Replace if draft.keeps_old => self.replace_beside(index, draft, found),
            Action::Replace if draft.create_first => self.replace_create_first(index, draft, found),
            Action::Replace => self.replace_delete_first(index, draft, found),
            Action::Delete => {
                let deleted = self.delete(index, draft, found);
                let deletes = deleted.first().copied().zip(deleted.last().copied());
                Role { deletes, release: deleted.last().copied(), ..Role::default() }
            }
            Action::Forget => {
                let node = self.push(index, Operation::Forget, None, draft.change.object.clone());
                Role { release: Some(node), ..Role::default() }
            }
            Action::NoOp | Action::Move | Action::Read => Role::default(),
        }
    }

    /// The old object goes once the new one is whole and all that depends on it has followed. Where the new one
    /// has to wait for a name of the old one, it is made and no more before that.
    fn replace_create_first(
        &mut self,
        index: usize,
        draft: &Draft,
        found: &mut Diagnostics,
    ) -> Role {
        let created = self.create(index, draft, true, found);
        let deleted = self.delete(index, draft, found);
        let (Some(&first), Some(&last)) = (created.first(), created.last()) else {
            return Role::default();
        };
        let Some(&gone) = deleted.last() else { return Role::default() };
        let mut ready = last;
        if references::may_take_its_name(draft) {
            // Dependants follow the new object before the old one goes, so they cannot wait for
            // the activation, which comes after that.
            ready = first;
            if let Some(&activation) = created.get(1) {
                self.nodes[activation].needs.insert(gone);
            }
        }
        self.nodes[deleted[0]].needs.insert(ready);
        Role {
            first_up: Some(first),
            ready: Some(ready),
            created,
            deletes: Some((deleted[0], gone)),
            release: Some(gone),
            delete_first: false,
        }
    }

    /// The old object is put aside, and let go once there is a new one: until then it is in service, and
    /// a create may be refused. What is left put aside of a block that retains is let go by a later plan.
    fn replace_retaining(&mut self, index: usize, draft: &Draft, found: &mut Diagnostics) -> Role {
        let created = self.create(index, draft, true, found);
        let forgotten = self.push(index, Operation::Forget, None, draft.change.object.clone());
        if let Some(&last) = created.last() {
            self.nodes[forgotten].needs.insert(last);
        }
        Role {
            first_up: created.first().copied(),
            ready: created.last().copied(),
            created,
            deletes: None,
            release: Some(forgotten),
            delete_first: false,
        }
    }

    /// A replace whose old object is still used: it stays beside the new one, which cannot have its
    /// name until the old one is gone where names are unique.
    fn replace_beside(&mut self, index: usize, draft: &Draft, found: &mut Diagnostics) -> Role {
        let mut created = self.create(index, draft, true, found);
        if references::takes_its_name(draft) {
            created.truncate(1);
            if let Some(first) = created.first() {
                self.nodes.truncate(first + 1);
            }
        }
        Role {
            first_up: created.first().copied(),
            ready: created.last().copied(),
            created,
            ..Role::default()
        }
    }

    fn replace_delete_first(
        &mut self,
        index: usize,
        draft: &Draft,
        found: &mut Diagnostics,
    ) -> Role {
        let deleted = self.delete(index, draft, found);
        let created = self.create(index, draft, false, found);
        let (Some(&first), Some(&gone)) = (created.first(), deleted.last()) else {
            return Role::default();
        };
        self.nodes[first].needs.insert(gone);
        Role {
            first_up: Some(first),
            ready: created.last().copied(),
            created,
            deletes: Some((deleted[0], gone)),
            release: Some(gone),
            delete_first: true,
        }
    }

    fn create(
        &mut self,
        index: usize,
        draft: &Draft,
        deposes: bool,
        found: &mut Diagnostics,
    ) -> Vec<NodeId> {
        let after = draft.change.after.as_deref();
        let Some(program) = choose(&draft.schema.create, after) else {
            found.push(diagnostics::no_program(&draft.change.address, "create"));
            return Vec::new();
        };
        let phases = &draft.schema.create[program].phases;
        let phases = phases.len();
        let nodes = self.chain((index, draft), ProgramKind::Create, program, 0..phases);
        if let Some(&first) = nodes.first() {
            self.nodes[first].deposes = deposes;
        }
        for &node in &nodes {
            self.nodes[node].object = None;
        }
        nodes
    }

    /// What an earlier run left undone of a create is done first; what that does not carry is updated
    /// then. An update that has anything left to send begins anew: what came before may not hold any more.
    fn update(&mut self, index: usize, draft: &Draft, found: &mut Diagnostics) -> Vec<NodeId> {
        let mut changed = draft.changed.clone();
        if let Some((rest, phases)) = draft.rest() {
            changed.retain(|name| rest.kind == ProgramKind::Update || !rest.carries(phases, name));
            if changed.is_empty() {
                return self.finish(index, draft, rest);
            }
        }
        let change = &draft.change;
        let Some(program) = choose(&draft.schema.update, change.after.as_deref()) else {
            found.push(diagnostics::no_program(&change.address, "update"));
            return Vec::new();
        };
        // Once more from the beginning, an update does what was left of it, too.
        let begun = (ProgramKind::Update, program);
        let rest = draft.rest.filter(|rest| (rest.kind, rest.program) != begun);
        let mut nodes = rest.map_or_else(Vec::new, |rest| self.finish(index, draft, rest));
        let phases = draft.schema.update[program].phases.len();
        let all = self.chain((index, draft), ProgramKind::Update, program, 0..phases);
        if let (Some(&last), Some(&next)) = (nodes.last(), all.first()) {
            self.nodes[next].needs.insert(last);
        }
        nodes.extend(all);
        nodes
    }

    /// The last phases of a program that an earlier run began.
    fn finish(&mut self, index: usize, draft: &Draft, rest: Rest) -> Vec<NodeId> {
        let Rest { kind, program, from, called } = rest;
        let phases = draft.rest().map_or(from, |(_, phases)| phases.len());
        let nodes = self.chain((index, draft), kind, program, from..phases);
        if let Some(&first) = nodes.first().filter(|_| called) {
            let phase = &mut self.nodes[first].phase;
            *phase = phase.map(PhaseRef::only_waiting);
        }
        nodes
    }

    fn delete(&mut self, index: usize, draft: &Draft, found: &mut Diagnostics) -> Vec<NodeId> {
        let Some(program) = choose(&draft.schema.delete, draft.change.before.as_deref()) else {
            found.push(diagnostics::no_program(&draft.change.address, "delete"));
            return Vec::new();
        };
        let phases = draft.schema.delete[program].phases.len();
        // From the beginning, however far an earlier run came: what was drained may work again, and
        // draining twice is harmless.
        self.chain((index, draft), ProgramKind::Delete, program, 0..phases)
    }

    /// The nodes of the last phases of one program, each after the one before it.
    fn chain(
        &mut self,
        (index, draft): (usize, &Draft),
        kind: ProgramKind,
        program: usize,
        span: std::ops::Range<usize>,
    ) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = Vec::new();
        let phases = span.end;
        for phase in span {
            let model = &draft.schema.programs(kind)[program].phases[phase];
            let (operation, waits) = (model.operation, model.waits_for.is_some());
            let wait = if waits { Wait::After } else { Wait::None };
            let reference = PhaseRef { kind, program, phase, phases, wait };
            let object = draft.change.object.clone();
            let node = self.push(index, operation, Some(reference), object);
            if let Some(&before) = nodes.last() {
                self.nodes[node].needs.insert(before);
            }
            nodes.push(node);
        }
        nodes
    }

    fn push(
        &mut self,
        draft: usize,
        operation: Operation,
        phase: Option<PhaseRef>,
        object: Option<ObjectId>,
    ) -> NodeId {
        let needs = Set::new();
        self.nodes.push(Node { draft, operation, phase, object, deposes: false, needs });
        self.nodes.len() - 1
    }

    /// Whoever takes a name that only one may bear waits until whoever had it is gone, or has another
    /// one.
    fn take_over_names(&mut self, drafts: &[Draft]) {
        let freed = self.freed_names(drafts);
        if freed.is_empty() {
            return;
        }
        for (index, draft) in drafts.iter().enumerate() {
            for (attribute, name) in names::own(&draft.schema, draft.change.after.as_deref()) {
                // What is done to one object is in order already.
                let other = freed.get(&(bearers(draft), attribute, name));
                if let Some(&(_, free)) = other.filter(|(bearer, _)| *bearer != index) {
                    self.hand_over((index, draft), attribute, free);
                }
            }
        }
    }

    /// The names that are let go of: by which draft, and after which node.
    fn freed_names<'d>(&self, drafts: &'d [Draft]) -> BTreeMap<Freed<'d>, (usize, NodeId)> {
        let mut freed = BTreeMap::new();
        for (index, (draft, role)) in drafts.iter().zip(&self.roles).enumerate() {
            for (attribute, name) in names::own(&draft.schema, draft.change.before.as_deref()) {
                if let Some(free) = role.frees(draft, attribute) {
                    freed.insert((bearers(draft), attribute, name), (index, free));
                }
            }
        }
        freed
    }

    fn hand_over(&mut self, (index, draft): (usize, &Draft), attribute: &Name, free: NodeId) {
        let Some(taker) = self.taker(&self.roles[index], draft, attribute) else { return };
        self.nodes[taker].needs.insert(free);
        self.handovers.push((taker, free));
        // Where the name comes late, what depends on the object does not wait for it: it waits for
        // the object alone, and not at all for one that is there.
        let role = &mut self.roles[index];
        if role.first_up != Some(taker) {
            role.ready = role.first_up;
        } else if matches!(draft.change.action, Action::Update | Action::Import) {
            role.ready = None;
        }
    }

    /// The node with which an object gets its name. It may be one that this plan does not come to.
    fn taker(&self, role: &Role, draft: &Draft, attribute: &Name) -> Option<NodeId> {
        let Some(&first) = role.created.first() else { return role.first_up };
        let program = self.nodes[first].phase.and_then(|it| draft.schema.create.get(it.program))?;
        role.created.get(draft.schema.naming_phase(program, attribute)).copied()
    }

    /// The handovers of names that wait for one another: who takes one, and from whom.
    fn circle_of_names<'d>(&self, drafts: &'d [Draft]) -> BTreeSet<(&'d Address, &'d Address)> {
        let circular = |(taker, free): &&(NodeId, NodeId)| self.waits_for(*free, *taker);
        let address = |node: NodeId| &drafts[self.nodes[node].draft].change.address;
        let circle = self.handovers.iter().filter(circular);
        circle.map(|&(taker, free)| (address(taker), address(free))).collect()
    }

    fn follow_dependencies(&mut self, drafts: &[Draft]) {
        let indices = by_address(drafts);
        for (draft, role) in drafts.iter().zip(&self.roles) {
            let Some(first) = role.first_up else { continue };
            for dependency in &draft.change.dependencies {
                let Some(&index) = indices.get(dependency) else { continue };
                if let Some(ready) = self.roles[index].ready {
                    self.nodes[first].needs.insert(ready);
                }
            }
        }
    }

    /// Whether a node comes after another one, or is it.
    fn waits_for(&self, node: NodeId, other: NodeId) -> bool {
        self.before(node, Some(other)).contains(&other)
    }

    /// A node and all that comes before it.
    fn all_before(&self, node: NodeId) -> FxHashSet<NodeId> {
        self.before(node, None)
    }

    /// A node and what comes before it, until another one is found.
    fn before(&self, node: NodeId, until: Option<NodeId>) -> FxHashSet<NodeId> {
        let (mut open, mut seen) = (vec![node], FxHashSet::default());
        while let Some(next) = open.pop() {
            if seen.insert(next) {
                if until == Some(next) {
                    break;
                }
                open.extend(&self.nodes[next].needs);
            }
        }
        seen
    }

    /// Sorts the nodes so that each comes after what it needs, by address where there is a choice; or
    /// says which nodes never have their turn.
    fn order(&self, drafts: &[Draft]) -> Result<Vec<Step>, Vec<bool>> {
        let mut open: Vec<usize> = self.nodes.iter().map(|node| node.needs.len()).collect();
        let mut waiting: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate() {
            for &need in &node.needs {
                waiting[need].push(id);
            }
        }
        let mut heap: BinaryHeap<Reverse<NodeId>> =
            (0..self.nodes.len()).filter(|&id| open[id] == 0).map(Reverse).collect();
        let mut place: Vec<Option<StepId>> = vec![None; self.nodes.len()];
        let mut steps = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(id)) = heap.pop() {
            let step = StepId(u32::try_from(steps.len()).unwrap_or(u32::MAX));
            place[id] = Some(step);
            steps.push(self.nodes[id].step(step, &place, drafts));
            for &next in &waiting[id] {
                open[next] -= 1;
                if open[next] == 0 {
                    heap.push(Reverse(next));
                }
            }
        }
        if steps.len() < self.nodes.len() {
            return Err(place.iter().map(Option::is_none).collect());
        }
        Ok(steps)
    }

    /// What to say when steps wait for one another whatever gives way.
    fn circle(&self, stuck: &[bool], drafts: &[Draft]) -> Diagnostic {
        let names = self.circle_of_names(drafts);
        if let [(taker, bearer)] = names.iter().collect::<Vec<_>>()[..] {
            return diagnostics::name_comes_too_late(taker, bearer);
        }
        if !names.is_empty() {
            let takers: BTreeSet<String> = names.iter().map(|(it, _)| it.to_string()).collect();
            return diagnostics::names_in_a_circle(&takers.into_iter().collect::<Vec<_>>());
        }
        let stuck: BTreeSet<String> = (0..self.nodes.len())
            .filter(|&id| stuck[id])
            .map(|id| drafts[self.nodes[id].draft].change.address.to_string())
            .collect();
        let stuck = stuck.into_iter().collect::<Vec<_>>().join(", ");
        diagnostics::internal(format!("these wait for one another: {stuck}"))
    }
}

impl Node {
    fn step(&self, id: StepId, place: &[Option<StepId>], drafts: &[Draft]) -> Step {
        let mut needs: Vec<StepId> = self.needs.iter().filter_map(|&need| place[need]).collect();
        needs.sort_unstable();
        Step {
            id,
            operation: self.operation,
            address: drafts[self.draft].change.address.clone(),
            change: self.draft,
            phase: self.phase,
            object: self.object.clone(),
            deposes: self.deposes,
            needs,
        }
    }
}

/// A name that is let go of: among whom there can be only one of it, in which attribute, and what it is.
type Freed<'d> = ((&'d Name, &'d Name), &'d Name, names::Named<'d>);

/// Among whom a name is unique: the objects of one type, at one provider.
fn bearers(draft: &Draft) -> (&Name, &Name) {
    (&draft.change.provider, &draft.schema.name)
}

/// Where the draft of each address stands; those of deposed objects are left out.
fn by_address(drafts: &[Draft]) -> FxHashMap<&Address, usize> {
    let mut indices = FxHashMap::default();
    indices.reserve(drafts.len());
    let current = drafts.iter().enumerate().filter(|(_, draft)| !draft.change.deposed);
    indices.extend(current.map(|(index, draft)| (&draft.change.address, index)));
    indices
}
