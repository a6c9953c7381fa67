//! What is deleted goes after everything that used it has let go of it, as far as that is possible.
//!
//! Who uses what is known from more than one side, and not all of it at once is always true: the
//! state may say of two objects that each depends on the other, because the spec turned a reference
//! round, or because two runs wrote it. So these needs give way where steps would wait for one
//! another, the least certain first. Without one, the API may refuse a delete; the steps that went
//! well are done then, and the next plan has fewer needs. A plan that cannot be run ends nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;

use crate::address::{Address, Name};
use crate::diagnostics::Diagnostics;
use crate::plan::check::names;
use crate::plan::draft::Draft;
use crate::plan::facts::references;
use crate::plan::facts::references::each_text;
use crate::plan::schedule::{Lowering, NodeId, by_address};
use crate::plan::{Action, Change, diagnostics};
use crate::schema::Presence;
use crate::state::{Progress, Snapshot};

/// How well it is known that an object is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) enum Ground {
    /// An attribute of its user has its id, and no dependency tells of that: it may be another thing's, or a name.
    Guessed,
    /// Its user will use it, or once did: it may never have let go of it.
    Assumed,
    /// The state says so.
    Recorded,
    /// An attribute of its user has its id.
    Named,
    /// One of those has it by which the API keeps an object from being deleted.
    Held,
}

/// Deletes, each with a step after which the object is no longer used, and why that is believed.
pub(in crate::plan) type Waits = BTreeMap<(NodeId, NodeId), Ground>;

/// The number of the circle that a node is in.
struct Circles(FxHashMap<NodeId, usize>);

impl Circles {
    /// The circle that two nodes are in together.
    fn of_both(&self, a: NodeId, b: NodeId) -> Option<usize> {
        let (a, b) = (self.0.get(&a)?, self.0.get(&b)?);
        (a == b).then_some(*a)
    }
}

/// How many steps are looked at for circles. Needs that would be looked at beyond it are left out.
const LOOKS_MAX: usize = 10_000_000;

impl Lowering {
    /// Lets deletes wait for those that use what they delete.
    pub(in crate::plan) fn delete_after_release(
        &mut self,
        drafts: &[Draft],
        snapshot: &Snapshot,
        found: &mut Diagnostics,
    ) -> Waits {
        let mut waits = Waits::new();
        if self.roles.iter().all(|role| role.deletes.is_none()) {
            return waits;
        }
        self.wait_for_dependents(drafts, snapshot, (&mut waits, found));
        self.wait_for_deposed(drafts, snapshot, &mut waits);
        for &(delete, release) in waits.keys() {
            self.nodes[delete].needs.insert(release);
        }
        waits
    }

    fn wait_for_dependents(
        &self,
        drafts: &[Draft],
        snapshot: &Snapshot,
        (waits, found): (&mut Waits, &mut Diagnostics),
    ) {
        let indices = by_address(drafts);
        let dependents = dependents(drafts, snapshot);
        // The deletes of replaces that delete first, by who is to let go: what comes before one of those is
        // looked for once, however much it uses.
        let mut first_to_go: BTreeMap<NodeId, Vec<(NodeId, usize, usize, Ground)>> =
            BTreeMap::new();
        for (used, (draft, role)) in drafts.iter().zip(&self.roles).enumerate() {
            let Some((first, _)) = role.deletes else { continue };
            for (dependent, ground) in dependents.get(&draft.change.address).into_iter().flatten() {
                let Some(&user) = indices.get(*dependent) else { continue };
                let Some(release) = self.roles[user].release else { continue };
                if role.delete_first {
                    first_to_go.entry(release).or_default().push((first, used, user, *ground));
                } else {
                    waits.insert((first, release), *ground);
                }
            }
        }
        for (release, deletes) in first_to_go {
            let before = self.all_before(release);
            for (first, used, user, ground) in deletes {
                // It cannot wait for those that wait for what it creates; they let go only of a copy that
                // is gone already.
                if before.contains(&first) {
                    refuse_if_held(&drafts[used], &drafts[user], snapshot, found);
                } else {
                    waits.insert((first, release), ground);
                }
            }
        }
    }

    /// What a deposed object uses goes after it, whatever its address depends on by now; and it goes after its
    /// successor is whole, which an earlier run may not have come to: until then it is the one in service.
    fn wait_for_deposed(&self, drafts: &[Draft], snapshot: &Snapshot, waits: &mut Waits) {
        let deposed: Vec<usize> =
            (0..drafts.len()).filter(|&index| drafts[index].change.deposed).collect();
        if deposed.is_empty() {
            return;
        }
        let indices = by_address(drafts);
        let (mut by_id, mut by_address) = (BTreeMap::new(), BTreeMap::<_, Vec<NodeId>>::new());
        for (draft, role) in drafts.iter().zip(&self.roles) {
            let Some((first, _)) = role.deletes else { continue };
            by_address.entry(&draft.change.address).or_default().push(first);
            by_id.extend(draft.change.object.as_ref().map(|id| (&*id.0, first)));
        }
        for index in deposed {
            let change = &drafts[index].change;
            let Some(release) = self.roles[index].release else { continue };
            let entry = snapshot.entries.get(&change.address);
            let known = entry.iter().flat_map(|entry| &entry.dependencies);
            let known = known.filter_map(|on| by_address.get(on)).flatten();
            // An address may have let go of what its deposed object still names.
            let named = change.before.iter().flat_map(|before| before.values());
            let named = named.filter_map(|value| by_id.get(value.as_str()?));
            for &first in known.chain(named).filter(|first| !self.waits_for(release, **first)) {
                waits.entry((first, release)).or_insert(Ground::Assumed);
            }
            let whole = indices.get(&change.address).and_then(|&own| self.whole(&drafts[own], own));
            if let (Some((first, _)), Some(whole)) = (self.roles[index].deletes, whole)
                && !self.waits_for(whole, first)
            {
                waits.entry((first, whole)).or_insert(Ground::Assumed);
            }
        }
    }

    /// The node after which an address has a whole object again, where it has none: the one that is there was left
    /// half made, whether it is finished or replaced, or it is gone. A name that is known only later may be the
    /// deposed one's, which has to go before it then.
    fn whole(&self, draft: &Draft, index: usize) -> Option<NodeId> {
        let is_half_made = matches!(draft.change.progress, Progress::Created { .. });
        let is_awaited = match draft.change.action {
            Action::Create => true,
            Action::Update | Action::Replace => is_half_made,
            _ => false,
        };
        self.roles[index].ready.filter(|_| is_awaited && !references::has_an_unknown_name(draft))
    }

    /// Leaves out waits that keep steps from ever being begun, the least certain first. What is held until there
    /// is another one cannot be deleted before it, in no apply: that is refused.
    pub(in crate::plan) fn give_way(
        &mut self,
        (stuck, waits): (Vec<bool>, &Waits),
        drafts: &[Draft],
        snapshot: &Snapshot,
        found: &mut Diagnostics,
    ) {
        let circles = self.circles(&stuck);
        let open = self.least_certain_last(&circles, waits, drafts);
        let out: BTreeSet<(NodeId, NodeId)> = open.iter().copied().collect();
        for &(delete, _) in &out {
            self.nodes[delete].needs.retain(|&need| !out.contains(&(delete, need)));
        }
        let mut looks = LOOKS_MAX;
        for (delete, release) in open {
            if !self.reaches(release, delete, &circles, &mut looks) {
                self.nodes[delete].needs.insert(release);
            } else if looks > 0 && self.replaces(delete) {
                let [used, user] = [delete, release].map(|node| &drafts[self.nodes[node].draft]);
                refuse_if_held(used, user, snapshot, found);
            }
        }
    }

    /// The waits inside circles that may give way, those last that do so first.
    fn least_certain_last(
        &self,
        circles: &Circles,
        waits: &Waits,
        drafts: &[Draft],
    ) -> Vec<(NodeId, NodeId)> {
        // Who takes a name from what it depends on is told to do that in two steps: without the
        // wait the API would refuse the same delete time and again.
        let passing =
            self.handovers.iter().filter_map(|&(taker, free)| circles.of_both(taker, free));
        let passing: BTreeSet<usize> = passing.collect();
        let mut open: Vec<_> = waits
            .iter()
            .filter_map(|(&wait, &ground)| {
                let circle = circles.of_both(wait.0, wait.1)?;
                let certainty = self.certainty(wait, ground, drafts);
                let insists = ground > Ground::Assumed || certainty == Ground::Held;
                // Of two that are as certain, a replace gives way: it can be told to create first.
                let order = (Reverse(certainty), self.replaces(wait.0), wait);
                (!insists || !passing.contains(&circle)).then_some(order)
            })
            .collect();
        open.sort_unstable();
        open.into_iter().map(|(.., wait)| wait).collect()
    }

    /// Whether a node deletes what a replace makes anew afterwards.
    fn replaces(&self, delete: NodeId) -> bool {
        self.roles[self.nodes[delete].draft].delete_first
    }

    /// The circle of each node of those that never have their turn; none where it merely comes after one, or between
    /// two. All nodes of a circle come before one another.
    fn circles(&self, stuck: &[bool]) -> Circles {
        let mut needs: DiGraph<NodeId, ()> = DiGraph::new();
        let place: FxHashMap<NodeId, NodeIndex> =
            (0..stuck.len()).filter(|&id| stuck[id]).map(|id| (id, needs.add_node(id))).collect();
        for (&id, &from) in &place {
            for need in self.nodes[id].needs.iter().filter_map(|need| place.get(need)) {
                needs.add_edge(from, *need, ());
            }
        }
        let circles = kosaraju_scc(&needs).into_iter().filter(|circle| circle.len() > 1);
        let nodes = circles.enumerate().flat_map(|(number, circle)| {
            let number = move |at| (at, number);
            circle.into_iter().map(number).collect::<Vec<_>>()
        });
        Circles(nodes.map(|(at, number)| (needs[at], number)).collect())
    }

    /// How well it is known that what one node deletes is used until another one.
    fn certainty(
        &self,
        (delete, release): (NodeId, NodeId),
        ground: Ground,
        drafts: &[Draft],
    ) -> Ground {
        let used = &drafts[self.nodes[delete].draft].change;
        let user = &drafts[self.nodes[release].draft];
        if holding(user, used).is_some() {
            return Ground::Held;
        }
        if ground == Ground::Guessed {
            return ground;
        }
        let user = &user.change;
        let mut is_named = false;
        for value in user.before.iter().flat_map(|before| before.values()) {
            let id = used.object.as_ref().map(|id| &*id.0);
            each_text(value, &mut |text| is_named |= id == Some(text));
        }
        if is_named { Ground::Named } else { ground }
    }

    /// Whether a node comes after another one of its circle; true when too many were looked at.
    fn reaches(&self, from: NodeId, to: NodeId, circles: &Circles, looks: &mut usize) -> bool {
        let (mut open, mut seen) = (vec![from], BTreeSet::new());
        while let Some(next) = open.pop() {
            if next == to || *looks == 0 {
                return true;
            }
            *looks -= 1;
            let needs = self.nodes[next].needs.iter().copied();
            open.extend(
                needs.filter(|&need| circles.of_both(need, to).is_some() && seen.insert(need)),
            );
        }
        false
    }
}

/// Says that an object cannot be deleted before there is another one, where its user keeps the API from that.
fn refuse_if_held(used: &Draft, user: &Draft, snapshot: &Snapshot, found: &mut Diagnostics) {
    let Some(attribute) = holding(user, &used.change) else { return };
    let name = names::in_the_way(&used.change, &used.schema, &snapshot.seal_key);
    let user = (&user.change.address, attribute);
    found.push(diagnostics::held_until_there_is_another(used, user, name));
}

/// The attribute by which a user keeps the API from deleting an object.
fn holding<'d>(user: &'d Draft, used: &Change) -> Option<&'d Name> {
    let (before, id) = (user.change.before.as_ref()?, used.object.as_ref()?);
    let names_it = |name: &Name| {
        let mut is_named = false;
        if let Some(value) = before.get(name) {
            each_text(value, &mut |text| is_named |= *text == *id.0);
        }
        is_named
    };
    let mut holding = user.schema.attributes.iter().filter(|(_, attribute)| {
        user.change.provider == used.provider
            && attribute.holds.as_ref() == Some(&used.address.block.ty)
    });
    holding.find(|(name, _)| names_it(name)).map(|(name, _)| name)
}

/// Who depended on whom when the last run ended, who will, and who names whom: what is used again may never have
/// been let go of.
fn dependents<'a>(
    drafts: &'a [Draft],
    snapshot: &'a Snapshot,
) -> FxHashMap<&'a Address, BTreeMap<&'a Address, Ground>> {
    let mut dependents: FxHashMap<&Address, BTreeMap<&Address, Ground>> = FxHashMap::default();
    let before = snapshot.entries.iter().map(|(address, entry)| (address, &entry.dependencies));
    let kept = drafts.iter().filter(|draft| !draft.change.deposed);
    let after = kept.map(|draft| (&draft.change.address, &draft.change.dependencies));
    let before = before.map(|user| (Ground::Recorded, user));
    for (ground, (user, dependencies)) in before.chain(after.map(|user| (Ground::Assumed, user))) {
        for dependency in dependencies {
            dependents.entry(dependency).or_default().entry(user).or_insert(ground);
        }
    }
    for (used, user) in named(drafts) {
        dependents.entry(used).or_default().entry(user).or_insert(Ground::Guessed);
    }
    dependents
}

/// What is deleted and live attributes of others hold the id of, each with who does: the spec may have left the
/// attribute, which the API keeps then, or say the id itself, and no dependency tells of either. What the API alone
/// says is left out: it may be the ids of its users.
fn named(drafts: &[Draft]) -> Vec<(&Address, &Address)> {
    let mut by_id: FxHashMap<(&str, &str), Vec<&Address>> = FxHashMap::default();
    for Draft { change, .. } in drafts {
        if let (Action::Delete | Action::Replace, Some(id)) = (change.action, &change.object) {
            by_id.entry((&change.provider, &id.0)).or_default().push(&change.address);
        }
    }
    let mut named = Vec::new();
    if by_id.is_empty() {
        return named;
    }
    for Draft { change: user, schema, .. } in drafts.iter().filter(|it| !it.change.deposed) {
        let is_given = |name: &Name| {
            let attribute = schema.attributes.get(name);
            attribute.is_some_and(|attribute| attribute.presence != Presence::Computed)
        };
        let before = user.before.iter().flat_map(|before| before.iter());
        for (_, value) in before.filter(|(name, _)| is_given(name)) {
            each_text(value, &mut |text| {
                let used = by_id.get(&(&*user.provider, text)).into_iter().flatten();
                named.extend(
                    used.filter(|used| **used != &user.address).map(|used| (*used, &user.address)),
                );
            });
        }
    }
    named
}
