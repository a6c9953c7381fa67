//! A connection to the database, and its errors. An error contains the server's short message, but not its
//! details, which may quote rows, and no address with a password.
//!
//! All waits are bounded: a connection that a device on the way has dropped stays silent for ever, and so
//! does a suspended server.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, NoTls, Row};

use super::address::Address;
use super::sql;
use crate::error::StoreError;

/// A connection with its own session.
pub(super) struct Connection {
    pub(super) client: Session,
    /// The number of the server's process.
    pub(super) pid: i32,
    /// True if the server's machine may lose a commit.
    pub(super) is_volatile: bool,
}

/// A session in which statements are sent.
pub(super) struct Session {
    client: Client,
    /// The longest silence of the server.
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
    /// The connection was lost together with the answer: the statement may have taken effect.
    #[error("the connection was lost")]
    Lost,
    /// There was no answer for this time. The statement may have taken effect.
    #[error("it did not answer within {} seconds", .0.as_secs_f32().ceil())]
    Silent(Duration),
    /// The server refused the statement.
    #[error("{0}")]
    Refused(String),
    /// The server cannot keep a state safely.
    #[error("{what}")]
    Unfit {
        /// The error message.
        what: String,
        /// The advice.
        help: String,
    },
}

impl SqlError {
    /// Classifies the error of a statement.
    pub(super) fn of(client: &Client, error: &Error) -> Self {
        // 08: connection; 57P: the server stops, or was asked to end the session.
        let is_lost = error
            .code()
            .is_none_or(|code| code.code().starts_with("08") || code.code().starts_with("57P"));
        if is_lost || client.is_closed() {
            Self::Lost
        } else {
            Self::Refused(server_message(error))
        }
    }

    /// Returns true if the statement may still have taken effect.
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

/// Connects, and refuses a server whose commits are not reliable.
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

/// Returns true if a commit may not survive a power cut of the server's machine: the server does not wait for
/// its disk, nor for another server with the same data. Services that store nothing on their own disk wait
/// for another server.
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
    // A large answer takes time; only a pause in it is too long.
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

/// Returns the number of rows that were written.
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

    /// Returns the server's process that holds the lock; none if none does.
    pub(super) async fn holder(&self, key: i64) -> Result<Option<i32>, SqlError> {
        let (high, low) = halves(key);
        let given = [int8(&high), int8(&low)];
        let rows = query(&self.client, sql::HOLDER, &given).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// Returns a lock's number in the form in which the server shows it.
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
