//! Descriptors written from `OpenAPI` documents.
//!
//! [`convert`] reads a document of `OpenAPI` 3 or Swagger 2, finds the types that a descriptor can hold, and writes the
//! descriptor. It is pure: text in, text out. The caller says what a loader of descriptors says, so that what is
//! written loads. What a document does not tell is marked [`TO_PROVE`].

mod attribute;
mod auth;
mod calls;
mod candidate;
mod convert;
mod document;
mod draft;
mod errors;
mod facts;
mod key;
mod marks;
mod names;
mod object;
mod operation;
mod paging;
mod proof;
mod refusal;
mod report;
mod route;
mod shape;
mod text;
mod type_names;
mod types;
mod yaml;

pub use convert::{Fault, Options, convert};
pub use facts::{message_place, with_message, with_settle};
pub use proof::{Answer, Mark, Question, marks, settled};
pub use refusal::Refusal;
pub use report::{Converted, LeftOut, TypeFound};
pub use text::TO_PROVE;
