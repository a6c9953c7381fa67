//! Diagnostics as an editor shows them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::diagnostics::{Diagnostic, Diagnostics, Severity, Sources};
use lsp_types::{DiagnosticRelatedInformation, DiagnosticSeverity, Location, Url};

use super::places::{Place, Places};

/// The diagnostics of each file. One that is about no place stands at the beginning of `first`.
pub(crate) fn by_file(
    diagnostics: &Diagnostics,
    sources: &Sources,
    first: &Path,
) -> BTreeMap<PathBuf, Vec<lsp_types::Diagnostic>> {
    let places = Places::new(sources);
    let mut files: BTreeMap<PathBuf, Vec<lsp_types::Diagnostic>> = BTreeMap::new();
    for diagnostic in diagnostics.iter() {
        let place = diagnostic.span.and_then(|span| places.at(span));
        let nowhere = || Place { path: first.to_owned(), range: lsp_types::Range::default() };
        let Place { path, range } = place.unwrap_or_else(nowhere);
        files.entry(path).or_default().push(shown(diagnostic, range, &places));
    }
    files
}

fn shown(
    diagnostic: &Diagnostic,
    range: lsp_types::Range,
    places: &Places<'_>,
) -> lsp_types::Diagnostic {
    let related = diagnostic.related.iter().filter_map(|(span, why)| {
        let place = places.at(*span)?;
        let uri = Url::from_file_path(place.path).ok()?;
        let location = Location { uri, range: place.range };
        Some(DiagnosticRelatedInformation { location, message: why.clone() })
    });
    let related: Vec<_> = related.collect();
    lsp_types::Diagnostic {
        range,
        severity: Some(match diagnostic.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Note => DiagnosticSeverity::INFORMATION,
        }),
        source: Some("plumb".to_owned()),
        message: message(diagnostic),
        related_information: (!related.is_empty()).then_some(related),
        ..lsp_types::Diagnostic::default()
    }
}

/// The summary, the label, the reason and the advice, each on a line.
fn message(diagnostic: &Diagnostic) -> String {
    let Diagnostic { summary, label, detail, help, .. } = diagnostic;
    let first = match label {
        Some(label) => format!("{summary}: {label}"),
        None => summary.clone(),
    };
    let help = help.as_ref().map(|help| format!("help: {help}"));
    let lines = [Some(first), detail.clone(), help].into_iter().flatten();
    lines.collect::<Vec<_>>().join("\n")
}
