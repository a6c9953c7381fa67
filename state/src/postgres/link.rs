//! A connection, and what is wrong with one. A message here says what the server said in short:
//! neither its details, which may quote rows, nor an address with a password.
//!
//! Nothing is waited for without a bound: a connection that a box on the way forgot stays silent for
//! ever, and so does a server that stands still.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use tokio::time::timeout;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, NoTls, Row};

use super::address::Address;
use super::sql;
use crate::error::StoreError;

/// A connection with a session of its own.
pub(super) struct Link {
    pub(super) client: Session,
    /// The server's process.
    pub(super) pid: i32,
    /// Whether the machine of the server may forget what was committed.
    pub(super) is_forgetful: bool,
}

/// What statements are sent through.
pub(super) struct Session {
    client: Client,
    /// How long it may be silent.
    answer: Duration,
}

impl Session {
    /// Waits for an answer, or for the next part of one.
    async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Trouble> {
        match timeout(self.answer, answer).await {
            Ok(answer) => answer.map_err(|error| Trouble::of(&self.client, &error)),
            Err(_) => Err(Trouble::Silent(self.answer)),
        }
    }
}

/// A statement that failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The connection was lost, and with it the answer: what was asked for may have happened.
    #[error("the connection was lost")]
    Lost,
    /// There was no answer for so long. What was asked for may have happened.
    #[error("it did not answer within {} seconds", .0.as_secs_f32().ceil())]
    Silent(Duration),
    /// The server said no.
    #[error("{0}")]
    Said(String),
    /// The server is not fit to keep a state.
    #[error("{what}")]
    Unfit {
        /// Why.
        what: String,
        /// What to do.
        help: String,
    },
}

impl Trouble {
    /// What a failed statement means.
    pub(super) fn of(client: &Client, error: &Error) -> Self {
        // 08: connection; 57P: the server ends, or was told to end the session.
        let is_lost = error
            .code()
            .is_none_or(|code| code.code().starts_with("08") || code.code().starts_with("57P"));
        if is_lost || client.is_closed() { Self::Lost } else { Self::Said(said(error)) }
    }

    /// Whether what was asked for may have happened nevertheless.
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

/// What the server said, in short.
fn said(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        let message: String = error.message().chars().filter(|c| !c.is_control()).collect();
        return format!("{message} ({})", error.code().code());
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Connects, and refuses a server on which a commit is no promise.
pub(super) async fn connect(address: &Address) -> Result<Link, Trouble> {
    let answer = address.answer;
    let client = timeout(answer, open(address)).await.map_err(|_| Trouble::Silent(answer))?;
    let client = client.map_err(|error| Trouble::Said(said(&error)))?;
    let client = Session { client, answer };
    query(&client, sql::SETTINGS, &[]).await?;
    let nature = one(&client, sql::NATURE, &[]).await?;
    let pid = nature.get(3);
    refuse_unfit(nature.get(0), nature.get(1), nature.get(2))?;
    let is_forgetful = is_forgetful(nature.get(4), nature.get(0), nature.get(5));
    Ok(Link { client, pid, is_forgetful })
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

fn refuse_unfit(commit: &str, is_copy: bool, read_only: &str) -> Result<(), Trouble> {
    if commit == "off" {
        return Err(Trouble::Unfit {
            what: "the database says that something is committed before it is (`synchronous_commit` is off)"
                .to_owned(),
            help: "a state could lose its newest records there: set it to `on` for the database or \
                   the user, as with `ALTER ROLE plumb SET synchronous_commit = on`"
                .to_owned(),
        });
    }
    if is_copy || read_only == "on" {
        return Err(Trouble::Unfit {
            what: "the database can only be read".to_owned(),
            help: "name the primary server, not a copy of it".to_owned(),
        });
    }
    Ok(())
}

/// Whether a commit need not outlive a power cut of the server's machine: it does not wait for its
/// disk, nor for another server that has it. Services that keep nothing on their own disk are set up
/// like the latter.
fn is_forgetful(fsync: &str, commit: &str, standbys: &str) -> bool {
    let waits_for_others = !standbys.trim().is_empty() && matches!(commit, "on" | "remote_apply");
    fsync == "off" && !waits_for_others
}

/// A parameter with its type, so that no statement need be prepared.
pub(super) type Given<'a> = (&'a (dyn tokio_postgres::types::ToSql + Sync), Type);

pub(super) async fn query(
    session: &Session,
    statement: &str,
    given: &[Given<'_>],
) -> Result<Vec<Row>, Trouble> {
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
    given: &[Given<'_>],
) -> Result<Row, Trouble> {
    let rows = query(session, statement, given).await?;
    rows.into_iter().next().ok_or_else(|| Trouble::Said("a row was expected".to_owned()))
}

/// Says how many rows were written.
pub(super) async fn execute(
    session: &Session,
    statement: &str,
    given: &[Given<'_>],
) -> Result<u64, Trouble> {
    session.within(session.client.execute_typed(statement, given)).await
}

pub(super) async fn batch(session: &Session, statements: &str) -> Result<(), Trouble> {
    session.within(session.client.batch_execute(statements)).await
}

impl Link {
    pub(super) async fn try_lock(&self, key: i64) -> Result<bool, Trouble> {
        let given = [(&key as _, Type::INT8)];
        Ok(one(&self.client, "SELECT pg_try_advisory_lock($1)", &given).await?.get(0))
    }

    /// The server's process that holds the lock.
    pub(super) async fn holder(&self, key: i64) -> Result<Option<i32>, Trouble> {
        let (high, low) = halves(key);
        let given = [(&high as _, Type::INT8), (&low as _, Type::INT8)];
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
        assert!(!is_forgetful("on", "on", ""));
        assert!(is_forgetful("off", "on", "") && is_forgetful("off", "on", " "));
        assert!(!is_forgetful("off", "on", "walproposer"));
        assert!(is_forgetful("off", "local", "walproposer"));
        assert!(is_forgetful("off", "remote_write", "walproposer"));
    }

    #[test]
    fn what_breaks_promises_is_refused() {
        assert!(refuse_unfit("on", false, "off").is_ok());
        for (commit, is_copy, read_only) in
            [("off", false, "off"), ("on", true, "off"), ("on", false, "on")]
        {
            let refused = refuse_unfit(commit, is_copy, read_only);
            assert!(matches!(refused, Err(Trouble::Unfit { .. })), "{refused:?}");
        }
    }
}
