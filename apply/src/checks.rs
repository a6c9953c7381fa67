//! The values that the expressions of checks see: the spec's variables and locals, the objects of the state
//! as they are live, and the answers that were fetched for the check.
//!
//! This module only evaluates. The caller fetches and reports.

mod unwanted;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::address::{Address, Block, Name};
use engine::config::Config;
use engine::config::scope::Locals;
use engine::expression::evaluate::{self, Scope};
use engine::expression::{Expr, ExprError, Root};
use engine::plan::input::{Observations, Observed};
use engine::state::Snapshot;
use engine::stored::{KnownSecrets, SecretFingerprints, Stored};
use engine::value::{Attributes, Datum, Path, Value};

use self::unwanted::{Depth, Each};
use crate::fill::FillScope;
use crate::refresh::{TypesToList, observe};
use crate::{ApplyError, Providers};

/// The objects of a state as they are live.
pub struct Live {
    snapshot: Snapshot,
    /// The live attributes of each object, as they were just read.
    seen: BTreeMap<Address, Attributes>,
    /// The values of sensitive variables. They count as sensitive wherever an object has them.
    known: KnownSecrets,
    /// The fingerprints of the secrets in the state and in the live objects.
    marks: SecretFingerprints,
}

impl Live {
    /// Reads every object that the state names.
    pub async fn look(
        snapshot: Snapshot,
        providers: &Providers,
        config: &Config,
    ) -> Result<Self, ApplyError> {
        // An API may repeat the value of a variable. A check can compare that value, so it is not sealed,
        // only marked as sensitive.
        let observations =
            observe(&snapshot, providers, &TypesToList::default(), &KnownSecrets::default())
                .await?;
        let known = KnownSecrets::of(config.variables.values().map(|variable| &variable.value));
        let marks = marks(&snapshot, &observations);
        let mut live = Self { snapshot, seen: BTreeMap::new(), known, marks };
        for ((address, id), observed) in observations.objects {
            let Some(entry) = live.snapshot.entries.get_mut(&address) else { continue };
            if entry.current.as_ref().is_none_or(|current| current.id != id) {
                continue;
            }
            match observed {
                Observed::Live(attributes) => drop(live.seen.insert(address, attributes)),
                Observed::Gone => entry.current = None,
            }
        }
        Ok(live)
    }

    /// Takes the objects as the state has them. No API is called.
    pub fn stored(snapshot: Snapshot, config: &Config) -> Self {
        let known = KnownSecrets::of(config.variables.values().map(|variable| &variable.value));
        let marks = marks(&snapshot, &Observations::default());
        Self { snapshot, seen: BTreeMap::new(), known, marks }
    }

    /// The addresses of the objects.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.snapshot.entries.keys()
    }

    /// Computes an expression of a check. `bound` has the answers that were fetched, by the names that the
    /// check gives them.
    pub fn evaluate(
        &self,
        expr: &Expr,
        (config, providers): (&Config, &Providers),
        bound: &BTreeMap<Name, Datum>,
    ) -> Result<Datum, ExprError> {
        let compute = |scope: &CheckScope<'_>| evaluate::evaluate(expr, scope);
        let datum = self.in_scope((config, providers), bound, compute)?;
        if !datum.value.is_known() || datum.value.holds_sealed() {
            return Err(ExprError {
                range: expr.range,
                message: "it holds a secret of which only the fingerprint is known".to_owned(),
                help: Some("use what the secret was made of, such as a variable".to_owned()),
                meant: None,
            });
        }
        Ok(datum)
    }

    /// Returns true if a resource of one of these types stands for the object with an id.
    pub fn stands_for(&self, id: &str, is_type: impl Fn(&Name) -> bool) -> bool {
        self.snapshot.entries.iter().any(|(address, entry)| {
            let current = entry.current.as_ref();
            is_type(&address.block.ty) && current.is_some_and(|object| *object.id.0 == *id)
        })
    }

    /// Returns the secret values of the variables and locals, in clear.
    pub fn secrets(&self, config: &Config, providers: &Providers) -> Vec<Value> {
        let variables = config.variables.values().map(|variable| variable.value.clone());
        let locals = self.in_scope((config, providers), &BTreeMap::new(), |scope| {
            let names = config.locals.keys();
            names.filter_map(|name| scope.locals.get(name, scope).ok()).collect::<Vec<_>>()
        });
        let secret = |datum: Datum| {
            let places = datum.sensitive.around_sets(&datum.value);
            places.iter().filter_map(|path| datum.value.at(path).cloned()).collect::<Vec<_>>()
        };
        variables.chain(locals).flat_map(secret).collect()
    }

    /// Returns the words of a text that are secrets of the state, by their fingerprints.
    pub fn known_words(&self, text: &str) -> Vec<Value> {
        let words = self.marks.words(text, &self.snapshot.seal_key);
        words.into_iter().map(Value::string).collect()
    }

    fn in_scope<T>(
        &self,
        (config, providers): (&Config, &Providers),
        bound: &BTreeMap<Name, Datum>,
        compute: impl FnOnce(&CheckScope<'_>) -> T,
    ) -> T {
        let variables = config.variables.iter();
        let variables = variables.map(|(name, known)| (name.clone(), known.value.clone()));
        let variables: BTreeMap<Name, Datum> = variables.collect();
        let objects = FillScope {
            snapshot: &self.snapshot,
            providers,
            variables: &variables,
            looked_up: &BTreeMap::new(),
            clear: &self.seen,
            takes_unshown_for_null: true,
        };
        let (locals, depth) = (Locals::new(&config.locals), Depth::default());
        compute(&CheckScope {
            config,
            objects: &objects,
            locals: &locals,
            bound,
            known: &self.known,
            each: None,
            depth: &depth,
        })
    }
}

/// Returns the fingerprints of the secrets in a state and in the live objects.
fn marks(snapshot: &Snapshot, observations: &Observations) -> SecretFingerprints {
    let mut marks = SecretFingerprints::default();
    for entry in snapshot.entries.values() {
        entry.current.iter().chain(&entry.deposed).for_each(|it| marks.add(&it.attributes));
    }
    snapshot.outputs.values().for_each(|output| marks.add(&output.value));
    for observed in observations.objects.values() {
        if let Observed::Live(seen) = observed {
            marks.add(&Stored::of_sealed(&Value::map(seen.clone())));
        }
    }
    marks
}

/// The names that an expression of a check may refer to.
struct CheckScope<'a> {
    config: &'a Config,
    objects: &'a FillScope<'a>,
    locals: &'a Locals<'a>,
    bound: &'a BTreeMap<Name, Datum>,
    known: &'a KnownSecrets,
    /// The instance whose `enabled` is computed; `None` while anything else is computed.
    each: Option<Each<'a>>,
    depth: &'a Depth,
}

impl<'a> CheckScope<'a> {
    /// Returns this scope with another `each`, or with none.
    fn with_each<'e>(&self, each: Option<Each<'e>>) -> CheckScope<'e>
    where
        'a: 'e,
    {
        CheckScope { each, ..*self }
    }
}

impl Scope for CheckScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Var(name) if !self.config.variables.contains_key(name) => {
                Err(format!("there is no variable `{name}`"))
            }
            Root::Var(_) => self.objects.root(root),
            Root::Local(name) => self.locals.get(name, self),
            Root::Module(name) => Err(format!("there is no module `{name}`")),
            Root::Named(name) => self.bound.get(name).cloned().ok_or_else(|| {
                if self.bound.is_empty() {
                    return format!("`{name}` is no name of the spec, such as `var.{name}`");
                }
                format!("this check fetches no `{name}`")
            }),
            Root::EachKey | Root::EachValue => match &self.each {
                Some(each) => Ok(each.root(root)),
                None => Err("`each` means nothing in a check".to_owned()),
            },
            Root::Resource(block) => self.resource(block, None),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        let is_declared =
            self.config.resources.contains_key(block) || self.config.data.contains_key(block);
        if !is_declared && !self.objects.snapshot.entries.keys().any(|it| it.block == *block) {
            return Err(format!("neither the spec nor the state has `{block}`"));
        }
        let found = self.objects.resource(block, key);
        let mut datum = self.or_unwanted(block, key, found)?;
        datum.sensitive.extend_below(&Path::root(), &self.known.places(&datum.value));
        Ok(datum)
    }

    fn fails_over_a_secret(&self, root: &Root) -> bool {
        self.locals.fails_over_a_secret(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        let file = self.config.files.get(path).cloned();
        file.ok_or_else(|| format!("the file `{path}` was not read"))
    }
}
