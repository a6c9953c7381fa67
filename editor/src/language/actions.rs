//! Code actions: the word that was meant, in place of the one that was typed.

use std::collections::HashMap;
use std::path::Path;

use engine::diagnostics::Diagnostics;
use lsp_types::{CodeAction, CodeActionKind, TextEdit, Url, WorkspaceEdit};

use super::Known;
use super::places::Places;

/// The corrections of the mistakes in a range of a file.
pub(crate) fn actions(
    known: &Known,
    rules: Option<&Diagnostics>,
    path: &Path,
    range: lsp_types::Range,
) -> Vec<CodeAction> {
    let places = Places::new(known.latest.sources());
    let all =
        known.latest.diagnostics().iter().chain(rules.into_iter().flat_map(Diagnostics::iter));
    let actions = all.filter_map(|diagnostic| {
        let (span, correction) = (diagnostic.span?, diagnostic.correction.as_ref()?);
        let shown = places.at(span).filter(|place| place.path == path)?.range;
        if shown.end < range.start || range.end < shown.start {
            return None;
        }
        let place = places.exactly(span, &correction.word)?;
        let new_text = correction.meant.clone();
        let title = format!("Replace `{}` with `{new_text}`", correction.word);
        let edit = TextEdit { range: place.range, new_text };
        let uri = Url::from_file_path(path).ok()?;
        let edit = WorkspaceEdit {
            changes: Some(HashMap::from([(uri, vec![edit])])),
            ..WorkspaceEdit::default()
        };
        Some(CodeAction {
            title,
            kind: Some(CodeActionKind::QUICKFIX),
            is_preferred: Some(true),
            edit: Some(edit),
            ..CodeAction::default()
        })
    });
    actions.collect()
}
