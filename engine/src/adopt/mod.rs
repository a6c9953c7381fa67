//! Adoption: the spec of objects that exist and that no state knows.
//!
//! This module does no input or output. It gets objects and schemas, and returns the text of a spec and the
//! id of the object for each address. Attributes that equal their defaults are left out, ids of other objects
//! become references, secrets become variables, and similar objects share one `for_each`.

mod content;
mod drafting;
mod groups;
mod model;
mod names;
mod notes;
mod order;
mod pattern;
mod references;
mod text;

pub use self::drafting::draft;
pub use self::model::{AdoptedVariable, Draft, Found, Surroundings, known_name};
pub use self::pattern::matches;
pub use self::text::import_block;

#[cfg(test)]
mod tests;
