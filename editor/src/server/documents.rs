//! The texts that the editor has open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lsp_types::notification::{self, Notification as _};
use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, Url,
};
use serde_json::Value;

use crate::text::Text;
use crate::workspace::OpenTexts;

/// The open texts, by path. A text without a path, such as one that was never saved, is left out.
#[derive(Default)]
pub(super) struct Documents {
    open: BTreeMap<PathBuf, Document>,
}

struct Document {
    uri: Url,
    version: i32,
    text: Text,
}

impl Documents {
    /// Takes a text that was opened or changed; returns its path.
    pub(super) fn change(&mut self, method: &str, params: Value) -> Option<PathBuf> {
        if method == notification::DidOpenTextDocument::METHOD {
            let opened: DidOpenTextDocumentParams = serde_json::from_value(params).ok()?;
            let document = opened.text_document;
            let path = document.uri.to_file_path().ok()?;
            let text = Text::new(document.text);
            let (uri, version) = (document.uri, document.version);
            self.open.insert(path.clone(), Document { uri, version, text });
            return Some(path);
        }
        let changed: DidChangeTextDocumentParams = serde_json::from_value(params).ok()?;
        let path = changed.text_document.uri.to_file_path().ok()?;
        let document = self.open.get_mut(&path)?;
        document.version = changed.text_document.version;
        for change in changed.content_changes {
            document.text = document.text.changed(change);
        }
        Some(path)
    }

    /// Takes a text that was closed; returns its path.
    pub(super) fn close(&mut self, params: Value) -> Option<PathBuf> {
        let closed: DidCloseTextDocumentParams = serde_json::from_value(params).ok()?;
        let path = closed.text_document.uri.to_file_path().ok()?;
        self.open.remove(&path).map(|_| path)
    }

    /// All texts.
    pub(super) fn texts(&self) -> OpenTexts {
        let texts = self.open.iter();
        texts.map(|(path, document)| (path.clone(), document.text.content().clone())).collect()
    }

    pub(super) fn text(&self, path: &Path) -> Option<&Text> {
        self.open.get(path).map(|document| &document.text)
    }

    pub(super) fn version(&self, path: &Path) -> Option<i32> {
        self.open.get(path).map(|document| document.version)
    }

    /// The address of a file, as the editor writes it where it has the file open.
    pub(super) fn uri(&self, path: &Path) -> Option<Url> {
        let open = self.open.get(path).map(|document| document.uri.clone());
        open.or_else(|| Url::from_file_path(path).ok())
    }
}
