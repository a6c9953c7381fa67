//! The wire: messages over stdin and stdout, each with its length before it.

use std::io::{self, BufRead, ErrorKind, Read as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Sender, bounded};
use lsp_server::{Connection, Message};

/// The most bytes of a message: an open text is a part of one.
const BYTES_MAX: u64 = 256 << 20;
/// The most bytes of a header.
const HEADER_BYTES_MAX: u64 = 4096;

/// The threads that read and write.
pub(super) struct Wire {
    /// The error that ended the reader.
    failure: Arc<Mutex<Option<io::Error>>>,
    writer: JoinHandle<io::Result<()>>,
}

/// Begins to read stdin and to write stdout.
pub(super) fn open() -> io::Result<(Connection, Wire)> {
    let (sender, outgoing) = bounded::<Message>(0);
    let (incoming, receiver) = bounded::<Message>(0);
    let writer = thread::Builder::new().spawn(move || {
        let mut stdout = io::stdout().lock();
        outgoing.into_iter().try_for_each(|message| message.write(&mut stdout))
    })?;
    let failure = Arc::default();
    let wire = Wire { failure: Arc::clone(&failure), writer };
    // A reader that still waits for the editor ends with the process.
    thread::Builder::new().spawn(move || {
        // Who listens ends when `incoming` goes, and finds the error.
        if let Err(error) = forward(&mut io::stdin().lock(), &incoming) {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    })?;
    Ok((Connection { sender, receiver }, wire))
}

fn forward(input: &mut impl BufRead, incoming: &Sender<Message>) -> io::Result<()> {
    while let Some(message) = read(input)? {
        let is_last = matches!(&message, Message::Notification(it) if it.method == "exit");
        // Nobody listens any more where the server has ended.
        if incoming.send(message).is_err() || is_last {
            break;
        }
    }
    Ok(())
}

impl Wire {
    /// Waits until all is written; says what the editor sent that is no message.
    pub(super) fn close(self) -> io::Result<()> {
        let written = self.writer.join();
        written.unwrap_or_else(|_| Err(io::Error::other("the thread that writes failed")))?;
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}

/// Reads the next message; none at the end.
fn read(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let Some(length) = length(input)? else { return Ok(None) };
    // The buffer grows with what comes, whatever the length says.
    let mut body = Vec::new();
    if input.take(length).read_to_end(&mut body)? as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let message = serde_json::from_slice(&body);
    message.map(Some).map_err(|_| wrong("it is no message of the protocol"))
}

/// Reads the headers of a message, and returns the length that they say; none at the end.
fn length(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if input.take(HEADER_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').ok_or_else(|| wrong("its header has no `:`"))?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok().filter(|length| *length <= BYTES_MAX);
        }
    }
    length.map(Some).ok_or_else(|| wrong("it has no length, or too large a one"))
}

fn wrong(why: &str) -> io::Error {
    let message = format!("what the editor sent cannot be read: {why}");
    io::Error::new(ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_what_is_none() {
        let said = |text: &str| match read(&mut text.as_bytes()) {
            Ok(Some(Message::Notification(it))) => it.method,
            Ok(Some(other)) => format!("{other:?}"),
            Ok(None) => "the end".to_owned(),
            Err(error) => error.to_string(),
        };
        let body = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        let with = |length: &str| format!("Other: 1\r\ncontent-length: {length}\r\n\r\n{body}");
        assert_eq!(said(&with("33")), "exit");
        assert_eq!(said(""), "the end");
        let cannot = "what the editor sent cannot be read: ";
        assert_eq!(said("garbage\r\n\r\n"), format!("{cannot}its header has no `:`"));
        assert_eq!(said(&with("4")), format!("{cannot}it is no message of the protocol"));
        for length in ["99999999999", "-1", "x", ""] {
            assert_eq!(
                said(&with(length)),
                format!("{cannot}it has no length, or too large a one")
            );
        }
        assert_eq!(said(&with("34")), "unexpected end of file");
        assert!(said(&"x".repeat(10_000)).starts_with(cannot));
    }
}
