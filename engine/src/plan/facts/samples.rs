//! Drafts for the table tests of the facts.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plan::draft::Draft;
use crate::plan::{Action, Change};
use crate::schema::{Attribute, Identity, Presence, ReplaceOrder, TypeSchema};
use crate::types::Type;
use crate::value::{Attributes, Value};

/// Returns a type whose `name` is unique.
pub(super) fn named_type() -> Arc<TypeSchema> {
    let mut schema = schema(&["name"]);
    schema.name_attribute = Some("name".into());
    schema.unique_name = true;
    Arc::new(schema)
}

/// Returns a type with an attribute that holds an object of the type, one that does not, and a computed one.
pub(in crate::plan) fn holding_type() -> Arc<TypeSchema> {
    let mut schema = schema(&["holder", "note", "shown"]);
    if let Some(holder) = schema.attributes.get_mut("holder") {
        holder.holds = Some("box".into());
    }
    if let Some(shown) = schema.attributes.get_mut("shown") {
        shown.presence = Presence::Computed;
    }
    Arc::new(schema)
}

fn schema(attributes: &[&str]) -> TypeSchema {
    let attribute = |name: &&str| ((*name).into(), Attribute::new(Type::String));
    TypeSchema {
        name: "box".into(),
        description: String::new(),
        attributes: attributes.iter().map(attribute).collect::<BTreeMap<_, _>>(),
        create: Vec::new(),
        update: Vec::new(),
        delete: Vec::new(),
        identity: Identity::IdempotencyKey,
        replace: ReplaceOrder::DeleteFirst,
        unique_name: false,
        name_attribute: None,
        delete_effect: None,
        price: None,
        rules: Vec::new(),
        remote: true,
        data_only: false,
        singleton: None,
    }
}

/// Returns a draft of `box.NAME`, whose object has the id `id-NAME`. An object is given as `attribute=text`.
pub(in crate::plan) fn draft(
    schema: Arc<TypeSchema>,
    action: &str,
    name: &str,
    [before, after]: [Option<&str>; 2],
) -> Draft {
    let object = |text: &str| -> Option<Arc<Attributes>> {
        let (attribute, text) = text.split_once('=')?;
        Some(Arc::new(Attributes::from_iter([(attribute.into(), Value::string(text))])))
    };
    let mut change = Change::new(format!("box.{name}").parse().unwrap(), "test".into());
    change.action = match action {
        "create" => Action::Create,
        "update" => Action::Update,
        "replace" => Action::Replace,
        "delete" => Action::Delete,
        "forget" => Action::Forget,
        _ => Action::NoOp,
    };
    change.object = before.map(|_| crate::state::ObjectId(format!("id-{name}").into()));
    (change.before, change.after) = (before.and_then(object), after.and_then(object));
    Draft::new(change, schema)
}
