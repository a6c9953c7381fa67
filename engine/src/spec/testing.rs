//! The text oracle of the spec's tests: a spec in, one line for each diagnostic out.

use crate::diagnostics::{Diagnostic, Diagnostics, FileId, Sources};

/// Reads a spec; a line `--- NAME` begins another file, the first is `plumb.toml`.
pub(crate) fn sources(text: &str) -> (Sources, Vec<FileId>) {
    let mut sources = Sources::default();
    let mut files = Vec::new();
    for (index, part) in text.split("--- ").enumerate() {
        let (name, body) = match index {
            0 => ("plumb.toml", part),
            _ => part.split_once('\n').unwrap_or((part, "")),
        };
        files.push(sources.add(name.trim(), body));
    }
    (sources, files)
}

/// The diagnostics as text: `file:line:col severity: summary [words] label | help`.
pub(crate) fn lines(sources: &Sources, diagnostics: &Diagnostics) -> String {
    diagnostics.iter().map(|diagnostic| line(sources, diagnostic) + "\n").collect()
}

fn line(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let place = |span| {
        let position = sources.position(span).expect("the span lies in a file");
        let path = &sources.get(span.file).expect("the file is known").path;
        format!("{path}:{}:{}", position.line, position.column)
    };
    let mut parts: Vec<String> = diagnostic.span.map(place).into_iter().collect();
    parts.push(format!("{}: {}", diagnostic.severity.word(), diagnostic.summary));
    if let Some(span) = diagnostic.span {
        let words = sources.text(span).expect("the span covers text").replace('\n', "⏎");
        parts.push(format!("[{words}]"));
    }
    parts.extend([&diagnostic.label, &diagnostic.detail].into_iter().flatten().cloned());
    parts.extend(diagnostic.related.iter().map(|(span, why)| format!("({}: {why})", place(*span))));
    parts.extend(diagnostic.help.iter().map(|help| format!("| {help}")));
    parts.join(" ")
}

/// Compares line by line, showing the whole text that was found when it differs.
#[track_caller]
pub(crate) fn assert_lines(found: &str, expected: &str) {
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines == expected, "found:\n{found}\nexpected:\n{}", expected.join("\n"));
}
