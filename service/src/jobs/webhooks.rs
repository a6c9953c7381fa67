//! Webhooks: a client can give an address, which gets a message when the job has ended. There are
//! up to three tries.
//!
//! A webhook that is due is in the store. It is deleted after its last try or its successful one,
//! so a restart neither loses a webhook nor repeats all tries. The address gets the job as a JSON
//! object; redirects are not followed.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, StatusCode};
use rusqlite::{Connection, params};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::app::App;
use crate::clock::now_ms;
use crate::memory_budget::MemoryShare;
use crate::problem::Problem;
use crate::store::Tx;

/// The most tries of a webhook.
const TRIES: i64 = 3;

/// The most webhooks that are sent at once, so that slow receivers do not delay the service.
const AT_ONCE: i64 = 64;

/// The user agent that the real service sends.
const AGENT: &str = "Go-http-client/2.0";

struct Due {
    seq: i64,
    job: String,
    url: String,
    /// The length of the message, in bytes.
    bytes: usize,
    tries: i64,
}

/// Runs until the service drains.
pub(crate) async fn run(app: Arc<App>) {
    let Ok(client) = client(app.options.timing.webhook_timeout) else {
        app.warn("webhooks cannot be sent: no HTTP client");
        return;
    };
    let mut under_way = JoinSet::new();
    let mut busy: Vec<i64> = Vec::new();
    loop {
        let bell = app.queue.projection.webhook.notified();
        for due in due(&app, &busy).await.unwrap_or_default() {
            busy.push(due.seq);
            under_way.spawn(deliver(Arc::clone(&app), client.clone(), due));
        }
        tokio::select! {
            biased;
            () = app.draining.cancelled() => return,
            Some(done) = under_way.join_next() => busy.retain(|seq| done.as_ref().ok() != Some(seq)),
            () = bell => {}
            () = tokio::time::sleep(Duration::from_millis(250)) => {}
        }
    }
}

fn client(timeout: Duration) -> reqwest::Result<Client> {
    // Another part of the process may have installed a provider already. Then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(timeout)
        .user_agent(AGENT)
        .build()
}

async fn due(app: &App, busy: &[i64]) -> Result<Vec<Due>, Problem> {
    let busy = busy.to_vec();
    let read = move |conn: &Connection| {
        let sql = "select seq, job, url, octet_length(body), tries from webhooks where due_at <= ?1 \
                   order by due_at limit ?2";
        let mut statement = conn.prepare_cached(sql)?;
        let rows = statement.query_map(params![now_ms(), AT_ONCE], |row| {
            Ok(Due {
                seq: row.get(0)?,
                job: row.get(1)?,
                url: row.get(2)?,
                bytes: usize::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
                tries: row.get(4)?,
            })
        })?;
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(rows.into_iter().filter(|due| !busy.contains(&due.seq)).collect())
    };
    app.store.read(read).await
}

/// Tries a webhook once, and stores the outcome. Returns the number of the webhook.
async fn deliver(app: Arc<App>, client: Client, due: Due) -> i64 {
    let (mut share, seq) = (MemoryShare::default(), due.seq);
    let until = Instant::now() + app.options.timing.webhook_timeout;
    let room = share.grow_to(due.bytes, until).await;
    let read = move |conn: &Connection| {
        let sql = "select body from webhooks where seq = ?1";
        Ok(conn.prepare_cached(sql)?.query_row([seq], |row| row.get::<_, String>(0))?)
    };
    let (Ok(()), Ok(body)) = (room, app.store.read(read).await) else {
        // There was no memory in time. The webhook was not tried, and stays due.
        return seq;
    };
    let request =
        client.post(&due.url).header("content-type", "application/json").body(body).send();
    // Only the status 200 means that the webhook was received.
    let accepted = request.await.is_ok_and(|answer| answer.status() == StatusCode::OK);
    let tries = due.tries + 1;
    let over = accepted || tries >= TRIES;
    let what = match (accepted, over) {
        (true, _) => "delivered",
        (false, true) => "given up",
        (false, false) => "refused, to be tried again",
    };
    app.say(&format!("webhook of job {} {what}", due.job));
    let delay = i64::try_from(app.options.timing.webhook_delay.as_millis());
    let again_at = now_ms() + delay.unwrap_or(i64::MAX / 2);
    note(&app, Tried { seq: due.seq, tries, again_at: (!over).then_some(again_at) }).await;
    due.seq
}

/// The outcome of a try.
#[derive(Clone, Copy)]
struct Tried {
    seq: i64,
    tries: i64,
    /// The time of the next try, in milliseconds since 1970; `None` if there is no further one.
    again_at: Option<i64>,
}

impl Tried {
    fn write(self, tx: &Tx<'_>) -> Result<(), Problem> {
        let Self { seq, tries, again_at } = self;
        match again_at {
            None => {
                tx.conn.prepare_cached("delete from webhooks where seq = ?1")?.execute([seq])?
            }
            Some(at) => {
                let sql = "update webhooks set tries = ?2, due_at = ?3 where seq = ?1";
                tx.conn.prepare_cached(sql)?.execute(params![seq, tries, at])?
            }
        };
        Ok(())
    }
}

/// Stores the outcome of a try, however long the store fails. A webhook that is being sent is not
/// tried a second time; one whose outcome is not stored stays due. If the service ends before that,
/// the webhook is sent once more after the next start: twice is better than never.
async fn note(app: &App, tried: Tried) {
    app.store.write_at_last(&app.draining, move |tx| tried.write(tx)).await;
}
