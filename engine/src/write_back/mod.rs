//! Drift into code: accepted changes from outside Plumb are written back into the spec.
//!
//! Text goes in, and text comes out. Comments, order and expressions stay; only the plain values that differ
//! are written anew. A value that an expression makes stays as it is, and a diagnostic says what to change
//! instead.

mod diagnostics;
mod document;
mod edits;
mod origins;

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::DocumentMut;

use self::diagnostics as say;
use self::edits::{Edit, Edits};
use crate::address::{Address, Block, Name};
use crate::config::constant::{literal_key, part_at};
use crate::config::{Config, Item, ResourceConfig, SpecExpr, parse, written};
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, Sources, Span};
use crate::expression::{Expr, Kind};
use crate::plan::{Change, Drift, Plan};
use crate::schema::{Attribute, Presence};
use crate::value::{Path, Segment, Value};

/// The result of writing changes back.
#[derive(Debug, Default)]
pub struct WriteBack {
    /// The attributes that are written, by block and name.
    pub written: Vec<Written>,
    /// The diagnostics about changes that were not written, each with its place and advice.
    pub kept: Diagnostics,
    /// The new texts of the files that change.
    pub files: BTreeMap<FileId, String>,
}

/// An attribute that is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The block that gives the attribute.
    pub block: Block,
    /// The attribute.
    pub attribute: Name,
    /// Its file.
    pub file: FileId,
    /// The line in the new text, from 1; the line of the block if the attribute was removed.
    pub line: usize,
    /// The new value as TOML; none if the attribute was removed.
    pub value: Option<String>,
}

/// Writes the drift of a plan into the texts of its spec, as far as the spec gives plain values.
pub fn write_back(config: &Config, sources: &Sources, plan: &Plan) -> WriteBack {
    let mut writer = Writer { config, sources, documents: BTreeMap::new(), done: Vec::new() };
    let mut kept = Diagnostics::new();
    let mut drifted: BTreeMap<(&Block, &Name), Vec<&Drift>> = BTreeMap::new();
    for drift in &plan.drift {
        let block = &drift.address.block;
        let Some(resource) = config.resources.get(block) else { continue };
        if drift.after.is_none() {
            kept.push(say::gone(&drift.address, resource.header));
        }
        for name in &drift.attributes {
            drifted.entry((block, name)).or_default().push(drift);
        }
    }
    let instances = instances(plan, &drifted.keys().map(|(block, _)| *block).collect());
    for ((block, name), drifts) in &drifted {
        let Some(resource) = config.resources.get(*block) else { continue };
        let Some(attribute) = resource.schema.attributes.get(*name) else { continue };
        let all = instances.get(*block).map(Vec::as_slice).unwrap_or_default();
        let case = Case { resource, attribute, name, drifts, all };
        writer.attribute(&case, &mut kept);
    }
    writer.finish(kept)
}

/// Returns the changes of the instances of some blocks.
fn instances<'p>(
    plan: &'p Plan,
    blocks: &BTreeSet<&Block>,
) -> BTreeMap<&'p Block, Vec<&'p Change>> {
    let mut instances: BTreeMap<&Block, Vec<&Change>> = BTreeMap::new();
    for change in plan.changes.iter().filter(|change| !change.deposed) {
        if blocks.contains(&change.address.block) {
            instances.entry(&change.address.block).or_default().push(change);
        }
    }
    instances
}

/// An attribute of a block that has drifted at some of its instances.
struct Case<'a> {
    resource: &'a ResourceConfig,
    attribute: &'a Attribute,
    name: &'a Name,
    drifts: &'a [&'a Drift],
    /// The changes of all instances of the block.
    all: &'a [&'a Change],
}

impl<'a> Case<'a> {
    /// Returns the address of the first instance that differs.
    fn address(&self) -> &'a Address {
        &self.drifts[0].address
    }

    fn item(&self) -> Option<&'a Item> {
        self.resource.attributes.get(self.name)
    }

    /// Returns the live value if all instances have the same one; else none, because one line gives it for
    /// all.
    fn live(&self) -> Option<&'a Value> {
        let live = self.drifts[0].after.as_ref().map(|after| or_null(after.get(self.name)))?;
        let drifts = self.drifts.iter().map(|drift| drift.after.as_ref());
        let all = self.all.iter().map(|change| change.before.as_deref());
        let mut lives = drifts.chain(all).map(|object| object.and_then(|it| it.get(self.name)));
        lives.all(|other| or_null(other).same(live)).then_some(live)
    }

    /// Returns the values of the spec, of the last run and of the object, for each instance that differs.
    fn values(&self) -> impl Iterator<Item = (&'a Value, &'a Value, &'a Value)> {
        let name = self.name;
        self.drifts.iter().map(move |drift| {
            let live = drift.after.as_ref().and_then(|after| after.get(name));
            (or_null(drift.wanted.get(name)), or_null(drift.before.get(name)), or_null(live))
        })
    }

    /// Returns the edits of an attribute that the spec does not give.
    fn new_attribute(&self) -> Edits<'a> {
        let mut edits = Edits::default();
        let differs = |(wanted, _, live): &(&Value, &Value, &Value)| !wanted.same(live);
        if let Some((_, _, live)) = self.values().find(differs) {
            edits.edits.push((Path::root(), Edit::Put(live.clone())));
        }
        edits
    }

    /// Returns true if all of the attribute is a secret.
    fn is_secret(&self) -> bool {
        self.attribute.sensitive || self.any_value(|value| matches!(value, Value::Sealed(_)))
    }

    /// Returns true if the part of the attribute at `path` is a secret, or has one.
    fn is_secret_at(&self, path: &Path) -> bool {
        self.any_value(|value| is_sealed_at(value, &path.0))
    }

    fn any_value(&self, is: impl Fn(&Value) -> bool) -> bool {
        self.values().any(|(wanted, before, live)| is(wanted) || is(before) || is(live))
    }
}

/// Returns true if the part of a value at `path` is sealed, holds a sealed part, or lies in one.
fn is_sealed_at(value: &Value, path: &[Segment]) -> bool {
    match (value, path) {
        (Value::Sealed(_), _) | (_, []) => value.holds_sealed(),
        (value, [first, rest @ ..]) => {
            let part = value.at(&Path(vec![first.clone()]));
            part.is_some_and(|part| is_sealed_at(part, rest))
        }
    }
}

/// Returns the value of an attribute, or null if there is none.
fn or_null(value: Option<&Value>) -> &Value {
    static NULL: Value = Value::Null;
    value.unwrap_or(&NULL)
}

/// The texts that are being written.
struct Writer<'a> {
    config: &'a Config,
    sources: &'a Sources,
    documents: BTreeMap<FileId, DocumentMut>,
    /// The written changes: the block, the attribute and its new value.
    done: Vec<(&'a ResourceConfig, Name, Value)>,
}

impl<'a> Writer<'a> {
    /// Writes one attribute, or reports the reason that it stays as it is.
    fn attribute(&mut self, case: &Case<'a>, kept: &mut Diagnostics) {
        let (address, name, place) = (case.address(), case.name, case.item());
        let span = place.map_or(case.resource.header, |item| item.value.span);
        if case.is_secret() {
            return kept.push(say::secret((address, name), &Path::root(), span));
        }
        let mut edits = match place {
            None => case.new_attribute(),
            Some(item) => self.edits(case, item, kept),
        };
        let (secret, plain) =
            edits.edits.into_iter().partition(|(path, _)| case.is_secret_at(path));
        edits.edits = plain;
        let secret: Vec<(Path, Edit)> = secret;
        for (path, _) in &secret {
            let part = |item: &Item| item.value.span_of(part_at(&item.value.expr, path).range);
            kept.push(say::secret((address, name), path, place.map_or(span, part)));
        }
        if edits.is_empty() {
            return;
        }
        match self.write(case, &edits, span) {
            Ok(live) => self.done.push((case.resource, name.clone(), live.clone())),
            Err(why) => kept.push(*why),
        }
    }

    /// Writes the edits of an attribute into the text; returns its new value, or the reason that they were
    /// not written.
    fn write(
        &mut self,
        case: &Case<'a>,
        edits: &Edits<'_>,
        span: Span,
    ) -> Result<&'a Value, Box<Diagnostic>> {
        let (address, name) = (case.address(), case.name);
        let shared = || Box::new(say::shared(address, name, case.all.len(), span));
        let live = case.live().ok_or_else(shared)?;
        if case.values().any(|(wanted, before, _)| !wanted.same(before)) {
            return Err(Box::new(say::changed_twice(address, (name, live), span)));
        }
        if !case.resource.block.module.is_root() {
            let path = self.sources.get(span.file).map(|source| source.path.as_str());
            return Err(Box::new(say::in_module(address, (name, live), span, path)));
        }
        let is_default = live.is_null() && case.attribute.default.is_some();
        if is_default || live.is_null() && case.attribute.presence == Presence::Required {
            return Err(Box::new(say::no_value(address, name, span)));
        }
        let edited = self.edit(case.resource, name, edits);
        let not_editable = || Box::new(say::not_editable(address, (name, live), span));
        edited.map(|()| live).ok_or_else(not_editable)
    }

    /// Returns the edits of an attribute that the spec gives; reports the parts that an expression makes.
    fn edits(&self, case: &Case<'a>, item: &'a Item, kept: &mut Diagnostics) -> Edits<'a> {
        let mut all = Edits::default();
        for (drift, (wanted, _, live)) in case.drifts.iter().zip(case.values()) {
            let edits = Edits::of(&item.value.expr, wanted, live);
            for made in &edits.made {
                let at = item.value.span_of(made.expr.range);
                if case.is_secret_at(&made.path) {
                    kept.push(say::secret((&drift.address, case.name), &made.path, at));
                    continue;
                }
                let origins =
                    origins::origins(self.config, case.resource, made.expr, item.value.span);
                let what = (&drift.address, case.name);
                kept.push(say::made_by_expression(what, (&made.path, &made.live), at, origins));
            }
            all.join(edits);
        }
        all
    }

    fn edit(&mut self, resource: &ResourceConfig, name: &Name, edits: &Edits<'_>) -> Option<()> {
        let file = resource.header.file;
        if !self.documents.contains_key(&file) {
            let document = self.sources.get(file)?.text.parse::<DocumentMut>().ok()?;
            self.documents.insert(file, document);
        }
        let document = self.documents.get_mut(&file)?;
        // An attribute of which only some edits succeed is not written.
        let mut edited = document.clone();
        document::edit(&mut edited, &resource.block, name, edits)?;
        *document = edited;
        Some(())
    }

    /// Returns the result: the new texts, read back.
    fn finish(self, kept: Diagnostics) -> WriteBack {
        let mut back = WriteBack { kept, ..WriteBack::default() };
        for (file, document) in self.documents {
            let Some(source) = self.sources.get(file) else { continue };
            let text = document::text(&document, &source.text);
            let mut sources = Sources::default();
            let new = sources.add(source.path.clone(), text.clone());
            let (read, found) = parse::parse(&sources, &[new]);
            let here = self.done.iter().filter(|(resource, ..)| resource.header.file == file);
            if found.has_errors() {
                for (resource, name, live) in here {
                    let address = resource.block.instance(None);
                    back.kept.push(say::not_editable(&address, (name, live), resource.header));
                }
                continue;
            }
            for (resource, attribute, live) in here {
                let block = read.resources.get(&resource.block);
                let item = block.and_then(|block| block.items.get(attribute));
                let span = item.map(|item| item.key).or(block.map(|block| block.header));
                let line = span.and_then(|span| sources.position(span)).map_or(1, |at| at.line);
                let value = item.and_then(|item| text_of(&sources, &item.value, live));
                back.written.push(Written {
                    block: resource.block.clone(),
                    attribute: attribute.clone(),
                    file,
                    line,
                    value,
                });
            }
            if text != *source.text {
                back.files.insert(file, text);
            }
        }
        back
    }
}

/// Returns a written value as TOML: its own text if that is one value, else the same in line. A value of a
/// table is written below a header or in dotted keys. Secrets are not shown.
fn text_of(sources: &Sources, value: &SpecExpr, live: &Value) -> Option<String> {
    let text = sources.text(value.span)?;
    if !live.holds_sealed() && text.parse::<toml_edit::Value>().is_ok() {
        return Some(text.to_owned());
    }
    in_line(sources, (value, &value.expr), live)
}

fn in_line(sources: &Sources, (of, expr): (&SpecExpr, &Expr), live: &Value) -> Option<String> {
    match (&expr.kind, live) {
        (Kind::Map(entries), Value::Map(lives)) => {
            let entry = |(key, expr): &(Expr, Expr)| {
                let key = literal_key(key)?;
                let text = in_line(sources, (of, expr), or_null(lives.get(key)))?;
                Some(format!("{} = {text}", written::key(key)))
            };
            let entries: Option<Vec<String>> = entries.iter().map(entry).collect();
            Some(format!("{{ {} }}", entries?.join(", ")))
        }
        (_, live) if live.holds_sealed() => Some("\"(sensitive)\"".to_owned()),
        (Kind::List(items), live) => {
            let lives =
                live.as_items().unwrap_or_default().iter().chain(std::iter::repeat(&Value::Null));
            let item = |(expr, live)| in_line(sources, (of, expr), live);
            let items: Option<Vec<String>> = items.iter().zip(lives).map(item).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        (Kind::Literal(value), _) => written::value(value),
        (Kind::Template(_), _) => Some(format!("\"{}\"", sources.text(of.span_of(expr.range))?)),
        _ => sources.text(of.span_of(expr.range)).map(written::expression),
    }
}

#[cfg(test)]
mod tests;
