//! A scanner for the most common texts of a spec: plain references, and text with plain references in it. It
//! makes the same trees as [`super::convert`]. If it is not certain of a text, it returns none, so it never
//! makes a wrong tree.

use super::{Dialect, OFFERED, range};
use crate::address::{Block, Name};
use crate::expression::{Expr, Kind, Root};
use crate::value::Value;

/// The longest chain that is read here; for longer ones the full parser checks the bounds.
const CHAIN_MAX: usize = 32;

/// Reads a template that is text and plain references only.
pub(super) fn template(text: &str, dialect: Dialect) -> Option<Expr> {
    let bytes = text.as_bytes();
    let (mut parts, mut at, mut literal) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'%', Some(b'{')) => return None,
            (b'$', Some(b'{')) => {
                if at > 0 && bytes[at - 1] == b'$' {
                    return None;
                }
                push_text(&mut parts, text, literal, at);
                let mut scanner = Scanner { text, at: at + 2, dialect };
                parts.push(scanner.part()?);
                (at, literal) = (scanner.at, scanner.at);
            }
            _ => at += 1,
        }
    }
    push_text(&mut parts, text, literal, bytes.len());
    if parts.len() == 1 {
        return parts.pop();
    }
    Some(Expr { kind: Kind::Template(parts), range: super::whole(text) })
}

/// Reads a text that is one plain reference, except for `start` bytes before it and `rest` bytes after it.
pub(super) fn reference(text: &str, start: usize, rest: usize, dialect: Dialect) -> Option<Expr> {
    let mut scanner = Scanner { text, at: start, dialect };
    let expr = scanner.reference()?;
    (scanner.at == text.len() - rest).then_some(expr)
}

fn push_text(parts: &mut Vec<Expr>, text: &str, start: usize, end: usize) {
    if start < end {
        let kind = Kind::Literal(Value::string(&text[start..end]));
        parts.push(Expr { kind, range: range(start, end) });
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
}

impl<'a> Scanner<'a> {
    /// Reads the rest of `${ reference }`.
    fn part(&mut self) -> Option<Expr> {
        self.spaces();
        let expr = self.reference()?;
        self.spaces();
        self.take(b'}').then_some(expr)
    }

    fn reference(&mut self) -> Option<Expr> {
        let start = self.at;
        let word = self.word()?;
        if matches!(word, "true" | "false" | "null") {
            return None;
        }
        let root = self.root(word)?;
        let mut expr = self.expr(start, Kind::Root(root));
        for _ in 0..CHAIN_MAX {
            let kind = match self.peek() {
                Some(b'.') => {
                    self.at += 1;
                    Kind::Attribute(Box::new(expr), self.word()?.into())
                }
                Some(b'[') => {
                    self.at += 1;
                    let index = self.index()?;
                    Kind::Index(Box::new(expr), Box::new(index))
                }
                // The full parser reads everything else that may continue an expression.
                None | Some(b'}' | b' ') => return Some(expr),
                Some(_) => return None,
            };
            expr = self.expr(start, kind);
        }
        None
    }

    /// Returns the root that begins with `word`; reads the second word of roots that have two.
    fn root(&mut self, word: &'a str) -> Option<Root> {
        let named =
            self.dialect == Dialect::Names || OFFERED.contains(&word) || self.peek() != Some(b'.');
        if named {
            return Some(Root::Named(word.into()));
        }
        self.at += 1;
        let second = self.word()?;
        match word {
            "var" => Some(Root::Var(second.into())),
            "local" => Some(Root::Local(second.into())),
            "each" if second == "key" => Some(Root::EachKey),
            "each" if second == "value" => Some(Root::EachValue),
            "module" => Some(Root::Module(second.into())),
            "data" => {
                let name = self.take(b'.').then(|| self.word()).flatten()?;
                Some(Root::Resource(Block::data(second, name)))
            }
            "each" | "provider" => None,
            ty => Some(Root::Resource(Block::new(ty, second))),
        }
    }

    /// Reads the rest of `["key"]`, `[0]` or `[each.key]`.
    fn index(&mut self) -> Option<Expr> {
        let start = self.at;
        let kind = match self.peek()? {
            b'"' => Kind::Literal(Value::String(self.quoted()?)),
            b'0'..=b'9' => Kind::Literal(Value::Integer(self.digits()?)),
            _ => {
                let rest = self.text.get(self.at..)?;
                let root = match self.dialect {
                    Dialect::Spec if rest.starts_with("each.key]") => Root::EachKey,
                    Dialect::Spec if rest.starts_with("each.value]") => Root::EachValue,
                    _ => return None,
                };
                self.at += rest.find(']')?;
                Kind::Root(root)
            }
        };
        let index = self.expr(start, kind);
        self.take(b']').then_some(index)
    }

    fn quoted(&mut self) -> Option<Name> {
        let start = self.at + 1;
        let length = self.text.as_bytes()[start..].iter().position(|byte| *byte == b'"')?;
        let inner = self.text.get(start..start + length)?;
        let plain = |byte: u8| !matches!(byte, b'\\' | b'$' | b'%' | 0..=0x1f | 0x7f);
        inner.bytes().all(plain).then(|| {
            self.at = start + length + 1;
            inner.into()
        })
    }

    fn digits(&mut self) -> Option<i64> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.text[start..self.at].parse().ok()
    }

    fn word(&mut self) -> Option<&'a str> {
        let start = self.at;
        let continues = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !self.peek().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_') {
            return None;
        }
        while self.peek().is_some_and(continues) {
            self.at += 1;
        }
        Some(&self.text[start..self.at])
    }

    fn expr(&self, start: usize, kind: Kind) -> Expr {
        Expr { kind, range: range(start, self.at) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }
}
