//! The provider that needs no API: the type value.
