//! The report of a conversion: the parts that were found, and those that were left out, with the reasons.

/// A part of a document that the descriptor does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The part: a path of the document, or an attribute such as `label.color`.
    pub part: String,
    /// The reason.
    pub reason: String,
}

impl LeftOut {
    pub(crate) fn new(part: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { part: part.into(), reason: reason.into() }
    }
}

/// A type of the descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFound {
    /// Its name.
    pub name: String,
    /// The path of one object.
    pub path: String,
    /// The number of its attributes.
    pub attributes: usize,
    /// The number of attributes whose type is known.
    pub typed: usize,
    /// The number of marks `# to prove`.
    pub to_prove: usize,
}

/// A descriptor, and the report about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The text of the descriptor.
    pub text: String,
    /// The name of the provider.
    pub provider: String,
    /// Its types.
    pub types: Vec<TypeFound>,
    /// The parts of the document that it does not have.
    pub left_out: Vec<LeftOut>,
}
