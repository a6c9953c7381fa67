//! What nobody has of an object that stays as it is: what its API told once, or never.
//!
//! Of a secret the state keeps a fingerprint, so a plan can compare it; a call cannot send it. Where
//! the API does not show it again, it is lost to every run but the one that made it. A secret of which
//! there is not even a fingerprint, because its answer was lost, is no null either: nobody knows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::expression::evaluate::Scope;
use crate::expression::visit::roots;
use crate::expression::{Expr, Root};
use crate::plan::evaluate::scope::SpecScope;
use crate::plan::referred::each_in;
use crate::plan::{Action, Why};
use crate::schema::{Attribute, Presence, SeenIn, TypeSchema};
use crate::value::{Attributes, Datum, Value};

/// The attributes of one object that nobody has.
#[derive(Debug, Default)]
pub(in crate::plan) struct Lost(BTreeMap<Name, One>);

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) struct One {
    pub(in crate::plan) why: Why,
    /// Whether reading the object may show it after all: a list need not show all that a read does.
    pub(in crate::plan) may_show: bool,
}

/// An object as it is planned, and as it was seen.
pub(in crate::plan) struct Seen<'a> {
    pub(in crate::plan) schema: &'a TypeSchema,
    pub(in crate::plan) action: Action,
    pub(in crate::plan) planned: &'a Attributes,
    /// What the state and a refresh know of it; none where there is none yet.
    pub(in crate::plan) live: Option<&'a Attributes>,
    /// What a refresh saw; none where nobody looked.
    pub(in crate::plan) observed: Option<&'a Attributes>,
}

impl Lost {
    /// What nobody has of an object.
    pub(in crate::plan) fn of(seen: &Seen<'_>) -> Self {
        let own = seen.schema.attributes.iter().filter_map(|(name, attribute)| {
            let one = seen.lost(name, attribute).filter(|_| attribute.derived.is_none())?;
            Some((name.clone(), one))
        });
        let mut lost = Self(own.collect());
        if !lost.is_empty() {
            lost.add_derived(seen);
        }
        lost
    }

    /// What follows from something lost is lost with it, unless it is known by itself.
    fn add_derived(&mut self, seen: &Seen<'_>) {
        for (name, attribute) in &seen.schema.attributes {
            let Some(expr) = &attribute.derived else { continue };
            let is_clear = seen.planned.get(name).is_some_and(is_clear);
            let mut from = None;
            roots(expr, &mut |root, _| {
                if let Root::Named(other) = root {
                    from = from.or(self.0.get(other).copied());
                }
            });
            if let Some(one) = from.filter(|_| !is_clear) {
                self.0.insert(name.clone(), one);
            }
        }
    }

    pub(in crate::plan) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lets what no answer has shown be unknown in an object that others refer to: null would say
    /// that there is none, and what is made from it would be made without.
    pub(in crate::plan) fn mark(
        &self,
        address: &Address,
        schema: &TypeSchema,
        object: &mut Arc<Attributes>,
    ) {
        for (name, _) in self.0.iter().filter(|(_, one)| one.why != Why::Fingerprint) {
            let Some(attribute) = schema.attributes.get(name) else { continue };
            let slot = Value::unknown(attribute.ty.clone(), Expr::slot(address, name));
            Arc::make_mut(object).insert(name.clone(), slot);
        }
    }
}

fn is_clear(value: &Value) -> bool {
    !value.is_null() && value.is_known() && !value.holds_sealed()
}

impl Seen<'_> {
    fn lost(&self, name: &Name, attribute: &Attribute) -> Option<One> {
        let computed = attribute.presence == Presence::Computed;
        let never = attribute.seen_in == SeenIn::Never;
        let one = |why| Some(One { why, may_show: !never });
        let Some(live) = self.live.filter(|_| !self.makes()) else {
            return if self.makes() && computed && never { one(Why::Never) } else { None };
        };
        let planned = self.planned.get(name).unwrap_or(&Value::Null);
        let is_told = computed || attribute.server_default;
        if planned.is_null() && is_told && !live.contains_key(name) {
            return match (never, attribute.sensitive) {
                (true, _) if computed => one(Why::Never),
                (_, true) => one(Why::Unshown),
                _ => None,
            };
        }
        let is_shown =
            self.observed.and_then(|seen| seen.get(name)).is_some_and(|it| !it.is_null());
        let was_looked_for = never || self.observed.is_some();
        if planned.holds_sealed() && !is_shown && was_looked_for {
            return one(Why::Fingerprint);
        }
        None
    }

    fn makes(&self) -> bool {
        matches!(self.action, Action::Create | Action::Replace)
    }
}

/// What nobody has of the objects planned so far.
#[derive(Debug, Default)]
pub(in crate::plan) struct AllLost(BTreeMap<Address, Lost>);

impl AllLost {
    pub(in crate::plan) fn insert(&mut self, address: &Address, lost: Lost) {
        if !lost.is_empty() {
            self.0.insert(address.clone(), lost);
        }
    }

    pub(in crate::plan) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What an expression refers to of that.
    pub(in crate::plan) fn referred(&self, expr: &Expr) -> BTreeMap<(Address, Name), One> {
        let mut referred = BTreeMap::new();
        each_in(expr, &mut |reference| {
            for (address, lost) in &self.0 {
                let names = lost.0.iter().filter(|(name, _)| reference.has(address, name));
                referred.extend(names.map(|(name, one)| ((address.clone(), name.clone()), *one)));
            }
        });
        referred
    }

    fn of(&self, block: &Block, key: Option<&str>) -> Option<(&Address, &Lost)> {
        self.0.get_key_value(&block.instance(key.map(Into::into)))
    }
}

/// The scope of a spec in which something else stands for what nobody has.
pub(in crate::plan) struct LostScope<'s, 'a> {
    pub(in crate::plan) scope: &'s SpecScope<'a>,
    pub(in crate::plan) lost: &'s AllLost,
    pub(in crate::plan) stands_for: StandsFor,
}

/// What stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum StandsFor {
    /// An unknown that names it, also where there is a fingerprint.
    ItsName,
    /// Null, where no answer has shown it: for who only shows what there is.
    Nothing,
}

impl LostScope<'_, '_> {
    fn put(&self, (address, lost): (&Address, &Lost), object: Value) -> Value {
        let Value::Map(mut attributes) = object else { return object };
        for (name, one) in &lost.0 {
            let value = match self.stands_for {
                StandsFor::ItsName => {
                    let ty = attributes.get(name).map_or(crate::types::Type::Any, Value::type_of);
                    Value::unknown(ty, Expr::slot(address, name))
                }
                StandsFor::Nothing if one.why == Why::Fingerprint => continue,
                StandsFor::Nothing => Value::Null,
            };
            Arc::make_mut(&mut attributes).insert(name.clone(), value);
        }
        Value::Map(attributes)
    }
}

impl Scope for LostScope<'_, '_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        self.scope.root(root)
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        let mut datum = self.scope.resource(block, key)?;
        if let Some(lost) = self.lost.of(block, key) {
            datum.value = self.put(lost, datum.value);
        } else if let (Value::Map(objects), None) = (&mut datum.value, key) {
            let of_block = self.lost.0.iter().filter(|(address, _)| address.block == *block);
            for (address, lost) in of_block {
                let place = address.key.as_ref().and_then(|key| objects.get(key)?.clone().into());
                if let (Some(object), Some(key)) = (place, &address.key) {
                    let object = self.put((address, lost), object);
                    Arc::make_mut(objects).insert(key.clone(), object);
                }
            }
        }
        Ok(datum)
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        self.scope.source(root)
    }

    fn fails_over_a_secret(&self, root: &Root) -> bool {
        self.scope.fails_over_a_secret(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.scope.file(path)
    }
}
