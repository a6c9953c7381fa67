//! Reads the waits of phases: a condition on the object, or the end of an operation.

use std::time::Duration;

use engine::expression::Expr;

use super::Context;
use super::call::call;
use super::diagnostics;
use super::model::{Failing, Method, OperationModel, Request, Wait};
use super::reader::{Keys, Node, Reader};
use super::texts::{bare, filled};

/// The longest time of a wait if the descriptor gives none.
const WITHIN: Duration = Duration::from_mins(10);

/// Reads `until`, `within`, `waits_for`, `fails_when` and `reason` of a phase.
pub(super) fn read(reader: &mut Reader, keys: &mut Keys<'_>) -> Option<Wait> {
    let conditions = conditions(reader, keys);
    let failing_node = keys.node("fails_when");
    let (until, words, within) = match (conditions.until, failing_node) {
        (Some((until, text)), _) => (until, conditions.words.unwrap_or(text), conditions.within),
        (None, Some(node)) => {
            let span = reader.span(node.span());
            let label = "nothing is waited for";
            let help = "add `until`, which says when it is done";
            reader.push(diagnostics::misfit(span, "`fails_when` belongs to a wait", label, help));
            return None;
        }
        (None, None) => return None,
    };
    Some(Wait { until, within, words, failing: conditions.failing })
}

/// The conditions of a wait.
struct Conditions {
    /// The condition and its text.
    until: Option<(Expr, String)>,
    within: Duration,
    words: Option<String>,
    failing: Option<Failing>,
}

fn conditions(reader: &mut Reader, keys: &mut Keys<'_>) -> Conditions {
    let until = keys.node("until").and_then(|node| {
        let text = reader.text(node, "until")?.to_owned();
        Some((bare(reader, node, "until")?, text))
    });
    let within = keys.duration(reader, "within").unwrap_or(WITHIN);
    let words = keys.text(reader, "waits_for");
    let when = keys.node("fails_when").and_then(|node| bare(reader, node, "fails_when"));
    let reason = keys.node("reason").and_then(|node| filled(reader, node, "reason"));
    let failing = when.map(|when| Failing { when, reason });
    Conditions { until, within, words, failing }
}

/// Reads `operation`: the call that shows an operation of the server, and the conditions of its end.
pub(super) fn operation(
    reader: &mut Reader,
    context: &Context,
    node: Option<Node<'_>>,
) -> Option<OperationModel> {
    let node = node?;
    let mut keys = Keys::of(reader, node, "operation")?;
    let call_node = keys.node("call");
    let look = call_node.and_then(|node| call(reader, context, node));
    let location = keys.flag(reader, "location");
    let id = keys.node("id").and_then(|node| filled(reader, node, "id"));
    let conditions = conditions(reader, &mut keys);
    if conditions.until.is_none() {
        keys.must(reader, "until");
    }
    keys.finish(reader);
    let span = reader.span(node.span());
    if call_node.is_some() == location {
        reader.push(diagnostics::misfit(
            span,
            "the operation does not say where it shows",
            "exactly one of `call` and `location` is wanted",
            "write `call = \"api: GET /operations/${answer.id}\"`, or `location = true`",
        ));
        return None;
    }
    let reads = |request: &Request| matches!(request, Request::Rest { method: Method::Get, .. });
    if look.as_ref().is_some_and(|call| !reads(&call.request)) {
        reader.push(diagnostics::bad_call(span, "an operation is looked at with GET"));
    }
    let (until, text) = conditions.until?;
    let words = conditions.words.unwrap_or(text);
    let Conditions { within, failing, .. } = conditions;
    Some(OperationModel { span, call: look, id, until, within, words, failing })
}
