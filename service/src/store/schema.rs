//! The tables of the store and their version.

use std::time::Duration;

use rusqlite::Connection;

use super::StoreError;

/// The version of the tables, raised with every change of them. Each step from an older version is
/// a statement below.
const VERSION: i64 = 5;

/// Version 1: the objects of the management APIs.
const OBJECTS: &str = "
create table objects (
    seq         integer primary key autoincrement,
    kind        text not null,
    id          text not null unique,
    name        text not null,
    body        text not null,
    previous    text,
    written_at  integer not null
) strict;
create index objects_kind on objects(kind, seq);
create index objects_name on objects(kind, name);

create table links (
    holder  text not null,
    held    text not null,
    primary key (holder, held)
) strict, without rowid;
create index links_held on links(held);

create table last_use (
    id  text primary key,
    at  integer not null
) strict, without rowid;
";

/// Version 2: jobs, their streams, and webhooks that are due.
const JOBS: &str = "
create table jobs (
    seq           integer primary key autoincrement,
    id            text not null unique,
    endpoint      text not null,
    state         text not null,
    position      integer not null,
    sync          integer not null,
    low_priority  integer not null,
    request       text not null,
    webhook       text,
    timeout_ms    integer,
    retention_ms  integer not null,
    submitted_at  integer not null,
    expires_at    integer not null,
    queued_at     integer not null,
    started_at    integer,
    deadline_at   integer,
    finished_at   integer,
    keep_until    integer,
    worker        text,
    retries       integer not null default 0,
    output        text,
    error         text
) strict;
create index jobs_position on jobs(position);
create index jobs_queue on jobs(endpoint, position) where state = 'IN_QUEUE';
create index jobs_running on jobs(worker) where state = 'IN_PROGRESS';
create index jobs_deadline on jobs(deadline_at) where state = 'IN_PROGRESS';
create index jobs_expiry on jobs(expires_at);
create index jobs_keep on jobs(keep_until) where keep_until is not null;
create index jobs_endpoint on jobs(endpoint, seq);

create table chunks (
    job   text not null,
    seq   integer not null,
    body  text not null,
    primary key (job, seq)
) strict, without rowid;

create table tallies (
    endpoint   text primary key,
    completed  integer not null,
    failed     integer not null,
    retried    integer not null
) strict, without rowid;

create table webhooks (
    seq       integer primary key autoincrement,
    endpoint  text not null,
    job       text not null,
    url       text not null,
    body      text not null,
    tries     integer not null,
    due_at    integer not null
) strict;
create index webhooks_due on webhooks(due_at);
create index webhooks_endpoint on webhooks(endpoint);
";

/// Version 3: the lost workers of a job, and the time of its earlier runs.
const RUNS: &str = "
alter table jobs add column losses integer not null default 0;
alter table jobs add column spent_ms integer not null default 0;
";

/// Version 4: the use by workers and volumes in each hour.
const USAGE: &str = "
create table usage (
    hour    integer not null,
    what    text not null,
    object  text not null,
    ms      integer not null,
    nanos   integer not null,
    primary key (hour, what, object)
) strict, without rowid;
";

/// Version 5: fewer indexes on jobs. The service keeps the last position in memory, and there are
/// too few jobs in progress to need an order by deadline.
const FEWER_INDEXES: &str = "
drop index jobs_position;
drop index jobs_deadline;
drop index jobs_running;
create index jobs_running on jobs(worker, deadline_at, position) where state = 'IN_PROGRESS';
create index jobs_low on jobs(endpoint) where state = 'IN_QUEUE' and low_priority;
";

/// The page cache of the writer, in KiB. It is larger than the default, because an index of many
/// jobs has many pages.
const CACHE_KIB: i64 = 16 << 10;

/// Sets the connection up for durable group commits and brings the tables to this version.
pub(super) fn prepare(conn: &Connection) -> Result<(), StoreError> {
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(128);
    let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Err(StoreError::Newer { found, known: VERSION });
    }
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", "ON")?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    let steps = [(1, OBJECTS), (2, JOBS), (3, RUNS), (4, USAGE), (5, FEWER_INDEXES)];
    for (version, tables) in steps.into_iter().filter(|(version, _)| *version > found) {
        conn.execute_batch(&format!("begin; {tables} pragma user_version = {version}; commit;"))?;
    }
    Ok(())
}
