//! The editor's side of `plumb lsp`: it sends messages over stdin and stdout, and edits texts.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Project;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Editor<'p> {
    project: &'p Project,
    child: Child,
    stdin: ChildStdin,
    incoming: Receiver<Value>,
    requests: u64,
    /// The open texts, by name, with their versions.
    texts: BTreeMap<String, (String, i64)>,
    /// The last diagnostics of each file.
    diagnostics: BTreeMap<String, Value>,
    /// The messages for the user.
    pub(crate) messages: Vec<String>,
}

fn read(stdout: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(": ") {
            Some(("Content-Length", count)) => length = count.parse().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length?];
    stdout.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

impl<'p> Editor<'p> {
    /// Starts a server in the folder of a project, and initialises it.
    pub(crate) fn start(project: &'p Project) -> Self {
        let mut child = project
            .command(&["lsp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (sender, incoming) = channel();
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            while let Some(message) = read(&mut stdout) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut editor = Self {
            project,
            child,
            stdin,
            incoming,
            requests: 0,
            texts: BTreeMap::new(),
            diagnostics: BTreeMap::new(),
            messages: Vec::new(),
        };
        let capabilities = json!({"capabilities": {}, "processId": null, "rootUri": null});
        editor.ask("initialize", capabilities).expect("it starts");
        editor.tell("initialized", json!({}));
        editor
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.project.path(name).display())
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let body = message.to_string();
        write!(self.stdin, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("it listens");
        self.stdin.flush().expect("it listens");
    }

    pub(crate) fn tell(&mut self, method: &str, params: Value) {
        let mut message = json!({"method": method});
        message["params"] = params;
        self.send(message);
    }

    /// Sends a request and waits for the answer. An error is returned as its message.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.ask_without_waiting(method, params);
        self.answer(id)
    }

    pub(crate) fn ask_without_waiting(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        let mut message = json!({"id": id, "method": method});
        message["params"] = params;
        self.send(message);
        id
    }

    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let message = self.next(end).unwrap_or_else(|| panic!("no answer to request {id}"));
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(error["message"].as_str().unwrap_or("").to_owned()),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// Takes the next message, and stores what it shows.
    fn next(&mut self, end: Instant) -> Option<Value> {
        let left = end.saturating_duration_since(Instant::now());
        let message = self.incoming.recv_timeout(left).ok()?;
        match message["method"].as_str() {
            Some("textDocument/publishDiagnostics") => {
                let uri = message["params"]["uri"].as_str().unwrap_or("").to_owned();
                self.diagnostics.insert(uri, message["params"]["diagnostics"].clone());
            }
            Some("window/showMessage") => {
                let text = message["params"]["message"].as_str().unwrap_or("");
                self.messages.push(text.to_owned());
            }
            _ => {}
        }
        Some(message)
    }

    /// Opens a file of the project with a text, which may differ from the one on the disk.
    pub(crate) fn open(&mut self, name: &str, text: &str) {
        let uri = self.uri(name);
        self.texts.insert(name.to_owned(), (text.to_owned(), 1));
        let document = json!({"uri": uri, "languageId": "toml", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.texts.remove(name);
        let document = json!({"uri": self.uri(name)});
        self.tell("textDocument/didClose", json!({"textDocument": document}));
    }

    /// Replaces a part of a text, as if typed. Only the changed part is sent.
    pub(crate) fn replace(&mut self, name: &str, old: &str, new: &str) {
        let (text, version) = self.texts[name].clone();
        let at = text.find(old).unwrap_or_else(|| panic!("no {old:?} in {name}"));
        let range = json!({
            "start": position(&text, at),
            "end": position(&text, at + old.len()),
        });
        let changed = text.replacen(old, new, 1);
        self.texts.insert(name.to_owned(), (changed, version + 1));
        let document = json!({"uri": self.uri(name), "version": version + 1});
        let change = json!({"range": range, "text": new});
        let params = json!({"textDocument": document, "contentChanges": [change]});
        self.tell("textDocument/didChange", params);
    }

    /// Returns the parameters of a request about a place: the mark `|` in `context`, which stands in the text
    /// without the mark.
    pub(crate) fn at(&self, name: &str, context: &str) -> Value {
        let text = &self.texts[name].0;
        let mark = context.find('|').expect("a mark");
        let plain = context.replacen('|', "", 1);
        let found = text.find(&plain).unwrap_or_else(|| panic!("no {plain:?} in {text}"));
        json!({"textDocument": {"uri": self.uri(name)}, "position": position(text, found + mark)})
    }

    /// Returns the labels of the completions at a mark.
    pub(crate) fn labels(&mut self, name: &str, context: &str) -> Vec<String> {
        let params = self.at(name, context);
        let list = self.ask("textDocument/completion", params).expect("an answer");
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["label"].as_str().unwrap_or("").to_owned()).collect()
    }

    /// Returns the hover text at a mark; empty if there is none.
    pub(crate) fn hover(&mut self, name: &str, context: &str) -> String {
        let params = self.at(name, context);
        let hover = self.ask("textDocument/hover", params).expect("an answer");
        hover["contents"]["value"].as_str().unwrap_or("").to_owned()
    }

    /// Returns the file of a location and the words in it, from the editor's text or else from the disk.
    pub(crate) fn words(&self, location: &Value) -> String {
        let uri = location["uri"].as_str().unwrap_or("");
        let folder = self.uri("");
        let name = uri.strip_prefix(&folder).unwrap_or(uri);
        let disk = || std::fs::read_to_string(self.project.path(name)).unwrap_or_default();
        let text = self.texts.get(name).map_or_else(disk, |(text, _)| text.clone());
        let (start, end) = (&location["range"]["start"], &location["range"]["end"]);
        let line = start["line"].as_u64().unwrap_or(0) + 1;
        format!("{name}:{line} {}", &text[offset(&text, start)..offset(&text, end)])
    }

    /// Returns the text of a file after the changes of a workspace edit.
    pub(crate) fn edited(&self, edit: &Value, name: &str) -> String {
        let mut text = self.texts[name].0.clone();
        let edits = edit["changes"][self.uri(name)].as_array().cloned().unwrap_or_default();
        let place = |edit: &Value| {
            let range = &edit["range"];
            offset(&text, &range["start"])..offset(&text, &range["end"])
        };
        let mut edits: Vec<_> =
            edits.iter().map(|edit| (place(edit), edit["newText"].clone())).collect();
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        for (range, new) in edits {
            text.replace_range(range, new.as_str().unwrap_or(""));
        }
        text
    }

    /// Waits until a file has these diagnostics: each is its place and the first line of its message.
    pub(crate) fn wait_for(
        &mut self,
        name: &str,
        wanted: impl Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let uri = self.uri(name);
        let end = Instant::now() + PATIENCE;
        loop {
            let shown = self.diagnostics.get(&uri).map(|all| self.shown(name, all));
            if let Some(shown) = shown.as_ref().filter(|shown| wanted(shown)) {
                return shown.clone();
            }
            assert!(self.next(end).is_some(), "the diagnostics of {name} stay {shown:?}");
        }
    }

    fn shown(&self, name: &str, all: &Value) -> Vec<String> {
        let one = |diagnostic: &Value| {
            let place = json!({"uri": self.uri(name), "range": diagnostic["range"]});
            let message = diagnostic["message"].as_str().unwrap_or("");
            let words = self.words(&place);
            let words = words.split_once(':').map_or("", |(_, rest)| rest).to_owned();
            format!("{words} | {}", message.lines().next().unwrap_or(""))
        };
        all.as_array().into_iter().flatten().map(one).collect()
    }

    /// Ends the session as an editor does.
    pub(crate) fn end(mut self) {
        self.ask("shutdown", Value::Null).expect("an answer");
        self.tell("exit", Value::Null);
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Editor<'_> {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Returns the position of a byte: its line, and the UTF-16 units before it in that line.
fn position(text: &str, at: usize) -> Value {
    let before = &text[..at];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |found| found + 1);
    json!({"line": line, "character": before[start..].encode_utf16().count()})
}

fn offset(text: &str, position: &Value) -> usize {
    let line = usize::try_from(position["line"].as_u64().unwrap_or(0)).unwrap_or(0);
    let mut units = usize::try_from(position["character"].as_u64().unwrap_or(0)).unwrap_or(0);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    for (at, c) in text[start..].char_indices() {
        if units == 0 {
            return start + at;
        }
        units = units.saturating_sub(c.len_utf16());
    }
    text.len()
}
