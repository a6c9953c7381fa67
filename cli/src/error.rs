//! The error of a command, with its exit status. Errors of a single command are made in the file of that
//! command.

use std::error::Error as StdError;
use std::fmt;

use apply::ApplyError;
use engine::address::Address;
use engine::shell;
use state::StoreError;

use crate::system::System;

/// The result of a command, as scripts see it by the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The command is done, or had nothing to do.
    Done,
    /// An error, or a refusal by a rule.
    Failed,
    /// There are changes, and the user asked for this status.
    Changes,
    /// A saved plan no longer fits.
    Stale,
    /// A call is in doubt, and a person must decide.
    InDoubt,
    /// Another run holds the lock.
    Locked,
    /// This run lost its lock.
    LostLock,
    /// The state store failed.
    StoreFailed,
    /// State or journal are unreadable or suspicious.
    Suspicious,
    /// The command was cancelled, and no call is in doubt.
    Cancelled,
}

impl Status {
    /// Returns the exit status.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Changes => 2,
            Self::Stale => 3,
            Self::InDoubt => 4,
            Self::Locked => 5,
            Self::LostLock => 6,
            Self::StoreFailed => 7,
            Self::Suspicious => 8,
            Self::Cancelled => 130,
        }
    }

    /// Returns the more important of two results.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        if self.rank() >= other.rank() { self } else { other }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Changes => 1,
            Self::Failed => 2,
            Self::Stale => 3,
            Self::Locked => 4,
            Self::Cancelled => 5,
            Self::InDoubt => 6,
            Self::LostLock => 7,
            Self::StoreFailed => 8,
            Self::Suspicious => 9,
        }
    }
}

/// The error of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    /// The exit status of the command.
    pub(crate) status: Status,
    /// The message, in lower case and without a full stop.
    pub(crate) message: String,
    /// The advice.
    pub(crate) help: Option<String>,
    /// The addresses that the error is about, if there are many.
    pub(crate) about: Vec<Address>,
}

impl CommandError {
    /// Returns a failure without an exit status of its own.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { status: Status::Failed, message: message.into(), help: None, about: Vec::new() }
    }

    /// Returns a failure with its causes: each message tells only its own step.
    pub(crate) fn caused(message: impl fmt::Display, cause: &dyn StdError) -> Self {
        Self::new(format!("{message}: {}", chain(cause)))
    }

    /// Sets another exit status.
    #[must_use]
    pub(crate) fn status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// Sets the advice.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Returns an error and its causes in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Locked(holder) => locked(&holder),
            StoreError::Fenced(_) => Self::new(error.to_string()).status(Status::LostLock).help(
                "nothing was begun after that; run the command again, once no other run is at \
                     it: it continues from its journal",
            ),
            StoreError::Suspicious { what, help } | StoreError::Missing { what, help } => {
                Self::new(what).status(Status::Suspicious).help(help)
            }
            StoreError::Moved { .. } => Self::new(error.to_string()).status(Status::Suspicious).help(
                "nothing was changed; bring the spec up to date, so that its `[state]` says where \
                 the state is now",
            ),
            StoreError::Arriving { ref from, .. } => {
                let help = format!(
                    "nothing was changed; `plumb state migrate` with the same `--from` finishes that. \
                     To give it up instead, let `[state]` of the spec name {from} again: the state is \
                     used there until the move is finished"
                );
                Self::new(error.to_string()).status(Status::Suspicious).help(help)
            }
            StoreError::Unfit { what, help } => Self::new(what).status(Status::StoreFailed).help(help),
            StoreError::Failed { .. } => Self::new(chain(&error)).status(Status::StoreFailed).help(
                "fix what it names (disk space, permissions, the connection to the store), and run \
                 the command again: a run continues from its journal",
            ),
        }
    }
}

/// Returns how long a holder has held the lock; nothing if that is unknown.
fn since(since_ms: u64, now_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(since_ms) / 1_000;
    match (since_ms, seconds) {
        (0, _) => String::new(),
        (_, 0..120) => format!(", since {seconds} s ago"),
        (_, 120..7_200) => format!(", since {} min ago", seconds / 60),
        _ => format!(", since {} h ago", seconds / 3_600),
    }
}

fn locked(holder: &state::Holder) -> CommandError {
    let or =
        |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let who = format!(
        "`plumb {}` of {} on {} (process {}, run {}){}",
        or(&holder.command, "…"),
        or(&holder.user, "somebody"),
        or(&holder.host, "some machine"),
        holder.pid,
        or(&holder.run, "unknown"),
        since(holder.since_ms, System::now_ms()),
    );
    CommandError::new(format!("another run holds the lock: {who}"))
        .status(Status::Locked)
        .help("wait for it to end, or give `--lock-timeout 5m` to wait here")
}

impl From<service::Strange> for CommandError {
    fn from(error: service::Strange) -> Self {
        Self::new(error.to_string()).help(
            "nothing was read or written there; look who put it there, and remove it: the service makes \
             anew what it needs, and what a link leads to stays",
        )
    }
}

impl From<ApplyError> for CommandError {
    fn from(error: ApplyError) -> Self {
        let message = error.to_string();
        match error {
            ApplyError::Store(error) => error.into(),
            ApplyError::SlowStore(_) => Self::new(message).status(Status::StoreFailed).help(
                "look what keeps its disk or its network busy, and apply again: what was not called \
                 is planned anew",
            ),
            ApplyError::Journal(_) => Self::new(message).status(Status::Suspicious).help(
                "nothing was changed; put a backup in place with `plumb state push --force FILE`",
            ),
            ApplyError::Refresh { source, .. } => match source.help {
                Some(help) => Self::new(message).help(help),
                None => Self::new(message),
            },
            ApplyError::Unread { address, source } => {
                let aside = format!(
                    "until it can be read, `--exclude {}` leaves it alone",
                    shell::quoted(&address.to_string())
                );
                let help = source.help.map_or(aside.clone(), |help| format!("{help}; {aside}"));
                Self::new(message).help(help)
            }
            ApplyError::Vanished { addresses, .. } => Self {
                about: addresses,
                ..Self::new(message).status(Status::InDoubt).help(
                    "if they are really gone, take them out with `plumb state rm`, or where a call \
                     about one is in doubt with `plumb resolve ADDRESS --absent`; until then, \
                     `--exclude` leaves them alone, and `--target` names others",
                )
            },
            ApplyError::EndlessLookUps(_) => Self::new(message)
                .help("give some of them by their ids, as variables or locals"),
            ApplyError::Stale(_) => {
                Self::new("stale plan: made again from the same spec, it is another one")
                    .status(Status::Stale)
                    .help("nothing was changed; make a new plan, and review it")
            }
            ApplyError::Unplannable(_) => Self::new(message)
                .status(Status::Stale)
                .help("nothing was changed; plan again once that is fixed"),
            ApplyError::OtherSecret(_) => Self::new(message)
                .status(Status::Stale)
                .help("give the value that the plan was made with, or plan again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_lock_is_held() {
        assert_eq!(since(0, 5_000), "");
        assert_eq!(since(1_000, 5_900), ", since 4 s ago");
        assert_eq!(since(1_000, 301_000), ", since 5 min ago");
        assert_eq!(since(1_000, 14_401_000), ", since 4 h ago");
        assert_eq!(since(9_000, 1_000), ", since 0 s ago", "clocks may differ");
    }

    #[test]
    fn the_graver_status_wins() {
        let graver = [
            Status::Suspicious,
            Status::StoreFailed,
            Status::LostLock,
            Status::InDoubt,
            Status::Cancelled,
            Status::Stale,
            Status::Failed,
            Status::Done,
        ];
        for pair in graver.windows(2) {
            assert_eq!(pair[0].or(pair[1]), pair[0]);
            assert_eq!(pair[1].or(pair[0]), pair[0]);
        }
        assert_eq!(graver.map(Status::code), [8, 7, 6, 4, 130, 3, 1, 0]);
    }

    #[test]
    fn a_lock_names_its_holder() {
        let holder = state::Holder {
            run: "r1".to_owned(),
            command: "apply".to_owned(),
            pid: 7,
            ..state::Holder::default()
        };
        let error = CommandError::from(StoreError::Locked(Box::new(holder)));
        assert_eq!(error.status.code(), 5);
        assert_eq!(
            error.message,
            "another run holds the lock: `plumb apply` of somebody on some machine (process 7, run r1)"
        );
    }
}
