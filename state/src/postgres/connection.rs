//! A connection to the database, and its errors. An error has the server's message in short:
//! neither its details, which may quote rows, nor an address with a password.
//!
//! Nothing is waited for without a bound: a connection that a box on the way forgot stays silent for
//! ever, and so does a server that stands still.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, NoTls, Row};

use super::address::Address;
use super::sql;
use crate::error::StoreError;

/// A connection with a session of its own.
pub(super) struct Connection {
    pub(super) client: Session,
    /// The server's process.
    pub(super) pid: i32,
    /// True if the machine of the server may forget a commit.
    pub(super) is_volatile: bool,
}

/// A session to send statements through.
pub(super) struct Session {
    client: Client,
    /// The longest silence.
    answer: Duration,
}

impl Session {
    /// Waits for an answer, or for the next part of one.
    async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, SqlError> {
        match timeout(self.answer, answer).await {
            Ok(answer) => answer.map_err(|error| SqlError::of(&self.client, &error)),
            Err(_) => Err(SqlError::Silent(self.answer)),
        }
    }
}

/// A statement that failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SqlError {
    /// The connection was lost, and with it the answer: what was asked for may have happened.
    #[error("the connection was lost")]
    Lost,
    /// There was no answer for so long. What was asked for may have happened.
    #[error("it did not answer within {} seconds", .0.as_secs_f32().ceil())]
    Silent(Duration),
    /// The server refused the statement.
    #[error("{0}")]
    Refused(String),
    /// The server is not fit to keep a state.
    #[error("{what}")]
    Unfit {
        /// The error message.
        what: String,
        /// The way out.
        help: String,
    },
}

impl SqlError {
    /// Classifies the error of a statement.
    pub(super) fn of(client: &Client, error: &Error) -> Self {
        // 08: connection; 57P: the server ends, or was told to end the session.
        let is_lost = error
            .code()
            .is_none_or(|code| code.code().starts_with("08") || code.code().starts_with("57P"));
        if is_lost || client.is_closed() {
            Self::Lost
        } else {
            Self::Refused(server_message(error))
        }
    }

    /// Returns true if the statement may have taken effect nevertheless.
    pub(super) fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Lost | Self::Silent(_))
    }

    pub(super) fn into_store_error(self, place: &str) -> StoreError {
        match self {
            Self::Unfit { what, help } => StoreError::Unfit { what, help },
            other => StoreError::refused(format!("the database {place} failed: {other}")),
        }
    }
}

/// Returns the server's message, without its details.
fn server_message(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        let message: String = error.message().chars().filter(|c| !c.is_control()).collect();
        return format!("{message} ({})", error.code().code());
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Connects, and refuses a server on which a commit is no promise.
pub(super) async fn connect(address: &Address) -> Result<Connection, SqlError> {
    let answer = address.answer;
    let client = timeout(answer, open(address)).await.map_err(|_| SqlError::Silent(answer))?;
    let client = client.map_err(|error| SqlError::Refused(server_message(&error)))?;
    let client = Session { client, answer };
    query(&client, sql::SETTINGS, &[]).await?;
    let nature = one(&client, sql::NATURE, &[]).await?;
    let pid = nature.get(3);
    refuse_unfit(nature.get(0), nature.get(1), nature.get(2))?;
    let is_volatile = is_volatile(nature.get(4), nature.get(0), nature.get(5));
    Ok(Connection { client, pid, is_volatile })
}

async fn open(address: &Address) -> Result<Client, Error> {
    let Address { config, tls, .. } = address;
    if let Some(tls) = tls {
        let (client, connection) = config.connect(tls.clone()).await?;
        tokio::spawn(connection);
        Ok(client)
    } else {
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

fn refuse_unfit(commit: &str, is_copy: bool, read_only: &str) -> Result<(), SqlError> {
    if commit == "off" {
        return Err(SqlError::Unfit {
            what:
                "the database reports a commit before it is durable (`synchronous_commit` is off)"
                    .to_owned(),
            help: "the state could lose its newest records there: set it to `on` for the database \
                   or the user, as with `ALTER ROLE plumb SET synchronous_commit = on`"
                .to_owned(),
        });
    }
    if is_copy || read_only == "on" {
        return Err(SqlError::Unfit {
            what: "the database is read-only".to_owned(),
            help: "use the primary server, not a replica".to_owned(),
        });
    }
    Ok(())
}

/// Returns true if a commit need not outlive a power cut of the server's machine: it does not wait for its
/// disk, nor for another server that has it. Services that keep nothing on their own disk are set up
/// like the latter.
fn is_volatile(fsync: &str, commit: &str, standbys: &str) -> bool {
    let waits_for_others = !standbys.trim().is_empty() && matches!(commit, "on" | "remote_apply");
    fsync == "off" && !waits_for_others
}

/// A parameter with its type, so that no statement need be prepared.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

pub(super) fn text<T: ToSql + Sync>(value: &T) -> Parameter<'_> {
    (value, Type::TEXT)
}

pub(super) fn int4(value: &i32) -> Parameter<'_> {
    (value, Type::INT4)
}

pub(super) fn int8(value: &i64) -> Parameter<'_> {
    (value, Type::INT8)
}

pub(super) fn bytea<T: ToSql + Sync>(value: &T) -> Parameter<'_> {
    (value, Type::BYTEA)
}

pub(super) async fn query(
    session: &Session,
    statement: &str,
    given: &[Parameter<'_>],
) -> Result<Vec<Row>, SqlError> {
    let given = given.iter().map(|(value, kind)| (*value, kind.clone()));
    let rows = session.client.query_typed_raw(statement, given);
    // A large answer takes its time: what may not be is a pause in it.
    let mut rows = pin!(session.within(rows).await?);
    let mut read = Vec::new();
    while let Some(row) = session.within(rows.try_next()).await? {
        read.push(row);
    }
    Ok(read)
}

pub(super) async fn one(
    session: &Session,
    statement: &str,
    given: &[Parameter<'_>],
) -> Result<Row, SqlError> {
    let rows = query(session, statement, given).await?;
    rows.into_iter().next().ok_or_else(|| SqlError::Refused("a row was expected".to_owned()))
}

/// Says how many rows were written.
pub(super) async fn execute(
    session: &Session,
    statement: &str,
    given: &[Parameter<'_>],
) -> Result<u64, SqlError> {
    session.within(session.client.execute_typed(statement, given)).await
}

pub(super) async fn batch(session: &Session, statements: &str) -> Result<(), SqlError> {
    session.within(session.client.batch_execute(statements)).await
}

impl Connection {
    pub(super) async fn try_lock(&self, key: i64) -> Result<bool, SqlError> {
        let given = [int8(&key)];
        Ok(one(&self.client, "SELECT pg_try_advisory_lock($1)", &given).await?.get(0))
    }

    /// The server's process that holds the lock.
    pub(super) async fn holder(&self, key: i64) -> Result<Option<i32>, SqlError> {
        let (high, low) = halves(key);
        let given = [int8(&high), int8(&low)];
        let rows = query(&self.client, sql::HOLDER, &given).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// A lock's number as the server shows it.
pub(super) fn halves(key: i64) -> (i64, i64) {
    let (high, low) = (key.cast_unsigned() >> 32, key.cast_unsigned() & 0xffff_ffff);
    (high.cast_signed(), low.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_lasts_by_the_disk_or_by_another_server() {
        assert!(!is_volatile("on", "on", ""));
        assert!(is_volatile("off", "on", "") && is_volatile("off", "on", " "));
        assert!(!is_volatile("off", "on", "walproposer"));
        assert!(is_volatile("off", "local", "walproposer"));
        assert!(is_volatile("off", "remote_write", "walproposer"));
    }

    #[test]
    fn what_breaks_promises_is_refused() {
        assert!(refuse_unfit("on", false, "off").is_ok());
        for (commit, is_copy, read_only) in
            [("off", false, "off"), ("on", true, "off"), ("on", false, "on")]
        {
            let refused = refuse_unfit(commit, is_copy, read_only);
            assert!(matches!(refused, Err(SqlError::Unfit { .. })), "{refused:?}");
        }
    }
}
