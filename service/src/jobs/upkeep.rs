//! What happens to jobs without their clients or workers asking: workers are lost, the service
//! starts again, time runs out, an endpoint goes.

use std::sync::Arc;

use rusqlite::Connection;

use super::queue::{Queue, many, one, tally};
use super::record::{BRIEF, Job, State};
use crate::clock::now_ms;
use crate::problem::Problem;
use crate::store::Tx;

/// The most jobs that one sweep ends, so that no write waits for long; the next sweep goes on.
const SWEEP: usize = 5000;

impl Queue {
    /// Puts the jobs of a lost worker back where they were in the queue; returns them without what
    /// they said.
    pub(crate) fn requeue(&self, tx: &Tx<'_>, worker: &str) -> Result<Vec<Job>, Problem> {
        let sql = format!("select {BRIEF} from jobs where worker = ?1 and state = 'IN_PROGRESS'");
        let jobs = many(tx.conn, &sql, [worker])?;
        for job in &jobs {
            self.put_back(tx, job)?;
        }
        Ok(jobs)
    }

    /// Puts one job back that a worker does not know of.
    pub(crate) fn requeue_one(&self, tx: &Tx<'_>, worker: &str, id: &str) -> Result<bool, Problem> {
        let sql = format!(
            "select {BRIEF} from jobs where id = ?2 and worker = ?1 and state = 'IN_PROGRESS'"
        );
        let job = one(tx.conn, &sql, [worker, id])?;
        if let Some(job) = &job {
            self.put_back(tx, job)?;
        }
        Ok(job.is_some())
    }

    /// After a start no worker lives: everything in progress goes back into the queue.
    pub(crate) fn recover(&self, tx: &Tx<'_>) -> Result<usize, Problem> {
        let sql = format!("select {BRIEF} from jobs where state = 'IN_PROGRESS'");
        let jobs = many(tx.conn, &sql, [])?;
        for job in &jobs {
            self.put_back(tx, job)?;
        }
        Ok(jobs.len())
    }

    /// Ends the jobs whose time is up; returns those that a worker still runs, without what they
    /// said.
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
        let over = many(tx.conn, &sql, [now])?;
        self.remove(tx, &over)?;
        running.extend(over.into_iter().filter(|job| job.state == State::InProgress));
        Ok(running)
    }

    /// Removes everything that belongs to an endpoint; returns the workers that had its jobs.
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
            projection.forget(&endpoint);
            for id in &ids {
                projection.wake(id);
            }
        });
        Ok(workers)
    }

    fn put_back(&self, tx: &Tx<'_>, job: &Job) -> Result<(), Problem> {
        let sql = "update jobs set state = 'IN_QUEUE', worker = null, started_at = null, \
                   deadline_at = null, output = null, retries = retries + 1 where id = ?1";
        tx.conn.prepare_cached(sql)?.execute([&job.id])?;
        tx.conn.prepare_cached("delete from chunks where job = ?1")?.execute([&job.id])?;
        tally(tx.conn, &job.endpoint, "retried")?;
        self.follow(tx, job, Some(State::InProgress), Some(State::InQueue), true);
        Ok(())
    }
}

/// Returns true if any job's time is up.
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
    use crate::jobs::queue::latest;
    use crate::jobs::submission::Submission;
    use crate::resources::endpoint::{self, Endpoint};
    use crate::store::{Store, objects};

    /// A service with three jobs in this state. Nobody can read what their workers answered.
    async fn unreadable(state: State) -> (tempfile::TempDir, Store, Queue, String) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &(Arc::new(|_: &str| {}) as _)).unwrap();
        let queue = Queue { projection: Arc::new(Projection::default()) };
        let endpoint = endpoint::blank();
        let id = endpoint.id.clone();
        let (of, submitting) = (id.clone(), queue.clone());
        let begin = move |tx: &Tx<'_>| {
            objects::insert::<Endpoint>(tx, &endpoint)?;
            let submission = Submission::parse(br#"{"input": {}}"#)?;
            for _ in 0..3 {
                submitting.submit(tx, &of, &submission, None, 1_000_000)?;
            }
            let sql = "update jobs set state = ?1, worker = 'w', output = cast(x'ff' as text), \
                       error = cast(x'ff' as text)";
            tx.conn.execute(sql, [state.name()])?;
            Ok(())
        };
        store.write(begin).await.unwrap();
        (folder, store, queue, id)
    }

    /// An output may have 20 MB, and there may be thousands of them.
    #[tokio::test]
    async fn what_is_removed_counted_or_queued_again_is_not_read() {
        let (_folder, store, queue, _) = unreadable(State::InProgress).await;
        assert_eq!(store.write(move |tx| queue.recover(tx)).await, Ok(3));

        let (_folder, store, queue, _) = unreadable(State::InProgress).await;
        let lose = move |tx: &Tx<'_>| Ok(queue.requeue(tx, "w")?.len());
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
        let listed = store.read(move |conn| Ok(latest(conn, &id, 2)?.len())).await;
        assert_eq!(listed, Ok(2));
        assert_eq!(store.write(move |tx| queue.purge(tx, &endpoint)).await, Ok(3));
    }
}
