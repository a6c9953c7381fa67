//! Adoption: the spec of objects that exist and that no state knows.
//!
//! Pure: objects and schemas go in, the text of a spec comes out, with the id of the object that each address is to
//! stand for. Attributes that equal their defaults are left out, ids of other objects become references, secrets become
//! variables, and alike objects share one `for_each`.

mod content;
mod drafting;
mod groups;
mod model;
mod names;
mod notes;
mod order;
mod pattern;
mod references;
mod secrets;
mod text;

pub use self::drafting::draft;
pub use self::model::{AdoptedVariable, Draft, Found, Surroundings, known_name};
pub use self::pattern::matches;
pub use self::text::import_block;

#[cfg(test)]
mod tests;
