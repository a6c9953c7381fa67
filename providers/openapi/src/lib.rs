//! Descriptors written from `OpenAPI` documents.
//!
//! [`convert`] reads a document of `OpenAPI` 3 or Swagger 2, finds the types that a descriptor can express,
//! and writes the descriptor. It is pure: text in, text out. The caller reports the mistakes that a loader of
//! descriptors finds, so that the written descriptor loads. Facts that a document does not give are marked
//! [`TO_PROVE`].

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
pub use proof::{Answer, Mark, Question, marks, settled, with_replace};
pub use refusal::Refusal;
pub use report::{Converted, LeftOut, TypeFound};
pub use text::TO_PROVE;
