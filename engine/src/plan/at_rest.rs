//! Values of a plan at rest, for `#[serde(with = "at_rest")]`: each is written as a [`Stored`].

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

use crate::stored::{DamagedValue, Stored};
use crate::value::{Attributes, Value};

/// A type whose values have a form at rest.
pub(super) trait AtRest: Sized {
    fn to_stored(&self) -> Option<Stored>;
    fn of_stored(stored: Option<&Stored>) -> Result<Self, DamagedValue>;
}

pub(super) fn serialize<T: AtRest, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.to_stored().serialize(to)
}

pub(super) fn deserialize<'de, T: AtRest, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let stored = Option::<Stored>::deserialize(from)?;
    T::of_stored(stored.as_ref()).map_err(D::Error::custom)
}

impl AtRest for Value {
    fn to_stored(&self) -> Option<Stored> {
        Some(Stored::of_sealed(self))
    }

    fn of_stored(stored: Option<&Stored>) -> Result<Self, DamagedValue> {
        stored.map_or(Ok(Self::Null), Stored::value)
    }
}

impl AtRest for Attributes {
    fn to_stored(&self) -> Option<Stored> {
        Some(Stored::of_sealed(&Value::map(self.clone())))
    }

    fn of_stored(stored: Option<&Stored>) -> Result<Self, DamagedValue> {
        Ok(match Value::of_stored(stored)? {
            Value::Map(entries) => (*entries).clone(),
            _ => Self::new(),
        })
    }
}

impl<T: AtRest> AtRest for Arc<T> {
    fn to_stored(&self) -> Option<Stored> {
        (**self).to_stored()
    }

    fn of_stored(stored: Option<&Stored>) -> Result<Self, DamagedValue> {
        T::of_stored(stored).map(Self::new)
    }
}

impl<T: AtRest> AtRest for Option<T> {
    fn to_stored(&self) -> Option<Stored> {
        self.as_ref().and_then(T::to_stored)
    }

    fn of_stored(stored: Option<&Stored>) -> Result<Self, DamagedValue> {
        stored.map(|stored| T::of_stored(Some(stored))).transpose()
    }
}
