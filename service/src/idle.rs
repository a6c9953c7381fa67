//! The idle connections, which the service closes when new connections need their room.
//!
//! Each connection takes a descriptor. A process has a limited number of them, and the workers need
//! some. A client that holds many connections open without using them must not keep all others out.
//! So above a limit each new connection closes an idle one: first the oldest of those that never
//! sent a request, then the one that has been idle longest. A connection that waits for an answer
//! is never closed. Below the limit connections may stay idle for as long as clients keep them, so
//! that it is the client that closes: it knows whether it is about to send.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// All connections of the service.
pub(crate) struct Connections {
    /// The number of connections above which idle ones are closed.
    room: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: usize,
    next: u64,
    /// The idle connections in the order in which they are closed, each with the token that closes
    /// it.
    idle: BTreeMap<Rank, CancellationToken>,
}

/// The rank of an idle connection. The lowest one is closed first: connections without any request,
/// and among equals the one that became idle first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    has_asked: bool,
    since: u64,
}

impl Connections {
    pub(crate) fn new(room: usize) -> Arc<Connections> {
        Arc::new(Connections { room, state: Mutex::default() })
    }

    /// Registers a new connection. Above the limit an idle one is closed for it.
    pub(crate) fn opened(self: &Arc<Self>) -> Arc<Connection> {
        let is_full = {
            let mut state = self.state();
            state.open += 1;
            state.open > self.room
        };
        if is_full {
            self.end_one();
        }
        let end = CancellationToken::new();
        let rank = Mutex::new(Some(self.idles(false, &end)));
        Arc::new(Connection { all: Arc::clone(self), end, rank })
    }

    /// Closes the idle connection of the lowest rank, if there is one.
    pub(crate) fn end_one(&self) {
        let mut state = self.state();
        while let Some((_, end)) = state.idle.pop_first() {
            // This connection was told to close before, and answered one more request meanwhile.
            if !end.is_cancelled() {
                return end.cancel();
            }
        }
    }

    fn idles(&self, has_asked: bool, end: &CancellationToken) -> Rank {
        let mut state = self.state();
        let rank = Rank { has_asked, since: state.next };
        state.next += 1;
        state.idle.insert(rank, end.clone());
        rank
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection, registered until this is dropped.
pub(crate) struct Connection {
    all: Arc<Connections>,
    end: CancellationToken,
    /// The rank among the idle connections; `None` while a request is under way.
    rank: Mutex<Option<Rank>>,
}

impl Connection {
    /// Waits until this connection must close to make room for others.
    pub(crate) fn ended(&self) -> WaitForCancellationFuture<'_> {
        self.end.cancelled()
    }

    /// Returns true if a request on this connection is under way.
    pub(crate) fn is_used(&self) -> bool {
        self.rank().is_none()
    }

    /// Marks the connection as in use until the returned value is dropped.
    pub(crate) fn used(self: &Arc<Self>) -> Use {
        if let Some(rank) = self.rank().take() {
            self.all.state().idle.remove(&rank);
        }
        Use(Arc::clone(self))
    }

    fn rank(&self) -> MutexGuard<'_, Option<Rank>> {
        self.rank.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let rank = self.rank().take();
        let mut state = self.all.state();
        state.open -= 1;
        if let Some(rank) = rank {
            state.idle.remove(&rank);
        }
    }
}

/// A request on a connection, from its head to the end of its answer. The connection is not idle
/// meanwhile.
pub(crate) struct Use(Arc<Connection>);

impl Use {
    /// Ties the use of the connection to the body of the answer: it lasts until the whole body is
    /// sent.
    pub(crate) fn until_sent(self, body: Body) -> Answer {
        Answer { body, _used: self }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let rank = self.0.all.idles(true, &self.0.end);
        *self.0.rank() = Some(rank);
    }
}

/// The body of an answer. The connection is in use until all of it is sent.
pub(crate) struct Answer {
    body: Body,
    _used: Use,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_never_asked_go_first_and_those_in_use_stay() {
        let all = Connections::new(4);
        let open: Vec<_> = (0..4).map(|_| all.opened()).collect();
        let ended = || -> Vec<usize> {
            let ended = open.iter().enumerate().filter(|(_, one)| one.end.is_cancelled());
            ended.map(|(number, _)| number).collect()
        };
        let in_use = open[0].used();
        drop(open[1].used());
        assert!(ended().is_empty() && open[0].is_used() && !open[1].is_used());
        let fifth = all.opened();
        assert_eq!(ended(), [2]);
        let sixth = all.opened();
        assert_eq!(ended(), [2, 3]);
        let asking = fifth.used();
        drop(all.opened());
        assert!(sixth.end.is_cancelled(), "it is the youngest, but never asked");
        drop(all.opened());
        assert_eq!(ended(), [1, 2, 3]);
        drop(all.opened());
        assert_eq!(ended(), [1, 2, 3], "the others are in use");
        drop(in_use);
        all.end_one();
        assert_eq!(ended(), [0, 1, 2, 3]);
        drop(asking);
    }

    #[test]
    fn what_is_closed_makes_room() {
        let all = Connections::new(1);
        drop(all.opened());
        let first = all.opened();
        assert!(!first.end.is_cancelled());
        let second = all.opened();
        assert!(first.end.is_cancelled());
        drop((first.used(), second.used()));
        all.end_one();
        assert!(second.end.is_cancelled(), "the first is ended already");
    }
}
