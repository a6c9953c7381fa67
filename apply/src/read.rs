//! Reads of one object.

use engine::state::ObjectId;
use provider_port::{Error, Kind, Object, Provider};

/// Reads an object. An answer that shows an object with another id is an error.
pub(crate) async fn read_object(
    provider: &dyn Provider,
    ty: &str,
    id: &ObjectId,
) -> Result<Object, Error> {
    let object = provider.read(ty, id).await?;
    if object.id == *id {
        return Ok(object);
    }
    Err(Error::new(Kind::InDoubt, format!("reading {id} shows {}", object.id)))
}
