//! Blank lines: one between blocks, at most one elsewhere, none at the ends.

use super::line::{Kind, Line};

/// Returns lines with the blank lines that they should have.
pub(super) fn settled(lines: Vec<Line<'_>>) -> Vec<Line<'_>> {
    let gaps = wanted(&lines);
    let mut settled = Vec::with_capacity(lines.len());
    for (line, gap) in lines.into_iter().zip(gaps) {
        if line.kind == Kind::Blank {
            continue;
        }
        if gap {
            settled.push(Line::new(Kind::Blank, String::new()));
        }
        settled.push(line);
    }
    settled
}

/// Returns for each line whether a blank line stands before it.
fn wanted(lines: &[Line<'_>]) -> Vec<bool> {
    let mut wanted = vec![false; lines.len()];
    let mut block: &[&str] = &[];
    let mut before: Option<&Line<'_>> = None;
    let mut had_blank = false;
    for (at, line) in lines.iter().enumerate() {
        if line.kind == Kind::Blank {
            had_blank = true;
            continue;
        }
        if let Some(before) = before {
            let follows_comment = before.kind == Kind::Comment && !had_blank;
            let path = if follows_comment { None } else { header(&lines[at..]) };
            wanted[at] = match path {
                Some(path) => had_blank || !continues(block, path),
                None => had_blank && !(is_header(before) && line.kind == Kind::Entry),
            };
        }
        if let Kind::Header(path) = &line.kind
            && !continues(block, path)
        {
            block = path;
        }
        (before, had_blank) = (Some(line), false);
    }
    wanted
}

/// The header that a line is, or that the comments from there on stand right above.
fn header<'l>(lines: &'l [Line<'_>]) -> Option<&'l [&'l str]> {
    match &lines.iter().find(|line| line.kind != Kind::Comment)?.kind {
        Kind::Header(path) => Some(path),
        _ => None,
    }
}

fn is_header(line: &Line<'_>) -> bool {
    matches!(line.kind, Kind::Header(_))
}

/// Returns true if a header is of a table inside the block. Such a table may stand without a blank line before it.
fn continues(block: &[&str], path: &[&str]) -> bool {
    !block.is_empty() && path.len() > block.len() && path.starts_with(block)
}
