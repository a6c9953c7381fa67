//! The meaning of the evidence about a call in doubt: a call whose answer was lost.
//!
//! A run, recovery, and `plumb resolve` look at the call's object and write records. Only [`resolve()`]
//! decides the outcome of the call:
//!
//! | the object | the call | the resolution |
//! |---|---|---|
//! | was looked for in another account | is any but a create whose one-time name it has | [`Resolution::Elsewhere`] |
//! | is there, and is another's by now ([`other_owner`]) | deletes it | [`Resolution::Gone`] |
//! | is there, and another address stands for it | creates under a one-time name | [`Resolution::Claimed`] |
//! | is there, and is another's | creates otherwise | as if it were absent |
//! | is there with other values than were sent | creates under a name that others may have | [`Resolution::Mismatch`] |
//! | is there | creates | [`Resolution::Done`] |
//! | is there, and shows the change | changes it | [`Resolution::Done`] |
//! | is there, and shows something else | changes, drains or deletes it | [`Resolution::NotDone`] |
//! | is there, and cannot show the change | changes it | [`Resolution::Unproven`] |
//! | is absent | was accepted, and may show late | [`Resolution::Promised`] |
//! | is absent | creates | [`Resolution::NotMade`] |
//! | is absent | changes, drains or deletes it | [`Resolution::Gone`] |
//!
//! If a person names the object of a call, that overrules every row except those about another owner.

mod call;
mod ownership;
mod resolution;

pub use call::{CallInDoubt, Sent, Shown};
pub use ownership::{Owner, holder, other_owner, supersedes_own};
pub use resolution::{Resolution, create_mismatch, resolve};

#[cfg(test)]
mod tests;
