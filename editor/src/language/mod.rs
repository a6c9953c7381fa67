//! The answers to an editor's questions about a spec, each a pure function of texts and what was read.

pub(crate) mod actions;
pub(crate) mod completion;
pub(crate) mod diagnostics;
pub(crate) mod expressions;
pub(crate) mod formatting;
pub(crate) mod hover;
pub(crate) mod live;
pub(crate) mod names;
pub(crate) mod places;
pub(crate) mod rename;
pub(crate) mod subject;
pub(crate) mod symbols;
pub(crate) mod typing;

use std::sync::Arc;

use engine::address::Block;
use engine::config::{Document, Fetched, RawBlock};
use engine::schema::TypeSchema;
use engine::state::Snapshot;

use crate::text::Text;
use crate::text::cursor::{Cursor, cursor};
use crate::workspace::{PlannedChanges, Spec};

/// A folder as it was read last.
#[derive(Clone)]
pub(crate) struct Known {
    /// The last spec.
    pub(crate) latest: Arc<dyn Spec>,
    /// The last spec whose files could all be read whole.
    pub(crate) whole: Arc<dyn Spec>,
    /// The state, if it is known.
    pub(crate) state: Option<Arc<Snapshot>>,
    /// The changes that a plan of the last spec would make, if they are known.
    pub(crate) changes: Option<Arc<dyn PlannedChanges>>,
}

impl Known {
    /// The schema of the type of a block.
    pub(crate) fn schema_of(&self, block: &Block) -> Option<&Arc<TypeSchema>> {
        match Fetched::of(block) {
            Some(kind) => Some(kind.schema()),
            None => self.type_schema(&block.ty),
        }
    }

    /// The schema of a type of resources or data.
    pub(crate) fn type_schema(&self, ty: &str) -> Option<&Arc<TypeSchema>> {
        let mut fetched = Fetched::ALL.into_iter().map(Fetched::schema);
        let known = self.types().find(|schema| &*schema.name == ty);
        known.or_else(|| fetched.find(|schema| &*schema.name == ty))
    }

    /// The schemas of all resource types.
    pub(crate) fn types(&self) -> impl Iterator<Item = &Arc<TypeSchema>> {
        self.whole.providers().values().flat_map(|provider| provider.types.values())
    }

    /// The syntax to look names up in.
    pub(crate) fn document(&self) -> &Document {
        self.whole.document()
    }
}

/// A question about a place in a file.
pub(crate) struct Query<'a> {
    pub(crate) known: &'a Known,
    pub(crate) text: &'a Text,
    pub(crate) offset: usize,
    pub(crate) cursor: Cursor,
}

impl<'a> Query<'a> {
    pub(crate) fn new(known: &'a Known, text: &'a Text, offset: usize) -> Self {
        let cursor = cursor(text.content(), offset);
        Self { known, text, offset, cursor }
    }

    /// The path of the table at the cursor.
    pub(crate) fn table(&self) -> Vec<&str> {
        self.cursor.table.iter().map(String::as_str).collect()
    }

    /// The resource block or the data block at the cursor.
    pub(crate) fn block(&self) -> Option<Block> {
        match self.table().as_slice() {
            ["resource", ty, name, ..] => Some(Block::new(*ty, *name)),
            ["data", ty, name, ..] => Some(Block::data(*ty, *name)),
            _ => None,
        }
    }
}

/// The content of a resource block or a data block of a document.
pub(crate) fn raw_block<'d>(document: &'d Document, block: &Block) -> Option<&'d RawBlock> {
    if block.is_data { document.data.get(block) } else { document.resources.get(block) }
}
