//! Reads `unset` of an attribute: the way to clear it once a spec no longer gives it.

use std::sync::Arc;

use engine::schema::{Attribute, OnChange, Presence, SeenIn, Unset};
use engine::types::Type;
use engine::value::Value;

use super::diagnostics;
use super::reader::{Node, Reader};

/// The words for the ways to clear an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Null,
    Empty,
    Absent,
}

/// Reads the way. Only an attribute that a spec may leave out and that an update can change has one.
pub(super) fn read(reader: &mut Reader, node: Node<'_>, schema: &Attribute) -> Option<Unset> {
    let words = [("null", Way::Null), ("empty", Way::Empty), ("absent", Way::Absent)];
    let way = reader.word(node, "unset", &words)?;
    match of(way, schema) {
        Ok(unset) => Some(unset),
        Err((label, help)) => {
            let span = reader.span(node.span());
            let summary = "the attribute cannot be cleared";
            reader.push(diagnostics::misfit(span, summary, label, help));
            None
        }
    }
}

/// Returns the way back to the value that the API fills in, if that is always the same; else none.
pub(super) fn to_server_value(schema: &Attribute) -> Option<Unset> {
    let value = schema.server_value.clone()?;
    misfit(schema).is_none().then_some(Unset::Value(value))
}

/// Returns the way as the schema has it. The error is a label and a help.
fn of(way: Way, schema: &Attribute) -> Result<Unset, (&'static str, &'static str)> {
    if let Some(misfit) = misfit(schema) {
        return Err(misfit);
    }
    match way {
        Way::Null => Ok(Unset::Value(Value::Null)),
        Way::Empty => empty(&schema.ty).map(Unset::Value).ok_or((
            "its type has no empty value",
            "write `unset = \"null\"` or `unset = \"absent\"`",
        )),
        Way::Absent if schema.seen_in == SeenIn::Never && schema.server_default => Err((
            "nothing shows what the API makes of it",
            "leave `unset` away, or `server_default`",
        )),
        Way::Absent => Ok(Unset::Absent),
    }
}

/// Returns the reason that an attribute cannot be cleared; none if it can.
fn misfit(schema: &Attribute) -> Option<(&'static str, &'static str)> {
    if schema.presence != Presence::Optional {
        Some(("a spec cannot leave it out", "leave `unset` away: it is for optional attributes"))
    } else if schema.default.is_some() {
        Some(("it goes back to its default", "leave `unset` away, or the default"))
    } else if schema.on_change == OnChange::Replace {
        Some(("it cannot be changed in place", "leave `unset` away: nothing can clear it"))
    } else if schema.local {
        Some(("no API knows it", "leave `unset` away"))
    } else {
        None
    }
}

/// Returns the empty value of a type; none if it has none.
fn empty(ty: &Type) -> Option<Value> {
    Some(match ty {
        Type::String => Value::string(""),
        Type::List(_) => Value::list(Vec::new()),
        Type::Set(_) => Value::set(Vec::new()),
        Type::Map(_) => Value::Map(Arc::default()),
        _ => return None,
    })
}
