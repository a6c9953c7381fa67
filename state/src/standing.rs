//! Whether a holder may still write: once it lost its place, or a write failed, it writes nothing
//! more. What is stored is then for the next reader to say.

use crate::StoreError;

/// How a holder stands.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    broken: Option<Broken>,
}

/// Why nothing more is written.
#[derive(Debug)]
enum Broken {
    Failed(String),
    Fenced(String),
}

impl Standing {
    /// Refuses with what went wrong first.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.broken {
            Some(Broken::Fenced(why)) => Err(StoreError::Fenced(why.clone())),
            Some(Broken::Failed(why)) => Err(StoreError::refused(format!(
                "nothing more is written, because an earlier write failed: {why}"
            ))),
            None => Ok(()),
        }
    }

    /// Keeps in mind how a write ended, and passes that on. What went wrong first stands.
    pub(crate) fn keep<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        let broken = match &result {
            Ok(_) => return result,
            Err(StoreError::Fenced(why)) => Broken::Fenced(why.clone()),
            Err(error) => Broken::Failed(error.to_string()),
        };
        self.broken.get_or_insert(broken);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_first_stands() {
        let mut standing = Standing::default();
        assert!(standing.keep(Ok(1)).is_ok() && standing.check().is_ok());
        let fenced = || Err::<(), _>(StoreError::Fenced("another run".to_owned()));
        assert!(standing.keep(fenced()).is_err());
        assert!(standing.keep(Err::<(), _>(StoreError::refused("no space"))).is_err());
        assert!(matches!(standing.check(), Err(StoreError::Fenced(why)) if why == "another run"));
        let mut standing = Standing::default();
        assert!(standing.keep(Err::<(), _>(StoreError::refused("no space"))).is_err());
        assert!(standing.keep(fenced()).is_err());
        let error = standing.check().unwrap_err().to_string();
        assert!(error.ends_with("an earlier write failed: no space"), "{error}");
    }
}
