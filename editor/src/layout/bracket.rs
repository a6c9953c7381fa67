//! Arrays and inline tables.

use super::line::{Comment, Kind, Line};

/// A value, or a key of an inline table with its value.
#[derive(Debug)]
pub(super) enum Node<'t> {
    /// A text, a number and so on, as it is written.
    Scalar(&'t str),
    Bracket(Bracket<'t>),
    Pair(String, Box<Node<'t>>),
}

impl Node<'_> {
    /// Returns true if it takes more than one line for its brackets.
    fn has_break(&self) -> bool {
        match self {
            Node::Scalar(_) => false,
            Node::Pair(_, value) => value.has_break(),
            Node::Bracket(bracket) => bracket.is_broken() || bracket.items().any(Node::has_break),
        }
    }
}

/// An array or an inline table.
#[derive(Debug)]
pub(super) struct Bracket<'t> {
    pub(super) is_array: bool,
    /// Its content between the brackets, by the lines in which it is written.
    pub(super) rows: Vec<Row<'t>>,
}

/// A line between brackets.
#[derive(Debug, Default)]
pub(super) struct Row<'t> {
    pub(super) items: Vec<Node<'t>>,
    pub(super) comment: Option<Comment<'t>>,
}

impl Row<'_> {
    fn is_blank(&self) -> bool {
        self.items.is_empty() && self.comment.is_none()
    }
}

impl<'t> Bracket<'t> {
    /// Returns true if it takes more than one line. One with line breaks keeps them.
    fn is_broken(&self) -> bool {
        self.rows.len() > 1 && !self.rows.iter().all(Row::is_blank)
    }

    /// Returns true if blanks stand inside its brackets: those of a table, and those of a list of tables in one line.
    fn is_wide(&self) -> bool {
        let of_tables = || matches!(self.items().next(), Some(Node::Bracket(it)) if !it.is_array);
        !self.is_array || (of_tables() && !self.items().any(Node::has_break))
    }

    fn items(&self) -> impl Iterator<Item = &Node<'t>> {
        self.rows.iter().flat_map(|row| &row.items)
    }
}

/// Writes a value behind the last of the lines.
pub(super) fn write<'t>(node: &Node<'t>, depth: usize, lines: &mut Vec<Line<'t>>) {
    match node {
        Node::Scalar(text) => add(lines, text),
        Node::Pair(key, value) => {
            add(lines, key);
            add(lines, " = ");
            write(value, depth, lines);
        }
        Node::Bracket(bracket) => {
            let (open, close) = if bracket.is_array { ("[", "]") } else { ("{", "}") };
            add(lines, open);
            if bracket.is_broken() {
                rows(bracket, depth + 1, lines);
                lines.push(Line::inner(depth));
            } else if bracket.items().next().is_some() {
                let blank = if bracket.is_wide() { " " } else { "" };
                add(lines, blank);
                separated(bracket.items(), depth, lines);
                add(lines, blank);
            }
            add(lines, close);
        }
    }
}

/// Writes the lines between brackets. Blank lines at their ends go, and of several one stays.
fn rows<'t>(bracket: &Bracket<'t>, depth: usize, lines: &mut Vec<Line<'t>>) {
    let mut gap = None;
    for row in &bracket.rows {
        if row.is_blank() {
            gap = gap.map(|_| true);
            continue;
        }
        if gap.replace(false) == Some(true) {
            lines.push(Line::new(Kind::Inner, String::new()));
        }
        lines.push(Line::inner(depth));
        if row.items.is_empty() {
            add(lines, row.comment.map_or("", |comment| comment.text));
            continue;
        }
        separated(row.items.iter(), depth, lines);
        add(lines, ",");
        if let Some(line) = lines.last_mut() {
            line.comment = row.comment;
        }
    }
}

fn separated<'n, 't: 'n>(
    items: impl Iterator<Item = &'n Node<'t>>,
    depth: usize,
    lines: &mut Vec<Line<'t>>,
) {
    for (at, item) in items.enumerate() {
        if at > 0 {
            add(lines, ", ");
        }
        write(item, depth, lines);
    }
}

fn add(lines: &mut [Line<'_>], text: &str) {
    if let Some(line) = lines.last_mut() {
        line.code.push_str(text);
    }
}
