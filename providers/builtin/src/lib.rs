//! The provider that needs no API: the type `value` holds values, for tests, glue and measurements.
//!
//! Its objects live only in the state, so they cannot be lost, listed or in doubt. A call does a few map
//! operations and allocates little. So the cost of an apply of `value` resources is the cost of the engine
//! and the journal, which such an apply is meant to measure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use engine::address::Name;
use engine::digest::Digest;
use engine::expression::{Expr, Kind as ExprKind, Root};
use engine::journal::ProgramKind;
use engine::schema::{
    Attribute, Identity, OnChange, Operation, Phase, PhaseWords, Presence, Program, ProviderSchema,
    ReplaceOrder, Sends, TypeSchema,
};
use engine::state::ObjectId;
use engine::types::Type;
use engine::value::{Attributes, Value};
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};

/// The name of the provider in specs and state.
pub const NAME: &str = "builtin";

/// The provider.
#[derive(Debug)]
pub struct Builtin {
    schema: Arc<ProviderSchema>,
    names: Names,
}

/// The names of the attributes, made once, so that a call only increments reference counts.
#[derive(Debug)]
struct Names {
    id: Name,
    input: Name,
    output: Name,
    replace_on: Name,
}

impl Builtin {
    /// Returns the provider.
    pub fn new() -> Self {
        let names = Names {
            id: "id".into(),
            input: "input".into(),
            output: "output".into(),
            replace_on: "replace_on".into(),
        };
        Self { schema: Arc::new(provider_schema(&names)), names }
    }

    fn object(&self, id: ObjectId, desired: &Attributes) -> Object {
        let input = desired.get(&self.names.input).cloned().unwrap_or(Value::Null);
        let mut attributes = Attributes::new();
        attributes.insert(self.names.id.clone(), Value::String(id.0.clone()));
        attributes.insert(self.names.output.clone(), input.clone());
        attributes.insert(self.names.input.clone(), input);
        if let Some(trigger) = desired.get(&self.names.replace_on) {
            attributes.insert(self.names.replace_on.clone(), trigger.clone());
        }
        Object { id, attributes }
    }
}

impl Default for Builtin {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Provider for Builtin {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.schema.clone()
    }

    async fn list(&self, _ty: &str) -> Result<Vec<Object>, Error> {
        Ok(Vec::new())
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        let message = format!("{ty} {id} lives in the state alone and cannot be read");
        Err(Error::new(Kind::NotFound, message))
    }

    async fn find(&self, _ty: &str, _create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        Ok(Vec::new())
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        if !self.schema.types.contains_key(call.ty) {
            let message = format!("the builtin provider has no resource type `{}`", call.ty);
            return Err(Error::new(Kind::Rejected, message));
        }
        let id = match call.phase.kind {
            ProgramKind::Delete => return Ok(Reply { object: None }),
            ProgramKind::Create => call.nonce.map(|nonce| ObjectId(nonce.0.clone())),
            ProgramKind::Update => call.id.cloned(),
        };
        let id = id.ok_or_else(|| {
            Error::new(Kind::Rejected, "the call names neither an object nor a nonce")
        })?;
        Ok(Reply { object: Some(self.object(id, call.desired)) })
    }

    fn concurrency(&self) -> usize {
        // No call waits, so more simultaneous calls only fill the journal's batches.
        1024
    }
}

fn provider_schema(names: &Names) -> ProviderSchema {
    let ty: Name = "value".into();
    ProviderSchema {
        name: NAME.into(),
        digest: Digest::of(b"builtin 1"),
        types: BTreeMap::from([(ty.clone(), Arc::new(value_type(ty, names)))]),
    }
}

fn value_type(name: Name, names: &Names) -> TypeSchema {
    let program = |operation, sends| {
        let without = BTreeSet::new();
        let phase =
            Phase { operation, sends, without, waits_for: None, words: PhaseWords::default() };
        vec![Program { when: None, phases: vec![phase] }]
    };
    TypeSchema {
        name,
        description: "Holds a value in the state. It has no object in any API.".to_owned(),
        attributes: attributes(names),
        create: program(Operation::Create, Sends::All),
        update: program(Operation::Update, Sends::Changed),
        delete: program(Operation::Delete, Sends::Nothing),
        identity: Identity::Local,
        replace: ReplaceOrder::DeleteFirst,
        unique_name: false,
        name_attribute: None,
        delete_effect: None,
        price: None,
        rules: Vec::new(),
        remote: false,
        data_only: false,
        singleton: None,
    }
}

fn attributes(names: &Names) -> BTreeMap<Name, Attribute> {
    let input = Expr::nowhere(ExprKind::Root(Root::Named(names.input.clone())));
    BTreeMap::from([
        (
            names.id.clone(),
            Attribute {
                description: "Tells one value from another; drawn when it is created.".to_owned(),
                presence: Presence::Computed,
                ..Attribute::new(Type::String)
            },
        ),
        (
            names.input.clone(),
            Attribute {
                description: "What to hold: any value.".to_owned(),
                ..Attribute::new(Type::Any)
            },
        ),
        (
            names.output.clone(),
            Attribute {
                description: "What `input` is.".to_owned(),
                presence: Presence::Computed,
                derived: Some(input),
                ..Attribute::new(Type::Any)
            },
        ),
        (
            names.replace_on.clone(),
            Attribute {
                description: "Any value; when it changes, the object is replaced.".to_owned(),
                on_change: OnChange::Replace,
                ..Attribute::new(Type::Any)
            },
        ),
    ])
}

#[cfg(test)]
mod tests {
    use provider_port::conformance::{self, Fixture, Suite};

    use super::*;

    fn attributes(pairs: &[(&str, Value)]) -> Attributes {
        pairs.iter().map(|(name, value)| (Name::from(*name), value.clone())).collect()
    }

    #[tokio::test]
    async fn conforms() {
        let provider = Builtin::new();
        let suite = Suite::new(&provider).with(Fixture::new(
            "value",
            attributes(&[("input", Value::Integer(1)), ("replace_on", Value::string("x"))]),
            attributes(&[("input", Value::list(vec![Value::Null, Value::Bool(true)]))]),
        ));
        conformance::run(&suite).await.unwrap();
    }

    #[tokio::test]
    async fn the_suite_sees_what_is_wrong() {
        let provider = Builtin::new();
        let suite = Suite::new(&provider).with(Fixture::new(
            "value",
            attributes(&[("inptu", Value::Integer(1))]),
            attributes(&[]),
        ));
        let failure = conformance::run(&suite).await.unwrap_err();
        assert!(failure.contains("inptu"), "{failure}");
    }
}
