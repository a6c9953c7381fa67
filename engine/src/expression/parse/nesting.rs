//! A bound on what the parser would try again and again.
//!
//! Where a bracket stands behind two operators (`a + b + (…`) and something in it is wrong, `hcl-edit` reads
//! it twice before it gives up, and so it does with each bracket in that one: a mistake thirty levels deep
//! would be read a billion times. The same goes for each text between markers (`<<END`) before a mistake. So
//! these are counted before, and few are allowed. This is no parser: it knows brackets, quotes and what begins
//! in a text, and proves nothing else.

use super::range;
use crate::expression::ExprError;

/// So many of both together, which is a thousand times what one takes.
const LEVELS_MAX: usize = 10;

/// What is open at a place.
enum Open {
    /// Text in which `${` and `%{` begin something; in quotes it ends with one.
    Text { quoted: bool },
    /// A bracket, and the operators since its last comma; whether it stood behind two itself.
    Bracket { operators: usize, counts: bool },
}

/// Refuses a template in whose expressions brackets are nested too deep in what is computed.
pub(super) fn bounded_template(text: &str) -> Result<(), ExprError> {
    bounded(text, Open::Text { quoted: false })
}

/// Refuses an expression in which brackets are nested too deep in what is computed.
pub(super) fn bounded_expression(text: &str) -> Result<(), ExprError> {
    bounded(text, Open::Bracket { operators: 0, counts: false })
}

fn bounded(text: &str, whole: Open) -> Result<(), ExprError> {
    let bytes = text.as_bytes();
    let mut scan = Scan { open: vec![whole], levels: 0, markers: 0 };
    let mut at = 0;
    while at < bytes.len() {
        at += match scan.open.last() {
            Some(Open::Text { quoted }) => scan.text(&bytes[at..], *quoted),
            _ => scan.expression(&bytes[at..]),
        };
        if scan.levels + scan.markers > LEVELS_MAX {
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
    }
}

struct Scan {
    open: Vec<Open>,
    /// How many of the open brackets count.
    levels: usize,
    /// How many texts between markers have begun.
    markers: usize,
}

impl Scan {
    /// Goes on in a text; returns by how many bytes.
    fn text(&mut self, rest: &[u8], quoted: bool) -> usize {
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
            _ => 1,
        }
    }

    /// Goes on in an expression; returns by how many bytes.
    fn expression(&mut self, rest: &[u8]) -> usize {
        match rest[0] {
            b'"' => self.open.push(Open::Text { quoted: true }),
            b'(' | b'[' | b'{' => self.opens(),
            b')' | b']' | b'}' => self.closes(),
            b',' => self.count(|_| 0),
            b'<' if rest.starts_with(b"<<") => {
                self.markers += 1;
                return 2;
            }
            byte if is_operator(byte) => {
                self.count(|before| before + 1);
                return rest.iter().take_while(|byte| is_operator(**byte)).count();
            }
            _ => {}
        }
        1
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

    /// The outermost stays: what closes too much is the parser's to say.
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

fn is_operator(byte: u8) -> bool {
    matches!(
        byte,
        b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' | b'&' | b'|' | b'?'
    )
}
