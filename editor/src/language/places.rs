//! Places of a spec: definitions, and all places that name a symbol.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use engine::config::symbols::{Symbol, occurrences};
use engine::config::{Document, ModuleSource};
use engine::diagnostics::{Sources, Span};
use lsp_types::{Location, Url};

use super::subject::{Subject, subject};
use super::{Known, Query, raw_block};
use crate::text::Text;

/// The document of a module that the spec calls.
pub(crate) fn module<'a>(known: &'a Known, name: &str) -> Option<&'a Document> {
    let document = known.document();
    let source = ModuleSource::of(document.modules.get(name)?, &ModuleSource::default()).ok()?;
    document.library.get(&source).map(|module| &**module)
}

/// The place that declares the thing at the cursor.
pub(crate) fn definition(query: &Query<'_>) -> Option<Location> {
    let (subject, _) = subject(query)?;
    let known = query.known;
    let latest = known.latest.document();
    let (span, name) = match &subject {
        Subject::Symbol(symbol) => (symbol.definition(latest)?, symbol.name().clone()),
        Subject::Attribute { block, name, .. } => {
            let raw = raw_block(latest, block)?;
            (raw.items.get(name).map_or(raw.header, |item| item.key), name.clone())
        }
        Subject::Input { module: call, name } => {
            (module(known, call)?.variables.get(name)?.header, name.clone())
        }
        Subject::Output { module: call, name } => {
            (module(known, call)?.outputs.get(name)?.header, name.clone())
        }
        _ => return None,
    };
    let places = Places::new(known.latest.sources());
    places.named(span, None, &name).or_else(|| places.at(span)).map(Place::into_location)
}

/// All places that name the symbol at the cursor.
pub(crate) fn references(query: &Query<'_>, with_definition: bool) -> Option<Vec<Location>> {
    let (Subject::Symbol(symbol), _) = subject(query)? else { return None };
    let places = Places::new(query.known.latest.sources());
    let found = occurrences(query.known.latest.document())
        .into_iter()
        .filter(|it| it.symbol == symbol && (with_definition || !it.is_definition));
    let found = found.filter_map(|it| places.of(it.span, &symbol)).map(Place::into_location);
    Some(found.collect())
}

/// A place in a file.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) range: lsp_types::Range,
}

impl Place {
    fn into_location(self) -> Location {
        let uri = Url::from_file_path(&self.path).unwrap_or_else(|()| nowhere());
        Location { uri, range: self.range }
    }
}

/// A path without `..`, as an editor writes it: that of a module begins with the folder of the spec.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
        plain
    })
}

/// The address of a path that has none, which no editor opens.
pub(crate) fn nowhere() -> Url {
    "plumb:unknown".parse().expect("it is an address")
}

/// Turns spans into places; each file is divided into lines once.
pub(crate) struct Places<'a> {
    sources: &'a Sources,
    texts: std::cell::RefCell<std::collections::BTreeMap<u32, std::rc::Rc<Text>>>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(sources: &'a Sources) -> Self {
        Self { sources, texts: std::cell::RefCell::default() }
    }

    fn text(&self, span: Span) -> Option<std::rc::Rc<Text>> {
        let source = self.sources.get(span.file)?;
        let mut texts = self.texts.borrow_mut();
        let text = texts.entry(span.file.0);
        Some(std::rc::Rc::clone(text.or_insert_with(|| Text::new(source.text.clone()).into())))
    }

    /// The place of a span.
    pub(crate) fn at(&self, span: Span) -> Option<Place> {
        self.part(span, span.start as usize..span.end as usize)
    }

    fn part(&self, span: Span, range: Range<usize>) -> Option<Place> {
        let path = plain(Path::new(&self.sources.get(span.file)?.path));
        Some(Place { path, range: self.text(span)?.range(range) })
    }

    /// The place of a symbol's name in a span; none where the text spells it in another way.
    pub(crate) fn of(&self, span: Span, symbol: &Symbol) -> Option<Place> {
        let path = symbol.path();
        let before = match symbol {
            Symbol::Variable(_) if !self.text_of(span)?.contains("variable") => "var",
            _ => path.get(path.len().checked_sub(2)?)?,
        };
        self.named(span, Some(before), symbol.name())
    }

    fn text_of(&self, span: Span) -> Option<&'a str> {
        self.sources.text(span)
    }

    /// The place of a word in a span, whatever stands around it.
    pub(crate) fn exactly(&self, span: Span, word: &str) -> Option<Place> {
        let text = self.text_of(span)?;
        let whole = || text.find(word).map(|at| at..at + word.len());
        let found = find(text, 0, word).or_else(whole)?;
        let start = span.start as usize;
        self.part(span, start + found.start..start + found.end)
    }

    /// The place of a name in a span, behind another one if that is there.
    pub(crate) fn named(&self, span: Span, before: Option<&str>, name: &str) -> Option<Place> {
        let text = self.text_of(span)?;
        let behind = before.and_then(|word| find(text, 0, word)).map_or(0, |found| found.end);
        let found = find(text, behind, name).or_else(|| find(text, 0, name))?;
        let start = span.start as usize;
        self.part(span, start + found.start..start + found.end)
    }
}

/// The first place of a whole word.
pub(crate) fn find(text: &str, from: usize, word: &str) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let rest = text.get(from..)?;
    let mut found = rest.match_indices(word).map(|(at, _)| from + at..from + at + word.len());
    found.find(|it| !text[..it.start].ends_with(is_part) && !text[it.end..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_editors_write_them() {
        assert_eq!(plain(Path::new("/a/b/../../c/./d.toml")), Path::new("/c/d.toml"));
    }

    #[test]
    fn whole_words_are_found() {
        assert_eq!(find("[resource.a-b.a]", 0, "a"), Some(14..15));
        assert_eq!(find("aa.a", 0, "a"), Some(3..4));
        assert_eq!(find("aa", 0, "a"), None);
    }
}
