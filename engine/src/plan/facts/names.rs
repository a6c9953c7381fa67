//! Names that only one object of a type can have: the holder now, the holder after the plan, and the possible
//! holders while a call is in doubt.
//!
//! Only known names count; the API decides about the others.

use std::collections::BTreeMap;
use std::fmt;

use crate::address::{Address, Name};
use crate::config::ResourceConfig;
use crate::digest::{Fingerprint, SealKey};
use crate::journal::Started;
use crate::plan::decide::diff;
use crate::plan::decide::programs::{Judged, choose};
use crate::plan::draft::Draft;
use crate::plan::facts::prior::stored_attributes;
use crate::plan::{Action, Change};
use crate::schema::TypeSchema;
use crate::state::{Object, Snapshot};
use crate::value::{Attributes, Value};

/// A name, or an id, as a plan knows it: in clear, or by its fingerprint if it is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) enum Named<'a> {
    Clear(&'a str),
    Number(i64),
    Secret(&'a Fingerprint),
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clear(name) => write!(f, "\"{name}\""),
            Self::Number(number) => write!(f, "{number}"),
            Self::Secret(_) => f.write_str("the same sensitive text"),
        }
    }
}

/// A unique name: the scope in which it is unique, and the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) struct NameKey<'d> {
    pub(in crate::plan) provider: &'d Name,
    pub(in crate::plan) ty: &'d Name,
    pub(in crate::plan) attribute: &'d Name,
    pub(in crate::plan) name: Named<'d>,
}

impl<'d> NameKey<'d> {
    fn new(draft: &'d Draft, (attribute, name): (&'d Name, Named<'d>)) -> Self {
        Self { provider: &draft.change.provider, ty: &draft.schema.name, attribute, name }
    }
}

/// The holders of one name, each by the index of its draft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::plan) struct Holders {
    /// The holder that gives the name up in this plan, by a delete or by another name.
    pub(in crate::plan) releasing: Option<usize>,
    /// The holders after the plan. An object that is let go keeps its name.
    pub(in crate::plan) after: Vec<usize>,
}

/// The unique names that the drafts of a plan hold, take and give up.
pub(in crate::plan) struct NameTable<'d>(BTreeMap<NameKey<'d>, Holders>);

/// A name that passes from one draft to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) struct Handover<'d> {
    pub(in crate::plan) attribute: &'d Name,
    /// The draft that gives the name up.
    pub(in crate::plan) from: usize,
    /// The draft that has the name after the plan.
    pub(in crate::plan) to: usize,
}

impl<'d> NameTable<'d> {
    /// Collects the names of all drafts.
    pub(in crate::plan) fn new(drafts: &'d [Draft]) -> Self {
        let mut rows: BTreeMap<NameKey<'d>, Holders> = BTreeMap::new();
        for (index, draft) in drafts.iter().enumerate() {
            let before = || own(&draft.schema, draft.change.before.as_deref());
            for row in before().filter(|(attribute, _)| gives_up(draft, attribute)) {
                rows.entry(NameKey::new(draft, row)).or_default().releasing = Some(index);
            }
            let kept = before().filter(|_| draft.is_forgotten());
            for row in own(&draft.schema, draft.change.after.as_deref()).chain(kept) {
                rows.entry(NameKey::new(draft, row)).or_default().after.push(index);
            }
        }
        Self(rows)
    }

    /// Returns the names that more than one object would have after the plan, each with the drafts
    /// of those.
    pub(in crate::plan) fn conflicts(&self) -> impl Iterator<Item = (&NameKey<'d>, &[usize])> {
        let shared = self.0.iter().filter(|(_, holders)| holders.after.len() > 1);
        shared.map(|(key, holders)| (key, &*holders.after))
    }

    /// Returns the names that pass from one draft to another. The phases of one draft are in order
    /// already.
    pub(in crate::plan) fn handovers(&self) -> impl Iterator<Item = Handover<'d>> {
        self.0.iter().flat_map(|(key, holders)| {
            let passes = move |from: usize| {
                let others = holders.after.iter().filter(move |&&to| to != from);
                others.map(move |&to| Handover { attribute: key.attribute, from, to })
            };
            holders.releasing.into_iter().flat_map(passes)
        })
    }
}

/// Returns true if the object that a draft starts from no longer has its name in an attribute once the draft
/// is done.
fn gives_up(draft: &Draft, attribute: &Name) -> bool {
    let Change { action, before, after, .. } = &draft.change;
    let is_renamed = || named(before.as_deref(), attribute) != named(after.as_deref(), attribute);
    draft.is_deleted() || (matches!(action, Action::Update | Action::Import) && is_renamed())
}

/// Returns true if a change gives its object a name that it does not have now, and the name is
/// known.
pub(in crate::plan) fn takes_a_name(change: &Change, attribute: &Name) -> bool {
    let after = named(change.after.as_deref(), attribute);
    match change.action {
        Action::Create | Action::Replace => after.is_some(),
        Action::Update | Action::Import => {
            after.is_some() && after != named(change.before.as_deref(), attribute)
        }
        _ => false,
    }
}

/// Returns true if a replace gives the new object a unique name of the old one.
pub(in crate::plan) fn takes_its_name(draft: &Draft) -> bool {
    takes_a_name_of(draft, draft.change.before.as_deref())
}

/// Returns true if a draft gives its object a unique name that an object of the state has.
pub(in crate::plan) fn takes_the_name_of(draft: &Draft, object: &Object) -> bool {
    let attributes = stored_attributes(&object.attributes, &draft.schema).unwrap_or_default();
    takes_a_name_of(draft, Some(&attributes))
}

fn takes_a_name_of(draft: &Draft, object: Option<&Attributes>) -> bool {
    let mut wanted = own(&draft.schema, draft.change.after.as_deref());
    wanted.any(|(attribute, name)| named(object, attribute) == Some(name))
}

/// Returns true if a unique name of the object is known only after apply.
pub(in crate::plan) fn has_an_unknown_name(draft: &Draft) -> bool {
    let after = draft.change.after.as_ref();
    let is_unknown =
        |name: &Name| after.and_then(|after| after.get(name)).is_some_and(|name| !name.is_known());
    draft.schema.own_names().any(is_unknown)
}

/// Returns the name that prevents the new object from being made beside the old one, because both would have
/// it from the first phase on; none if there is none. If the name is an id, the create would change the old
/// object, which would then be deleted.
pub(in crate::plan) fn in_the_way<'a>(
    change: &Change,
    schema: &'a TypeSchema,
    key: &SealKey,
) -> Option<&'a Name> {
    let (before, after) = (change.before.as_deref()?, change.after.as_deref()?);
    let program = choose(&schema.create, Judged::made(Some(after)));
    let program = program.and_then(|program| schema.create.get(program))?;
    let stays = |attribute: &Name| {
        let (old, new) = (before.get(attribute), after.get(attribute));
        let known = new.filter(|new| !new.is_null()).zip(old);
        known.is_some_and(|(new, old)| diff::agree(new, old, key))
    };
    let mut names = schema.own_names();
    names.find(|name| schema.naming_phase(program, name) == 0 && stays(name))
}

/// Returns true if only one object can have a value of the attribute.
pub(in crate::plan) fn is_unique(schema: &TypeSchema, attribute: Option<&Name>) -> bool {
    schema.own_names().any(|own| Some(own) == attribute)
}

/// Returns the known unique names of an object.
pub(in crate::plan) fn own<'a>(
    schema: &'a TypeSchema,
    object: Option<&'a Attributes>,
) -> impl Iterator<Item = (&'a Name, Named<'a>)> {
    schema.own_names().filter_map(move |name| Some((name, named(object, name)?)))
}

/// Returns the name that an object has in an attribute; none if it is not known.
pub(in crate::plan) fn named<'a>(
    object: Option<&'a Attributes>,
    attribute: &Name,
) -> Option<Named<'a>> {
    match object?.get(attribute)? {
        Value::String(name) => Some(Named::Clear(name)),
        Value::Integer(number) => Some(Named::Number(*number)),
        Value::Sealed(sealed) => Some(Named::Secret(&sealed.fingerprint)),
        _ => None,
    }
}

/// Names that no other object can take while a call is in doubt. A create may have given its name, or may
/// give it still; the object of a delete may still have its name. Such an object can be recognised only by
/// the name, so no other object takes the name meanwhile.
pub(in crate::plan) struct NamesInDoubt<'a> {
    creates: Vec<&'a Started>,
    /// The deletes in doubt, each with its object.
    deletes: Vec<(&'a Started, &'a Object)>,
}

/// The address that may hold a name, because a call on it is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Holder<'a> {
    /// The address whose create is in doubt.
    Created(&'a Address),
    /// The address whose delete is in doubt.
    Deleted(&'a Address),
}

impl<'a> NamesInDoubt<'a> {
    /// Collects the names of the calls in doubt of a state.
    pub(in crate::plan) fn new(snapshot: &'a Snapshot) -> Self {
        let started = || snapshot.pending.values().map(|pending| &pending.started);
        let is_known = |it: &&Started| it.name.is_some() || it.secret_name.is_some();
        let deleted = |it: &'a Started| {
            let object = snapshot.entries.get(&it.address)?.object(it.object.as_ref()?)?;
            it.ends_its_object().then_some((it, object))
        };
        Self {
            creates: started().filter(|it| it.makes_its_object() && is_known(it)).collect(),
            deletes: started().filter_map(deleted).collect(),
        }
    }

    /// Returns true if no call is in doubt about a name.
    pub(in crate::plan) fn is_empty(&self) -> bool {
        self.creates.is_empty() && self.deletes.is_empty()
    }

    /// Returns the possible holder of the name that an instance wants and that its own object, if it has one,
    /// does not have yet.
    pub(in crate::plan) fn holder(
        &self,
        (resource, address): (&ResourceConfig, &Address),
        (wanted, live): (&Attributes, Option<&Attributes>),
        key: &SealKey,
    ) -> Option<Holder<'a>> {
        let attribute = resource.schema.identity.chosen_attribute()?;
        let name = wanted.get(attribute)?;
        if named(live, attribute) == named(Some(wanted), attribute) {
            return None;
        }
        let is_other = |started: &Started| {
            started.provider == resource.provider.of(address)
                && started.address.block.ty == address.block.ty
                && started.address != *address
        };
        let has_it = |object: &Object| {
            let known = stored_attributes(&object.attributes, &resource.schema).unwrap_or_default();
            known.get(attribute).is_some_and(|own| diff::agree(name, own, key))
        };
        let created = self.creates.iter().find(|it| is_other(it) && gives(it, name, key));
        created.map(|it| Holder::Created(&it.address)).or_else(|| {
            let deleted = self.deletes.iter().find(|(it, object)| is_other(it) && has_it(object));
            deleted.map(|(it, _)| Holder::Deleted(&it.address))
        })
    }
}

/// Returns true if a create gives this name.
fn gives(started: &Started, name: &Value, key: &SealKey) -> bool {
    let clear = match name {
        Value::String(text) => started.name.as_ref() == Some(text),
        Value::Integer(number) => started.name.as_deref() == Some(&*number.to_string()),
        _ => false,
    };
    let secret = started.secret_name.as_ref();
    clear || secret.is_some_and(|own| name.is_known() && Fingerprint::of(name, key) == *own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::facts::samples::{draft, named_type};

    /// Returns the places of a table's conflicts, and its handovers as `from>to`.
    fn summary(drafts: &[Draft]) -> String {
        let table = NameTable::new(drafts);
        let conflicts = table.conflicts().map(|(key, after)| format!("{} {after:?}", key.name));
        let handovers = table.handovers().map(|it| format!("{}>{}", it.from, it.to));
        conflicts.chain(handovers).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_table_has_the_holders_now_and_after() {
        for (changes, expected) in [
            (&["noop a n n", "noop b m m"][..], ""),
            (&["create a - n", "create b - n"], "\"n\" [0, 1]"),
            (&["noop a n n", "update b m n"], "\"n\" [0, 1]"),
            (&["delete a n -", "create b - n"], "0>1"),
            (&["update a n m", "create b - n"], "0>1"),
            (&["update a n m", "update b m n"], "1>0; 0>1"),
            (&["replace a n n"], ""),
            (&["forget a n -", "create b - n"], "\"n\" [0, 1]"),
        ] {
            let drafts: Vec<Draft> = changes
                .iter()
                .map(|change| {
                    let words: Vec<&str> = change.split(' ').collect();
                    let [action, address, before, after] = words[..] else { panic!("{change}") };
                    let name = |word: &str| (word != "-").then(|| format!("name={word}"));
                    let sides = [name(before), name(after)];
                    draft(named_type(), action, address, sides.each_ref().map(Option::as_deref))
                })
                .collect();
            assert_eq!(summary(&drafts), expected, "{changes:?}");
        }
    }
}
