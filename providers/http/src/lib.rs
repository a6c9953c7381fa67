//! A provider written as TOML: any HTTP API, REST or GraphQL.
//!
//! A descriptor is read ([`load`]) into plain data, configured with addresses and keys
//! ([`HttpProvider::configure`]), and then interpreted: no code in this crate knows a resource type by name.
//! From the outside in: the provider reads and changes objects, calls are repeated if that is safe, answers
//! are classified by what they prove, and a [`Transport`] carries single requests.

mod access;
mod address;
mod asked_keys;
mod bodies;
mod calls;
mod catalog;
mod certificates;
mod children;
mod classify;
mod client;
mod codec;
mod conditions;
mod connection;
mod descriptor;
mod direct;
mod elements;
mod empty;
mod graphql;
mod key;
mod key_lookup;
mod key_parts;
mod key_text;
mod limits;
mod link;
mod list_items;
mod listing;
mod masker;
mod naming;
mod objects;
mod operations;
mod paging;
mod partial_json;
mod perform;
mod provider;
mod reading;
mod recorder;
mod request_log;
mod retry_after;
mod sending;
mod settings;
mod shared;
mod subject;
mod template;
mod timing;
mod transport;
mod trust;
mod wire;
mod words;

pub use catalog::{catalog, catalog_names};
pub use connection::{Connection, Tls};
pub use descriptor::{Descriptor, Outline, load};
pub use direct::{Ask, Direct, DirectCall};
pub use masker::Masker;
pub use provider::HttpProvider;
pub use recorder::{Recorder, RefusedAnswer};
pub use settings::Settings;
pub use timing::Timing;
pub use transport::{Broken, Method, Network, Request, Response, Transport};
