//! Single objects, for commands that find out how an API behaves.

use std::collections::BTreeSet;

use engine::address::Name;
use engine::journal::ProgramKind;
use engine::value::{Attributes, Value};

use super::Suite;
use super::calls::{Change, Step, completed, create, delete, merge, nonce, program, type_schema};
use crate::{Kind, Object};

/// The result of a create.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// An object was made.
    Made(Object),
    /// The API refused it, with these words.
    Refused(String),
}

/// Makes an object, and reads it if it already shows. `index` makes the one-time names of one run differ.
pub async fn make(
    suite: &Suite<'_>,
    ty: &Name,
    index: usize,
    wanted: Attributes,
) -> Result<Attempt, String> {
    let schema = type_schema(suite, ty)?;
    let nonce = nonce(suite, ty, index);
    let desired = completed(&schema, wanted)?;
    suite.witness.intends(ty, &nonce, &desired)?;
    let mut made = None;
    if let Err(trouble) = create(suite, &schema, &desired, &nonce, &mut made).await {
        return if trouble.is_refusal {
            Ok(Attempt::Refused(trouble.words))
        } else {
            Err(trouble.words)
        };
    }
    let made = made.ok_or_else(|| format!("create of {ty} answered no object"))?;
    match suite.provider.read(ty, &made.id).await {
        Ok(read) => Ok(Attempt::Made(merge(&made, &read))),
        Err(error) if error.kind == Kind::NotFound => Ok(Attempt::Made(made)),
        Err(error) => Err(format!("read of {ty} failed: {error}")),
    }
}

/// Changes attributes of an object. Returns true if the API accepts them and shows them afterwards, false if
/// it refuses them or shows others.
pub async fn change(
    suite: &Suite<'_>,
    ty: &Name,
    object: &Object,
    changes: &Attributes,
) -> Result<bool, String> {
    let Attempt::Made(shown) = changed(suite, ty, object, changes).await? else { return Ok(false) };
    let is_shown = |(name, value): (&Name, &Value)| {
        shown.attributes.get(name).is_some_and(|shown| shown.same(value))
    };
    Ok(changes.iter().all(is_shown))
}

/// Changes attributes of an object, and returns the object as it shows afterwards.
pub async fn changed(
    suite: &Suite<'_>,
    ty: &Name,
    object: &Object,
    changes: &Attributes,
) -> Result<Attempt, String> {
    let schema = type_schema(suite, ty)?;
    let changed: BTreeSet<Name> = changes.keys().cloned().collect();
    let mut desired = object.attributes.clone();
    desired.extend(changes.iter().map(|(name, value)| (name.clone(), value.clone())));
    let about = Change { desired: &desired, live: &object.attributes, changed: &changed };
    let step = Step { kind: ProgramKind::Update, id: Some(&object.id), nonce: None };
    match program(suite, &schema, &step, &about, &mut None).await {
        Err(trouble) if trouble.is_refusal => Ok(Attempt::Refused(trouble.words)),
        Err(trouble) => Err(trouble.words),
        Ok(_) => read(suite, ty, object).await.map(Attempt::Made),
    }
}

/// Deletes an object.
pub async fn remove(suite: &Suite<'_>, ty: &Name, object: &Object) -> Result<(), String> {
    let schema = type_schema(suite, ty)?;
    delete(suite, &schema, object).await?;
    suite.witness.gone(ty, &object.id)
}

/// Returns the object as a read shows it now.
async fn read(suite: &Suite<'_>, ty: &Name, object: &Object) -> Result<Object, String> {
    let read = suite.provider.read(ty, &object.id).await;
    let read = read.map_err(|error| format!("read of {ty} failed: {error}"))?;
    Ok(merge(object, &read))
}
