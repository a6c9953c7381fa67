//! The language server: messages in, answers out.
//!
//! One thread answers; another reads specs. Completion and hover are answered at once, from the text as it is and the spec as it
//! was read last. What needs exact places waits for the spec to be read again.

mod answers;
mod documents;
mod folders;
mod reading;
mod wire;

use std::path::Path;

use crossbeam_channel::{Receiver, Sender, select};
use lsp_server::{
    Connection, ErrorCode, Message, Notification, ProtocolError, Request, RequestId, Response,
};
use lsp_types::notification::Notification as _;
use lsp_types::request::Request as _;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CompletionOptions,
    HoverProviderCapability, InitializeResult, OneOf, RenameOptions, SaveOptions,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, WorkDoneProgressOptions, notification,
    request,
};

use self::documents::Documents;
use self::folders::Folders;
use self::reading::{Job, Report};
use crate::workspace::Workspace;

/// Serves one editor over stdin and stdout until it says that it is done.
///
/// # Errors
///
/// Says what the editor did that no editor may, or that it went away.
pub fn serve(workspace: Box<dyn Workspace>) -> Result<(), String> {
    let (connection, wire) = wire::open().map_err(|error| error.to_string())?;
    let served = run(&connection, workspace);
    // All is written when nobody can send any more.
    drop(connection);
    wire.close().map_err(|error| error.to_string())?;
    served.map_err(|error| error.to_string())
}

fn run(connection: &Connection, workspace: Box<dyn Workspace>) -> Result<(), ProtocolError> {
    let (id, _) = connection.initialize_start()?;
    let result = InitializeResult {
        capabilities: capabilities(),
        server_info: Some(ServerInfo {
            name: "plumb".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
    };
    let result = serde_json::to_value(result).unwrap_or_default();
    connection.initialize_finish(id, result)?;
    let (jobs, reports) = reading::start(workspace);
    let mut server = Server {
        sender: connection.sender.clone(),
        jobs,
        documents: Documents::default(),
        folders: Folders::default(),
    };
    server.listen(connection, &reports)
}

fn capabilities() -> ServerCapabilities {
    let work_done_progress_options = WorkDoneProgressOptions::default();
    let save = SaveOptions { include_text: Some(false) };
    let triggers = [".", "{", "\"", "'", "[", "="].map(str::to_owned).to_vec();
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(save)),
            ..TextDocumentSyncOptions::default()
        })),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(triggers),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options,
        })),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
            ..CodeActionOptions::default()
        })),
        ..ServerCapabilities::default()
    }
}

/// The state of the server.
struct Server {
    sender: Sender<Message>,
    jobs: Sender<Job>,
    documents: Documents,
    folders: Folders,
}

impl Server {
    fn listen(
        &mut self,
        connection: &Connection,
        reports: &Receiver<Report>,
    ) -> Result<(), ProtocolError> {
        loop {
            select! {
                recv(connection.receiver) -> message => match message {
                    Ok(Message::Request(request)) => {
                        if connection.handle_shutdown(&request)? {
                            return Ok(());
                        }
                        self.request(request);
                    }
                    Ok(Message::Notification(notification)) => self.notification(notification),
                    Ok(Message::Response(_)) => {}
                    // The editor went away without a word.
                    Err(_) => return Ok(()),
                },
                recv(reports) -> report => match report {
                    Ok(report) => self.report(report),
                    Err(_) => return Ok(()),
                },
            }
        }
    }

    fn send(&self, message: impl Into<Message>) {
        // An editor that went away is noticed where its messages end.
        drop(self.sender.send(message.into()));
    }

    fn notify<N: notification::Notification>(&self, params: N::Params) {
        self.send(Notification::new(N::METHOD.to_owned(), params));
    }

    /// Answers a request, or lets it wait for what it needs.
    fn request(&mut self, request: Request) {
        let Some(path) = answers::path(&request) else {
            let known = answers::is_known(&request.method);
            let response = if known {
                // A text that lies in no folder.
                Response::new_ok(request.id, serde_json::Value::Null)
            } else {
                let message = format!("there is no method `{}`", request.method);
                Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message)
            };
            return self.send(response);
        };
        let Some(folder) = self.folders.of(&path) else {
            return self.send(Response::new_ok(request.id, serde_json::Value::Null));
        };
        let is_ready = match request.method.as_str() {
            request::DocumentSymbolRequest::METHOD | request::Formatting::METHOD => true,
            request::Completion::METHOD | request::HoverRequest::METHOD => {
                folder.known.is_some() || folder.is_current()
            }
            _ => folder.is_current(),
        };
        if is_ready {
            return self.answer(&request, &path);
        }
        folder.waiting.push((request, path.clone()));
        self.read_now(&path);
    }

    fn answer(&mut self, request: &Request, path: &Path) {
        let id = request.id.clone();
        let Some(folder) = self.folders.of(path) else { return };
        let Some(text) = self.documents.text(path) else {
            return self.send(Response::new_ok(id, serde_json::Value::Null));
        };
        let answer = answers::answer(request, folder, text, path);
        if let Some(message) = answer.message {
            self.notify::<notification::ShowMessage>(message);
        }
        self.send(match answer.result {
            Ok(value) => Response::new_ok(id, value),
            Err((code, message)) => Response::new_err(id, code as i32, message),
        });
    }

    fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        match method.as_str() {
            notification::DidOpenTextDocument::METHOD
            | notification::DidChangeTextDocument::METHOD => {
                if let Some(path) = self.documents.change(&method, params) {
                    self.changed(&path);
                }
            }
            notification::DidCloseTextDocument::METHOD => {
                if let Some(path) = self.documents.close(params) {
                    self.closed(&path);
                }
            }
            // A file that a spec reads, or its state.
            notification::DidSaveTextDocument::METHOD
            | notification::DidChangeWatchedFiles::METHOD => self.read_all(),
            notification::Cancel::METHOD => self.cancel(&params),
            _ => {}
        }
    }

    fn cancel(&mut self, params: &serde_json::Value) {
        let Ok(id) = serde_json::from_value::<RequestId>(params["id"].clone()) else { return };
        let mut was_waiting = false;
        for folder in self.folders.all() {
            folder.waiting.retain(|(request, _)| {
                was_waiting |= request.id == id;
                request.id != id
            });
        }
        if was_waiting {
            let message = "the editor took it back".to_owned();
            self.send(Response::new_err(id, ErrorCode::RequestCanceled as i32, message));
        }
    }

    /// A text changed: the folder that it belongs to is read again, and those that may read it as a file.
    fn changed(&mut self, path: &Path) {
        // One that was just opened is known as soon as may be.
        let new = self.folders.open(path);
        for place in self.folders.reading(path) {
            self.read(&place, new.as_ref() == Some(&place));
        }
    }

    fn closed(&mut self, path: &Path) {
        let open = self.documents.texts();
        let left = self.folders.close(path, &open);
        for place in self.folders.reading(path) {
            self.read(&place, false);
        }
        for path in left.into_iter().flatten() {
            self.publish(&path, Vec::new());
        }
    }

    fn read_all(&mut self) {
        for place in self.folders.places() {
            self.read(&place, false);
        }
    }

    /// Reads the folder of a file for somebody who waits.
    fn read_now(&mut self, path: &Path) {
        let Some(place) = path.parent().map(Path::to_owned) else { return };
        if let Some(folder) = self.folders.of(path) {
            // What is asked for already comes, and the text has not changed since.
            let job = Job { folder: place, open: None, change: folder.change, is_urgent: true };
            drop(self.jobs.send(job));
        }
    }

    fn read(&mut self, place: &Path, is_urgent: bool) {
        let open = self.documents.texts();
        let Some(folder) = self.folders.at(place) else { return };
        folder.change += 1;
        let (folder_path, change) = (place.to_owned(), folder.change);
        let job = Job { folder: folder_path, open: Some(open), change, is_urgent };
        drop(self.jobs.send(job));
    }

    fn report(&mut self, report: Report) {
        let Some(folder) = self.folders.at(report.folder()) else { return };
        let place = report.folder().to_owned();
        match report {
            Report::Read { change, read, .. } => {
                folder.take(change, read);
                if folder.is_current() {
                    for (request, path) in std::mem::take(&mut folder.waiting) {
                        self.answer(&request, &path);
                    }
                }
                self.answer_ready(&place);
            }
            Report::Planned { change, changes, .. } => folder.planned(change, changes),
            Report::Found { change, rules, .. } => {
                if !folder.found(change, rules) {
                    return;
                }
                let shown = folder.shown(&place, &self.documents.texts());
                for (path, diagnostics) in shown {
                    self.publish(&path, diagnostics);
                }
            }
        }
    }

    /// Answers what waited for a spec, whichever.
    fn answer_ready(&mut self, place: &Path) {
        let Some(folder) = self.folders.at(place) else { return };
        let is_quick = |request: &Request| {
            let method = request.method.as_str();
            method == request::Completion::METHOD || method == request::HoverRequest::METHOD
        };
        let all = std::mem::take(&mut folder.waiting);
        let (quick, waiting): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(request, _)| is_quick(request));
        folder.waiting = waiting;
        for (request, path) in quick {
            self.answer(&request, &path);
        }
    }

    fn publish(&self, path: &Path, diagnostics: Vec<lsp_types::Diagnostic>) {
        let Some(uri) = self.documents.uri(path) else { return };
        let version = self.documents.version(path);
        self.notify::<notification::PublishDiagnostics>(lsp_types::PublishDiagnosticsParams {
            uri,
            diagnostics,
            version,
        });
    }
}
