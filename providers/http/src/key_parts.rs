//! The parts of a key that consists of several attributes.

use engine::address::Name;
use engine::expression::{Expr, Kind, Root};
use engine::value::Value;

/// Returns true if the attributes can be computed from a key of this form: attributes with texts between
/// them.
pub(crate) fn splits(key: &Expr) -> bool {
    pieces(key).is_some()
}

/// One piece of a key.
enum Piece<'a> {
    Attribute(&'a Name),
    Text(&'a str),
}

/// Returns the pieces of a key: attributes with a text between each two.
fn pieces(key: &Expr) -> Option<Vec<Piece<'_>>> {
    let Kind::Template(parts) = &key.kind else { return None };
    let pieces = parts.iter().map(|part| match &part.kind {
        Kind::Root(Root::Named(name)) => Some(Piece::Attribute(name)),
        Kind::Literal(Value::String(text)) if !text.is_empty() => Some(Piece::Text(text)),
        _ => None,
    });
    let pieces = pieces.collect::<Option<Vec<_>>>()?;
    let is_attribute = |piece: &Piece<'_>| matches!(piece, Piece::Attribute(_));
    let touch = |pair: &[Piece<'_>]| is_attribute(&pair[0]) && is_attribute(&pair[1]);
    (!pieces.windows(2).any(touch)).then_some(pieces)
}

/// Splits an id at the texts of its key; returns none if there is no way, or more than one.
pub(crate) fn split<'a>(key: &'a Expr, id: &'a str) -> Option<Vec<(&'a Name, &'a str)>> {
    let pieces = pieces(key)?;
    let texts = || {
        pieces
            .iter()
            .filter_map(|piece| if let Piece::Text(text) = piece { Some(*text) } else { None })
    };
    let is_clear = |text: &str| {
        id.matches(text).count() == texts().map(|other| other.matches(text).count()).sum::<usize>()
    };
    if !texts().all(is_clear) {
        return None;
    }
    let (mut found, mut open, mut rest) = (Vec::new(), None, id);
    for piece in &pieces {
        match piece {
            Piece::Attribute(name) => open = Some(*name),
            Piece::Text(text) => {
                let (before, after) = rest.split_once(text)?;
                match open.take() {
                    Some(name) => found.push((name, before)),
                    None if before.is_empty() => {}
                    None => return None,
                }
                rest = after;
            }
        }
    }
    match open {
        Some(name) => found.push((name, rest)),
        None if rest.is_empty() => {}
        None => return None,
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use engine::expression::parse::{Dialect, template};

    use super::*;

    #[test]
    fn ids_are_split_where_there_is_one_way() {
        for (key, id, parts) in [
            ("${a}|${b}", "/|jobs", Some("a=/ b=jobs")),
            ("${a}|${b}", "|jobs", Some("a= b=jobs")),
            ("${a}|${b}", "x|y|z", None),
            ("${a}|${b}", "jobs", None),
            ("${a}|${b}|${c}", "x|y|z", Some("a=x b=y c=z")),
            ("${a}/${b}@${c}", "x/y@z", Some("a=x b=y c=z")),
            ("${a}/${b}@${c}", "x@y/z", None),
            ("zones/${a}", "zones/x", Some("a=x")),
            ("zones/${a}", "records/x", None),
            ("${a}${b}", "xy", None),
            ("${upper(a)}|${b}", "x|y", None),
        ] {
            let key = template(key, Dialect::Names).unwrap();
            let found = split(&key, id).map(|parts| {
                let parts = parts.iter().map(|(name, text)| format!("{name}={text}"));
                parts.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(found.as_deref(), parts, "{id}");
        }
    }
}
