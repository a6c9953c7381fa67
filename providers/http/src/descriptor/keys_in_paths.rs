//! Keys of the provider in paths, such as `${owner}` in `GET /orgs/${owner}/repos`.
//!
//! Only keys that are no secrets may stand there. The reader marks them, so that they are not taken for
//! attributes, and the configuration replaces them by their values. An attribute with the same name takes
//! precedence.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::Name;
use engine::expression::visit::{change, walk};
use engine::expression::{Expr, Kind, Root};
use engine::value::Value;

use super::model::{CallModel, Descriptor, KeySource, Request, TypeModel};
use crate::key::Key;

/// Marks the keys in the paths of a type.
pub(super) fn mark(model: &mut TypeModel, keys: &BTreeMap<Name, KeySource>) {
    let attributes: BTreeSet<Name> = model.attributes.keys().cloned().collect();
    let is_key = |name: &Name| keys.get(name).is_some_and(|key| key.public);
    in_paths(model, &mut |kind| {
        if let Kind::Root(Root::Named(name)) = kind
            && is_key(name)
            && !attributes.contains(name)
        {
            *kind = Kind::Root(Root::Var(name.clone()));
        }
    });
}

impl Descriptor {
    /// Returns the descriptor with the values of keys filled into the paths of its calls.
    pub(crate) fn with_keys(&self, keys: &BTreeMap<Name, Key>) -> Self {
        let mut filled = self.clone();
        let fill = &mut |kind: &mut Kind| {
            if let Kind::Root(Root::Var(name)) = kind
                && let Some(key) = keys.get(name)
            {
                *kind = Kind::Literal(Value::string(key.reveal()));
            }
        };
        filled.types.values_mut().for_each(|model| in_paths(model, fill));
        filled
    }

    /// Returns the keys that paths name.
    pub(crate) fn keys_in_paths(&self) -> BTreeSet<&Name> {
        let mut names = BTreeSet::new();
        for call in self.types.values().flat_map(TypeModel::calls) {
            let Request::Rest { path, .. } = &call.request else { continue };
            let values = path.segments.iter().chain(path.query.iter().map(|(_, value)| value));
            values.for_each(|value| {
                walk(&value.0, &mut |part| {
                    if let Kind::Root(Root::Var(name)) = &part.kind {
                        names.insert(name);
                    }
                });
            });
        }
        names
    }
}

/// Changes the parts of all paths of a type.
fn in_paths(model: &mut TypeModel, change_part: &mut dyn FnMut(&mut Kind)) {
    let mut each = |expr: &mut Expr| {
        change(expr, &mut |part| {
            change_part(&mut part.kind);
            true
        });
    };
    for call in calls(model) {
        let Request::Rest { path, .. } = &mut call.request else { continue };
        path.segments.iter_mut().for_each(|segment| each(&mut segment.0));
        path.query.iter_mut().for_each(|(_, value)| each(&mut value.0));
    }
}

/// Returns all calls of a type, including those that show operations.
fn calls(model: &mut TypeModel) -> impl Iterator<Item = &mut CallModel> {
    let programs = model.create.iter_mut().chain(&mut model.update).chain(&mut model.delete);
    let of_phases = programs.flat_map(|program| &mut program.phases).flat_map(|phase| {
        let polled = phase.polled.as_mut().and_then(|polled| polled.call.as_mut());
        phase.call.iter_mut().chain(polled)
    });
    let lists = model.list.iter_mut().chain(&mut model.find).map(|list| &mut list.call);
    of_phases.chain(lists).chain(model.read.iter_mut().map(|read| &mut read.call))
}
