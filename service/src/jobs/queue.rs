//! The life of a job in the store. Every change of a job's state is a function of this module or of
//! `upkeep`.
//!
//! Each function runs inside one write of the store. A change that finds the job in an unexpected
//! state does nothing and reports that, so races do no harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use rusqlite::{Connection, OptionalExtension as _, Params, params};

use super::output;
use super::projection::{Move, Projection};
use super::record::{BRIEF, COLUMNS, Job, Request, State};
use super::submission::Submission;
use crate::clock::now_ms;
use crate::ids;
use crate::problem::Problem;
use crate::store::Tx;

/// The queue with its projection.
#[derive(Clone)]
pub(crate) struct Queue {
    pub(crate) projection: Arc<Projection>,
}

/// A job to submit.
pub(crate) struct NewJob {
    pub(crate) id: String,
    /// True if the client waits for the result.
    pub(crate) sync: bool,
    pub(crate) submission: Submission,
    /// The time that its result is kept, in milliseconds.
    pub(crate) retention_ms: i64,
}

impl NewJob {
    /// Returns a job with a new id.
    pub(crate) fn new(submission: Submission, sync: bool, retention_ms: i64) -> NewJob {
        NewJob { id: ids::job(sync), sync, submission, retention_ms }
    }
}

/// The result of a job, as reported by its worker.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The output as JSON text.
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
}

/// The identity of one run of a job: the number of times that the job went back into the queue, and
/// the time when the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) retries: i64,
    pub(crate) started_at: Option<i64>,
}

/// The chunks taken out of a stream, with the state of the job.
#[derive(Debug)]
pub(crate) struct Drained {
    pub(crate) state: State,
    /// The run of the chunks. When a run is cut off, its chunks are deleted.
    pub(crate) run: Run,
    pub(crate) chunks: Vec<String>,
}

/// A worker that takes jobs.
pub(crate) struct Taker {
    pub(crate) endpoint: String,
    pub(crate) worker: String,
    /// False as soon as the worker is known to be gone. It gets no jobs then, because they would be
    /// lost.
    pub(crate) alive: Arc<AtomicBool>,
    /// The execution timeout for jobs without one of their own; `None` means no limit.
    pub(crate) timeout_ms: Option<i64>,
    /// The jobs that the worker may still run. It gets none of them again before it has let go of
    /// them: a message names only job and worker, so a message about the old run would be taken for
    /// one about the new run.
    pub(crate) held: Vec<String>,
}

/// The most jobs that are purged in one write, so that other writes need not wait for long.
pub(crate) const PURGE: u16 = 2000;

impl Queue {
    /// Accepts a job.
    pub(crate) fn submit(&self, tx: &Tx<'_>, endpoint: &str, new: &NewJob) -> Result<Job, Problem> {
        check_endpoint(tx.conn, endpoint)?;
        let (submission, now) = (&new.submission, now_ms());
        let sql = "insert into jobs(id, endpoint, state, position, sync, low_priority, request, \
                   webhook, timeout_ms, retention_ms, submitted_at, expires_at, queued_at) \
                   values(?1, ?2, 'IN_QUEUE', ?11, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?9)";
        tx.conn.prepare_cached(sql)?.execute(params![
            new.id,
            endpoint,
            new.sync,
            submission.low_priority,
            submission.request,
            submission.webhook,
            submission.timeout_ms,
            new.retention_ms,
            now,
            now + submission.ttl_ms,
            self.projection.next_position()
        ])?;
        let job = Job {
            id: new.id.clone(),
            endpoint: endpoint.to_owned(),
            state: State::InQueue,
            low_priority: submission.low_priority,
            webhook: submission.webhook.clone(),
            submitted_at: now,
            started_at: None,
            finished_at: None,
            worker: None,
            retries: 0,
            losses: 0,
            spent_ms: 0,
            output: None,
            large_output: None,
            error: None,
        };
        self.follow(tx, &job, None, Some(State::InQueue), false);
        Ok(job)
    }

    /// Gives the oldest queued jobs to a worker, at most `count`. Returns their ids, each with the
    /// JSON text for the worker.
    pub(crate) fn take(
        &self,
        tx: &Tx<'_>,
        taker: &Taker,
        count: i64,
    ) -> Result<Vec<(String, String)>, Problem> {
        if !taker.alive.load(SeqCst) {
            return Ok(Vec::new());
        }
        let sql = "update jobs set state = 'IN_PROGRESS', worker = ?2, started_at = ?3, \
                   deadline_at = ?3 + nullif(coalesce(timeout_ms, ?4), 0) - spent_ms \
                   where seq = ?1";
        let (mut statement, now) = (tx.conn.prepare_cached(sql)?, now_ms());
        let mut assignments = Vec::new();
        for job in oldest(tx.conn, taker, count)? {
            statement.execute(params![job.seq, taker.worker, now, taker.timeout_ms])?;
            assignments.push((job.id.clone(), Request::assignment(&job.request, &job.id)));
            self.moved(
                tx,
                Move {
                    endpoint: taker.endpoint.clone(),
                    job: job.id,
                    low_priority: job.low_priority,
                    from: Some(State::InQueue),
                    to: Some(State::InProgress),
                    retried: false,
                    ended: None,
                    delay_ms: Some(now - job.submitted_at - job.spent_ms),
                    execution_ms: None,
                },
            );
        }
        Ok(assignments)
    }

    /// Ends a job that this worker has. Returns `None` if the worker does not have it any more.
    pub(crate) fn finish(
        &self,
        tx: &Tx<'_>,
        worker: &str,
        id: &str,
        outcome: &Outcome,
    ) -> Result<Option<Job>, Problem> {
        let sql = format!(
            "select {BRIEF} from jobs where id = ?1 and worker = ?2 and state = 'IN_PROGRESS'"
        );
        let Some(mut job) = one(tx.conn, &sql, [id, worker])? else { return Ok(None) };
        job.end(outcome.output.clone(), outcome.error.clone(), now_ms());
        let sql = "update jobs set state = ?2, output = ?3, error = ?4, finished_at = ?5, \
                   keep_until = ?5 + retention_ms, deadline_at = null where id = ?1";
        let given = params![id, job.state.name(), outcome.output, outcome.error, job.finished_at];
        tx.conn.prepare_cached(sql)?.execute(given)?;
        self.ended(tx, &job, State::InProgress)?;
        Ok(Some(job))
    }

    /// Stores the progress of a job that this worker has.
    pub(crate) fn progress(
        &self,
        tx: &Tx<'_>,
        worker: &str,
        id: &str,
        output: Option<&str>,
    ) -> Result<bool, Problem> {
        let sql = "update jobs set output = ?3 \
                   where id = ?1 and worker = ?2 and state = 'IN_PROGRESS'";
        let changed = tx.conn.prepare_cached(sql)?.execute(params![id, worker, output])?;
        self.wake(tx, id);
        Ok(changed == 1)
    }

    /// Adds chunks to the stream of a job that this worker has.
    pub(crate) fn stream(
        &self,
        tx: &Tx<'_>,
        worker: &str,
        id: &str,
        chunks: &[String],
    ) -> Result<bool, Problem> {
        let sql = "select exists(select 1 from jobs \
                   where id = ?1 and worker = ?2 and state = 'IN_PROGRESS')";
        let has: bool = tx.conn.prepare_cached(sql)?.query_row([id, worker], |row| row.get(0))?;
        if !has {
            return Ok(false);
        }
        let sql = "insert into chunks(job, seq, body) values(?1, \
                   (select coalesce(max(seq), 0) + 1 from chunks where job = ?1), ?2)";
        for chunk in chunks {
            tx.conn.prepare_cached(sql)?.execute([id, chunk.as_str()])?;
        }
        self.wake(tx, id);
        Ok(true)
    }

    /// Takes the oldest chunks of a stream out of the store, up to a size in bytes, but at least
    /// one.
    pub(crate) fn drain(
        tx: &Tx<'_>,
        endpoint: &str,
        id: &str,
        size: usize,
    ) -> Result<Drained, Problem> {
        let sql = format!("select {BRIEF} from jobs where id = ?1 and endpoint = ?2");
        let job = one(tx.conn, &sql, [id, endpoint])?.ok_or_else(|| Problem::not_found("job"))?;
        let sql = "select seq, body from chunks where job = ?1 order by seq";
        let mut statement = tx.conn.prepare_cached(sql)?;
        let mut rows = statement.query([id])?;
        let (mut chunks, mut last, mut total) = (Vec::new(), 0i64, 0);
        while let Some(row) = rows.next()? {
            let body: String = row.get(1)?;
            total += body.len();
            if !chunks.is_empty() && total > size {
                break;
            }
            last = row.get(0)?;
            chunks.push(body);
        }
        if last > 0 {
            let sql = "delete from chunks where job = ?1 and seq <= ?2";
            tx.conn.prepare_cached(sql)?.execute(params![id, last])?;
        }
        let run = Run { retries: job.retries, started_at: job.started_at };
        Ok(Drained { state: job.state, run, chunks })
    }

    /// Cancels a job that has not ended.
    pub(crate) fn cancel(&self, tx: &Tx<'_>, endpoint: &str, id: &str) -> Result<Job, Problem> {
        let before = get(tx.conn, endpoint, id)?;
        match before.state {
            State::Cancelled => return Ok(before),
            state if state.is_final() => {
                let name = state.name();
                return Err(Problem::invalid(format!("the job has already ended: {name}")));
            }
            _ => {}
        }
        self.close(tx, &before, State::Cancelled, None)
    }

    /// Cancels a job that still waits in the queue. Returns false for any other job, and leaves it
    /// as it is.
    pub(crate) fn cancel_queued(
        &self,
        tx: &Tx<'_>,
        endpoint: &str,
        id: &str,
    ) -> Result<bool, Problem> {
        let before = get(tx.conn, endpoint, id)?;
        if before.state != State::InQueue {
            return Ok(false);
        }
        self.close(tx, &before, State::Cancelled, None)?;
        Ok(true)
    }

    /// Puts a job that failed or timed out back into the queue, at its end.
    pub(crate) fn retry(&self, tx: &Tx<'_>, endpoint: &str, id: &str) -> Result<Job, Problem> {
        let before = get(tx.conn, endpoint, id)?;
        if !before.state.can_retry() {
            let name = before.state.name();
            return Err(Problem::invalid(format!(
                "only a job that is FAILED or TIMED_OUT can be retried; this one is {name}"
            )));
        }
        let sql = format!(
            "update jobs set state = 'IN_QUEUE', output = null, error = null, worker = null, \
             started_at = null, finished_at = null, keep_until = null, queued_at = ?2, \
             losses = 0, spent_ms = 0, \
             position = ?3 where id = ?1 returning {COLUMNS}"
        );
        let job = one(tx.conn, &sql, params![id, now_ms(), self.projection.next_position()])?
            .ok_or_else(|| Problem::not_found("job"))?;
        tx.conn.prepare_cached("delete from chunks where job = ?1")?.execute([id])?;
        tally(tx.conn, endpoint, "retried")?;
        self.follow(tx, &job, Some(before.state), Some(State::InQueue), true);
        Ok(job)
    }

    /// Removes the oldest queued jobs of an endpoint up to a position, at most [`PURGE`] of them;
    /// returns their number.
    pub(crate) fn purge(
        &self,
        tx: &Tx<'_>,
        endpoint: &str,
        position: i64,
    ) -> Result<usize, Problem> {
        check_endpoint(tx.conn, endpoint)?;
        let sql = "select id, low_priority, position from jobs \
                   where endpoint = ?1 and state = 'IN_QUEUE' and position <= ?2 \
                   order by position limit ?3";
        let mut statement = tx.conn.prepare_cached(sql)?;
        let mut last = 0;
        let removed = statement.query_map(params![endpoint, position, PURGE], |row| {
            last = row.get(2)?;
            Ok(Move {
                endpoint: endpoint.to_owned(),
                job: row.get(0)?,
                low_priority: row.get(1)?,
                from: Some(State::InQueue),
                to: None,
                retried: false,
                ended: None,
                delay_ms: None,
                execution_ms: None,
            })
        })?;
        let removed = removed.collect::<Result<Vec<_>, _>>()?;
        let sql = "delete from jobs \
                   where endpoint = ?1 and state = 'IN_QUEUE' and position <= ?2";
        tx.conn.prepare_cached(sql)?.execute(params![endpoint, last])?;
        let (projection, count) = (Arc::clone(&self.projection), removed.len());
        tx.after(move || projection.moved(&removed));
        Ok(count)
    }

    /// Changes the time that a job may live, counted from its submission.
    pub(crate) fn set_ttl(
        tx: &Tx<'_>,
        endpoint: &str,
        id: &str,
        ttl_ms: i64,
    ) -> Result<(), Problem> {
        let sql = "update jobs set expires_at = submitted_at + ?3 where id = ?1 and endpoint = ?2";
        if tx.conn.prepare_cached(sql)?.execute(params![id, endpoint, ttl_ms])? == 0 {
            return Err(Problem::not_found("job"));
        }
        Ok(())
    }

    /// Ends a job without a message of its worker.
    pub(super) fn close(
        &self,
        tx: &Tx<'_>,
        before: &Job,
        state: State,
        error: Option<&str>,
    ) -> Result<Job, Problem> {
        let sql = format!(
            "update jobs set state = ?2, error = ?3, finished_at = ?4, deadline_at = null, \
             keep_until = ?4 + retention_ms where id = ?1 returning {COLUMNS}"
        );
        let given = params![before.id, state.name(), error, now_ms()];
        let job = one(tx.conn, &sql, given)?.ok_or_else(|| Problem::not_found("job"))?;
        self.ended(tx, &job, before.state)?;
        Ok(job)
    }

    /// Counts the end of a job, and stores its webhook.
    fn ended(&self, tx: &Tx<'_>, job: &Job, from: State) -> Result<(), Problem> {
        match job.state {
            State::Completed => tally(tx.conn, &job.endpoint, "completed")?,
            State::Failed | State::TimedOut => tally(tx.conn, &job.endpoint, "failed")?,
            _ => {}
        }
        if let (Some(url), false) = (&job.webhook, job.state == State::Cancelled) {
            let sql = "insert into webhooks(endpoint, job, url, body, tries, due_at) \
                       values(?1, ?2, ?3, ?4, 0, ?5)";
            let request = "select request from jobs where id = ?1";
            let request: String =
                tx.conn.prepare_cached(request)?.query_row([&job.id], |row| row.get(0))?;
            let output = output::whole(tx.conn, &job.id)?;
            let body = job.notice(&request, output.as_deref());
            let given = params![job.endpoint, job.id, url, body, now_ms()];
            tx.conn.prepare_cached(sql)?.execute(given)?;
            let projection = Arc::clone(&self.projection);
            tx.after(move || projection.webhook.notify_one());
        }
        self.follow(tx, job, Some(from), Some(job.state), false);
        Ok(())
    }

    pub(super) fn remove(&self, tx: &Tx<'_>, jobs: &[Job]) -> Result<(), Problem> {
        for job in jobs {
            tx.conn.prepare_cached("delete from jobs where id = ?1")?.execute([&job.id])?;
            tx.conn.prepare_cached("delete from chunks where job = ?1")?.execute([&job.id])?;
            self.follow(tx, job, Some(job.state), None, false);
        }
        Ok(())
    }

    pub(super) fn follow(
        &self,
        tx: &Tx<'_>,
        job: &Job,
        from: Option<State>,
        to: Option<State>,
        retried: bool,
    ) {
        let is_final = to.is_some_and(State::is_final);
        let is_awaited = is_final && self.projection.is_awaited(&job.id);
        self.moved(
            tx,
            Move {
                ended: is_awaited.then(|| Arc::new(job.clone())),
                endpoint: job.endpoint.clone(),
                job: job.id.clone(),
                low_priority: job.low_priority,
                from,
                to,
                retried,
                delay_ms: None,
                execution_ms: job
                    .execution_ms()
                    .filter(|_| from == Some(State::InProgress) && is_final),
            },
        );
    }

    fn moved(&self, tx: &Tx<'_>, change: Move) {
        let projection = Arc::clone(&self.projection);
        tx.after(move || projection.moved(&[change]));
    }

    fn wake(&self, tx: &Tx<'_>, id: &str) {
        let (projection, id) = (Arc::clone(&self.projection), id.to_owned());
        tx.after(move || projection.wake(&id));
    }
}

/// Returns the job with this id on this endpoint, or the problem that there is none.
pub(crate) fn get(conn: &Connection, endpoint: &str, id: &str) -> Result<Job, Problem> {
    let sql = format!("select {COLUMNS} from jobs where id = ?1 and endpoint = ?2");
    one(conn, &sql, [id, endpoint])?.ok_or_else(|| Problem::not_found("job"))
}

/// Returns the jobs that were submitted last to an endpoint, the newest first, without outputs and
/// with shortened errors.
pub(crate) fn latest(conn: &Connection, endpoint: &str, count: i64) -> Result<Vec<Job>, Problem> {
    let columns = BRIEF.trim_end_matches("null");
    let sql = format!(
        "select {columns} substr(error, 1, 2000) from jobs where endpoint = ?1 order by seq desc limit ?2"
    );
    many(conn, &sql, params![endpoint, count])
}

/// Returns the milliseconds that the first `count` jobs of a queue have waited. Jobs of low
/// priority are left out, because they do not scale workers up.
pub(crate) fn head_waits(
    conn: &Connection,
    endpoint: &str,
    count: i64,
) -> Result<Vec<i64>, Problem> {
    let sql = "select queued_at, low_priority from jobs \
               where endpoint = ?1 and state = 'IN_QUEUE' order by position limit ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map(params![endpoint, count], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?))
    })?;
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let now = now_ms();
    Ok(rows.into_iter().filter(|(_, low)| !low).map(|(queued_at, _)| now - queued_at).collect())
}

/// A queued job, with the fields that giving it to a worker needs.
struct Queued {
    seq: i64,
    id: String,
    low_priority: bool,
    request: String,
    submitted_at: i64,
    spent_ms: i64,
}

/// Returns the oldest queued jobs that a worker may take, at most `count`.
fn oldest(conn: &Connection, taker: &Taker, count: i64) -> Result<Vec<Queued>, Problem> {
    let sql = "select seq, id, low_priority, request, submitted_at, spent_ms from jobs \
               where endpoint = ?1 and state = 'IN_QUEUE' order by position";
    let mut statement = conn.prepare_cached(sql)?;
    let (mut rows, mut oldest) = (statement.query([&taker.endpoint])?, Vec::new());
    let count = usize::try_from(count).unwrap_or(0);
    while oldest.len() < count
        && let Some(row) = rows.next()?
    {
        let id: String = row.get(1)?;
        if !taker.held.contains(&id) {
            oldest.push(Queued {
                seq: row.get(0)?,
                id,
                low_priority: row.get(2)?,
                request: row.get(3)?,
                submitted_at: row.get(4)?,
                spent_ms: row.get(5)?,
            });
        }
    }
    Ok(oldest)
}

/// Returns the problem that an endpoint has no queue.
pub(super) fn no_queue(endpoint: &str) -> Problem {
    Problem::invalid(format!(
        "this endpoint balances load and has no queue: send requests to its workers, at \
         /lb/{endpoint}/<path>"
    ))
}

/// Checks that the endpoint exists and has a queue.
fn check_endpoint(conn: &Connection, endpoint: &str) -> Result<(), Problem> {
    let sql = "select body ->> '$.type' from objects where id = ?1 and kind = 'endpoint'";
    let mut statement = conn.prepare_cached(sql)?;
    let kind: Option<String> = statement.query_row([endpoint], |row| row.get(0)).optional()?;
    match kind.as_deref() {
        Some("LB") => Err(no_queue(endpoint)),
        Some(_) => Ok(()),
        None => Err(Problem::not_found("endpoint")),
    }
}

pub(super) fn tally(conn: &Connection, endpoint: &str, column: &str) -> Result<(), Problem> {
    let sql = format!(
        "insert into tallies(endpoint, completed, failed, retried) \
         values(?1, '{column}' = 'completed', '{column}' = 'failed', '{column}' = 'retried') \
         on conflict do update set {column} = {column} + 1"
    );
    conn.prepare_cached(&sql)?.execute([endpoint])?;
    Ok(())
}

pub(super) fn one(
    conn: &Connection,
    sql: &str,
    given: impl Params,
) -> Result<Option<Job>, Problem> {
    Ok(conn.prepare_cached(sql)?.query_row(given, Job::from_row).optional()?)
}

pub(super) fn many(conn: &Connection, sql: &str, given: impl Params) -> Result<Vec<Job>, Problem> {
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map(given, Job::from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}
