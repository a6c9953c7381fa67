//! Lines of a text.

/// A line: what it says, and the comment behind that.
#[derive(Debug)]
pub(super) struct Line<'t> {
    pub(super) kind: Kind<'t>,
    /// Its text with indentation. A multi-line text of TOML has line ends inside.
    pub(super) code: String,
    pub(super) comment: Option<Comment<'t>>,
}

/// A comment behind something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comment<'t> {
    pub(super) text: &'t str,
    /// The number of characters before it in its line.
    pub(super) column: usize,
}

/// The kind of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    Blank,
    /// A comment on a line of its own.
    Comment,
    /// The header of a table, with its keys.
    Header(Vec<&'t str>),
    /// A key with its value, or with the beginning of it.
    Entry,
    /// A later line of a value.
    Inner,
}

impl<'t> Line<'t> {
    pub(super) fn new(kind: Kind<'t>, code: String) -> Self {
        Self { kind, code, comment: None }
    }

    /// A later line of a value, at a depth of brackets.
    pub(super) fn inner(depth: usize) -> Self {
        Self::new(Kind::Inner, "  ".repeat(depth))
    }

    /// Writes it, with blanks before its comment.
    pub(super) fn write(&self, gap: usize, end: &str, text: &mut String) {
        text.push_str(self.code.trim_end_matches([' ', '\t']));
        if let Some(comment) = self.comment {
            text.extend(std::iter::repeat_n(' ', gap));
            text.push_str(comment.text);
        }
        text.push_str(end);
    }
}
