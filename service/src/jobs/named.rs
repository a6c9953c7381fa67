//! The extractor of path parameters that refuses bad paths in the form of the job API.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The parameters of a path. A path that is not UTF-8 is answered as not found.
pub(super) struct Named<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named<T>, Problem> {
        let Path(named) =
            Path::from_request_parts(parts, state).await.map_err(|_| Problem::not_found("path"))?;
        Ok(Named(named))
    }
}
