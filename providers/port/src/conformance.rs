//! The contract of every provider, as a suite that each provider runs in its tests.
//!
//! The suite takes objects of every given type through their life as `apply` would: create phase by phase,
//! find by nonce, list, read, update, delete. It checks each answer against the schema. It does not test the
//! API behind the provider, and it needs an API that is safe to write to.

mod calls;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::Name;
use engine::journal::ProgramKind;
use engine::schema::TypeSchema;
use engine::state::{Nonce, ObjectId};
use engine::value::Attributes;

pub use calls::clean_up;
use calls::{
    Change, Step, completed, create, end, merge, nonce, observe, program, refusals, type_schema,
};
pub use trial::{Attempt, change, changed, make, remove};

use crate::{Object, Provider};

/// The objects that were made so far, by resource type; later fixtures may refer to them.
pub type Made = BTreeMap<Name, Object>;

type Wanted = Box<dyn Fn(&Made) -> Result<Attributes, String> + Send + Sync>;

type Changed = Box<dyn Fn(&Made, &Object) -> Result<Attributes, String> + Send + Sync>;

/// The way to try one resource type.
pub struct Fixture {
    ty: Name,
    create: Wanted,
    change: Changed,
}

impl Fixture {
    /// A type with the attributes of the create, and those that the update changes.
    pub fn new(ty: &str, create: Attributes, change: Attributes) -> Self {
        Self::depending(ty, move |_| create.clone(), move |_| change.clone())
    }

    /// Returns a type whose attributes refer to objects of earlier fixtures.
    pub fn depending(
        ty: &str,
        create: impl Fn(&Made) -> Attributes + Send + Sync + 'static,
        change: impl Fn(&Made) -> Attributes + Send + Sync + 'static,
    ) -> Self {
        Self::trying(ty, move |made| Ok(create(made)), move |made, _| Ok(change(made)))
    }

    /// Returns a type for which values may be missing; the change may depend on the object as it was made.
    pub fn trying(
        ty: &str,
        create: impl Fn(&Made) -> Result<Attributes, String> + Send + Sync + 'static,
        change: impl Fn(&Made, &Object) -> Result<Attributes, String> + Send + Sync + 'static,
    ) -> Self {
        Self { ty: ty.into(), create: Box::new(create), change: Box::new(change) }
    }
}

/// A witness of the objects of a run, which can clean up after the run if it is killed.
pub trait Witness: Sync {
    /// Records a create that is about to be sent, under its one-time name. An error ends the check of the
    /// type.
    fn intends(&self, ty: &Name, nonce: &Nonce, wanted: &Attributes) -> Result<(), String>;

    /// Records that the create made nothing.
    fn refused(&self, ty: &Name) -> Result<(), String>;

    /// Records an object that exists.
    fn made(&self, ty: &Name, object: &Object) -> Result<(), String>;

    /// Records that an object is gone.
    fn gone(&self, ty: &Name, id: &ObjectId) -> Result<(), String>;
}

/// The witness of a run that leaves nothing to clean up.
struct Nobody;

impl Witness for Nobody {
    fn intends(&self, _: &Name, _: &Nonce, _: &Attributes) -> Result<(), String> {
        Ok(())
    }

    fn refused(&self, _: &Name) -> Result<(), String> {
        Ok(())
    }

    fn made(&self, _: &Name, _: &Object) -> Result<(), String> {
        Ok(())
    }

    fn gone(&self, _: &Name, _: &ObjectId) -> Result<(), String> {
        Ok(())
    }
}

/// The result of one check of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The resource type.
    pub ty: Name,
    /// The check: `create`, `show`, `update`, `delete` or `refuse`.
    pub check: &'static str,
    /// `Ok`, or the mistake of the provider with the call.
    pub result: Result<(), String>,
}

/// The parts that the suite runs on.
pub struct Suite<'a> {
    provider: &'a dyn Provider,
    wrong_key: Option<&'a dyn Provider>,
    secrets: Vec<String>,
    fixtures: Vec<Fixture>,
    witness: &'a dyn Witness,
    /// The part of one-time names that differs between runs.
    seed: [u8; 4],
}

impl<'a> Suite<'a> {
    /// Returns a suite without fixtures.
    pub fn new(provider: &'a dyn Provider) -> Self {
        let (secrets, fixtures) = (Vec::new(), Vec::new());
        Self { provider, wrong_key: None, secrets, fixtures, witness: &Nobody, seed: [0; 4] }
    }

    /// Sets a witness of each object, and the seed of one-time names.
    #[must_use]
    pub fn witness(mut self, witness: &'a dyn Witness, seed: [u8; 4]) -> Self {
        (self.witness, self.seed) = (witness, seed);
        self
    }

    /// Adds a fixture; objects are made in this order and deleted in reverse order.
    #[must_use]
    pub fn with(mut self, fixture: Fixture) -> Self {
        self.fixtures.push(fixture);
        self
    }

    /// Sets the same provider with a key that the API does not know.
    #[must_use]
    pub fn wrong_key(mut self, provider: &'a dyn Provider) -> Self {
        self.wrong_key = Some(provider);
        self
    }

    /// Adds a text that no error may show, such as the key.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }
}

/// Runs the suite. The error describes the mistake of the provider, with the call.
pub async fn run(suite: &Suite<'_>) -> Result<(), String> {
    let outcomes = check(suite).await;
    outcomes.into_iter().try_for_each(|outcome| outcome.result)
}

/// Runs the suite, and continues after a mistake. Deletes every object that was made, if possible.
pub async fn check(suite: &Suite<'_>) -> Vec<Outcome> {
    let (mut made, mut outcomes) = (Made::new(), Vec::new());
    for (index, fixture) in suite.fixtures.iter().enumerate() {
        let mut life = Life { suite, fixture, object: None, outcomes: Vec::new() };
        life.live(index, &made).await;
        made.extend(life.object.map(|object| (fixture.ty.clone(), object)));
        outcomes.extend(life.outcomes);
    }
    for fixture in suite.fixtures.iter().rev() {
        let Some(object) = made.get(&fixture.ty) else { continue };
        let result = end(suite, fixture, object).await;
        outcomes.push(Outcome { ty: fixture.ty.clone(), check: "delete", result });
    }
    for fixture in &suite.fixtures {
        let result = refusals(suite, fixture, made.get(&fixture.ty)).await;
        outcomes.push(Outcome { ty: fixture.ty.clone(), check: "refuse", result });
    }
    outcomes
}

/// The life of one object, up to its delete.
struct Life<'s, 'a> {
    suite: &'s Suite<'a>,
    fixture: &'s Fixture,
    /// The object; none before it is created.
    object: Option<Object>,
    outcomes: Vec<Outcome>,
}

impl Life<'_, '_> {
    /// Creates, finds, lists, reads and updates the object, up to the first mistake.
    async fn live(&mut self, index: usize, made: &Made) {
        let created = self.create(index, made).await;
        let Some((schema, desired)) = self.note("create", created) else { return };
        let Some(object) = self.object.clone() else { return };
        let shown = observe(self.suite, &schema, &object, &desired).await;
        let Some(object) = self.note("show", shown) else { return };
        let change = (self.fixture.change)(made, &object);
        self.object = Some(object);
        if change.as_ref().is_ok_and(Attributes::is_empty) {
            return;
        }
        let updated = match change {
            Ok(change) => self.update(&schema, change).await,
            Err(why) => Err(why),
        };
        self.object = self.note("update", updated).or(self.object.take());
    }

    /// Records the result of a check.
    fn note<T>(&mut self, check: &'static str, result: Result<T, String>) -> Option<T> {
        let (value, result) = match result {
            Ok(value) => (Some(value), Ok(())),
            Err(why) => (None, Err(why)),
        };
        self.outcomes.push(Outcome { ty: self.fixture.ty.clone(), check, result });
        value
    }

    async fn create(
        &mut self,
        index: usize,
        made: &Made,
    ) -> Result<(Arc<TypeSchema>, Attributes), String> {
        let (suite, fixture) = (self.suite, self.fixture);
        let schema = type_schema(suite, &fixture.ty)?;
        let nonce = nonce(suite, &fixture.ty, index);
        let desired = completed(&schema, (fixture.create)(made)?)?;
        suite.witness.intends(&fixture.ty, &nonce, &desired)?;
        create(suite, &schema, &desired, &nonce, &mut self.object).await?;
        Ok((schema, desired))
    }

    async fn update(&self, schema: &TypeSchema, change: Attributes) -> Result<Object, String> {
        let (suite, object) = (self.suite, self.object.as_ref().ok_or("there is no object")?);
        let changed: BTreeSet<Name> = change.keys().cloned().collect();
        let mut desired = object.attributes.clone();
        desired.extend(completed(schema, change)?);
        let step = Step { kind: ProgramKind::Update, id: Some(&object.id), nonce: None };
        let about = Change { desired: &desired, live: &object.attributes, changed: &changed };
        let updated = program(suite, schema, &step, &about, &mut None).await?;
        let updated = updated.unwrap_or_else(|| object.clone());
        if updated.id != object.id {
            return Err(format!("update of {} answered another id", schema.name));
        }
        let wanted = desired.iter().filter(|(name, _)| changed.contains(*name));
        let wanted = wanted.map(|(name, value)| (name.clone(), value.clone())).collect();
        observe(suite, schema, &merge(object, &updated), &wanted).await
    }
}
