//! Formatting: the one layout of a file.

use lsp_types::TextEdit;

use crate::layout::laid_out;
use crate::text::Text;

/// The change that gives a text its layout: of the lines from the first that differs to the last. None for a text that
/// is no TOML, which its diagnostics say.
pub(crate) fn formatting(text: &Text) -> Option<Vec<TextEdit>> {
    let (old, new) = (&**text.content(), laid_out(text.content())?);
    if old == new {
        return Some(Vec::new());
    }
    let same = |pair: &(&str, &str)| pair.0 == pair.1;
    let lines = |text| str::split_inclusive(text, '\n');
    let before = lines(old).zip(lines(&new)).take_while(same).map(|(line, _)| line.len()).sum();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let ends = lines(old_rest).rev().zip(lines(new_rest).rev());
    let after: usize = ends.take_while(same).map(|(line, _)| line.len()).sum();
    let range = text.range(before..old.len() - after);
    Some(vec![TextEdit { range, new_text: new_rest[..new_rest.len() - after].to_owned() }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_differ_change() {
        let edits = |text: &str| formatting(&Text::new(text));
        assert_eq!(edits("[plumb]\nname = \"a\"\n"), Some(Vec::new()));
        assert_eq!(edits("[plumb"), None);
        let edit = &edits("[plumb]\nname = \"a\"\n[local]\nx  =  1\ny = 2").unwrap()[0];
        let (start, end) = (edit.range.start, edit.range.end);
        assert_eq!(((start.line, start.character), (end.line, end.character)), ((2, 0), (4, 5)));
        assert_eq!(edit.new_text, "\n[local]\nx = 1\ny = 2\n");
    }
}
