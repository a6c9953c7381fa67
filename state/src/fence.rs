//! The fence of one holder: it closes when the holder loses the lock or a write fails, and stays closed. The
//! next reader finds out which data was stored.

use crate::error::StoreError;

/// A fence that is open until the first failure.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    closed: Option<Cause>,
}

/// The first failure of a holder.
#[derive(Debug)]
enum Cause {
    Failed(String),
    Fenced(String),
}

impl Fence {
    /// Refuses with the first failure, if there was one.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.closed {
            Some(Cause::Fenced(why)) => Err(StoreError::Fenced(why.clone())),
            Some(Cause::Failed(why)) => Err(StoreError::refused(format!(
                "nothing more is written, because an earlier write failed: {why}"
            ))),
            None => Ok(()),
        }
    }

    /// Passes the result of a write on, and closes the fence if it is an error.
    pub(crate) fn pass<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        let cause = match &result {
            Ok(_) => return result,
            Err(StoreError::Fenced(why)) => Cause::Fenced(why.clone()),
            Err(error) => Cause::Failed(error.to_string()),
        };
        self.closed.get_or_insert(cause);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_stands() {
        let mut fence = Fence::default();
        assert!(fence.pass(Ok(1)).is_ok() && fence.check().is_ok());
        let fenced = || Err::<(), _>(StoreError::Fenced("another run".to_owned()));
        assert!(fence.pass(fenced()).is_err());
        assert!(fence.pass(Err::<(), _>(StoreError::refused("no space"))).is_err());
        assert!(matches!(fence.check(), Err(StoreError::Fenced(why)) if why == "another run"));
        let mut fence = Fence::default();
        assert!(fence.pass(Err::<(), _>(StoreError::refused("no space"))).is_err());
        assert!(fence.pass(fenced()).is_err());
        let error = fence.check().unwrap_err().to_string();
        assert!(error.ends_with("an earlier write failed: no space"), "{error}");
    }
}
