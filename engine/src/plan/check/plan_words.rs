//! The values that policies, and the rules of types, see of a plan: each change, the resources afterwards,
//! the cost.

use std::sync::Arc;

use crate::address::Name;
use crate::plan::draft::Draft;
use crate::plan::evaluate::scope::object;
use crate::plan::{Action, Cost};
use crate::value::{Attributes, Datum, Path, Paths, Value};

/// The values of one change that policies see, and rules about other objects.
pub(super) struct Facts {
    texts: [(&'static str, Value); 6],
    cost: Datum,
    old: Datum,
    new: Datum,
}

impl Facts {
    pub(super) fn of(draft: &Draft) -> Self {
        let change = &draft.change;
        let address = &change.address;
        let mut sensitive = draft.schema.sensitive();
        sensitive.extend_below(&Path::root(), &change.sensitive);
        let side = |attributes: Option<&Arc<Attributes>>| match attributes {
            Some(attributes) => object(attributes.clone(), sensitive.clone()),
            None => Datum::plain(Value::Null),
        };
        let key = address.key.clone();
        Self {
            texts: [
                ("address", Value::string(address.to_string())),
                ("type", Value::String(address.block.ty.clone())),
                ("name", Value::String(address.block.name.clone())),
                ("module", Value::string(address.block.module.as_str())),
                ("key", key.map_or(Value::Null, Value::String)),
                ("action", Value::string(change.action.word())),
            ],
            cost: Datum::plain(change.cost.as_ref().map_or(Value::Null, Cost::of_one)),
            old: side(draft.redacted.as_ref().or(change.before.as_ref())),
            new: side(change.after.as_ref()),
        }
    }

    pub(super) fn word(&self, name: &str) -> Option<Datum> {
        match name {
            "old" => Some(self.old.clone()),
            "new" => Some(self.new.clone()),
            name => {
                let text = self.texts.iter().find(|(word, _)| *word == name);
                text.map(|(_, text)| Datum::plain(text.clone()))
            }
        }
    }

    /// Returns the facts as one object.
    fn item(self) -> Datum {
        let texts = self.texts.into_iter().map(|(name, text)| (name, Datum::plain(text)));
        let others = [("cost", self.cost), ("old", self.old), ("new", self.new)];
        let (mut entries, mut sensitive) = (Attributes::new(), Paths::none());
        for (name, datum) in texts.chain(others) {
            let name: Name = name.into();
            sensitive.extend_below(&Path::attribute(name.clone()), &datum.sensitive);
            entries.insert(name, datum.value);
        }
        Datum { value: Value::map(entries), sensitive }
    }
}

/// Returns `plan`: the changes, the resources that exist afterwards, and the cost by currency.
pub(super) fn plan_object(drafts: &[Draft], costs: &[Cost]) -> Datum {
    let (mut changes, mut resources) = (Items::default(), Items::default());
    for draft in drafts {
        let change = &draft.change;
        if change.action != Action::NoOp {
            changes.push(Facts::of(draft).item());
        }
        let leaves = matches!(change.action, Action::Delete | Action::Forget);
        if !change.deposed && !leaves && change.after.is_some() {
            resources.push(Facts::of(draft).item());
        }
    }
    let (mut entries, mut sensitive) = (Attributes::new(), Paths::none());
    for (name, items) in [("changes", changes), ("resources", resources)] {
        sensitive.extend_below(&Path::attribute(name), &items.sensitive);
        entries.insert(name.into(), Value::list(items.values));
    }
    let costs = costs.iter().map(|sum| (sum.currency.clone(), sum.of_all()));
    entries.insert("cost".into(), Value::map(costs.collect()));
    Datum { value: Value::map(entries), sensitive }
}

/// A list under construction.
#[derive(Default)]
struct Items {
    values: Vec<Value>,
    sensitive: Paths,
}

impl Items {
    fn push(&mut self, item: Datum) {
        let place = Path::root().join(self.values.len());
        self.sensitive.extend_below(&place, &item.sensitive);
        self.values.push(item.value);
    }
}
