//! The layout of a spec's text: blanks, indentation, line breaks and blank lines.
//!
//! It is made from the events of the TOML parser. Every key, value and comment is copied as it is written, in its order;
//! only what stands between them is chosen. So a layout cannot change what a text says.

mod alignment;
mod blank_lines;
mod bracket;
mod line;
mod reader;

/// Returns a text of TOML in the one layout; none where it is no TOML.
pub fn laid_out(text: &str) -> Option<String> {
    let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK, rest),
        None => ("", text),
    };
    let lines = blank_lines::settled(reader::lines(text)?);
    let gaps = alignment::gaps(&lines);
    let mut laid_out = mark.to_owned();
    for (line, gap) in lines.iter().zip(gaps) {
        line.write(gap, line_end(text), &mut laid_out);
    }
    Some(laid_out)
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The end of the first line, which all lines get.
fn line_end(text: &str) -> &'static str {
    let first = text.find('\n').map(|end| &text[..end]);
    if first.is_some_and(|line| line.ends_with('\r')) { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests;
