//! The base of a plan: digests of the inputs that a saved plan is held against.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::address::{Address, Name};
use crate::digest::{Digest, Fingerprint};
use crate::journal::Record;
use crate::plan::context::Context;
use crate::plan::decide::decisions::Decisions;
use crate::plan::decide::{diff, outputs};
use crate::plan::deciding::Reached;
use crate::plan::draft::Draft;
use crate::plan::findings::Findings;
use crate::plan::{Action, Base, OutputChange, news};
use crate::state::{Nonce, ObjectId};

struct Inputs<'p, 'a> {
    context: &'p Context<'a>,
    decisions: &'p Decisions<'a>,
    found: &'p Findings,
}

/// Returns the base of a plan.
pub(in crate::plan) fn base<'a>(
    context: &Context<'a>,
    decisions: &Decisions<'a>,
    found: &Findings,
    outputs: &BTreeMap<Name, OutputChange>,
) -> Base {
    Inputs { context, decisions, found }.base(outputs)
}

impl Inputs<'_, '_> {
    /// The digests of the live objects that the plan touches or refers to. A plan that touches none, for some of the
    /// spec, has those of what it is for; for all of the spec, its changes have all that it saw.
    fn objects(&self) -> BTreeMap<Address, Digest> {
        let live = |draft: &&Draft| draft.change.before.is_some() && !draft.change.deposed;
        // A first run finds nothing live, and has the most changes.
        if !self.decisions.drafts.iter().any(|draft| live(&draft)) {
            return BTreeMap::new();
        }
        let mut used = self
            .decisions
            .drafts
            .iter()
            .filter(|draft| draft.change.action != Action::NoOp)
            .peekable();
        let mut wanted = FxHashSet::default();
        if used.peek().is_none() && !self.context.input.options.cover_all() {
            let addresses = self.decisions.drafts.iter().map(|draft| &draft.change.address);
            wanted.extend(addresses.filter(|address| self.context.selection.includes(address)));
        }
        for draft in used {
            wanted.insert(&draft.change.address);
            wanted.extend(&draft.change.dependencies);
        }
        wanted.extend(
            self.decisions.deciding.shown().filter(|shown| !self.context.blocked.contains(*shown)),
        );
        wanted.extend(self.decisive());
        let touched = self.decisions.drafts.iter().filter(live);
        let touched = touched.filter(|draft| wanted.contains(&draft.change.address));
        let digest = |draft: &Draft| {
            let before = draft.change.before.as_deref()?;
            let digest = diff::fitness_digest(&draft.schema, before);
            Some((draft.change.address.clone(), digest))
        };
        touched.filter_map(digest).collect()
    }

    /// What decided that there are the changes that there are, and what that is made of and decided by in turn. A
    /// call in doubt says nothing that can be held against what is live, and a plan is stale once it has ended.
    fn decisive(&self) -> FxHashSet<&Address> {
        let mut reached = Reached::default();
        for Draft { change, .. } in &self.decisions.drafts {
            if change.action != Action::NoOp {
                reached.add_sets(self.decisions.deciding.of(&change.address));
            }
            if change.action == Action::Replace {
                reached.add(&change.dependencies);
            }
        }
        while let Some(address) = reached.next() {
            if !self.context.blocked.contains(address) {
                reached.add_sets(self.decisions.deciding.of(address));
                reached.add(
                    self.decisions
                        .draft(address)
                        .into_iter()
                        .flat_map(|it| &it.change.dependencies),
                );
            }
        }
        reached.all.retain(|address| !self.context.blocked.contains(*address));
        reached.all
    }

    /// The digests of what the state says of the objects that are seen to be different.
    fn known(&self) -> BTreeMap<Address, Digest> {
        let snapshot = self.context.input.snapshot;
        let known = |address: &Address, object: &ObjectId| {
            Some((address.clone(), news::known(snapshot.entries.get(address)?, object)?))
        };
        let seen = self.found.seen.iter().filter_map(|record| match record {
            Record::Seen { address, object, .. } => known(address, object),
            _ => None,
        });
        // What is changed is written down when it is, not as it was seen.
        let drifted = self.found.drift.iter().filter_map(|drift| {
            let current = snapshot.entries.get(&drift.address)?.current.as_ref()?;
            known(&drift.address, &current.id)
        });
        seen.chain(drifted).collect()
    }

    /// The digests of what the state says of the watches that are over.
    fn over(&self) -> BTreeMap<Nonce, Digest> {
        let over =
            |nonce: &Nonce| Some((nonce.clone(), news::watch(self.context.input.snapshot, nonce)?));
        self.context.input.observations.over.iter().filter_map(over).collect()
    }

    fn base(&self, outputs: &BTreeMap<Name, OutputChange>) -> Base {
        let snapshot = self.context.input.snapshot;
        let (secrets, variables) = (
            outputs::needed_secrets(self.context, self.decisions, outputs),
            &self.context.input.config.variables,
        );
        Base {
            lineage: snapshot.lineage.clone(),
            first_key: (snapshot.serial == 0).then(|| snapshot.seal_key.clone()),
            serial: snapshot.serial,
            providers: self
                .context
                .input
                .providers
                .iter()
                .map(|(name, schema)| (name.clone(), schema.digest.clone()))
                .collect(),
            accounts: self
                .context
                .input
                .accounts
                .iter()
                .map(|(name, it)| (name.clone(), Fingerprint::of_digest(it, &snapshot.seal_key)))
                .collect(),
            objects: self.objects(),
            namesakes: self.found.namesakes.clone(),
            users: BTreeMap::new(),
            bearers: BTreeMap::new(),
            known: self.known(),
            over: self.over(),
            secret_types: secrets
                .keys()
                .filter_map(|name| Some((name.clone(), variables.get(name)?.ty.clone())))
                .collect(),
            secrets,
        }
    }
}
