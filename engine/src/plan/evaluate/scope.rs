//! The scope of a resource's expressions while planning: variables, locals, `each`, and the planned objects
//! of the resources before it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use crate::plan::facts::unavailable::UnavailableSecrets;
use crate::plan::limits;
use crate::plan::limits::Spent;

use crate::address::{Address, Block, Name};
use crate::config::{Config, LocalConfig};
use crate::expression::evaluate::{self, Scope};
use crate::expression::visit::roots;
use crate::expression::{Expr, Kind, Root};
use crate::sorted::Set;
use crate::types::Type;
use crate::value::{Attributes, Datum, Path, Paths, Value};

/// The planned objects so far, by block.
#[derive(Default)]
pub(in crate::plan) struct Planned<'a> {
    /// The number of values that the planned objects and the locals hold, counted against the limit of a
    /// plan.
    pub(in crate::plan) spent: Spent,
    /// The secrets of the planned objects that no run has in clear.
    pub(in crate::plan) unavailable: UnavailableSecrets,
    blocks: FxHashMap<&'a Block, Instances>,
    /// The resources that each look-up depends on, by the address of the look-up.
    looked_up: BTreeMap<Address, Set<Address>>,
}

/// The instances of one block.
enum Instances {
    /// A block without `for_each`: its object, or null.
    One(Datum),
    /// A block with `for_each`: an object for each key; the object of a disabled instance is null.
    Many(BTreeMap<Name, Datum>),
}

impl<'a> Planned<'a> {
    /// Makes room for `blocks` more blocks: a map that grows step by step would move each of its entries
    /// often.
    pub(in crate::plan) fn reserve(&mut self, blocks: usize) {
        self.blocks.reserve(blocks);
    }

    /// Declares a block with `for_each`, so that it is known even when it has no instance.
    pub(in crate::plan) fn declare_many(&mut self, block: &'a Block) {
        self.blocks.insert(block, Instances::Many(BTreeMap::new()));
    }

    /// Returns true if an instance was planned.
    pub(in crate::plan) fn has(&self, address: &Address) -> bool {
        match (self.blocks.get(&address.block), &address.key) {
            (Some(Instances::Many(objects)), Some(key)) => objects.contains_key(key),
            (Some(Instances::One(_)), None) => true,
            _ => false,
        }
    }

    /// Returns the keys of a block with `for_each`; none for a block without one.
    pub(in crate::plan) fn keys(&self, block: &Block) -> Option<impl Iterator<Item = &Name>> {
        match self.blocks.get(block)? {
            Instances::Many(objects) => Some(objects.keys()),
            Instances::One(_) => None,
        }
    }

    /// Adds the resources that the look-up of an instance of a data block depends on: a resource that refers
    /// to the look-up depends on them.
    pub(in crate::plan) fn add_origin(&mut self, address: Address, touched: Set<Address>) {
        self.looked_up.insert(address, touched);
    }

    /// Adds the object of an instance of a block.
    pub(in crate::plan) fn insert(&mut self, block: &'a Block, key: Option<&Name>, object: Datum) {
        match key {
            None => {
                self.blocks.insert(block, Instances::One(object));
            }
            Some(key) => {
                let instances =
                    self.blocks.entry(block).or_insert_with(|| Instances::Many(BTreeMap::new()));
                if let Instances::Many(objects) = instances {
                    objects.insert(key.clone(), object);
                }
            }
        }
    }
}

/// Builds the datum of an object from its attributes.
pub(in crate::plan) fn object(attributes: impl Into<Arc<Attributes>>, sensitive: Paths) -> Datum {
    Datum { value: Value::Map(attributes.into()), sensitive }
}

/// The scope of one spec. It remembers the resources that expressions looked at.
pub(in crate::plan) struct SpecScope<'a> {
    config: &'a Config,
    planned: &'a Planned<'a>,
    locals: &'a LocalCache,
    each: Option<&'a Each<'a>>,
    touched: RefCell<Vec<Address>>,
}

/// `each` of one instance.
pub(in crate::plan) struct Each<'a> {
    /// `each.key`.
    pub(in crate::plan) key: Name,
    /// `each.value`.
    pub(in crate::plan) value: Datum,
    /// The `for_each` that the instances of the block are made from.
    pub(in crate::plan) source: Arc<EachSource<'a>>,
    /// The resources that `each.value` may come from.
    pub(in crate::plan) touched: Arc<Set<Address>>,
}

/// The expression of a `for_each`, for residuals of sensitive values.
pub(in crate::plan) struct EachSource<'a> {
    expr: &'a Expr,
    /// The expression that stands for the `for_each` in a residual, or the reason that there is none.
    /// Computed when it is first asked for, once for all instances.
    residual: OnceLock<LocalSource>,
}

impl<'a> EachSource<'a> {
    pub(in crate::plan) fn new(expr: &'a Expr) -> Arc<Self> {
        Arc::new(Self { expr, residual: OnceLock::new() })
    }

    fn residual(&self, scope: &SpecScope<'_>) -> LocalSource {
        let find = || evaluate::residual(self.expr, &scope.apart());
        let find = || find().map(Arc::new).map_err(|error| error.message);
        self.residual.get_or_init(find).clone()
    }
}

/// The results of the locals that were computed. If two threads compute the same local at once, both get the
/// same result.
#[derive(Default)]
pub(in crate::plan) struct LocalCache {
    values: Mutex<BTreeMap<Name, Local>>,
    sources: Mutex<BTreeMap<Name, LocalSource>>,
}

/// The value of a local with the resources that the local looked at, or the reason that it cannot be
/// computed.
type Local = Result<(Datum, Set<Address>), Broken>;

/// The reason that a local cannot be computed, with a mark if that reason may depend on a secret.
#[derive(Clone)]
pub(in crate::plan) struct Broken {
    message: String,
    over_secret: bool,
}

/// The expression that stands for a local, or a `for_each`, in a residual, or the reason that there is none.
type LocalSource = Result<Arc<Expr>, String>;

impl LocalCache {
    pub(in crate::plan) fn values(&self) -> MutexGuard<'_, BTreeMap<Name, Local>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<Name, LocalSource>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> SpecScope<'a> {
    /// Returns the scope outside any instance.
    pub(in crate::plan) fn new(
        config: &'a Config,
        planned: &'a Planned<'a>,
        locals: &'a LocalCache,
    ) -> Self {
        Self { config, planned, locals, each: None, touched: RefCell::default() }
    }

    /// Returns the scope with the `each` of an instance.
    #[must_use]
    pub(in crate::plan) fn with_each(mut self, each: Option<&'a Each<'a>>) -> Self {
        self.each = each;
        self
    }

    /// Returns the resources that were looked at since the last call, and forgets them.
    pub(in crate::plan) fn touched(&self) -> Set<Address> {
        self.touched.take().into_iter().collect()
    }

    /// Returns the same scope outside any instance, with no resource looked at yet.
    pub(in crate::plan) fn apart(&self) -> SpecScope<'a> {
        SpecScope::new(self.config, self.planned, self.locals)
    }

    /// Returns the expression that a local is computed from; none if there is no such local.
    pub(in crate::plan) fn local_expression(&self, name: &Name) -> Option<&'a Expr> {
        self.config.locals.get(name).map(|local| &local.value.expr)
    }

    /// Returns the keys of a block with `for_each`; none for a block without one.
    pub(in crate::plan) fn keys(&self, block: &Block) -> Option<impl Iterator<Item = &'a Name>> {
        self.planned.keys(block)
    }

    /// Adds the number of values that were evaluated to what the plan has spent.
    pub(in crate::plan) fn spend(&self, values: usize) {
        self.planned.spent.add(values);
    }

    fn local(&self, name: &Name) -> Result<Datum, String> {
        if !self.config.locals.contains_key(name) {
            return Err(format!("there is no local `{name}`"));
        }
        let known = self.locals.values().get(name).cloned();
        let found = match known {
            Some(local) => local,
            None => self.computed_local(name),
        };
        let (datum, touched) = found.map_err(|broken| broken.message)?;
        self.touched.borrow_mut().extend(touched);
        Ok(datum)
    }

    /// Computes the locals that a local refers to before the local itself, so that a long chain of locals
    /// needs no deep stack. Locals are acyclic: the spec's resolution proved it.
    fn computed_local(&self, name: &Name) -> Local {
        let broken = |message| Broken { message, over_secret: false };
        let mut last = Err(broken(format!("there is no local `{name}`")));
        let is_known = |name: &Name| self.locals.values().contains_key(name);
        for (name, local) in self.locals_before(name, &is_known) {
            // This scope serves one local, so it records only the resources that this local looks at.
            let own = self.apart();
            if self.planned.spent.is_over() {
                return Err(broken("the plan would hold too many values".to_owned()));
            }
            let datum = evaluate::evaluate_telling(&local.value.expr, &own)
                .map_err(|failure| Broken {
                    message: failure.error.message,
                    over_secret: failure.over_secret,
                })
                .and_then(|datum| local.typed(datum).map_err(broken));
            last = datum.map(|datum| (datum, own.touched()));
            if let Ok((datum, _)) = &last {
                self.spend(limits::weight(&datum.value));
            }
            self.locals.values().insert(name.clone(), last.clone());
        }
        last
    }

    /// Returns the expression of a local, with the expressions of the locals that it refers to filled in.
    /// Each is computed once, after those that it refers to: in a chain, the expression of a local contains
    /// those of all locals before it.
    fn local_source(&self, name: &Name) -> LocalSource {
        if let Some(known) = self.locals.sources().get(name) {
            return known.clone();
        }
        let mut last = Err(format!("there is no local `{name}`"));
        let is_known = |name: &Name| self.locals.sources().contains_key(name);
        for (name, local) in self.locals_before(name, &is_known) {
            let own = self.apart();
            last = evaluate::residual(&local.value.expr, &own)
                .map(Arc::new)
                .map_err(|error| error.message);
            self.locals.sources().insert(name.clone(), last.clone());
        }
        last
    }

    /// Returns the locals that `last` needs and that are not known yet, each after those that it needs
    /// itself; `last` comes at the end.
    fn locals_before(
        &self,
        last: &Name,
        is_known: &dyn Fn(&Name) -> bool,
    ) -> Vec<(&'a Name, &'a LocalConfig)> {
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        let of = |name: &Name| self.config.locals.get_key_value(name);
        let mut open: Vec<_> = of(last).map(|local| (local, false)).into_iter().collect();
        while let Some(((name, local), is_ready)) = open.pop() {
            if is_ready {
                order.push((name, local));
            } else if (name == last || !is_known(name)) && seen.insert(name) {
                open.push(((name, local), true));
                roots(&local.value.expr, &mut |root, _| {
                    if let Root::Local(other) = root {
                        open.extend(of(other).map(|local| (local, false)));
                    }
                });
            }
        }
        order
    }

    fn touch(&self, address: Address) {
        let mut touched = self.touched.borrow_mut();
        if address.block.is_data {
            let origin = self.planned.looked_up.get(&address);
            touched.extend(origin.into_iter().flatten().cloned());
            return;
        }
        // A loop looks at the same few resources again and again.
        if !touched.iter().rev().take(8).any(|seen| *seen == address) {
            touched.push(address);
        }
    }
}

impl Scope for SpecScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Var(name) => match self.config.variables.get(name) {
                Some(variable) => Ok(variable.value.clone()),
                None => Err(format!("there is no variable `{name}`")),
            },
            Root::Local(name) => self.local(name),
            Root::EachKey | Root::EachValue => {
                let each = self.each.as_ref().ok_or("`each` stands only below for_each")?;
                if *root == Root::EachKey {
                    return Ok(Datum::plain(Value::String(each.key.clone())));
                }
                self.touched.borrow_mut().extend(each.touched.iter().cloned());
                Ok(each.value.clone())
            }
            Root::Resource(block) => self.resource(block, None),
            Root::Named(name) => Err(format!("there is no `{name}` here")),
            Root::Module(name) => Err(format!("there is no module `{name}`")),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        match (self.planned.blocks.get(block), key) {
            (None, _) if block.is_data => Err(format!("`{block}` is not known here")),
            (None, _) => Err(format!("there is no resource `{block}`")),
            (Some(Instances::One(_)), Some(_)) => {
                Err(format!("`{block}` has no for_each, so it has no keys"))
            }
            (Some(Instances::One(object)), None) => {
                self.touch(block.instance(None));
                Ok(object.clone())
            }
            (Some(Instances::Many(objects)), Some(key)) => {
                let object = objects.get(key).ok_or_else(|| no_key(block, key, objects))?;
                self.touch(block.instance(Some(key.into())));
                Ok(object.clone())
            }
            (Some(Instances::Many(objects)), None) => {
                let (mut values, mut sensitive) = (Attributes::new(), Paths::none());
                for (key, object) in objects {
                    self.touch(block.instance(Some(key.clone())));
                    sensitive.extend_below(&Path::attribute(key.clone()), &object.sensitive);
                    values.insert(key.clone(), object.value.clone());
                }
                Ok(Datum { value: Value::map(values), sensitive })
            }
        }
    }

    fn touch_all(&self, block: &Block) {
        if let Some(Instances::Many(objects)) = self.planned.blocks.get(block) {
            for key in objects.keys() {
                self.touch(block.instance(Some(key.clone())));
            }
        }
    }

    fn is_keyed(&self, block: &Block) -> bool {
        matches!(self.planned.blocks.get(block), Some(Instances::Many(_)))
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        match (root, self.each) {
            (Root::Local(name), _) => self.local_source(name).map(Some),
            (Root::EachValue, Some(each)) => {
                let source = each.source.residual(self)?;
                Ok(Some(evaluate::residual_of_entry(&source, &each.key).into()))
            }
            _ => Ok(None),
        }
    }

    fn fails_over_a_secret(&self, root: &Root) -> bool {
        let Root::Local(name) = root else { return false };
        let values = self.locals.values();
        matches!(values.get(name), Some(Err(broken)) if broken.over_secret)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.config.files.get(path).cloned().ok_or_else(|| format!("`{path}` was not read"))
    }
}

fn no_key(block: &Block, key: &str, objects: &BTreeMap<Name, Datum>) -> String {
    let near = crate::diagnostics::nearest(key, objects.keys().map(|key| &**key));
    match near {
        Some(near) => format!("`{block}` has no key \"{key}\"; there is \"{near}\""),
        None => format!("`{block}` has no key \"{key}\""),
    }
}

/// The scope of a rule: `old`, `new`, `action`, and `plan` once all changes are decided.
pub(in crate::plan) struct RuleScope<'a> {
    /// The live object, null on create.
    pub(in crate::plan) old: &'a Datum,
    /// The planned object, null on delete.
    pub(in crate::plan) new: &'a Datum,
    /// The action's word.
    pub(in crate::plan) action: &'a Datum,
    /// The whole plan, as policies see it.
    pub(in crate::plan) plan: Option<&'a Datum>,
}

impl Scope for RuleScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let word = match root {
            Root::Named(name) => match &**name {
                "old" => Some(self.old),
                "new" => Some(self.new),
                "action" => Some(self.action),
                "plan" => self.plan,
                _ => None,
            },
            _ => None,
        };
        word.cloned().ok_or_else(|| "a rule sees `old`, `new`, `action` and `plan`".to_owned())
    }

    /// Returns an unknown value for a resource that an unknown value in the `plan` of a policy refers to.
    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        if self.plan.is_none() {
            return Err(format!("a rule sees no resource, so not `{block}`"));
        }
        let slot = Expr::nowhere(Kind::Root(Root::Resource(block.clone())));
        let slot = match key {
            Some(key) => {
                let key = Box::new(Expr::literal(Value::string(key)));
                Expr::nowhere(Kind::Index(Box::new(slot), key))
            }
            None => slot,
        };
        Ok(Datum::plain(Value::unknown(Type::Any, slot)))
    }
}

/// The scope of a schema's expressions: an object's attributes, by name.
pub(in crate::plan) struct AttributeScope<'a> {
    /// The attributes.
    pub(in crate::plan) attributes: &'a Attributes,
    /// Their sensitive places.
    pub(in crate::plan) sensitive: &'a Paths,
}

impl Scope for AttributeScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Named(name) => Ok(Datum {
                value: self.attributes.get(name).cloned().unwrap_or(Value::Null),
                sensitive: self.sensitive.inside(&crate::value::Segment::Key(name.clone())),
            }),
            _ => Err("only the object's attributes can be seen here".to_owned()),
        }
    }

    fn resource(&self, block: &Block, _key: Option<&str>) -> Result<Datum, String> {
        Err(format!("only the object's attributes can be seen here, not `{block}`"))
    }
}
