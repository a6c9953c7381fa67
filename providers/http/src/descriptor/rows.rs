//! Checks the error table of an API against the calls to it.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::journal::ProgramKind;

use super::diagnostics;
use super::model::{Api, CallModel, ErrorRow, Meaning, TypeModel};
use super::reader::Reader;

pub(super) fn check(
    reader: &mut Reader,
    apis: &BTreeMap<Name, Api>,
    types: &BTreeMap<Name, TypeModel>,
) {
    for (name, api) in apis {
        let changes = types.values().flat_map(changes);
        let made: Vec<bool> =
            changes.filter(|(call, _)| call.api == *name).map(|(_, makes)| makes).collect();
        let only_creates = !made.is_empty() && made.iter().all(|makes| *makes);
        for row in api.errors.iter().filter(|_| only_creates) {
            done(reader, row);
        }
        let mut calls = types.values().flat_map(TypeModel::calls);
        // In GraphQL every answer has this status.
        let calls_graphql = calls.any(|call| call.api == *name && !call.is_rest());
        for row in api.errors.iter().filter(|_| api.message_at.is_empty() && !calls_graphql) {
            success(reader, row);
        }
    }
}

/// Returns the mutating calls of a type, each with true if it makes an object.
fn changes(model: &TypeModel) -> impl Iterator<Item = (&CallModel, bool)> {
    let kinds = [
        (ProgramKind::Create, &model.create),
        (ProgramKind::Update, &model.update),
        (ProgramKind::Delete, &model.delete),
    ];
    kinds.into_iter().flat_map(|(kind, programs)| {
        let phases = programs.iter().flat_map(|program| program.phases.iter().enumerate());
        phases.filter_map(move |(index, phase)| {
            let makes = kind == ProgramKind::Create && index == 0;
            Some((phase.call.as_ref()?, makes))
        })
    })
}

/// Refuses a row for a successful status in an API without `message`: no place in the answer shows then that
/// it is a failure.
fn success(reader: &mut Reader, row: &ErrorRow) {
    if row.statuses.iter().any(|status| (200..300).contains(status)) {
        reader.push(diagnostics::misfit(
            row.span,
            "an answer with success is no error by its status",
            "nothing says where such an answer tells of its error",
            "add `message = \"…\"` to the API, the path to the text of an error",
        ));
    }
}

/// Refuses `done` for creates: an object that exists already belongs to another owner.
fn done(reader: &mut Reader, row: &ErrorRow) {
    if row.meaning == Meaning::Done {
        reader.push(diagnostics::misfit(
            row.span,
            "a create is not done because something is there already",
            "this API is called by creates alone, for which `done` does not count",
            "leave `kind` out: the object may belong to someone else; an import takes it over",
        ));
    }
}
