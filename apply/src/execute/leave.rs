//! Leave to send: no mutating request goes out whose record is older than a few seconds.
//!
//! A call may wait its turn, or be tried again for minutes, and meanwhile another run may have
//! taken over. Whoever sends asks first; when too long has gone by since the run last wrote
//! something, it writes another record, which fails if it was driven out, and a stopped run says
//! no.

use std::sync::Mutex;

use async_trait::async_trait;
use provider_port::{Error, Kind, Leave};
use tokio::sync::{mpsc, oneshot};

use super::{Run, SEND_WITHIN};
use crate::ApplyError;
use crate::clock::Moment;

/// A question to the run. The answer is a moment at which the run still had its place, if it goes
/// on.
type Question = oneshot::Sender<Option<Moment>>;

/// Both ends of the way from calls to the run that they belong to.
pub(super) struct Desk {
    questions: mpsc::UnboundedSender<Question>,
    asked: mpsc::UnboundedReceiver<Question>,
}

impl Desk {
    pub(super) fn new() -> Self {
        let (questions, asked) = mpsc::unbounded_channel();
        Self { questions, asked }
    }

    /// The leave of a call whose record was written at `since` or later.
    pub(super) fn leave(&self, since: Moment) -> RunLeave {
        RunLeave { since: Mutex::new(since), questions: self.questions.clone() }
    }

    /// The next question. Never ends: the run has a sender of its own.
    pub(super) async fn question(&mut self) -> Option<Question> {
        self.asked.recv().await
    }

    /// The questions that wait already.
    fn waiting(&mut self) -> Vec<Question> {
        std::iter::from_fn(|| self.asked.try_recv().ok()).collect()
    }
}

/// What one call asks through.
pub(super) struct RunLeave {
    since: Mutex<Moment>,
    questions: mpsc::UnboundedSender<Question>,
}

impl RunLeave {
    fn is_fresh(&self) -> bool {
        let since = self.since.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        since.elapsed() <= SEND_WITHIN
    }
}

#[async_trait]
impl Leave for RunLeave {
    async fn ask(&self) -> Result<(), Error> {
        while !self.is_fresh() {
            let (question, answer) = oneshot::channel();
            let asked = self.questions.send(question).is_ok();
            let Some(Ok(Some(since))) = (if asked { Some(answer.await) } else { None }) else {
                return Err(Error::new(Kind::NotSent, "it was not sent: the run was stopped")
                    .help("apply again: what is left to do is planned anew"));
            };
            *self.since.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = since;
        }
        Ok(())
    }
}

impl Run<'_> {
    /// Answers a call that asks whether it may still go out, and all others that do: one record
    /// is enough for them.
    pub(super) async fn give_leave(&mut self, first: Question) -> Result<(), ApplyError> {
        let mut questions = self.desk.waiting();
        questions.push(first);
        let since = self.confirm().await?;
        for question in questions {
            // A call that no longer waits for the answer was given up.
            question.send(since.clone()).ok();
        }
        Ok(())
    }
}
