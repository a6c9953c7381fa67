//! Comments behind lines: one blank before each, or one column for neighbours that had one.

use super::line::Line;

/// Returns for each line the number of blanks before its comment.
///
/// Neighbouring comments that begin in one column still do so, as far to the left as they can.
pub(super) fn gaps(lines: &[Line<'_>]) -> Vec<usize> {
    let mut gaps = vec![1; lines.len()];
    let mut start = 0;
    while start < lines.len() {
        let run = run(&lines[start..]).max(1);
        let widths: Vec<usize> = lines[start..start + run].iter().map(width).collect();
        let widest = widths.iter().max().copied().unwrap_or(0);
        for (gap, width) in gaps[start..].iter_mut().zip(widths) {
            *gap = widest - width + 1;
        }
        start += run;
    }
    gaps
}

/// The number of lines, from the first one, whose comments begin in its column.
fn run(lines: &[Line<'_>]) -> usize {
    let column = |line: &Line<'_>| {
        let comment = line.comment.filter(|_| !line.code.contains('\n'));
        comment.map(|comment| comment.column)
    };
    let Some(first) = lines.first().and_then(column) else { return 0 };
    lines.iter().take_while(|line| column(line) == Some(first)).count()
}

fn width(line: &Line<'_>) -> usize {
    line.code.chars().count()
}
