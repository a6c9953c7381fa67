//! The words of the marks that a command can resolve.

/// An optional attribute: the API may fill in a value if none is sent.
pub(crate) const FILLED: &str = "whether a value is filled in";
/// An attribute that the document has in a create and not in an update.
pub(crate) const NO_UPDATE: &str = "no update takes it";
/// The name of an object.
pub(crate) const NAMES: &str = "whether names are unique, or can change";
/// The id that the body of a create has.
pub(crate) const KEPT: &str = "whether the API keeps the id of the body";
/// A list that answers show: its order may mean something, or not.
pub(crate) const ORDER: &str = "whether the order counts";
/// The place of an error's text in an answer.
pub(crate) const MESSAGE: &str = "the document does not tell where an error has its text";
