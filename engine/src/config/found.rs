//! The content of the pieces of a spec, put together. The result does not depend on the division into pieces
//! and their order.

use std::collections::{BTreeMap, BTreeSet};

use super::{Document, Item, RawBlock, diagnostics as say};
use crate::address::{Block, Name};
use crate::diagnostics::{Diagnostics, FileId, Span};

/// The content of a piece, or of several pieces in the order of the text.
#[derive(Default)]
pub(super) struct Found {
    pub(super) plumb: Vec<((), RawBlock)>,
    pub(super) state: Vec<((), RawBlock)>,
    pub(super) variables: Vec<(Name, RawBlock)>,
    pub(super) locals: Vec<(Name, Item)>,
    pub(super) providers: Vec<(Name, RawBlock)>,
    pub(super) resources: Vec<(Block, RawBlock)>,
    pub(super) data: Vec<(Block, RawBlock)>,
    pub(super) outputs: Vec<(Name, RawBlock)>,
    pub(super) checks: Vec<(Name, RawBlock)>,
    pub(super) policies: Vec<(Name, RawBlock)>,
    pub(super) imports: Vec<RawBlock>,
    pub(super) moved: Vec<RawBlock>,
    pub(super) removed: Vec<RawBlock>,
    pub(super) modules: Vec<(Name, RawBlock)>,
    /// See [`Document`], also for the fields below.
    pub(super) files: BTreeSet<String>,
    pub(super) broken: BTreeSet<Span>,
    pub(super) torn: bool,
    /// The tables above blocks that have their own headers, such as `[local]`, by file.
    pub(super) headers: Vec<(FileId, String)>,
    pub(super) diagnostics: Diagnostics,
}

impl Found {
    /// Adds the content of a later piece.
    pub(super) fn join(&mut self, later: Self) {
        self.plumb.extend(later.plumb);
        self.state.extend(later.state);
        self.variables.extend(later.variables);
        self.locals.extend(later.locals);
        self.providers.extend(later.providers);
        self.resources.extend(later.resources);
        self.data.extend(later.data);
        self.outputs.extend(later.outputs);
        self.checks.extend(later.checks);
        self.policies.extend(later.policies);
        self.imports.extend(later.imports);
        self.moved.extend(later.moved);
        self.removed.extend(later.removed);
        self.modules.extend(later.modules);
        self.files.extend(later.files);
        self.broken.extend(later.broken);
        self.torn |= later.torn;
        self.headers.extend(later.headers);
        self.diagnostics.extend(later.diagnostics);
    }

    /// Returns the document, the mistakes, and true if a name of one file came twice: from pieces it is not
    /// clear if that is allowed, so the parser of the whole file has to decide.
    pub(super) fn into_document(mut self) -> (Document, Diagnostics, bool) {
        self.headers.sort();
        let repeated = self.headers.windows(2).any(|pair| pair[0] == pair[1]);
        let mut firsts = Firsts { diagnostics: self.diagnostics, repeated };
        let header = |block: &RawBlock| block.header;
        let of = |kind| move |name: &Name| format!("`{kind}.{name}`");
        let document = Document {
            plumb: firsts.of(self.plumb, header, |()| "`[plumb]`".to_owned()).remove(&()),
            state: firsts.of(self.state, header, |()| "`[state]`".to_owned()).remove(&()),
            variables: firsts.of(self.variables, header, of("variable")),
            locals: firsts.of(self.locals, |item| item.key, of("local")),
            providers: firsts.of(self.providers, header, of("provider")),
            resources: firsts.of(self.resources, header, |block| format!("`{block}`")),
            data: firsts.of(self.data, header, |block| format!("`{block}`")),
            outputs: firsts.of(self.outputs, header, of("output")),
            checks: firsts.of(self.checks, header, of("check")),
            policies: firsts.of(self.policies, header, of("policy")),
            policy_files: BTreeSet::new(),
            imports: self.imports,
            moved: self.moved,
            removed: self.removed,
            modules: firsts.of(self.modules, header, of("module")),
            library: BTreeMap::new(),
            files: self.files,
            broken: self.broken,
            torn: self.torn,
        };
        firsts.diagnostics.sort();
        (document, firsts.diagnostics, firsts.repeated)
    }
}

/// A merge in which the first of two declarations counts.
struct Firsts {
    diagnostics: Diagnostics,
    /// True if a name of one file came twice.
    repeated: bool,
}

impl Firsts {
    fn of<K: Ord, V>(
        &mut self,
        mut all: Vec<(K, V)>,
        place: impl Fn(&V) -> Span,
        what: impl Fn(&K) -> String,
    ) -> BTreeMap<K, V> {
        // The sort is stable, so the first declaration stays first.
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|again, first| {
            let is_again = again.0 == first.0;
            if is_again {
                let (at, first) = (place(&again.1), place(&first.1));
                self.repeated |= at.file == first.file;
                self.diagnostics.push(say::declared_twice(&what(&again.0), at, Some(first)));
            }
            is_again
        });
        all.into_iter().collect()
    }
}
