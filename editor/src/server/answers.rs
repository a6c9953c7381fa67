//! From a request to its answer.

use std::path::{Path, PathBuf};

use lsp_server::{ErrorCode, Request};
use lsp_types::request::{self, Request as _};
use lsp_types::{
    CodeActionOrCommand, CodeActionParams, MessageType, Position, ReferenceContext, RenameParams,
    ShowMessageParams, Url,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::folders::Folder;
use crate::language::{Query, actions, completion, formatting, hover, places, rename, symbols};
use crate::text::Text;

/// The methods that are answered.
const METHODS: [&str; 9] = [
    request::Completion::METHOD,
    request::HoverRequest::METHOD,
    request::GotoDefinition::METHOD,
    request::References::METHOD,
    request::PrepareRenameRequest::METHOD,
    request::Rename::METHOD,
    request::CodeActionRequest::METHOD,
    request::DocumentSymbolRequest::METHOD,
    request::Formatting::METHOD,
];

/// An answer, and a message for the person.
pub(super) struct Answer {
    pub(super) result: Result<Value, (ErrorCode, String)>,
    pub(super) message: Option<ShowMessageParams>,
}

impl Answer {
    fn of(value: impl serde::Serialize) -> Self {
        let failed = |error: serde_json::Error| (ErrorCode::InternalError, error.to_string());
        Self { result: serde_json::to_value(value).map_err(failed), message: None }
    }

    fn refusal(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { result: Err((code, message.into())), message: None }
    }
}

/// Returns true if a method is answered.
pub(super) fn is_known(method: &str) -> bool {
    METHODS.contains(&method)
}

/// The file that a request is about; none of one that is not answered, or that is about no file.
pub(super) fn path(request: &Request) -> Option<PathBuf> {
    if !is_known(&request.method) {
        return None;
    }
    let uri = &request.params["textDocument"]["uri"];
    uri.as_str()?.parse::<Url>().ok()?.to_file_path().ok()
}

/// Answers a request about a text.
pub(super) fn answer(request: &Request, folder: &Folder, text: &Text, path: &Path) -> Answer {
    match request.method.as_str() {
        request::DocumentSymbolRequest::METHOD => return Answer::of(symbols::symbols(text)),
        request::Formatting::METHOD => return Answer::of(formatting::formatting(text)),
        _ => {}
    }
    // A folder that cannot be read says so in its diagnostics.
    let Some(known) = &folder.known else { return Answer::of(Value::Null) };
    if request.method == request::CodeActionRequest::METHOD {
        let Some(params) = params::<CodeActionParams>(request) else { return invalid() };
        let found = actions::actions(known, folder.rules.as_ref(), path, params.range);
        let found = found.into_iter().map(CodeActionOrCommand::CodeAction);
        return Answer::of(found.collect::<Vec<_>>());
    }
    let Ok(position) = serde_json::from_value::<Position>(request.params["position"].clone())
    else {
        return invalid();
    };
    let query = Query::new(known, text, text.offset(position));
    match request.method.as_str() {
        request::Completion::METHOD => Answer::of(completion::completion(&query)),
        request::HoverRequest::METHOD => Answer::of(hover::hover(&query)),
        request::GotoDefinition::METHOD => Answer::of(places::definition(&query)),
        request::References::METHOD => {
            let context = request.params["context"].clone();
            let context = serde_json::from_value::<ReferenceContext>(context).ok();
            let with_definition = context.is_none_or(|context| context.include_declaration);
            Answer::of(places::references(&query, with_definition))
        }
        request::PrepareRenameRequest::METHOD => Answer::of(rename::prepare(&query)),
        request::Rename::METHOD => renamed(&query, request),
        other => Answer::refusal(ErrorCode::MethodNotFound, format!("there is no `{other}`")),
    }
}

fn params<P: DeserializeOwned>(request: &Request) -> Option<P> {
    serde_json::from_value(request.params.clone()).ok()
}

fn invalid() -> Answer {
    Answer::refusal(ErrorCode::InvalidParams, "the request does not say where it is about")
}

fn renamed(query: &Query<'_>, request: &Request) -> Answer {
    let Some(params) = params::<RenameParams>(request) else { return invalid() };
    match rename::rename(query, &params.new_name) {
        Ok(renamed) => {
            let shown = |message| ShowMessageParams { typ: MessageType::INFO, message };
            Answer { message: renamed.message.map(shown), ..Answer::of(renamed.edit) }
        }
        Err(reason) => Answer::refusal(ErrorCode::RequestFailed, reason),
    }
}
