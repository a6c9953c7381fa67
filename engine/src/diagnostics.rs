//! Diagnostics: messages about mistakes in a spec and problems in the world, collected with spans.
//!
//! They are not errors, which are operations that failed and are returned. A diagnostic has a constant short
//! summary, sentences of detail, underlined words, and advice. Each area makes its own diagnostics in one
//! file of constructor functions; `render` shows them.

use std::sync::Arc;

use crate::address::{Address, ModulePath};

/// One file among the [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A place in a file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

/// A source text.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as the user would write it, relative to the current folder.
    pub path: String,
    /// The text.
    pub text: Arc<str>,
    line_starts: Vec<u32>,
}

/// The texts that spans point into.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

/// A place as people read it: line and column count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Sources {
    /// Adds a text. The caller has bounded its length (32 MiB), so offsets fit 32 bits.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let text = text.into();
        let newlines = text.match_indices('\n').map(|(index, _)| index + 1);
        let starts = std::iter::once(0).chain(newlines);
        let line_starts = starts.map(|start| u32::try_from(start).unwrap_or(u32::MAX)).collect();
        self.files.push(Source { path: path.into(), text, line_starts });
        FileId(u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX))
    }

    /// The file behind an id.
    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize)
    }

    /// All files, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// The line and column where a span begins.
    pub fn position(&self, span: Span) -> Option<Position> {
        let source = self.get(span.file)?;
        let line = source.line_starts.partition_point(|start| *start <= span.start);
        let start = *source.line_starts.get(line.checked_sub(1)?)? as usize;
        let before = source.text.get(start..span.start as usize)?;
        Some(Position { line, column: before.chars().count() + 1 })
    }

    /// Returns the text that a span covers.
    pub fn text(&self, span: Span) -> Option<&str> {
        self.get(span.file)?.text.get(span.start as usize..span.end as usize)
    }
}

impl Source {
    /// Returns the text of the given line (from 1), without its end.
    pub fn line(&self, number: usize) -> Option<&str> {
        let start = *self.line_starts.get(number.checked_sub(1)?)? as usize;
        let end = self.line_starts.get(number).map_or(self.text.len(), |end| *end as usize);
        self.text.get(start..end).map(|line| line.trim_end_matches(['\n', '\r']))
    }

    /// Returns the offset where the given line (from 1) begins, or the end of the text if there is no such
    /// line.
    pub fn line_start(&self, number: usize) -> usize {
        number
            .checked_sub(1)
            .and_then(|index| self.line_starts.get(index))
            .map_or(self.text.len(), |start| *start as usize)
    }
}

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is done until the user mends it.
    Error,
    /// It is done, and may not be what the user meant.
    Warning,
    /// It is only worth knowing.
    Note,
}

impl Severity {
    /// Returns the word for the severity, the same in every output format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// The word that was meant, in place of one among the underlined words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The word as it is written.
    pub word: String,
    /// The word that was meant, as it is to be written.
    pub meant: String,
}

/// Advice about a mistake, for people. If the advice is to write another word, programs get that word, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The advice in words.
    pub text: String,
    /// The correction.
    pub correction: Option<Correction>,
}

impl Advice {
    /// Returns the advice to write another word.
    pub fn meant(word: impl Into<String>, meant: impl Into<String>) -> Self {
        let correction = Correction { word: word.into(), meant: meant.into() };
        Self { text: format!("did you mean `{}`?", correction.meant), correction: Some(correction) }
    }
}

impl<T: Into<String>> From<T> for Advice {
    fn from(text: T) -> Self {
        Self { text: text.into(), correction: None }
    }
}

/// A message for the user about the spec or the world.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The summary: short, lower case, no full stop.
    pub summary: String,
    /// The reason, in sentences.
    pub detail: Option<String>,
    /// The words to underline.
    pub span: Option<Span>,
    /// The text under the underlined words.
    pub label: Option<String>,
    /// Other places that matter, each with the reason.
    pub related: Vec<(Span, String)>,
    /// The resource that the diagnostic is about.
    pub address: Option<Address>,
    /// The advice.
    pub help: Option<String>,
    /// The advice for programs; none unless the advice is to write another word.
    pub correction: Option<Correction>,
}

impl Diagnostic {
    /// An error with a summary.
    pub fn error(summary: impl Into<String>) -> Self {
        Self::new(Severity::Error, summary)
    }

    /// A warning with a summary.
    pub fn warning(summary: impl Into<String>) -> Self {
        Self::new(Severity::Warning, summary)
    }

    /// A note with a summary.
    pub fn note(summary: impl Into<String>) -> Self {
        Self::new(Severity::Note, summary)
    }

    fn new(severity: Severity, summary: impl Into<String>) -> Self {
        Self {
            severity,
            summary: summary.into(),
            detail: None,
            span: None,
            label: None,
            related: Vec::new(),
            address: None,
            help: None,
            correction: None,
        }
    }

    /// Sets the words to underline.
    #[must_use]
    pub fn at(mut self, span: impl Into<Option<Span>>) -> Self {
        self.span = span.into();
        self
    }

    /// Sets the text under the underlined words.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets the reason, in sentences.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Sets the advice.
    #[must_use]
    pub fn help(mut self, advice: impl Into<Advice>) -> Self {
        let Advice { text, correction } = advice.into();
        self.help = Some(text);
        self.correction = self.correction.or(correction);
        self
    }

    /// Sets the word that was meant in place of an underlined one.
    #[must_use]
    pub fn meant(mut self, word: impl Into<String>, meant: impl Into<String>) -> Self {
        self.correction = Some(Correction { word: word.into(), meant: meant.into() });
        self
    }

    /// Sets the resource that the diagnostic is about.
    #[must_use]
    pub fn about(mut self, address: &Address) -> Self {
        self.address = Some(address.clone());
        self
    }

    /// Returns the same diagnostic about the resource with the same name in the spec itself.
    fn anywhere(&self) -> Self {
        let address = self.address.as_ref().map(|address| Address {
            block: address.block.within(&ModulePath::root()),
            key: address.key.clone(),
        });
        Self { address, ..self.clone() }
    }

    /// Adds another place that matters.
    #[must_use]
    pub fn related(mut self, span: Span, why: impl Into<String>) -> Self {
        self.related.push((span, why.into()));
        self
    }
}

/// Diagnostics, in the order in which they were found until they are sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Returns an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds all diagnostics of another collection.
    pub fn extend(&mut self, other: Diagnostics) {
        self.0.extend(other.0);
    }

    /// Returns true if one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// Returns the number of errors.
    pub fn errors(&self) -> usize {
        self.0.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of diagnostics.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all diagnostics.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// Sorts the diagnostics by place, then severity, and drops repetitions, so the same input prints the
    /// same output. If several instances of a module have the same diagnostic, only that of the first stays.
    pub fn sort(&mut self) {
        self.0.sort_by(|a, b| {
            let place = |d: &Diagnostic| d.span.map_or((1, None), |span| (0, Some(span)));
            place(a)
                .cmp(&place(b))
                .then(a.severity.cmp(&b.severity))
                .then_with(|| a.summary.cmp(&b.summary))
                .then_with(|| a.address.cmp(&b.address))
                .then_with(|| a.detail.cmp(&b.detail))
        });
        self.0.dedup_by(|a, b| a == b || (a.span.is_some() && a.anywhere() == b.anywhere()));
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(diagnostics: I) -> Self {
        Self(diagnostics.into_iter().collect())
    }
}

/// The most letters by which a mistyped word may differ from the meant one.
const NEAR_MAX: usize = 4;

/// Returns the candidate that a mistyped word most likely meant; none if no candidate is similar.
///
/// Candidates are compared by their letters, else by their words: `image` is similar to `image_name`, and
/// `gpus` to `gpu_ids`.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut by_words: Option<&str> = None;
    let seen = candidates.into_iter().inspect(|candidate| {
        if has_words_of(candidate, word) && by_words.is_none_or(|best| best.len() > candidate.len())
        {
            by_words = Some(candidate);
        }
    });
    let by_letters = seen
        // A comparison takes time for the product of both lengths, and a word may be as long as a file.
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= NEAR_MAX)
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= (word.len().max(candidate.len()) / 3).clamp(1, NEAR_MAX)
        })
        .min()
        .map(|(_, candidate)| candidate);
    by_letters.or(by_words)
}

/// The longest word, in bytes, that is compared with others by the words in it.
const COMPOUND_MAX: usize = 60;

/// Returns true if all words of one name are in the other; `_` separates words, and a plural equals its
/// singular.
fn has_words_of(one: &str, other: &str) -> bool {
    if one.len().max(other.len()) > COMPOUND_MAX {
        return false;
    }
    let stem = |word: &str| word.strip_suffix('s').unwrap_or(word).to_owned();
    let words =
        |text: &str| text.split('_').filter(|it| !it.is_empty()).map(stem).collect::<Vec<_>>();
    let (one, other) = (words(one), words(other));
    let (fewer, more) = if one.len() < other.len() { (one, other) } else { (other, one) };
    !fewer.is_empty() && fewer.iter().all(|word| word.len() > 1 && more.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let mut sources = Sources::default();
        let file = sources.add("a.toml", "a = 1\nü = \"x\"\n");
        let position = sources.position(Span { file, start: 11, end: 14 }).unwrap();
        assert_eq!(position, Position { line: 2, column: 5 });
        assert_eq!(sources.get(file).unwrap().line(2), Some("ü = \"x\""));
    }

    #[test]
    fn nearest_word() {
        assert_eq!(nearest("sice", ["size", "name"]), Some("size"));
        assert_eq!(nearest("image", ["image_name", "size"]), Some("image_name"));
        assert_eq!(nearest("gpus", ["gpu_count", "gpu_ids", "name"]), Some("gpu_ids"));
        assert_eq!(nearest("volume", ["network_volume_id", "volumes"]), Some("volumes"));
        assert_eq!(nearest("image_id", ["template_id", "size"]), None);
        assert_eq!(nearest("zzz", ["size", "name"]), None);
        assert_eq!(nearest(&"z".repeat(5_000_000), ["size", &"y".repeat(100_000)]), None);
    }
}
