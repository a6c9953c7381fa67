//! The decided changes of a plan, with the indexes over them that checks and scheduling read.

use crate::plan::draft::Draft;
use crate::plan::facts::names::NameTable;
use crate::plan::facts::reference_index::ReferenceIndex;
use crate::state::Snapshot;

/// The decided changes of a plan, with the indexes over them.
pub(in crate::plan) struct DecidedChanges<'d> {
    pub(in crate::plan) drafts: &'d [Draft],
    pub(in crate::plan) names: NameTable<'d>,
    pub(in crate::plan) references: ReferenceIndex<'d>,
}

impl<'d> DecidedChanges<'d> {
    /// Builds the indexes. The drafts must be sorted.
    pub(in crate::plan) fn new(drafts: &'d [Draft], snapshot: &Snapshot) -> Self {
        let (names, references) = (NameTable::new(drafts), ReferenceIndex::new(drafts, snapshot));
        Self { drafts, names, references }
    }
}
