//! The outline of a file: its tables, and the values of `[local]`.

use std::ops::{ControlFlow, Range};

use lsp_types::{DocumentSymbol, SymbolKind};

use crate::text::Text;
use crate::text::outline::{Part, scan, segments};

/// The tables of a text, each from its header to the next.
pub(crate) fn symbols(text: &Text) -> Vec<DocumentSymbol> {
    let content = text.content();
    let mut found: Vec<(String, Range<usize>, Range<usize>)> = Vec::new();
    scan(content, &mut |part| {
        match part {
            Part::Header { inside, end, .. } => {
                let names = segments(content, inside.clone());
                let names: Vec<String> = names.into_iter().map(|segment| segment.name).collect();
                found.push((names.join("."), inside.start.saturating_sub(1)..end, inside));
            }
            Part::Pair { key, value } => {
                let end = value.map_or(key.end, |value| value.end);
                if let Some((name, whole, _)) = found.last_mut() {
                    whole.end = end;
                    if name == "local" || name.starts_with("local.") {
                        let name = format!("local.{}", &content[key.clone()]);
                        found.push((name, key.start..end, key));
                    }
                }
            }
        }
        ControlFlow::Continue(())
    });
    found.into_iter().map(|it| symbol(text, it)).collect()
}

#[expect(deprecated, reason = "the type has no other constructor")]
fn symbol(text: &Text, (name, whole, own): (String, Range<usize>, Range<usize>)) -> DocumentSymbol {
    let kind = match name.split('.').next() {
        Some("variable" | "local") => SymbolKind::VARIABLE,
        Some("module") => SymbolKind::MODULE,
        Some("output") => SymbolKind::PROPERTY,
        Some("resource") => SymbolKind::OBJECT,
        _ => SymbolKind::NAMESPACE,
    };
    // An editor refuses a symbol without a name.
    let name = if name.is_empty() { "?".to_owned() } else { name };
    DocumentSymbol {
        name,
        kind,
        detail: None,
        tags: None,
        deprecated: None,
        range: text.range(whole),
        selection_range: text.range(own),
        children: None,
    }
}
