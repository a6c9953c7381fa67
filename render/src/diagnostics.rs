//! Diagnostics: in the style of rustc for people, and as JSON.
//!
//! A report shows the underlined words in a window of a few lines, never the whole file. So one line of a
//! spec of many megabytes costs no more to show than one of a small spec.

use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use engine::diagnostics::{Diagnostic, Diagnostics, Severity, Source, Sources, Span};
use serde::Serialize;
use serde_json::Value as Json;

use crate::paint::Colour;
use crate::safe;
use crate::view::{Place, place};

/// The number of diagnostics that are shown; the others are only counted.
pub const SHOWN_MAX: usize = 50;
/// The number of bytes of a line that are shown.
const LINE_MAX: usize = 240;
/// The number of lines of an underlined text that are shown.
const LINES_MAX: usize = 6;
/// The longest summary, detail or help, in characters.
const TEXT_MAX: usize = 4_000;

/// A diagnostic in a form that may be shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiagnosticView {
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// The message.
    pub summary: String,
    /// The explanation: the detail of the diagnostic, or else the text under its words.
    pub detail: Option<String>,
    /// The text under the underlined words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The resource that the diagnostic is about; none if it is about no resource.
    pub address: Option<String>,
    /// The place of the underlined words.
    #[serde(flatten)]
    pub place: Place,
    /// The advice.
    pub help: Option<String>,
    /// Other places that matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedView>,
}

/// Another place that matters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelatedView {
    /// The place.
    #[serde(flatten)]
    pub place: Place,
    /// The text that says why the place matters.
    pub label: String,
}

impl DiagnosticView {
    /// Returns the views of all diagnostics.
    pub fn all(diagnostics: &Diagnostics, sources: &Sources) -> Vec<Self> {
        diagnostics.iter().map(|diagnostic| Self::new(diagnostic, sources)).collect()
    }

    /// Returns the view of one diagnostic.
    pub fn new(diagnostic: &Diagnostic, sources: &Sources) -> Self {
        let related = |(span, label): &(Span, String)| RelatedView {
            place: place(Some(*span), sources),
            label: label.clone(),
        };
        Self {
            severity: diagnostic.severity.word(),
            summary: diagnostic.summary.clone(),
            // The exact mistake is often only in the label, and readers of `detail` must not miss it.
            detail: diagnostic.detail.clone().or_else(|| diagnostic.label.clone()),
            label: diagnostic.label.clone(),
            address: diagnostic.address.as_ref().map(ToString::to_string),
            place: place(diagnostic.span, sources),
            help: diagnostic.help.clone(),
            related: diagnostic.related.iter().map(related).collect(),
        }
    }
}

impl DiagnosticView {
    /// Returns the view for its JSON; none if the JSON is no view.
    pub(crate) fn of_json(json: &Json) -> Option<Self> {
        let text = |key: &str| json.get(key).and_then(Json::as_str).map(str::to_owned);
        let severity = [Severity::Error, Severity::Warning, Severity::Note];
        let severity = severity.map(Severity::word).into_iter();
        let word = json.get("severity")?.as_str()?;
        let related = json.get("related").and_then(Json::as_array);
        let place = |json: &Json| {
            let label = json.get("label")?.as_str()?.to_owned();
            Some(RelatedView { place: Place::of_json(json), label })
        };
        Some(Self {
            severity: severity.into_iter().find(|known| *known == word)?,
            summary: text("summary")?,
            detail: text("detail"),
            label: text("label"),
            address: text("address"),
            place: Place::of_json(json),
            help: text("help"),
            related: related.into_iter().flatten().filter_map(place).collect(),
        })
    }

    /// Returns a diagnostic for a reader without the text of the spec: the place stands before the message.
    pub fn without_text(&self) -> Diagnostic {
        let summary = self.summary.as_str();
        let diagnostic = match self.severity {
            "error" => Diagnostic::error(summary),
            "warning" => Diagnostic::warning(summary),
            _ => Diagnostic::note(summary),
        };
        let place = match (&self.place.file, self.place.line) {
            (Some(file), Some(line)) => Some(format!("{file}:{line}")),
            _ => None,
        };
        let label = self.label.clone().filter(|label| self.detail.as_ref() != Some(label));
        let parts: Vec<String> =
            [place, label, self.detail.clone()].into_iter().flatten().collect();
        Diagnostic {
            detail: (!parts.is_empty()).then(|| parts.join(": ")),
            help: self.help.clone(),
            address: self.address.as_deref().and_then(|it| it.parse().ok()),
            ..diagnostic
        }
    }
}

/// Returns all diagnostics as text: at most [`SHOWN_MAX`], errors first, then the number of the others.
pub fn text(diagnostics: &Diagnostics, sources: &Sources, colour: Colour) -> String {
    let mut shown: Vec<&Diagnostic> = diagnostics.iter().collect();
    // An error is left out only if all others are left out, too. The sort is stable, so each severity keeps
    // its order.
    shown.sort_by_key(|diagnostic| diagnostic.severity);
    let mut text = String::new();
    for diagnostic in shown.iter().take(SHOWN_MAX) {
        text.push_str(&report(diagnostic, sources, colour));
        text.push('\n');
    }
    if let Some(more) = shown.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more\n");
    }
    text
}

/// Returns one diagnostic as text, which ends with a line end.
pub fn report(diagnostic: &Diagnostic, sources: &Sources, colour: Colour) -> String {
    let level = level(diagnostic.severity);
    let about = diagnostic.address.as_ref().map(|address| safe::text(&address.to_string()));
    let title = safe::capped(&diagnostic.summary, TEXT_MAX);
    let title = match &about {
        Some(about) if !title.contains(about.as_str()) => format!("{about}: {title}"),
        _ => title,
    };
    let detail = diagnostic.detail.as_deref().map(lines);
    let help = diagnostic.help.as_deref().map(lines);
    let label = diagnostic.label.as_deref().map(safe::text);
    let windows = windows(diagnostic, sources, label.as_deref());

    let renderer = match colour {
        Colour::On => Renderer::styled(),
        Colour::Off => Renderer::plain(),
    };
    let mut group = level.primary_title(title).elements(windows.iter().map(Window::element));
    let mut groups: Vec<Group<'_>> = Vec::new();
    match &detail {
        Some(detail) if windows.is_empty() => groups.push(under(Level::NOTE, detail)),
        Some(detail) => group = group.element(Level::NOTE.message(detail.as_str())),
        None => {}
    }
    groups.extend(help.as_ref().map(|help| under(Level::HELP, help)));
    groups.insert(0, group);
    if windows.is_empty() {
        // Nothing is underlined, so no vertical line has to connect the parts.
        return groups.into_iter().map(|group| renderer.render(&[group]) + "\n").collect();
    }
    renderer.render(&groups) + "\n"
}

/// Returns a part of a report that stands by itself.
fn under<'a>(level: Level<'a>, text: &'a str) -> Group<'a> {
    Group::with_title(level.secondary_title(text))
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    }
}

/// Returns a text of several lines, each made safe by itself.
fn lines(text: &str) -> String {
    let (head, _) =
        text.char_indices().nth(TEXT_MAX).map_or((text, ""), |(at, _)| text.split_at(at));
    head.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a line made safe. CI systems read a line that begins with two colons as a command, even if it is
/// indented.
fn line(text: &str) -> String {
    let safe = safe::whole(text);
    match safe.trim_start().strip_prefix("::") {
        Some(rest) => format!("\\u{{3a}}:{rest}"),
        None => safe.into_owned(),
    }
}

/// The underlined lines of one place.
struct Window {
    path: String,
    first_line: usize,
    text: String,
    range: Range<usize>,
    kind: AnnotationKind,
    label: Option<String>,
    /// True if the place is too wide to show; then only its line is named.
    hidden: bool,
}

/// Returns the windows of a diagnostic: its own place first, then the related ones.
fn windows(diagnostic: &Diagnostic, sources: &Sources, label: Option<&str>) -> Vec<Window> {
    let own = diagnostic.span.map(|span| (span, AnnotationKind::Primary, label.map(String::from)));
    let related = diagnostic
        .related
        .iter()
        .take(10)
        .map(|(span, why)| (*span, AnnotationKind::Context, Some(safe::text(why))));
    own.into_iter()
        .chain(related)
        .filter_map(|(span, kind, label)| window(span, kind, label, sources))
        .collect()
}

fn window(
    span: Span,
    kind: AnnotationKind,
    label: Option<String>,
    sources: &Sources,
) -> Option<Window> {
    let source = sources.get(span.file)?;
    let path = safe::text(&source.path);
    let Some(position) = sources.position(span) else {
        let hidden = Window {
            path,
            first_line: 1,
            text: String::new(),
            range: 0..0,
            kind,
            label,
            hidden: true,
        };
        return Some(hidden);
    };
    let first_line = position.line;
    let start = source.line_start(first_line);
    let (text, whole) = shown_lines(source, first_line, span);
    let from = (span.start as usize - start).min(text.len());
    let to = (span.end as usize).saturating_sub(start).clamp(from, text.len());
    let hidden = !whole && from >= text.len();
    let range = floor(&text, from)..floor(&text, to).max(floor(&text, from));
    let (text, range) = visible(&text, range);
    Some(Window { path, first_line, text, range, kind, label, hidden })
}

/// Returns the lines of a span, up to the bounds, and true if these are all.
fn shown_lines(source: &Source, first_line: usize, span: Span) -> (String, bool) {
    let mut text = String::new();
    for number in first_line..first_line + LINES_MAX {
        let Some(line) = source.line(number) else { break };
        if number > first_line {
            if source.line_start(number) >= span.end as usize {
                break;
            }
            text.push('\n');
        }
        let end = floor(line, LINE_MAX.min(line.len()));
        text.push_str(&line[..end]);
        if end < line.len() {
            return (text, false);
        }
    }
    (text, true)
}

/// Makes characters visible that the snippet renderer leaves unchanged or drops: control characters outside
/// of ASCII, invisible characters, and the beginnings of commands to a CI system. The renderer itself
/// replaces ASCII's control characters and those that change the direction of text. Returns the text with the
/// moved range of the underlined words.
fn visible(text: &str, range: Range<usize>) -> (String, Range<usize>) {
    let mut shown = String::with_capacity(text.len());
    let mut place = range.clone();
    for (at, c) in text.char_indices() {
        if at == range.start {
            place.start = shown.len();
        }
        if at == range.end {
            place.end = shown.len();
        }
        let replaced =
            c.is_ascii_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let hides = safe::is_hidden(c) && !replaced;
        if hides || safe::is_ci_command(&text[at..], &shown) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    if range.start >= text.len() {
        place.start = shown.len();
    }
    if range.end >= text.len() {
        place.end = shown.len();
    }
    (shown, place)
}

/// Returns the largest character boundary up to `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

impl Window {
    fn element(&self) -> annotate_snippets::Element<'_> {
        if self.hidden {
            return Origin::path(self.path.as_str()).line(self.first_line).into();
        }
        let annotation = self.kind.span(self.range.clone()).label(self.label.as_deref());
        Snippet::source(self.text.as_str())
            .path(self.path.as_str())
            .line_start(self.first_line)
            .annotation(annotation)
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> (Sources, engine::diagnostics::FileId) {
        let mut sources = Sources::default();
        let file = sources.add("plumb.toml", text);
        (sources, file)
    }

    fn span_of(sources: &Sources, file: engine::diagnostics::FileId, word: &str) -> Span {
        let text = &sources.get(file).unwrap().text;
        let start = text.find(word).unwrap();
        engine::config::span(file, start..start + word.len())
    }

    #[test]
    fn a_mistake_is_shown_at_its_words() {
        let (sources, file) = sources("[resource.value.a]\n# ü\nvalue = \"${valu.b.value}\"\n");
        let diagnostic = Diagnostic::error("there is no resource type `valu`")
            .at(span_of(&sources, file, "valu.b"))
            .label("no such type")
            .detail("The configured providers have `value`.")
            .related(span_of(&sources, file, "resource.value.a"), "in this resource")
            .about(&"value.a".parse().unwrap())
            .help("did you mean `value`?");
        insta::assert_snapshot!(report(&diagnostic, &sources, Colour::Off), @r#"
        error: value.a: there is no resource type `valu`
         --> plumb.toml:3:12
          |
        3 | value = "${valu.b.value}"
          |            ^^^^^^ no such type
          |
         ::: plumb.toml:1:2
          |
        1 | [resource.value.a]
          |  ---------------- in this resource
          |
          = note: The configured providers have `value`.
        help: did you mean `value`?
        "#);
        let json =
            serde_json::to_string_pretty(&DiagnosticView::new(&diagnostic, &sources)).unwrap();
        insta::assert_snapshot!(json, @r#"
        {
          "severity": "error",
          "summary": "there is no resource type `valu`",
          "detail": "The configured providers have `value`.",
          "label": "no such type",
          "address": "value.a",
          "file": "plumb.toml",
          "line": 3,
          "column": 12,
          "help": "did you mean `value`?",
          "related": [
            {
              "file": "plumb.toml",
              "line": 1,
              "column": 2,
              "label": "in this resource"
            }
          ]
        }
        "#);
    }

    #[test]
    fn what_is_said_under_the_words_only_is_the_detail() {
        let (sources, file) = sources("[resource.value.a]\ninpt = 1\n");
        let diagnostic = Diagnostic::error("unknown attribute")
            .at(span_of(&sources, file, "inpt"))
            .label("`value` has no `inpt`");
        let view = DiagnosticView::new(&diagnostic, &sources);
        assert_eq!(view.detail.as_deref(), Some("`value` has no `inpt`"));
        assert_eq!(view.label, view.detail);
        let plain = Diagnostic::error("no key");
        let json = serde_json::to_string(&DiagnosticView::new(&plain, &sources)).unwrap();
        assert!(json.contains(r#""detail":null"#) && !json.contains("label"), "{json}");
    }

    #[test]
    fn without_a_place() {
        let diagnostic = Diagnostic::error("no key").detail("It is needed.").help("set it");
        insta::assert_snapshot!(report(&diagnostic, &Sources::default(), Colour::Off), @r"
        error: no key
        note: It is needed.
        help: set it
        ");
    }

    #[test]
    fn what_hides_in_a_line_is_made_visible_and_the_place_stays() {
        let line = "a\u{200b} = ##vso[x] \u{2028}\u{feff}b # \u{e0041}";
        let (shown, place) = visible(line, 4..6);
        assert_eq!(shown, r"a\u{200b} = #\u{23}vso[x] \u{2028}\u{feff}b # \u{e0041}");
        assert_eq!(&shown[place], " =");
        let (shown, place) = visible("ab", 2..2);
        assert_eq!((&*shown, place), ("ab", 2..2));
        assert_eq!(visible("", 0..0), (String::new(), 0..0));
    }

    /// Some versions of the snippet renderer pass some characters through; none of them may control a
    /// terminal or be invisible.
    #[test]
    fn no_character_of_a_line_acts_or_hides() {
        let odd = ('\0'..=char::MAX).filter(|c| safe::is_hidden(*c) && *c != '\n');
        for c in odd {
            let (sources, file) = sources(&format!("y{c}z = x\n"));
            let diagnostic = Diagnostic::error("bad").at(span_of(&sources, file, "x"));
            let text = report(&diagnostic, &sources, Colour::Off);
            assert!(!text.chars().any(|c| c != '\n' && safe::is_hidden(c)), "{text:?}");
            assert!(!text.contains("yz"), "it is dropped: {c:?}");
        }
    }

    #[test]
    fn hostile_text_does_nothing() {
        let (sources, file) = sources("a = \"\u{1b}[2J\u{202e}x\"\n");
        let diagnostic = Diagnostic::error("bad \u{1b}[31m\nname")
            .at(span_of(&sources, file, "x"))
            .detail("one\n::error::two\u{7}")
            .help("say\u{202e} so");
        let text = report(&diagnostic, &sources, Colour::Off);
        assert!(!text.chars().any(|c| c != '\n' && safe::is_hidden(c)), "{text:?}");
        insta::assert_snapshot!(text, @r#"
        error: bad \u{1b}[31m\nname
         --> plumb.toml:1:11
          |
        1 | a = "␛[2J�x"
          |           ^
          |
          = note: one
                  \u{3a}:error::two\u{7}
        help: say\u{202e} so
        "#);
    }

    #[test]
    fn a_mile_long_line_and_a_far_place_are_shown_shortly() {
        let (sources, file) =
            sources(&format!("x = \"{}end\"\n{}", "ü".repeat(100_000), "y\n".repeat(50)));
        let far = Diagnostic::error("too long").at(span_of(&sources, file, "end"));
        assert!(report(&far, &sources, Colour::Off).len() < 1_000);
        let all = engine::config::span(file, 0..200_060);
        let wide = Diagnostic::error("too long").at(all);
        assert!(report(&wide, &sources, Colour::Off).len() < 2_000);
        let outside = engine::config::span(file, 10_000_000..10_000_001);
        assert!(!report(&Diagnostic::error("x").at(outside), &sources, Colour::Off).is_empty());
    }

    #[test]
    fn many_are_counted_and_errors_come_first() {
        let mut all = Diagnostics::new();
        for n in 0..60 {
            all.push(Diagnostic::warning(format!("warning {n}")));
        }
        all.push(Diagnostic::error("the error"));
        let text = text(&all, &Sources::default(), Colour::Off);
        assert!(text.starts_with("error: the error\n"), "{text}");
        assert!(text.ends_with("\nand 11 more\n\n"), "{text}");
    }
}
