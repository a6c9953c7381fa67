//! The diagnostics of look-ups, one constructor each.

use super::matching::{Condition, Miss};
use crate::address::{Address, Block};
use crate::config::DataConfig;
use crate::diagnostics::{Diagnostic, Span};
use crate::expression::Expr;
use crate::plan::data_request::Unanswered;
pub(super) use crate::plan::diagnostics::misfit;
use crate::state::ObjectId;

/// The most ids or names that a message lists.
const SHOWN_MAX: usize = 10;
/// The most characters of a value in a message.
const VALUE_MAX: usize = 60;

/// Returns the error about a block that fits no object, or more than one.
pub(super) fn missed(data: &DataConfig, address: &Address, miss: &Miss) -> Diagnostic {
    let diagnostic = match miss {
        Miss::None { listed, left, near } => nothing(data, *listed, left, near.as_deref()),
        Miss::Several { ids, differ } => {
            let names: Vec<String> = differ.iter().map(|name| format!("`{name}`")).collect();
            let how = match names.as_slice() {
                [] => "name its id: `id = \"…\"`".to_owned(),
                names => format!("name its id, or one of these too: {}", some(names)),
            };
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            Diagnostic::error(format!("{} objects are meant by this look-up", ids.len()))
                .label(format!("all of these match: {}", some(&ids)))
                .help(how)
        }
    };
    diagnostic.at(place(data, miss)).about(address)
}

fn nothing(
    data: &DataConfig,
    listed: usize,
    left: &[(Condition, usize)],
    near: Option<&str>,
) -> Diagnostic {
    let diagnostic = Diagnostic::error("nothing is found by this look-up");
    let ty = &data.block.ty;
    let Some(((last, _), before)) = left.split_last() else {
        let help = "make the object first, or look at the account and the address of the provider";
        return diagnostic.label(format!("the API lists no `{ty}` at all")).help(help);
    };
    let before: Vec<String> = before
        .iter()
        .map(|(condition, left)| format!("{left} with {}", written(condition)))
        .collect();
    let last_written = written(last);
    let label = match before.as_slice() {
        [] => format!("none of the {listed} listed objects has {last_written}"),
        before => format!(
            "of the {listed} listed objects there are {}; none of these has {last_written}",
            before.join(", of these ")
        ),
    };
    let help = match near {
        Some(near) => format!("did you mean `{} = {}`?", last.name, text(near)),
        None => format!("`{}` must be as the API shows it", last.name),
    };
    diagnostic.label(label).help(help)
}

/// Returns the place of the condition that no object met; the header if there is none.
fn place(data: &DataConfig, miss: &Miss) -> Span {
    let last = match miss {
        Miss::None { left, .. } => left.last().map(|(condition, _)| &condition.name),
        Miss::Several { .. } => None,
    };
    let item = last.and_then(|name| data.attributes.get(name));
    item.map_or(data.header, |item| item.value.span)
}

/// Returns a condition as it is written in a spec.
fn written(condition: &Condition) -> String {
    let Condition { name, value, is_secret } = condition;
    if *is_secret {
        return format!("this `{name}`");
    }
    let value = Expr::literal(value.clone()).to_string();
    match value.char_indices().nth(VALUE_MAX) {
        Some((end, _)) => format!("`{name} = {}…`", &value[..end]),
        None => format!("`{name} = {value}`"),
    }
}

fn text(word: &str) -> String {
    Expr::literal(crate::value::Value::string(word)).to_string()
}

/// Returns words with commas; of many, only the first ones.
fn some(words: &[String]) -> String {
    let shown = words.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match words.len().checked_sub(SHOWN_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

/// Returns the error about a block in which every attribute is null.
pub(super) fn no_condition(data: &DataConfig, address: &Address) -> Diagnostic {
    Diagnostic::error("nothing is asked by this look-up")
        .at(data.header)
        .label("every attribute that it gives is null")
        .about(address)
        .help("give one of them a value")
}

/// Returns the error about an attribute to look for that only apply will know.
pub(super) fn unknown_condition(name: &str, span: Span, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("`{name}` of this look-up is known only after apply"))
        .at(span)
        .label("it comes from what is yet to be made")
        .about(address)
        .help(
            "refer to what is made instead of looking it up, or apply that first: `plumb apply --target ADDRESS`",
        )
}

/// Returns the error about a condition of a look-up that only apply will know.
pub(super) fn condition_unknown(kind: &str, span: Span, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("a {kind} of {address} is known only after apply"))
        .at(span)
        .label("something in it comes from what is yet to be made")
        .about(address)
        .help("make it a precondition of a resource or an output that comes after what is made")
}

/// Returns the message about a look-up that waits for a change of this plan.
pub(super) fn comes_after(address: &Address, before: &Address, span: Span) -> Diagnostic {
    Diagnostic::error(format!("{address} can be looked up only after apply"))
        .at(span)
        .label(format!("it comes after {before}, which this plan changes"))
        .about(address)
        .help(format!("apply that first: `plumb apply --target {}`", shell(before)))
}

fn shell(address: &Address) -> String {
    crate::shell::quoted(&address.to_string())
}

/// Returns the error about a question without an answer.
pub(super) fn unanswered(data: &DataConfig, address: &Address, why: &Unanswered) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("{address} cannot be read"))
        .at(data.header)
        .label(why.message.clone())
        .about(address);
    match &why.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

/// Returns the error about a `url` to which no request can be sent.
pub(super) fn not_an_address(at: Span) -> Diagnostic {
    Diagnostic::error("`url` is not an http or https address")
        .at(at)
        .help("write it with its scheme: `https://host/path`")
}

/// Returns the error about a `timeout` that is no duration, or too long.
pub(super) fn no_timeout(at: Span) -> Diagnostic {
    Diagnostic::error("`timeout` is not a time")
        .at(at)
        .label("it is a number with a unit, of at most ten minutes")
        .help("write a time such as 10s or 2m")
}

/// Returns the error about a state in files whose folder is not given.
pub(super) fn file_without_path(at: Span) -> Diagnostic {
    Diagnostic::error("missing attribute")
        .at(at)
        .label("a state in files lies beside its spec")
        .help("write `path = \"../FOLDER\"` in place of the backend")
}

/// Returns the message about a type of which there is no list.
pub(super) fn not_listed(data: &DataConfig, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("{address} is not looked up"))
        .at(data.header)
        .label(format!("nobody listed the objects of `{}`", data.block.ty))
        .about(address)
}

/// Returns the error about an object that was listed, and is gone when it is read.
pub(super) fn gone_meanwhile(data: &DataConfig, address: &Address, id: &ObjectId) -> Diagnostic {
    Diagnostic::error("nothing is found by this look-up")
        .at(data.header)
        .label(format!("{id} was listed, and was gone when it was read"))
        .about(address)
        .help("run the command again")
}

/// Returns the message about a look-up of an object that is in the same state.
pub(super) fn managed_here(data: &DataConfig, address: &Address, manager: &Address) -> Diagnostic {
    let Block { ty, name, module, .. } = &manager.block;
    let refer = if *module == address.block.module {
        let own = Block::new(&**ty, &**name).instance(manager.key.clone());
        format!("refer to `{own}`")
    } else {
        format!("give `{module}` an output for it, and refer to that")
    };
    Diagnostic::warning(format!("{address} looks up what this spec manages"))
        .at(data.header)
        .label(format!("it is the object of {manager}"))
        .about(address)
        .help(format!("{refer}: then the order of changes is kept"))
}
