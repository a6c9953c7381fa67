//! The part of HTTP that the load program needs. It is small, so that the clients take little
//! processor time from the measured service.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::KEY;

/// A kept connection to the service.
pub(crate) struct Client {
    stream: TcpStream,
    host: String,
    read: Vec<u8>,
}

impl Client {
    /// Opens a connection to `HOST:PORT`.
    pub(crate) async fn open(host: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, host: host.to_owned(), read: Vec::new() })
    }

    /// Sends one request, and returns the status and the body of its answer.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> io::Result<(u16, Vec<u8>)> {
        let host = &self.host;
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(text.as_bytes()).await?;
        self.answer().await
    }

    /// Sends a POST that must succeed, and returns its answer.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Value {
        let (status, answer) = self.call("POST", path, body).await.unwrap();
        assert!((200..300).contains(&status), "{path}: {status} {:?}", str::from_utf8(&answer));
        serde_json::from_slice(&answer).unwrap()
    }

    /// Sends a GET that must succeed, and returns its answer.
    pub(crate) async fn get(&mut self, path: &str) -> Value {
        let (status, answer) = self.call("GET", path, "").await.unwrap();
        assert_eq!(status, 200, "{path}");
        serde_json::from_slice(&answer).unwrap()
    }

    async fn answer(&mut self) -> io::Result<(u16, Vec<u8>)> {
        self.read.clear();
        let head = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let text = str::from_utf8(&self.read[..head]).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        let mut length = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length: usize = length.next_back().map_or(0, |(_, value)| value.parse().unwrap());
        while self.read.len() < head + length {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok((status, self.read[head..head + length].to_vec()))
    }
}
