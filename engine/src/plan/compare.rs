//! The comparison of a plan with the plan that is made again from the same spec.
//!
//! The comparison covers the parts that run: the changes that do something, their steps, the changed outputs,
//! the state and the accounts. It does not cover drift elsewhere, times and paths. If there is more to do by
//! now, and the plan neither refers to it nor needs a step of it, the plan still runs, and the rest is left
//! to another plan. A plan that does nothing says that spec and world agree, so it is compared with the whole
//! new plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::address::{Address, Name};
use crate::config::Config;
use crate::digest::Digest;
use crate::journal::Record;
use crate::plan::decide::diff::is_stable;
use crate::plan::facts::selection::needs;
use crate::plan::input::Target;
use crate::plan::{Action, Change, OutputChange, Plan, Step, StepId};
use crate::schema::{ProviderSchema, TypeSchema};
use crate::state::ObjectId;
use crate::stored::Stored;
use crate::value::{Attributes, Value};

/// The schema of each provider instance.
pub type Schemas = BTreeMap<Name, Arc<ProviderSchema>>;

/// A difference between a plan and the plan that was made again.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// The plan was made for another state.
    State,
    /// The plan was made with another descriptor of a provider.
    Descriptor {
        /// The provider instance.
        provider: Name,
        /// The digest when the plan was made.
        planned: Option<Digest>,
        /// The digest now.
        now: Option<Digest>,
    },
    /// A provider acts for another account, or at another address.
    Account(Name),
    /// A change differs.
    Change {
        /// The address that is changed.
        address: Address,
        /// The planned change; none if there was none.
        planned: Option<Box<Change>>,
        /// The change now; none if the spec and the state have nothing at the address.
        now: Option<Box<Change>>,
    },
    /// An object outside the state has got a name that the plan gives to another object.
    Namesake {
        /// The address whose object the plan gives the name to.
        address: Address,
        /// The objects that have the name now and did not have it before.
        objects: BTreeSet<ObjectId>,
    },
    /// Another address uses an object that the plan deletes, and did not use it before.
    User {
        /// The address that is deleted.
        address: Address,
        /// The addresses whose objects use the deleted object now and did not use it before.
        users: BTreeSet<Address>,
    },
    /// The change of an output differs.
    Output {
        /// The name of the output.
        name: Name,
        /// The planned change; none if there was none.
        planned: Option<Box<OutputChange>>,
        /// The change now; none if there is none.
        now: Option<Box<OutputChange>>,
    },
    /// The changes are the same, but the steps or their order differ.
    Steps {
        /// The planned steps.
        planned: Vec<Step>,
        /// The steps now.
        now: Vec<Step>,
    },
    /// The state would accept other live values, at these addresses.
    Accepted(BTreeSet<Address>),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State => f.write_str("it was made for another state"),
            Self::Descriptor { provider, .. } => {
                write!(f, "the descriptor of provider `{provider}` changed")
            }
            Self::Account(provider) => {
                write!(f, "provider `{provider}` acts for another account or at another address")
            }
            Self::Change { address, planned, now } => {
                let word = |change: &Option<Box<Change>>| match change {
                    Some(change) if change.action != Action::NoOp => change.action.word(),
                    _ => "nothing",
                };
                match (word(planned), word(now)) {
                    (planned, now) if planned == now => {
                        write!(f, "{address}: the {planned} is another one")
                    }
                    (planned, now) => write!(f, "{address}: {planned} was planned, now {now}"),
                }
            }
            Self::Namesake { address, .. } => {
                write!(f, "another object has the name that {address} is given")
            }
            Self::User { address, users } => {
                let users: Vec<String> = users.iter().map(ToString::to_string).collect();
                write!(f, "{address} is used by now, by {}", users.join(", "))
            }
            Self::Output { name, .. } => write!(f, "the output `{name}` becomes something else"),
            Self::Steps { .. } => f.write_str("other steps are needed"),
            Self::Accepted(addresses) => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                write!(f, "something else is live: {}", addresses.join(", "))
            }
        }
    }
}

/// Compares a plan with the plan that was made again. Returns the new plan, restricted to what the old one
/// does, or the differences.
pub fn compare(
    planned: &Plan,
    now: Plan,
    config: &Config,
    schemas: &Schemas,
) -> Result<Plan, Vec<Difference>> {
    let comparison = Comparison { planned, schemas };
    let whole = comparison.differences(&now);
    if whole.is_empty() {
        return Ok(now);
    }
    let is_new = |change: &Change| {
        change.moved_from.is_some() && !acting(planned).any(|it| place(it) == place(change))
    };
    // The state gets new addresses before any step runs, so no part of the moves can be left for later.
    if planned.is_empty() || now.changes.iter().any(is_new) || refers_to_more(planned, &now, config)
    {
        return Err(whole);
    }
    match now.restricted_to(planned) {
        Some(part) => {
            let differences = comparison.differences(&part);
            if differences.is_empty() { Ok(part) } else { Err(differences) }
        }
        None => Err(whole),
    }
}

/// The key of a change among the changes of a plan.
type Place<'p> = (&'p Address, bool, Option<&'p ObjectId>);

fn place(change: &Change) -> Place<'_> {
    (&change.address, change.deposed, change.object.as_ref().filter(|_| change.deposed))
}

fn acting(plan: &Plan) -> impl Iterator<Item = &Change> {
    plan.changes.iter().filter(|change| change.action != Action::NoOp)
}

/// Returns true if a change of the plan refers to something that changes now and did not change in the plan.
fn refers_to_more(planned: &Plan, now: &Plan, config: &Config) -> bool {
    let places: BTreeSet<Place<'_>> = acting(planned).map(place).collect();
    let mut more = acting(now).filter(|change| !places.contains(&place(change))).peekable();
    if more.peek().is_none() {
        return false;
    }
    let next = |target: &Target| needs::of(config, target);
    let changes = acting(planned).map(|change| Target::Instance(change.address.clone()));
    let outputs = planned.outputs.iter().filter(|(_, output)| output.action != Action::NoOp);
    let outputs = outputs.filter_map(|(name, _)| config.outputs.get(name));
    let mut first: Vec<Target> = changes.flat_map(|target| next(&target)).collect();
    first.extend(outputs.flat_map(|output| needs::of_expression(config, &output.value.expr)));
    let reached = needs::reached(first, &next);
    more.any(|change| {
        let address = &change.address;
        reached.contains(&Target::Block(address.block.clone()))
            || reached.contains(&Target::Instance(address.clone()))
    })
}

struct Comparison<'p> {
    planned: &'p Plan,
    schemas: &'p Schemas,
}

impl Comparison<'_> {
    fn differences(&self, now: &Plan) -> Vec<Difference> {
        let planned = self.planned;
        if planned.base.lineage != now.base.lineage {
            return vec![Difference::State];
        }
        let mut found = self.providers(now);
        found.extend(self.changes(now));
        found.extend(self.namesakes(now));
        found.extend(self.users(now));
        found.extend(self.outputs(now));
        if found.is_empty() && !same_steps(planned, now) {
            found
                .push(Difference::Steps { planned: planned.steps.clone(), now: now.steps.clone() });
        }
        if found.is_empty() && planned.is_empty() {
            found.extend(self.accepted(now));
        }
        found
    }

    fn providers(&self, now: &Plan) -> Vec<Difference> {
        let names: BTreeSet<&Name> = acting(self.planned).map(|change| &change.provider).collect();
        let (planned, now) = (&self.planned.base, &now.base);
        let mut found = Vec::new();
        for name in names {
            if planned.providers.get(name) != now.providers.get(name) {
                found.push(Difference::Descriptor {
                    provider: name.clone(),
                    planned: planned.providers.get(name).cloned(),
                    now: now.providers.get(name).cloned(),
                });
            }
            if planned.accounts.get(name) != now.accounts.get(name) {
                found.push(Difference::Account(name.clone()));
            }
        }
        found
    }

    fn changes(&self, now: &Plan) -> Vec<Difference> {
        let of = |plan| acting(plan).map(|change| (place(change), change)).collect();
        let (planned, acting): (BTreeMap<_, _>, BTreeMap<_, _>) = (of(self.planned), of(now));
        let places: BTreeSet<&Place<'_>> = planned.keys().chain(acting.keys()).collect();
        let mut found = Vec::new();
        for place in places {
            let (planned, acting) = (planned.get(place).copied(), acting.get(place).copied());
            if matches!((planned, acting), (Some(a), Some(b)) if self.same_change(a, b)) {
                continue;
            }
            let idle = || now.changes.iter().find(|change| self::place(change) == *place);
            found.push(Difference::Change {
                address: place.0.clone(),
                planned: planned.cloned().map(Box::new),
                now: acting.or_else(idle).cloned().map(Box::new),
            });
        }
        found
    }

    fn same_change(&self, a: &Change, b: &Change) -> bool {
        let schema = self.schema(b);
        let same = |a: &Option<Arc<Attributes>>, b: &Option<Arc<Attributes>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || stable(a, schema) == stable(b, schema),
            (a, b) => a.is_none() && b.is_none(),
        };
        (a.action, &a.provider, &a.object) == (b.action, &b.provider, &b.object)
            && a.moved_from == b.moved_from
            && same(&a.before, &b.before)
            && same(&a.after, &b.after)
            && drifted(a).eq(drifted(b))
    }

    fn schema(&self, change: &Change) -> Option<&TypeSchema> {
        let provider = self.schemas.get(&change.provider)?;
        provider.types.get(&change.address.block.ty).map(|schema| &**schema)
    }

    fn namesakes(&self, now: &Plan) -> Vec<Difference> {
        let added = added(&self.planned.base.namesakes, &now.base.namesakes);
        let added = added.filter(|(address, _)| self.acts_on(address));
        added.map(|(address, objects)| Difference::Namesake { address, objects }).collect()
    }

    fn users(&self, now: &Plan) -> Vec<Difference> {
        let added = added(&self.planned.base.users, &now.base.users);
        let added = added.filter(|(address, _)| self.acts_on(address));
        added.map(|(address, users)| Difference::User { address, users }).collect()
    }

    fn acts_on(&self, address: &Address) -> bool {
        acting(self.planned).any(|change| change.address == *address)
    }

    fn outputs(&self, now: &Plan) -> Vec<Difference> {
        let becomes = |plan: &Plan, name: &Name| {
            plan.outputs.get(name).filter(|output| output.action != Action::NoOp).cloned()
        };
        let names: BTreeSet<&Name> =
            self.planned.outputs.keys().chain(now.outputs.keys()).collect();
        let mut found = Vec::new();
        for name in names {
            let (a, b) = (becomes(self.planned, name), becomes(now, name));
            let same = match (&a, &b) {
                (Some(a), Some(b)) => same_output(a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            if !same {
                found.push(Difference::Output {
                    name: name.clone(),
                    planned: a.map(Box::new),
                    now: now.outputs.get(name).cloned().map(Box::new),
                });
            }
        }
        found
    }

    /// Returns the addresses for which a plan without steps would write other records to the state now; none
    /// if there are none.
    fn accepted(&self, now: &Plan) -> Option<Difference> {
        let of = |plan: &Plan| -> BTreeMap<Address, Vec<Record>> {
            let mut records: BTreeMap<Address, Vec<Record>> = BTreeMap::new();
            for (address, record) in plan.seen.iter().filter_map(|it| self.seen(now, it)) {
                records.entry(address).or_default().push(record);
            }
            records
        };
        let (planned, now) = (of(self.planned), of(now));
        let addresses = planned.keys().chain(now.keys());
        let differs = |address: &&Address| planned.get(*address) != now.get(*address);
        let found: BTreeSet<Address> = addresses.filter(differs).cloned().collect();
        (!found.is_empty()).then_some(Difference::Accepted(found))
    }

    /// Returns a record of live attributes, without the attributes that change by themselves.
    fn seen(&self, now: &Plan, record: &Record) -> Option<(Address, Record)> {
        let mut record = record.clone();
        let address = match &mut record {
            Record::Seen { address, attributes, .. } => {
                let schema = now.change(address).and_then(|change| self.schema(change));
                if let Ok(Value::Map(entries)) = attributes.value() {
                    *attributes = stable(&entries, schema);
                }
                address.clone()
            }
            Record::Vanished { address, .. } | Record::Adopted { address, .. } => address.clone(),
            _ => return None,
        };
        Some((address, record))
    }
}

/// Returns the members of each set in `now` that are not in the set of the same address in the other map;
/// addresses without such members are left out.
fn added<T: Ord + Clone>(
    known: &BTreeMap<Address, BTreeSet<T>>,
    now: &BTreeMap<Address, BTreeSet<T>>,
) -> impl Iterator<Item = (Address, BTreeSet<T>)> {
    let new = |(address, members): (&Address, &BTreeSet<T>)| {
        let known = known.get(address);
        let is_new = |member: &&T| known.is_none_or(|known| !known.contains(*member));
        (address.clone(), members.iter().filter(is_new).cloned().collect::<BTreeSet<T>>())
    };
    now.iter().map(new).filter(|(_, members)| !members.is_empty())
}

/// Returns the attributes that do not change by themselves, in the form in which numbers and sets are
/// compared.
fn stable(attributes: &Attributes, schema: Option<&TypeSchema>) -> Stored {
    let is_stable = |name: &Name| schema.is_none_or(|schema| is_stable(schema, name));
    let stable = attributes.iter().filter(|(name, value)| !value.is_null() && is_stable(name));
    Stored::of_sealed(&Value::map(
        stable.map(|(name, value)| (name.clone(), value.clone())).collect(),
    ))
}

/// Returns the attributes that changed outside Plumb and that the change sets back.
fn drifted(change: &Change) -> impl Iterator<Item = &Name> {
    change.causes.iter().filter(|cause| cause.drifted).map(|cause| &cause.attribute)
}

fn same_output(a: &OutputChange, b: &OutputChange) -> bool {
    let store = |value: &Option<Value>| value.as_ref().map(Stored::of_sealed);
    a.action == b.action
        && a.sensitive == b.sensitive
        && store(&a.before) == store(&b.before)
        && store(&a.after) == store(&b.after)
}

fn same_steps(a: &Plan, b: &Plan) -> bool {
    let same = |(a, b): (&Step, &Step)| {
        (a.id, a.operation, a.phase, a.deposes) == (b.id, b.operation, b.phase, b.deposes)
            && (&a.address, &a.object, &a.needs) == (&b.address, &b.object, &b.needs)
    };
    a.steps.len() == b.steps.len() && a.steps.iter().zip(&b.steps).all(same)
}

impl Plan {
    /// Returns the plan without the changes for which `other` has nothing to do; none if a remaining step
    /// needs one that would be left out.
    fn restricted_to(mut self, other: &Self) -> Option<Self> {
        let places: BTreeSet<Place<'_>> = acting(other).map(place).collect();
        let is_kept: Vec<bool> =
            self.changes.iter().map(|change| places.contains(&place(change))).collect();
        let mut ids: BTreeMap<StepId, StepId> = BTreeMap::new();
        let mut steps = Vec::new();
        for step in self.steps {
            if !is_kept.get(step.change).copied().unwrap_or(false) {
                continue;
            }
            let id = StepId(u32::try_from(steps.len()).ok()?);
            let needs = step.needs.iter().map(|need| ids.get(need).copied());
            let needs = needs.collect::<Option<_>>()?;
            ids.insert(step.id, id);
            steps.push(Step { id, needs, ..step });
        }
        self.steps = steps;
        for (change, _) in self.changes.iter_mut().zip(is_kept).filter(|(_, kept)| !kept) {
            change.action = Action::NoOp;
        }
        let becomes =
            |name: &Name| other.outputs.get(name).is_some_and(|it| it.action != Action::NoOp);
        self.outputs.retain(|name, output| output.action == Action::NoOp || becomes(name));
        Some(self)
    }
}
