//! The port through which look-ups read what is no object of a provider.

use engine::plan::{Fetch, Unanswered};
use engine::value::Datum;
use futures_util::future::BoxFuture;

/// Reads other states and addresses for look-ups.
pub trait DataReader: Send + Sync {
    /// Returns what is asked for, as a map of the attributes that the schema of the look-up computes.
    fn read<'a>(&'a self, fetch: &'a Fetch) -> BoxFuture<'a, Result<Datum, Unanswered>>;
}

/// Reads nothing, for who plans specs without such look-ups.
#[derive(Clone, Copy, Debug)]
pub struct NoData;

impl DataReader for NoData {
    fn read<'a>(&'a self, _: &'a Fetch) -> BoxFuture<'a, Result<Datum, Unanswered>> {
        let message = "nothing is read here".to_owned();
        Box::pin(async move { Err(Unanswered { message, help: None }) })
    }
}
