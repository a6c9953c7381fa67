//! Lowering: the phases of each change become nodes of the step graph.

use crate::diagnostics::Diagnostics;
use crate::journal::{PhaseRef, ProgramKind, Wait};
use crate::plan::decide::programs::{Judged, choose};
use crate::plan::decide::resume::RemainingPhases;
use crate::plan::draft::Draft;
use crate::plan::facts::names;
use crate::plan::schedule::graph::{Milestones, Node, NodeId, StepGraph};
use crate::plan::{Action, When, diagnostics};
use crate::schema::Operation;
use crate::sorted::Set;

impl StepGraph {
    /// Turns the phases of all drafts into nodes.
    pub(super) fn lower(drafts: &[Draft], found: &mut Diagnostics) -> Self {
        let mut graph = Self::default();
        graph.nodes.reserve(drafts.len());
        graph.milestones.reserve(drafts.len());
        for (index, draft) in drafts.iter().enumerate() {
            let milestones = Lowering { graph: &mut graph, index, draft, found }.lower();
            graph.milestones.push(milestones);
        }
        graph
    }
}

impl Milestones {
    /// The milestones of an object that is made.
    fn made(created: Vec<NodeId>) -> Self {
        let (first_up, ready) = (created.first().copied(), created.last().copied());
        Self { first_up, ready, created, ..Self::default() }
    }

    /// Returns the milestones with the delete of the object that exists now.
    fn ending(self, deleted: &[NodeId]) -> Self {
        let release = deleted.last().copied();
        Self { deletes: deleted.first().copied().zip(release), release, ..self }
    }
}

/// The lowering of one draft.
struct Lowering<'g> {
    graph: &'g mut StepGraph,
    index: usize,
    draft: &'g Draft,
    found: &'g mut Diagnostics,
}

impl Lowering<'_> {
    fn lower(&mut self) -> Milestones {
        let require = self.judging(When::Before);
        let own = Milestones { require, ..self.lower_action(require) };
        if let Some((require, first)) = require.zip(own.first_up) {
            self.add_need(first, require);
        }
        own
    }

    fn lower_action(&mut self, require: Option<NodeId>) -> Milestones {
        let draft = self.draft;
        match draft.change.action {
            Action::Create => Milestones::made(self.create(false)),
            Action::Import if draft.changed.is_empty() => self.judge_only(require),
            Action::Update | Action::Import => {
                let updated = self.update();
                let updated = self.verified(updated);
                let (first_up, ready) = (updated.first().copied(), updated.last().copied());
                Milestones { first_up, ready, release: ready, ..Milestones::default() }
            }
            Action::Replace if draft.retains => self.replace_retaining(),
            Action::Replace if draft.keeps_old => self.replace_beside(),
            Action::Replace if draft.create_first => self.replace_create_first(),
            Action::Replace => self.replace_delete_first(),
            Action::Delete => Milestones::default().ending(&self.delete()),
            Action::Forget => Milestones { release: Some(self.forget()), ..Milestones::default() },
            Action::NoOp | Action::Move | Action::Read => self.judge_only(require),
        }
    }

    /// Adds the node that judges the conditions of one time; returns none if there are no such conditions.
    fn judging(&mut self, when: When) -> Option<NodeId> {
        let is_due = self.draft.change.conditions.iter().any(|it| it.when == when);
        is_due.then(|| {
            let node = self.push(
                match when {
                    When::Before => Operation::Require,
                    When::After => Operation::Verify,
                },
                None,
            );
            self.graph.nodes[node].object = None;
            node
        })
    }

    /// Returns the nodes that make or change an object, followed by the node that judges its postconditions.
    fn verified(&mut self, mut nodes: Vec<NodeId>) -> Vec<NodeId> {
        let Some(&last) = nodes.last() else { return nodes };
        if let Some(verify) = self.judging(When::After) {
            self.add_need(verify, last);
            nodes.push(verify);
        }
        nodes
    }

    /// Returns the milestones of an object that stays as it is: the objects that depend on it wait for its
    /// conditions.
    fn judge_only(&mut self, require: Option<NodeId>) -> Milestones {
        let verify = self.judging(When::After);
        Milestones { first_up: verify, ready: verify.or(require), ..Milestones::default() }
    }

    /// Deletes the old object once the new one is complete and all dependants have followed. If the new
    /// object takes a name of the old one, only the first phase of its create comes before the delete.
    fn replace_create_first(&mut self) -> Milestones {
        let created = self.create(true);
        let mut own = Milestones::made(created).ending(&self.delete());
        let Some((delete, gone)) = own.deletes else { return own };
        if names::takes_its_name(self.draft) || names::has_an_unknown_name(self.draft) {
            // Dependants follow the new object before the old one is deleted, so they cannot wait for the
            // activation, which comes after the delete.
            own.ready = own.first_up;
            let activation = own.created.get(1).copied();
            if let Some(activation) = activation.filter(|&it| self.graph.nodes[it].phase.is_some())
            {
                self.add_need(activation, gone);
            }
        }
        if let Some(ready) = own.ready {
            self.add_need(delete, ready);
        }
        own
    }

    /// Makes the new object, and then forgets the old one. Until then the old object is in service, and the
    /// API may refuse the create.
    fn replace_retaining(&mut self) -> Milestones {
        let own = Milestones::made(self.create(true));
        let forgotten = self.forget();
        if let Some(last) = own.ready {
            self.add_need(forgotten, last);
        }
        Milestones { release: Some(forgotten), ..own }
    }

    /// Makes the new object beside the old one, which is still used. If names are unique, the new object
    /// cannot get its name until the old one is gone.
    fn replace_beside(&mut self) -> Milestones {
        let mut created = self.create(true);
        if names::takes_its_name(self.draft)
            && let Some(&first) = created.first()
        {
            created.truncate(1);
            self.graph.nodes.truncate(first + 1);
        }
        Milestones::made(created)
    }

    fn replace_delete_first(&mut self) -> Milestones {
        let deleted = self.delete();
        let own = Milestones::made(self.create(false)).ending(&deleted);
        if let Some((first, gone)) = own.first_up.zip(own.release) {
            self.add_need(first, gone);
        }
        Milestones { delete_first: true, ..own }
    }

    fn create(&mut self, deposes: bool) -> Vec<NodeId> {
        let schema = &self.draft.schema;
        let judged = Judged::made(self.draft.change.after.as_deref());
        let Some(program) = choose(&schema.create, judged) else {
            return self.no_program("create");
        };
        let phases = schema.create[program].phases.len();
        let nodes = self.chain((ProgramKind::Create, program, phases), 0..phases);
        for &node in &nodes {
            self.graph.nodes[node].object = None;
        }
        if let Some(&first) = nodes.first() {
            self.graph.nodes[first].deposes = deposes;
        }
        self.verified(nodes)
    }

    /// Finishes a create that an earlier run began, and then updates the attributes that the create does not
    /// carry. An update with anything left to send starts again at its first phase: the effects of the phases
    /// that were done may be gone.
    fn update(&mut self) -> Vec<NodeId> {
        let draft = self.draft;
        let mut changed = draft.changed.clone();
        if let Some((rest, phases)) = draft.rest() {
            changed.retain(|name| rest.kind == ProgramKind::Update || !rest.carries(phases, name));
            if changed.is_empty() {
                return self.finish(rest, false);
            }
        }
        let change = &draft.change;
        let judged = Judged::changed(change.before.as_deref(), change.after.as_deref());
        let Some(program) = choose(&draft.schema.update, judged) else {
            return self.no_program("update");
        };
        // An update that starts again also does what an earlier run left of it.
        let begun = (ProgramKind::Update, program);
        let rest = draft.rest.filter(|rest| (rest.kind, rest.program) != begun);
        let mut nodes = rest.map_or_else(Vec::new, |rest| self.finish(rest, true));
        let phases = draft.schema.update[program].phases.len();
        let all = self.chain((ProgramKind::Update, program, phases), 0..phases);
        if let (Some(&last), Some(&next)) = (nodes.last(), all.first()) {
            self.add_need(next, last);
        }
        nodes.extend(all);
        nodes
    }

    /// Returns the nodes of the last phases of a program that an earlier run began. An update may come after
    /// them.
    fn finish(&mut self, rest: RemainingPhases, is_before_update: bool) -> Vec<NodeId> {
        let phases = self.draft.rest().map_or(&[][..], |(_, phases)| phases);
        let left = rest.left(phases, is_before_update);
        let nodes = self.chain((rest.kind, rest.program, phases.len()), left);
        if let Some(&first) = nodes.first().filter(|_| rest.called) {
            let phase = &mut self.graph.nodes[first].phase;
            *phase = phase.map(PhaseRef::only_waiting);
        }
        nodes
    }

    /// Deletes from the first phase on, however far an earlier run came: a drained object may work again, and
    /// draining it twice is harmless.
    fn delete(&mut self) -> Vec<NodeId> {
        let schema = &self.draft.schema;
        let judged = Judged::live(self.draft.change.before.as_deref());
        let Some(program) = choose(&schema.delete, judged) else {
            return self.no_program("delete");
        };
        let phases = schema.delete[program].phases.len();
        self.chain((ProgramKind::Delete, program, phases), 0..phases)
    }

    fn forget(&mut self) -> NodeId {
        self.push(Operation::Forget, None)
    }

    fn no_program(&mut self, what: &str) -> Vec<NodeId> {
        self.found.push(diagnostics::no_program(&self.draft.change.address, what));
        Vec::new()
    }

    /// Returns the nodes of some phases of a program that has `phases` phases; each node needs the one before
    /// it.
    fn chain(
        &mut self,
        (kind, program, phases): (ProgramKind, usize, usize),
        indexes: impl Iterator<Item = usize>,
    ) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = Vec::new();
        for phase in indexes {
            let model = &self.draft.schema.programs(kind)[program].phases[phase];
            let wait = if model.waits_for.is_some() { Wait::After } else { Wait::None };
            let reference = PhaseRef { kind, program, phase, phases, wait };
            let node = self.push(model.operation, Some(reference));
            if let Some(&before) = nodes.last() {
                self.add_need(node, before);
            }
            nodes.push(node);
        }
        nodes
    }

    fn push(&mut self, operation: Operation, phase: Option<PhaseRef>) -> NodeId {
        let (object, needs) = (self.draft.change.object.clone(), Set::new());
        let node = Node { draft: self.index, operation, phase, object, deposes: false, needs };
        self.graph.nodes.push(node);
        self.graph.nodes.len() - 1
    }

    fn add_need(&mut self, node: NodeId, need: NodeId) {
        self.graph.nodes[node].needs.insert(need);
    }
}
