//! A bound on the text that the parser would read again and again.
//!
//! If a bracket stands behind two operators (`a + b + (…`) and its contents have a mistake, `hcl-edit` reads
//! the bracket twice before it gives up. It does the same with each bracket inside, so it would read a
//! mistake thirty levels deep a billion times. It also reads each text between markers (`<<END`) before a
//! mistake twice. So this module counts such brackets and texts before parsing, and allows only a few. It is
//! no parser: it recognises brackets, quotes, comments, the ends of texts between markers and the expressions
//! that begin in a text, and nothing else. It does not count brackets in what it takes for a text.

use super::range;
use crate::expression::ExprError;

/// The most nested brackets and texts between markers together. With so many, parsing takes a thousand times
/// as long as with none.
const LEVELS_MAX: usize = 10;

/// The brackets and texts that are open at a place.
enum Open<'t> {
    /// Text in which `${` and `%{` begin something.
    Text(End<'t>),
    /// A bracket, with the number of operators since its last comma. `counts` is true if the bracket stands
    /// behind two operators itself.
    Bracket { operators: usize, counts: bool },
}

/// The end of a text.
#[derive(Clone, Copy)]
enum End<'t> {
    /// No end: the text is the whole template.
    Never,
    /// A quote.
    Quote,
    /// A line that begins with this word.
    Marker(&'t [u8]),
}

/// Refuses a template in which too many brackets or texts between markers are nested in its expressions.
pub(super) fn bounded_template(text: &str) -> Result<(), ExprError> {
    bounded(text, Open::Text(End::Never), true)
}

/// Refuses an expression in which too many brackets or texts between markers are nested.
pub(super) fn bounded_expression(text: &str) -> Result<(), ExprError> {
    bounded(text, Open::Bracket { operators: 0, counts: false }, true)
}

/// Refuses a residual with too many texts between markers: this crate prints none. It may have many brackets.
pub(super) fn bounded_residual(text: &str) -> Result<(), ExprError> {
    bounded(text, Open::Bracket { operators: 0, counts: false }, false)
}

fn bounded(text: &str, whole: Open<'_>, counts_levels: bool) -> Result<(), ExprError> {
    let bytes = text.as_bytes();
    let mut scan = Scan { open: vec![whole], levels: 0, markers: 0 };
    let mut at = 0;
    while at < bytes.len() {
        at += match scan.open.last() {
            Some(&Open::Text(end)) => scan.text(&bytes[at..], end),
            _ => scan.expression(&bytes[at..]),
        };
        let levels = if counts_levels { scan.levels } else { 0 };
        if levels + scan.markers > LEVELS_MAX {
            return Err(too_much(at - 1));
        }
    }
    Ok(())
}

fn too_much(at: usize) -> ExprError {
    ExprError {
        range: range(at, at + 1),
        message: format!(
            "more than {LEVELS_MAX} brackets stand in each other, or texts between `<<` markers, in what is computed"
        ),
        help: Some("name a part of it as a local, and refer to that".to_owned()),
        meant: None,
    }
}

struct Scan<'t> {
    open: Vec<Open<'t>>,
    /// The number of open brackets that stand behind two operators.
    levels: usize,
    /// The number of texts between markers that have begun.
    markers: usize,
}

impl<'t> Scan<'t> {
    /// Reads on in a text; returns the number of bytes that it has read.
    fn text(&mut self, rest: &'t [u8], end: End<'_>) -> usize {
        let quoted = matches!(end, End::Quote);
        match rest {
            [b'$', b'$', b'{', ..] | [b'%', b'%', b'{', ..] => 3,
            [b'$' | b'%', b'{', ..] => {
                self.opens();
                2
            }
            [b'\\', _, ..] if quoted => 2,
            [b'"', ..] if quoted => {
                self.open.pop();
                1
            }
            [b'\n', ..] => match end {
                End::Marker(word) if begins_with(&rest[1..], word) => {
                    self.open.pop();
                    1 + blanks(&rest[1..]) + word.len()
                }
                _ => 1,
            },
            _ => 1,
        }
    }

    /// Reads on in an expression; returns the number of bytes that it has read.
    fn expression(&mut self, rest: &'t [u8]) -> usize {
        match rest[0] {
            _ if begins_comment(rest) => return comment(rest),
            b'"' => self.open.push(Open::Text(End::Quote)),
            b'(' | b'[' | b'{' => self.opens(),
            b')' | b']' | b'}' => self.closes(),
            b',' => self.count(|_| 0),
            b'<' if rest.starts_with(b"<<") => {
                self.markers += 1;
                return self.marker(rest);
            }
            byte if is_operator(byte) => {
                self.count(|before| before + 1);
                return operators(rest);
            }
            _ => {}
        }
        1
    }

    /// Reads `<<WORD` and enters the text that ends with a line of that word. If this is no text between
    /// markers, the parser reports it.
    fn marker(&mut self, rest: &'t [u8]) -> usize {
        let start = if rest.get(2) == Some(&b'-') { 3 } else { 2 };
        let length = rest[start..].iter().take_while(|byte| is_of_a_word(**byte)).count();
        let end = start + length;
        if length > 0 && matches!(rest[end..], [b'\n', ..] | [b'\r', b'\n', ..]) {
            self.open.push(Open::Text(End::Marker(&rest[start..end])));
        }
        end
    }

    fn opens(&mut self) {
        let mut brackets = self.open.iter().rev();
        let around = brackets.find_map(|open| match open {
            Open::Bracket { operators, .. } => Some(*operators),
            Open::Text { .. } => None,
        });
        let counts = around.is_some_and(|operators| operators >= 2);
        self.levels += usize::from(counts);
        self.open.push(Open::Bracket { operators: 0, counts });
    }

    /// Closes a bracket. The outermost one stays open: the parser reports a closing bracket too many.
    fn closes(&mut self) {
        if self.open.len() > 1
            && let Some(Open::Bracket { counts: true, .. }) = self.open.pop()
        {
            self.levels -= 1;
        }
    }

    fn count(&mut self, change: impl FnOnce(usize) -> usize) {
        if let Some(Open::Bracket { operators, .. }) = self.open.last_mut() {
            *operators = change(*operators);
        }
    }
}

/// Returns the number of operators at the beginning, up to a marker or a comment, which begin with the same
/// characters.
fn operators(rest: &[u8]) -> usize {
    let ends = |at: usize| {
        let next = &rest[at..];
        !is_operator(next[0]) || next.starts_with(b"<<") || begins_comment(next)
    };
    (1..rest.len()).find(|at| ends(*at)).unwrap_or(rest.len())
}

fn begins_comment(rest: &[u8]) -> bool {
    rest[0] == b'#' || rest.starts_with(b"//") || rest.starts_with(b"/*")
}

/// Returns the length of a comment.
fn comment(rest: &[u8]) -> usize {
    let (start, end): (usize, &[u8]) =
        if rest.starts_with(b"/*") { (2, b"*/") } else { (1, b"\n") };
    let found = rest[start..].windows(end.len()).position(|bytes| bytes == end);
    found.map_or(rest.len(), |at| start + at + end.len())
}

/// Returns true if a line begins with a word, after blanks at most.
fn begins_with(line: &[u8], word: &[u8]) -> bool {
    let behind = line[blanks(line)..].strip_prefix(word);
    behind.is_some_and(|behind| !behind.first().is_some_and(|byte| is_of_a_word(*byte)))
}

fn blanks(line: &[u8]) -> usize {
    line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn is_of_a_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii()
}

fn is_operator(byte: u8) -> bool {
    matches!(
        byte,
        b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' | b'&' | b'|' | b'?'
    )
}
