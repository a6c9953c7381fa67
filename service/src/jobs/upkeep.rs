//! The changes of jobs that neither their clients nor their workers ask for: a worker is lost, the
//! service starts again, time runs out, an endpoint is deleted.

use std::sync::Arc;

use rusqlite::{Connection, params};

use super::queue::{Queue, many, one, tally};
use super::record::{BRIEF, Job, State};
use crate::clock::now_ms;
use crate::problem::Problem;
use crate::store::Tx;

/// The number of lost workers after which the job is taken to be the cause.
const LOSSES_MAX: i64 = 3;

/// The reason for which a run of a job was cut off.
#[derive(Debug, Clone)]
pub(crate) enum Cutoff {
    /// The worker was lost, in the way that the text says. The job may be the cause.
    Lost(String),
    /// The service ended the worker. The job is not the cause.
    Ordered,
}

/// The most jobs that one sweep ends, so that other writes need not wait for long. The next sweep
/// ends more.
const SWEEP: usize = 5000;

impl Queue {
    /// Puts the jobs of a worker that is gone back into the queue, or ends those that have lost too
    /// many workers. Returns the changed jobs, without outputs and errors.
    pub(crate) fn requeue(
        &self,
        tx: &Tx<'_>,
        worker: &str,
        cutoff: &Cutoff,
    ) -> Result<Vec<Job>, Problem> {
        let sql = format!(
            "select {BRIEF} from jobs where worker = ?1 and state = 'IN_PROGRESS' order by position"
        );
        let jobs = many(tx.conn, &sql, [worker])?;
        jobs.iter().map(|job| self.cut_off(tx, job, cutoff)).collect()
    }

    /// Does the same for one job that its worker does not know of.
    pub(crate) fn requeue_one(
        &self,
        tx: &Tx<'_>,
        worker: &str,
        id: &str,
        cutoff: &Cutoff,
    ) -> Result<Option<Job>, Problem> {
        let sql = format!(
            "select {BRIEF} from jobs where id = ?2 and worker = ?1 and state = 'IN_PROGRESS'"
        );
        let job = one(tx.conn, &sql, [worker, id])?;
        job.map(|job| self.cut_off(tx, &job, cutoff)).transpose()
    }

    /// Puts all jobs in progress back into the queue, because no worker lives after a start.
    /// Returns their number.
    pub(crate) fn recover(&self, tx: &Tx<'_>) -> Result<usize, Problem> {
        let sql = format!("select {BRIEF} from jobs where state = 'IN_PROGRESS'");
        let jobs = many(tx.conn, &sql, [])?;
        for job in &jobs {
            // The time when the last service ended is unknown, so the run counts as 0 milliseconds.
            self.put_back(tx, job, 0)?;
        }
        Ok(jobs.len())
    }

    /// Ends the jobs whose time is up. Returns those that a worker still runs, without outputs and
    /// errors.
    pub(crate) fn sweep(&self, tx: &Tx<'_>) -> Result<Vec<Job>, Problem> {
        let now = now_ms();
        let sql =
            format!("select {BRIEF} from jobs where state = 'IN_PROGRESS' and deadline_at <= ?1");
        let mut running = many(tx.conn, &sql, [now])?;
        for job in &running {
            self.close(tx, job, State::TimedOut, Some("job timed out"))?;
        }
        let sql = format!(
            "select {BRIEF} from jobs where expires_at <= ?1 \
             union all select {BRIEF} from jobs where keep_until <= ?1 and expires_at > ?1 \
             limit {SWEEP}"
        );
        let mut over = many(tx.conn, &sql, [now])?;
        over.retain(|job| !self.projection.is_held(&job.id));
        self.remove(tx, &over)?;
        running.extend(over.into_iter().filter(|job| job.state == State::InProgress));
        Ok(running)
    }

    /// Removes everything that belongs to an endpoint. Returns the workers that had jobs of it.
    pub(crate) fn forget(&self, tx: &Tx<'_>, endpoint: &str) -> Result<Vec<String>, Problem> {
        let workers = "select distinct worker from jobs where endpoint = ?1 and worker is not null";
        let mut statement = tx.conn.prepare_cached(workers)?;
        let workers = statement.query_map([endpoint], |row| row.get::<_, String>(0))?;
        let workers = workers.collect::<Result<Vec<_>, _>>()?;
        let jobs = "select id from jobs where endpoint = ?1";
        let mut statement = tx.conn.prepare_cached(jobs)?;
        let ids = statement.query_map([endpoint], |row| row.get::<_, String>(0))?;
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        for sql in [
            &format!("delete from chunks where job in ({jobs})"),
            "delete from webhooks where endpoint = ?1",
            "delete from tallies where endpoint = ?1",
            "delete from jobs where endpoint = ?1",
        ] {
            tx.conn.prepare_cached(sql)?.execute([endpoint])?;
        }
        let (projection, endpoint) = (Arc::clone(&self.projection), endpoint.to_owned());
        tx.after(move || {
            projection.forget(&endpoint, &ids);
        });
        Ok(workers)
    }

    /// Ends a run of a job. A job that may have killed its worker goes to the end of the queue, or
    /// fails after too many lost workers. Any other job goes back to its old place.
    fn cut_off(&self, tx: &Tx<'_>, job: &Job, cutoff: &Cutoff) -> Result<Job, Problem> {
        let spent_ms = job.started_at.map_or(0, |at| (now_ms() - at).max(0));
        match cutoff {
            Cutoff::Lost(how) if job.losses + 1 >= LOSSES_MAX => {
                let worker = job.worker.as_deref().unwrap_or("");
                let error = format!(
                    "{LOSSES_MAX} workers were lost while they ran this job; \
                     the last one, {worker}: {how}"
                );
                self.close(tx, job, State::Failed, Some(&error))
            }
            Cutoff::Lost(_) => {
                let sql = "update jobs set losses = losses + 1, queued_at = ?2, \
                           position = ?3 where id = ?1";
                let given = params![job.id, now_ms(), self.projection.next_position()];
                tx.conn.prepare_cached(sql)?.execute(given)?;
                self.put_back(tx, job, spent_ms)
            }
            Cutoff::Ordered => self.put_back(tx, job, spent_ms),
        }
    }

    fn put_back(&self, tx: &Tx<'_>, job: &Job, spent_ms: i64) -> Result<Job, Problem> {
        let sql = format!(
            "update jobs set state = 'IN_QUEUE', worker = null, started_at = null, \
             deadline_at = null, output = null, retries = retries + 1, spent_ms = spent_ms + ?2 \
             where id = ?1 returning {BRIEF}"
        );
        let queued = one(tx.conn, &sql, params![job.id, spent_ms])?;
        let queued = queued.ok_or_else(|| Problem::not_found("job"))?;
        tx.conn.prepare_cached("delete from chunks where job = ?1")?.execute([&job.id])?;
        tally(tx.conn, &job.endpoint, "retried")?;
        self.follow(tx, job, Some(State::InProgress), Some(State::InQueue), true);
        Ok(queued)
    }
}

/// Returns true if the time of any job is up.
pub(crate) fn is_due(conn: &Connection) -> Result<bool, Problem> {
    let sql = "select exists(select 1 from jobs where state = 'IN_PROGRESS' and deadline_at <= ?1) \
               or exists(select 1 from jobs where expires_at <= ?1) \
               or exists(select 1 from jobs where keep_until <= ?1)";
    Ok(conn.prepare_cached(sql)?.query_row([now_ms()], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::projection::Projection;
    use crate::jobs::queue::{NewJob, latest};
    use crate::jobs::submission::Submission;
    use crate::resources::endpoint::{self, Endpoint};
    use crate::store::{Store, objects};

    /// Returns a service with three jobs in this state. Their outputs and errors are not valid
    /// text, so reading one fails.
    async fn unreadable(state: State) -> (tempfile::TempDir, Store, Queue, String) {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Store::open(folder.path(), &(Arc::new(|_: &crate::log::LogLine<'_>| {}) as _)).unwrap();
        let queue = Queue { projection: Arc::new(Projection::default()) };
        let endpoint = endpoint::blank();
        let id = endpoint.id.clone();
        let (of, submitting) = (id.clone(), queue.clone());
        let begin = move |tx: &Tx<'_>| {
            objects::insert::<Endpoint>(tx, &endpoint)?;
            let submission = Submission::parse(br#"{"input": {}}"#)?;
            for _ in 0..3 {
                submitting.submit(tx, &of, &NewJob::new(submission.clone(), false, 1_000_000))?;
            }
            let sql = "update jobs set state = ?1, worker = 'w', output = cast(x'ff' as text), \
                       error = cast(x'ff' as text)";
            tx.conn.execute(sql, [state.name()])?;
            Ok(())
        };
        store.write(begin).await.unwrap();
        (folder, store, queue, id)
    }

    /// Removing, counting and requeueing jobs does not read their outputs: an output may have 20
    /// MB, and there may be thousands.
    #[tokio::test]
    async fn what_is_removed_counted_or_queued_again_is_not_read() {
        let (_folder, store, queue, _) = unreadable(State::InProgress).await;
        assert_eq!(store.write(move |tx| queue.recover(tx)).await, Ok(3));

        let (_folder, store, queue, _) = unreadable(State::InProgress).await;
        let lose = move |tx: &Tx<'_>| Ok(queue.requeue(tx, "w", &Cutoff::Ordered)?.len());
        assert_eq!(store.write(lose).await, Ok(3));

        let (_folder, store, queue, _) = unreadable(State::Completed).await;
        let expire = move |tx: &Tx<'_>| {
            tx.conn.execute("update jobs set keep_until = 1", [])?;
            queue.sweep(tx)?;
            Ok(tx.conn.query_row("select count(*) from jobs", [], |row| row.get::<_, i64>(0))?)
        };
        assert_eq!(store.write(expire).await, Ok(0));

        let (_folder, store, queue, endpoint) = unreadable(State::InQueue).await;
        let id = endpoint.clone();
        let long = |tx: &Tx<'_>| {
            Ok(tx.conn.execute("update jobs set error = printf('%.*c', 1000000, 'e')", [])?)
        };
        store.write(long).await.unwrap();
        let listed = store.read(move |conn| latest(conn, &id, 2)).await.unwrap();
        let errors: usize = listed.iter().map(|job| job.error.as_ref().unwrap().len()).sum();
        assert_eq!((listed.len(), errors), (2, 4000));
        assert_eq!(store.write(move |tx| queue.purge(tx, &endpoint, i64::MAX)).await, Ok(3));
    }
}
