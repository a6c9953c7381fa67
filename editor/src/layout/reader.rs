//! The lines of a text, as the events of the TOML parser give them.

use toml_parser::parser::{Event, EventKind, RecursionGuard, parse_document};
use toml_parser::{ParseError, Raw, Source};

use super::bracket::{self, Bracket, Node, Row};
use super::line::{Comment, Kind, Line};

/// The deepest nesting of brackets, which is that of the parsers of specs.
const NESTING_MAX: u32 = 80;

/// Reads the lines of a text; none where it is no TOML.
pub(super) fn lines(text: &str) -> Option<Vec<Line<'_>>> {
    let tokens = Source::new(text).lex().into_vec();
    let (mut events, mut error) = (Vec::<Event>::new(), None::<ParseError>);
    parse_document(&tokens, &mut RecursionGuard::new(&mut events, NESTING_MAX), &mut error);
    for event in &events {
        decode(text, event, &mut error);
    }
    if error.is_some() {
        return None;
    }
    let mut reader = Reader { text, events: events.into_iter(), lines: Vec::new(), is_open: false };
    while let Some(event) = reader.next() {
        reader.line(event);
    }
    Some(reader.lines)
}

/// Reads what stands at an event, for the errors in it: a text without an end, a value that is missing.
fn decode(text: &str, event: &Event, error: &mut Option<ParseError>) {
    let span = event.span();
    let raw = Raw::new_unchecked(&text[span.start()..span.end()], event.encoding(), span);
    match event.kind() {
        EventKind::Scalar => drop(raw.decode_scalar(&mut (), error)),
        EventKind::SimpleKey => raw.decode_key(&mut (), error),
        EventKind::Comment => raw.decode_comment(error),
        EventKind::Newline => raw.decode_newline(error),
        _ => {}
    }
}

struct Reader<'t> {
    text: &'t str,
    events: std::vec::IntoIter<Event>,
    lines: Vec<Line<'t>>,
    /// True while something stands in the present line.
    is_open: bool,
}

impl<'t> Reader<'t> {
    /// The next event that is more than a blank.
    fn next(&mut self) -> Option<Event> {
        self.events.find(|event| event.kind() != EventKind::Whitespace)
    }

    fn text(&self, event: Event) -> &'t str {
        &self.text[event.span().start()..event.span().end()]
    }

    /// Reads what an event begins.
    fn line(&mut self, event: Event) {
        match event.kind() {
            EventKind::Newline if self.is_open => self.is_open = false,
            EventKind::Newline => self.lines.push(Line::new(Kind::Blank, String::new())),
            EventKind::Comment => self.comment(event),
            EventKind::StdTableOpen => self.header("[", "]"),
            EventKind::ArrayTableOpen => self.header("[[", "]]"),
            EventKind::SimpleKey => self.entry(event),
            _ => {}
        }
    }

    fn comment(&mut self, event: Event) {
        let comment = self.comment_of(event);
        match self.lines.last_mut() {
            Some(line) if self.is_open => line.comment = Some(comment),
            _ => {
                self.lines.push(Line::new(Kind::Comment, comment.text.to_owned()));
                self.is_open = true;
            }
        }
    }

    fn comment_of(&self, event: Event) -> Comment<'t> {
        let before = &self.text[..event.span().start()];
        let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
        Comment { text: self.text(event).trim_end(), column: line.chars().count() }
    }

    fn header(&mut self, open: &str, close: &str) {
        let mut keys = Vec::new();
        while let Some(event) = self.next() {
            match event.kind() {
                EventKind::SimpleKey => keys.push(self.text(event)),
                EventKind::KeySep => {}
                _ => break,
            }
        }
        let code = format!("{open}{}{close}", keys.join("."));
        self.lines.push(Line::new(Kind::Header(keys), code));
        self.is_open = true;
    }

    fn entry(&mut self, event: Event) {
        let pair = self.pair(event);
        self.lines.push(Line::new(Kind::Entry, String::new()));
        bracket::write(&pair, 0, &mut self.lines);
        self.is_open = true;
    }

    /// Reads a key and its value.
    fn pair(&mut self, event: Event) -> Node<'t> {
        let mut key = self.text(event).to_owned();
        while let Some(event) = self.next() {
            match event.kind() {
                EventKind::SimpleKey => key.push_str(self.text(event)),
                EventKind::KeySep => key.push('.'),
                _ => break,
            }
        }
        let value = self.next().map_or(Node::Scalar(""), |event| self.value(event));
        Node::Pair(key, Box::new(value))
    }

    fn value(&mut self, event: Event) -> Node<'t> {
        match event.kind() {
            EventKind::ArrayOpen => Node::Bracket(self.bracket(true)),
            EventKind::InlineTableOpen => Node::Bracket(self.bracket(false)),
            _ => Node::Scalar(self.text(event)),
        }
    }

    /// Reads up to the closing bracket. The parser's guard bounds the recursion.
    fn bracket(&mut self, is_array: bool) -> Bracket<'t> {
        let mut rows = vec![Row::default()];
        while let Some(event) = self.next() {
            let item = match event.kind() {
                EventKind::ArrayClose | EventKind::InlineTableClose => break,
                EventKind::ValueSep => continue,
                EventKind::Newline => {
                    rows.push(Row::default());
                    continue;
                }
                EventKind::Comment => {
                    if let Some(row) = rows.last_mut() {
                        row.comment = Some(self.comment_of(event));
                    }
                    continue;
                }
                EventKind::SimpleKey => self.pair(event),
                _ => self.value(event),
            };
            if let Some(row) = rows.last_mut() {
                row.items.push(item);
            }
        }
        Bracket { is_array, rows }
    }
}
