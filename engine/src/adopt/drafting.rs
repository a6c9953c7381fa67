//! From objects to a draft, batch by batch.

use super::content;
use super::groups::{self, Group};
use super::model::{Content, Draft, Found, Many, Surroundings, known_name};
use super::names::Names;
use super::order::{self, Batch};
use super::references::Links;
use super::text;
use crate::address::Block;

/// Writes the spec of objects.
pub fn draft(surroundings: &Surroundings<'_>, mut found: Vec<Found>) -> Draft {
    found.retain(|object| surroundings.schema(object).is_some());
    let key = |it: &Found| (it.ty.clone(), known_name(surroundings, it), it.id.clone());
    found.sort_by_cached_key(key);
    let mut drafting = Drafting {
        surroundings,
        found: &found,
        links: Links::of_state(surroundings),
        names: Names::of(surroundings.config),
        blocks: Vec::new(),
        draft: Draft::default(),
    };
    for batch in order::batches(surroundings, &found) {
        drafting.add(&batch);
    }
    let Drafting { blocks, mut draft, .. } = drafting;
    draft.text = text::spec(&draft.variables, &blocks);
    draft
}

/// A draft under way.
struct Drafting<'a> {
    surroundings: &'a Surroundings<'a>,
    found: &'a [Found],
    links: Links,
    names: Names,
    blocks: Vec<text::ResourceText>,
    draft: Draft,
}

impl Drafting<'_> {
    /// Adds the objects of a batch, whose references lead to batches before it, or inside it to objects before them.
    fn add(&mut self, batch: &Batch) {
        if !batch.is_groupable {
            for object in &batch.objects {
                let content = self.content(*object);
                self.add_one(content);
            }
            return;
        }
        let contents = batch.objects.iter().map(|object| self.content(*object)).collect();
        for group in groups::groups(contents) {
            match group {
                Group::One(content) => self.add_one(*content),
                Group::Many(many) => self.add_many(many),
            }
        }
    }

    /// The attributes of an object as its block says them.
    fn content(&mut self, object: usize) -> Content {
        let found = &self.found[object];
        let name = self.names.block(&found.ty, &known_name(self.surroundings, found));
        let block = Block::new(found.ty.clone(), name);
        content::content(self.surroundings, found, block, (&self.links, &mut self.names))
    }

    fn add_one(&mut self, content: Content) {
        let address = content.block.instance(None);
        self.links.add(content.place.clone(), address.clone());
        self.draft.imports.insert(address, content.place.id.clone());
        for note in &content.notes {
            self.draft.notes.push(note.clone());
        }
        self.blocks.push(text::one(&content));
        self.draft.variables.extend(content.variables);
    }

    fn add_many(&mut self, mut many: Many) {
        many.name = self.names.block(&many.ty, &many.name);
        let block = Block::new(many.ty.clone(), many.name.clone());
        for member in &many.members {
            let address = block.instance(Some(member.key.clone()));
            self.links.add(member.place.clone(), address.clone());
            self.draft.imports.insert(address, member.place.id.clone());
        }
        self.blocks.push(text::many(&many));
    }
}
