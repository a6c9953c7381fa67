//! Results with a large output. Such an output is not held in memory for a client that may not read
//! it: it is read from the store piece by piece, as the client takes it.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use futures_util::stream;
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::Semaphore;

use super::projection::Held;
use super::record::Job;
use crate::app::App;
use crate::memory_budget::MemoryShare;
use crate::problem::Problem;
use crate::rest::answer::json_text;
use crate::store::Tx;

/// The bytes that are read at a time.
const PIECE: usize = 128 << 10;

/// The most pieces that are read at once. Each read takes a thread and a connection to the store.
static READS: Semaphore = Semaphore::const_new(4);

/// An output in the store.
#[derive(Clone, Copy)]
struct Place {
    /// The row of the job.
    seq: i64,
    /// Distinguishes this output from an earlier or later one of the same job.
    finished_at: Option<i64>,
    bytes: usize,
}

/// The unsent part of an answer.
struct Left {
    app: Arc<App>,
    place: Place,
    /// The bytes of the output that were sent.
    sent: usize,
    head: Option<Bytes>,
    tail: Option<Bytes>,
    /// Keeps the job in the store until the answer is sent.
    _held: Held,
}

/// Returns the answer with the result of a job.
pub(super) async fn answer(app: &Arc<App>, job: &Job) -> Result<Response, Problem> {
    let Some(bytes) = job.large_output else { return Ok(json_text(job.result())) };
    let held = app.queue.projection.hold(&job.id);
    let (id, finished_at) = (job.id.clone(), job.finished_at);
    let find = move |tx: &Tx<'_>| {
        let sql = "select seq from jobs where id = ?1 and finished_at is ?2 \
                   and octet_length(output) = ?3";
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut statement = tx.conn.prepare_cached(sql)?;
        Ok(statement.query_row(params![id, finished_at, bytes], |row| row.get(0)).optional()?)
    };
    // This goes through the writer, so it runs after writes that have begun: a sweep that did not
    // know of the hold may have removed the job.
    let seq = app.store.write_soon(find).await?.ok_or_else(|| Problem::not_found("job"))?;
    let (head, tail) = job.around_output();
    let length = head.len() + bytes + tail.len();
    let left = Left {
        app: Arc::clone(app),
        place: Place { seq, finished_at, bytes },
        sent: 0,
        head: Some(head.into()),
        tail: Some(tail.into()),
        _held: held,
    };
    let pieces = stream::unfold(left, |mut left| async move {
        let piece = left.next().await.map_err(|problem| io::Error::other(problem.message));
        Some((piece.transpose()?, left))
    });
    Ok(json(Body::from_stream(pieces), length))
}

impl Left {
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        if let Some(head) = self.head.take() {
            return Ok(Some(head));
        }
        if self.sent == self.place.bytes {
            return Ok(self.tail.take());
        }
        let _turn = READS.acquire().await;
        let (place, from) = (self.place, self.sent);
        let piece = self.app.store.read(move |conn| place.read(conn, from)).await?;
        self.sent += piece.len();
        Ok(Some(piece.into()))
    }
}

impl Place {
    fn read(self, conn: &Connection, from: usize) -> Result<Vec<u8>, Problem> {
        let sql = "select 1 from jobs where seq = ?1 and finished_at is ?2";
        let mut statement = conn.prepare_cached(sql)?;
        if !statement.exists(params![self.seq, self.finished_at])? {
            return Err(Problem::not_found("job"));
        }
        let unreadable =
            |error: io::Error| Problem::because(format!("an output cannot be read: {error}"));
        let mut blob = conn.blob_open("main", "jobs", "output", self.seq, true)?;
        blob.seek(SeekFrom::Start(from as u64)).map_err(unreadable)?;
        let mut piece = vec![0; PIECE.min(self.bytes - from)];
        blob.read_exact(&mut piece).map_err(unreadable)?;
        Ok(piece)
    }
}

/// Returns an answer in JSON that keeps its share of the memory until it is sent.
pub(crate) fn held(text: String, share: MemoryShare) -> Response {
    let length = text.len();
    let whole = stream::unfold((Some(Bytes::from(text)), share), |(text, share)| async move {
        Some((Ok::<_, io::Error>(text?), (None, share)))
    });
    json(Body::from_stream(whole), length)
}

fn json(body: Body, length: usize) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// Returns the whole output of a job, also a large one; `None` if the job or its output does not
/// exist.
pub(super) fn whole(conn: &Connection, id: &str) -> Result<Option<String>, Problem> {
    let mut statement = conn.prepare_cached("select output from jobs where id = ?1")?;
    Ok(statement.query_row([id], |row| row.get(0)).optional()?.flatten())
}
