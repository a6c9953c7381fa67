//! The port through which look-ups read the outputs of other states and the answers of web addresses.

use engine::plan::{Fetch, Unanswered};
use engine::value::Datum;
use futures_util::future::BoxFuture;

/// Reads the outputs of other states and the answers of web addresses for look-ups.
pub trait DataReader: Send + Sync {
    /// Returns the answer to `fetch`: a map of the attributes that the schema of the look-up computes.
    fn read<'a>(&'a self, fetch: &'a Fetch) -> BoxFuture<'a, Result<Datum, Unanswered>>;
}

/// A reader that answers nothing, for specs without such look-ups.
#[derive(Clone, Copy, Debug)]
pub struct NoData;

impl DataReader for NoData {
    fn read<'a>(&'a self, _: &'a Fetch) -> BoxFuture<'a, Result<Datum, Unanswered>> {
        let message = "nothing is read here".to_owned();
        Box::pin(async move { Err(Unanswered { message, help: None }) })
    }
}
