//! Reading phases and rules of a type.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::address::Name;
use engine::diagnostics::{Severity, Span};
use engine::journal::ProgramKind;
use engine::schema::{Operation, PhaseWords, Rule, RuleOn};

use super::Context;
use super::api::path;
use super::call::call;
use super::model::{
    CallModel, Elements, ErrorRow, Inside, Meaning, PhaseModel, ProgramModel, Request, RetryWhen,
    SendsModel, Way,
};
use super::reader::{Keys, Node, Reader};
use super::texts::{bare, filled};
use super::{diagnostics, headers, texts, wait};
use crate::bodies::BodyForm;

/// The longest time in which a known refusal is tried again, if the descriptor gives none.
const RETRY_WITHIN: Duration = Duration::from_mins(3);
/// The longest time that a descriptor may give for repetitions of a call. Recovery relies on it that a call
/// of a killed run has no effect after an hour.
const RETRY_WITHIN_MAX: Duration = Duration::from_mins(30);

/// Returns the default operation of a program's phases.
fn operation_of(kind: ProgramKind) -> Operation {
    match kind {
        ProgramKind::Create => Operation::Create,
        ProgramKind::Update => Operation::Update,
        ProgramKind::Delete => Operation::Delete,
    }
}

/// Reads the phases of `create`, `update` or `delete`.
pub(super) fn phases(
    reader: &mut Reader,
    context: &Context,
    kind: ProgramKind,
    node: Node<'_>,
) -> Vec<PhaseModel> {
    let nodes = Reader::items(node);
    let last = nodes.len().saturating_sub(1);
    nodes
        .into_iter()
        .enumerate()
        .filter_map(|(index, node)| {
            let ends = kind == ProgramKind::Delete && index == last;
            phase(reader, context, kind, ends, node)
        })
        .collect()
}

fn phase(
    reader: &mut Reader,
    context: &Context,
    kind: ProgramKind,
    ends: bool,
    node: Node<'_>,
) -> Option<PhaseModel> {
    let mut keys = Keys::of(reader, node, "phase")?;
    let operation = keys.node("name").and_then(|node| operation(reader, node));
    let (doing, done) = (keys.text(reader, "doing"), keys.text(reader, "done"));
    let words = PhaseWords { doing, done };
    let call_node = keys.node("call");
    let call = call_node.and_then(|node| call(reader, context, node));
    let sends = keys.node("sends").and_then(|node| sends(reader, node));
    let with =
        keys.node("with").map(|node| texts::templates(reader, node, "with")).unwrap_or_default();
    let headers = headers::filled(reader, &mut keys);
    let body_node = keys.node("body");
    let body = body_node.and_then(|node| reader.word(node, "body", &BodyForm::WORDS));
    let fields = texts::fields(reader, &mut keys);
    let elements = elements(reader, kind, &mut keys);
    let inside = keys.text(reader, "inside").map(|text| match text.strip_suffix("[]") {
        Some(key) => Inside { key: key.to_owned(), is_list: true },
        None => Inside { key: text, is_list: false },
    });
    let item = match keys.node("item") {
        None => (!ends).then(Vec::new),
        Some(node) if node.get_ref().as_bool() == Some(false) => None,
        Some(node) => Some(path(reader.text(node, "item").unwrap_or_default())),
    };
    let wait = wait::read(reader, &mut keys);
    let polled = wait::operation(reader, context, keys.node("operation"));
    let retry = retry(reader, context, call.as_ref().map(|call| &call.api), &mut keys);
    keys.finish(reader);
    if call_node.is_none() && wait.is_none() {
        let span = reader.span(node.span());
        reader.push(diagnostics::misfit(
            span,
            "the phase does nothing",
            "it has neither `call` nor `until`",
            "add a call, or leave the phase out",
        ));
    }
    let reads_only = matches!(
        call.as_ref().map(|call| &call.request),
        Some(Request::Graphql { mutation: false, .. })
    );
    if reads_only {
        let span = reader.span(node.span());
        reader.push(diagnostics::bad_call(span, "a phase is a mutation, not a query"));
    }
    let phase = PhaseModel {
        span: reader.span(node.span()),
        operation: operation.unwrap_or(operation_of(kind)),
        words,
        call,
        sends: sends.unwrap_or(SendsModel::Nothing),
        headers,
        body: body.unwrap_or_default(),
        with,
        fields,
        elements,
        inside,
        item,
        polled,
        wait,
        retry,
    };
    if let Some((node, (label, help))) = body_node.zip(body_misfit(&phase)) {
        let span = reader.span(node.span());
        reader.push(diagnostics::misfit(span, "the body cannot have this form", label, help));
    }
    Some(phase)
}

/// Reads `adds` or `removes`: the set for whose elements the call is made.
fn elements(reader: &mut Reader, kind: ProgramKind, keys: &mut Keys<'_>) -> Option<Elements> {
    let found = [("adds", Way::Adds), ("removes", Way::Removes)].map(|(key, way)| {
        let node = keys.node(key)?;
        let attribute = reader.text(node, key)?.into();
        Some((node, Elements { attribute, way }))
    });
    let is_one = found.iter().flatten().count() < 2;
    let (node, elements) = found.into_iter().flatten().next()?;
    if !is_one || kind == ProgramKind::Delete {
        let span = reader.span(node.span());
        reader.push(diagnostics::misfit(
            span,
            "the phase cannot change a set in this way",
            "a call adds elements or removes them, in a create or an update",
            "write one phase with `adds`, and another with `removes`",
        ));
    }
    Some(elements)
}

/// Returns the reason that the body of a phase cannot have its form, as a label and a help; none if it can.
fn body_misfit(phase: &PhaseModel) -> Option<(&'static str, &'static str)> {
    let is_bare = phase.fields.is_empty() && phase.inside.is_none();
    let is_rest = phase.call.as_ref().is_some_and(CallModel::is_rest);
    let sends_one = matches!(&phase.sends, SendsModel::These(sends) if sends.len() == 1);
    if !is_rest {
        Some(("GraphQL has one form", "leave `body` away: it is for REST calls"))
    } else if matches!(phase.body, BodyForm::Text | BodyForm::Lines | BodyForm::Bytes)
        && !(sends_one && is_bare && phase.with.is_empty())
    {
        Some((
            "a text, a list of lines, or bytes are one attribute",
            "write `sends = { content = \"${content}\" }` and nothing beside it",
        ))
    } else if phase.body == BodyForm::JsonPatch && !is_bare {
        Some(("a list of changes has no other fields", "leave out `fields` and `inside`"))
    } else {
        None
    }
}

/// Moves the wait of a creating phase into a phase of its own, if only the answer shows which object the
/// create made: that is written to the journal before the wait begins.
pub(super) fn wait_apart(create: &mut ProgramModel) {
    let Some(first) = create.phases.first_mut().filter(|first| first.call.is_some()) else {
        return;
    };
    let Some(wait) = first.wait.take() else { return };
    let waits = PhaseModel {
        span: first.span,
        operation: Operation::Activate,
        words: PhaseWords::default(),
        call: None,
        sends: SendsModel::Nothing,
        headers: Vec::new(),
        body: BodyForm::Json,
        with: BTreeMap::new(),
        fields: Vec::new(),
        elements: None,
        inside: None,
        item: None,
        polled: None,
        wait: Some(wait),
        retry: None,
    };
    create.phases.insert(1, waits);
}

fn operation(reader: &mut Reader, node: Node<'_>) -> Option<Operation> {
    reader.word(
        node,
        "name",
        &[
            ("create", Operation::Create),
            ("activate", Operation::Activate),
            ("update", Operation::Update),
            ("drain", Operation::Drain),
            ("delete", Operation::Delete),
        ],
    )
}

fn sends(reader: &mut Reader, node: Node<'_>) -> Option<SendsModel> {
    if node.get_ref().is_table() {
        return Some(SendsModel::These(texts::templates(reader, node, "sends")));
    }
    let words = [("nothing", 0), ("all", 1), ("changed", 2)];
    Some(match reader.word(node, "sends", &words)? {
        0 => SendsModel::Nothing,
        1 => SendsModel::All,
        _ => SendsModel::Changed,
    })
}

fn retry(
    reader: &mut Reader,
    context: &Context,
    api: Option<&Name>,
    keys: &mut Keys<'_>,
) -> Option<RetryWhen> {
    let node = keys.node("retry_when");
    let within = retry_within(reader, keys);
    let node = node?;
    let errors = reader.texts(node, "retry_when");
    let rows = api.and_then(|api| context.apis.get(api)).map(|api| &api.errors);
    let known: Vec<&str> =
        rows.into_iter().flatten().filter_map(|row| row.name.as_deref()).collect();
    for error in errors.iter().filter(|error| !known.contains(&error.as_str())) {
        let span = reader.span(node.span());
        reader.push(diagnostics::unknown_name(span, "error of this API", error, &known));
    }
    let doubtful = |row: &&ErrorRow| {
        row.meaning == Meaning::InDoubt && row.name.as_ref().is_some_and(|own| errors.contains(own))
    };
    for row in rows.into_iter().flatten().filter(doubtful) {
        let span = reader.span(node.span());
        reader.push(diagnostics::misfit(
            span,
            "a call in doubt is not sent again",
            &format!(
                "`{}` may come after the call did its work",
                row.name.as_deref().unwrap_or("")
            ),
            "leave it out: what such a call did is looked up; or, if the error proves that nothing \
             happened, give its row another `kind`",
        ));
    }
    Some(RetryWhen { errors: errors.into_iter().collect(), within })
}

fn retry_within(reader: &mut Reader, keys: &mut Keys<'_>) -> Duration {
    let key = "retry_within";
    let Some(node) = keys.node(key) else { return RETRY_WITHIN };
    let within = reader.duration(node, key).unwrap_or(RETRY_WITHIN);
    if within > RETRY_WITHIN_MAX {
        reader.wrong(node, key, "30 minutes at most, such as \"10m\"");
    }
    within
}

/// Reads `[[type.<name>.variant]]`: phases for the objects that `when` holds for.
pub(super) fn variants(
    reader: &mut Reader,
    context: &Context,
    node: Option<Node<'_>>,
) -> Vec<(ProgramKind, ProgramModel)> {
    let mut programs = Vec::new();
    for node in node.map(Reader::items).unwrap_or_default() {
        let Some(mut keys) = Keys::of(reader, node, "variant") else { continue };
        let when = keys.must(reader, "when").and_then(|node| bare(reader, node, "when"));
        for (key, kind) in [
            ("create", ProgramKind::Create),
            ("update", ProgramKind::Update),
            ("delete", ProgramKind::Delete),
        ] {
            if let Some(node) = keys.node(key) {
                let phases = phases(reader, context, kind, node);
                programs.push((kind, ProgramModel { when: when.clone(), phases }));
            }
        }
        keys.finish(reader);
    }
    programs
}

/// Reads `[[type.<name>.rule]]`.
pub(super) fn rules(reader: &mut Reader, node: Option<Node<'_>>) -> Vec<(Span, Rule)> {
    let nodes = node.map(Reader::items).unwrap_or_default();
    nodes
        .into_iter()
        .filter_map(|node| Some((reader.span(node.span()), rule(reader, node)?)))
        .collect()
}

fn rule(reader: &mut Reader, node: Node<'_>) -> Option<Rule> {
    let mut keys = Keys::of(reader, node, "rule")?;
    let words = [
        ("any", RuleOn::Any),
        ("create", RuleOn::Create),
        ("update", RuleOn::Update),
        ("delete", RuleOn::Delete),
    ];
    let severities = [("deny", Severity::Error), ("warn", Severity::Warning)];
    let severity =
        keys.node("severity").and_then(|node| reader.word(node, "severity", &severities));
    let on = keys.node("on").and_then(|node| reader.word(node, "on", &words));
    let assert = keys.must(reader, "assert").and_then(|node| bare(reader, node, "assert"));
    let message = keys.must(reader, "message").and_then(|node| filled(reader, node, "message"));
    let help = keys.node("help").and_then(|node| filled(reader, node, "help"));
    let attribute = keys.text(reader, "attribute").map(Name::from);
    keys.finish(reader);
    Some(Rule {
        on: on.unwrap_or(RuleOn::Any),
        severity: severity.unwrap_or(Severity::Error),
        assert: assert?,
        message: message?,
        help,
        attribute,
    })
}
