//! Lines of labelled text, and the one table from labels to colours.
//!
//! Renderers give the role of a text, never its look. Every line makes sense without its colours: they only
//! repeat the meaning of the words.

use std::fmt::Write as _;
use std::iter::repeat_n;

use anstyle::{AnsiColor, Style};

/// The role of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Nothing special.
    Plain,
    /// Something new.
    Added,
    /// Something that changes in place.
    Changed,
    /// Something that is removed.
    Removed,
    /// Something that is replaced, or left behind.
    Replaced,
    /// Something that is lost, or cannot be decided.
    Danger,
    /// Something that needs attention.
    Caution,
    /// Something that went well.
    Good,
    /// The names of things and the headings of sections.
    Strong,
    /// Text that may be skipped: origins, counts of unchanged things.
    Faint,
}

/// Returns the colour of a label; this is the only table of colours.
fn style(label: Label) -> Style {
    let colour = |colour: AnsiColor| colour.on_default();
    match label {
        Label::Plain => Style::new(),
        Label::Added | Label::Good => colour(AnsiColor::Green),
        Label::Changed | Label::Caution => colour(AnsiColor::Yellow),
        Label::Removed => colour(AnsiColor::Red),
        Label::Replaced => colour(AnsiColor::Magenta),
        Label::Danger => colour(AnsiColor::Red).bold(),
        Label::Strong => Style::new().bold(),
        Label::Faint => Style::new().dimmed(),
    }
}

/// The switch for colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Write colours.
    On,
    /// Leave colours out.
    Off,
}

/// Returns one labelled text.
pub fn paint(text: &str, label: Label, colour: Colour) -> String {
    let mut painted = String::new();
    put(&mut painted, text, label, colour);
    painted
}

fn put(out: &mut String, text: &str, label: Label, colour: Colour) {
    let style = style(label);
    if colour == Colour::Off || style == Style::new() || text.is_empty() {
        out.push_str(text);
    } else {
        let _ = write!(out, "{style}{text}{style:#}");
    }
}

/// One line: a symbol, an indent, and labelled text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// The symbol: `+`, `-`, `~` and the like; markdown puts it into the first column.
    mark: Option<(&'static str, Label)>,
    /// The indent, in levels.
    depth: usize,
    parts: Vec<(String, Label)>,
}

impl Line {
    /// Returns an empty line at a depth.
    pub fn new(depth: usize) -> Self {
        Self { mark: None, depth, parts: Vec::new() }
    }

    /// Sets the symbol before the text.
    #[must_use]
    pub fn mark(mut self, mark: &'static str, label: Label) -> Self {
        self.mark = Some((mark, label));
        self
    }

    /// Adds text. The caller has made foreign text safe.
    #[must_use]
    pub fn then(mut self, text: impl Into<String>, label: Label) -> Self {
        self.parts.push((text.into(), label));
        self
    }

    /// Adds ordinary text.
    #[must_use]
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.then(text, Label::Plain)
    }

    /// Adds the text of another line.
    #[must_use]
    pub fn join(mut self, other: Line) -> Self {
        self.parts.extend(other.parts);
        self
    }

    /// Returns the number of characters of the text, without symbol and indent.
    pub fn width(&self) -> usize {
        self.parts.iter().map(|(text, _)| text.chars().count()).sum()
    }

    /// Returns true if the line is empty.
    pub fn is_empty(&self) -> bool {
        self.mark.is_none() && self.parts.is_empty()
    }

    fn indent(&self) -> usize {
        2 + 4 * self.depth
    }

    fn text(&self, colour: Colour) -> String {
        let mut text = String::new();
        self.put(&mut text, colour);
        text
    }

    fn put(&self, out: &mut String, colour: Colour) {
        for (text, label) in &self.parts {
            put(out, text, *label, colour);
        }
    }
}

/// Lines, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    lines: Vec<Line>,
}

impl Page {
    /// Returns a page without lines.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line.
    pub fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Adds a heading, in the first column.
    pub fn heading(&mut self, text: impl Into<String>, label: Label) {
        let mut line = Line::new(0).then(text, label);
        line.depth = usize::MAX;
        self.lines.push(line);
    }

    /// Adds an empty line, unless the page is empty or ends with one already.
    pub fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Line::default());
        }
    }

    /// Adds the lines of another page.
    pub fn append(&mut self, other: Page) {
        self.lines.extend(other.lines);
    }

    /// Returns the lines of the page.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the page as text for a terminal or a pipe.
    pub fn text(&self, colour: Colour) -> String {
        let mut text = String::new();
        for line in &self.lines {
            if !line.is_empty() {
                if line.depth != usize::MAX {
                    text.extend(repeat_n(' ', line.indent()));
                }
                if let Some((mark, label)) = line.mark {
                    put(&mut text, mark, label, colour);
                    text.push(' ');
                } else if line.depth != usize::MAX {
                    text.push_str("  ");
                }
                line.put(&mut text, colour);
                text.truncate(text.trim_end_matches(' ').len());
            }
            text.push('\n');
        }
        text
    }

    /// Returns the page as the body of a `diff` block, whose first column shows added and removed lines.
    pub fn diff(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let column = match line.mark.map(|(mark, _)| mark) {
                None => " ",
                Some("+") => "+",
                Some("-") => "-",
                Some(_) => "!",
            };
            let rest = match line.mark {
                Some((mark, _)) if column == "!" => format!("{mark} {}", line.text(Colour::Off)),
                _ => line.text(Colour::Off),
            };
            let depth = if line.depth == usize::MAX { 0 } else { line.depth };
            let whole = format!("{column} {}{rest}", " ".repeat(4 * depth));
            text.push_str(whole.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_before_the_text_or_in_the_first_column() {
        let mut page = Page::new();
        page.heading("Changes", Label::Strong);
        page.push(Line::new(0).mark("±", Label::Replaced).plain("value.a"));
        page.push(Line::new(1).plain("x"));
        assert_eq!(page.text(Colour::Off), "Changes\n  ± value.a\n        x\n");
        assert_eq!(page.diff(), "  Changes\n! ± value.a\n      x\n");
    }

    #[test]
    fn colour_is_only_added() {
        let mut page = Page::new();
        page.push(Line::new(0).mark("+", Label::Added).then("a", Label::Strong));
        assert_eq!(page.text(Colour::On), "  \u{1b}[32m+\u{1b}[0m \u{1b}[1ma\u{1b}[0m\n");
        assert_eq!(page.text(Colour::Off), "  + a\n");
    }
}
