//! The diagnostics about changes outside Plumb that are not written back, one constructor each.

use super::origins::Origin;
use crate::address::{Address, Name};
use crate::config::written;
use crate::diagnostics::{Diagnostic, Span};
use crate::value::{Path, Value};

/// The longest value that a message shows, in characters.
const LENGTH_MAX: usize = 120;

fn stays(address: &Address, name: &str, why: &str, at: Span) -> Diagnostic {
    Diagnostic::warning(format!("`{name}` of {address} stays in the spec as it is: {why}"))
        .at(at)
        .about(address)
}

/// Returns the name of a part of an attribute, such as `tags.env`.
fn place(name: &Name, path: &Path) -> String {
    Path(std::iter::once(name.clone().into()).chain(path.0.iter().cloned()).collect()).to_string()
}

fn it(value: &Value) -> String {
    match written::value(value).filter(|text| text.chars().count() <= LENGTH_MAX) {
        Some(text) => format!("`{text}`"),
        None if value.is_null() => "null".to_owned(),
        None => "the live value, which `plumb drift --json` shows".to_owned(),
    }
}

/// Returns the diagnostic about an object that is gone.
pub(super) fn gone(address: &Address, header: Span) -> Diagnostic {
    let what = match &address.key {
        None => format!("remove the block of {address}"),
        Some(key) => format!("take the key `{key}` out of its `for_each`"),
    };
    Diagnostic::warning(format!("{address} is gone, and stays in the spec"))
        .at(header)
        .about(address)
        .help(format!("{what} to accept that; the next apply makes the object anew otherwise"))
}

/// Returns the diagnostic about a secret that changed outside Plumb.
pub(super) fn secret((address, name): (&Address, &Name), path: &Path, at: Span) -> Diagnostic {
    stays(address, &place(name, path), "it is sensitive", at)
        .help("give the variable that it comes from the new value")
}

/// Returns the diagnostic about an attribute that several instances share and whose values differ.
pub(super) fn shared(address: &Address, name: &str, instances: usize, at: Span) -> Diagnostic {
    stays(address, name, &format!("it is written once for {instances} instances, which differ"), at)
        .help("make it a part of the values of `for_each`, or let it follow from `each.key`")
}

/// Returns the diagnostic about an attribute in a module.
pub(super) fn in_module(
    address: &Address,
    (name, live): (&Name, &Value),
    at: Span,
    path: Option<&str>,
) -> Diagnostic {
    let file = path.unwrap_or("the module's file");
    stays(address, name, "a module says it, for all who call it", at)
        .help(format!("let it be {} in {file}, or make it an input of the module", it(live)))
}

/// Returns the diagnostic about a required attribute whose value is gone.
pub(super) fn no_value(address: &Address, name: &str, at: Span) -> Diagnostic {
    stays(address, name, "the object has no value of it, and the spec must give one", at)
        .help("the next apply sets it again")
}

/// Returns the diagnostic about an attribute that both the spec and somebody outside Plumb changed.
pub(super) fn changed_twice(
    address: &Address,
    (name, live): (&Name, &Value),
    at: Span,
) -> Diagnostic {
    stays(address, name, "the spec gives it another value than the last run had", at).help(format!(
        "write {} to keep what is live; the next apply sets the spec's value",
        it(live)
    ))
}

/// Returns the diagnostic about a text that this command cannot change.
pub(super) fn not_editable(
    address: &Address,
    (name, live): (&Name, &Value),
    at: Span,
) -> Diagnostic {
    stays(address, name, "its text is of a form that is not edited", at)
        .help(format!("let it be {}", it(live)))
}

/// Returns the diagnostic about a value that an expression makes.
pub(super) fn made_by_expression(
    (address, name): (&Address, &Name),
    (path, live): (&Path, &Value),
    at: Span,
    origins: Vec<Origin>,
) -> Diagnostic {
    let names: Vec<&str> = origins.iter().map(|origin| origin.name.as_str()).collect();
    let help = match names.as_slice() {
        [] => format!("change the expression so that it gives {}", it(live)),
        names => format!("change {}, so that this gives {}", names.join(" or "), it(live)),
    };
    let mut found = stays(address, &place(name, path), "an expression makes it", at).help(help);
    found.related = origins
        .into_iter()
        .filter_map(|origin| Some((origin.span?, format!("{} is here", origin.name))))
        .collect();
    found
}
