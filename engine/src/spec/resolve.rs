//! [`Document`] to [`Config`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Config, Document};
use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::schema::ProviderSchema;

/// What `resolve` needs beside the document.
#[derive(Clone, Debug, Default)]
pub struct ResolveInput {
    /// The values given for variables.
    pub variables: BTreeMap<Name, Given>,
    /// The schemas of the configured provider instances, by instance name.
    pub providers: BTreeMap<Name, Arc<ProviderSchema>>,
    /// The contents of the files that the document asks for; an error text where one cannot be read.
    pub files: BTreeMap<String, Result<Arc<str>, String>>,
}

/// A value given for a variable.
#[derive(Clone, Debug)]
pub enum Given {
    /// Text: taken as it is by string variables, read as a TOML value by others.
    Text(String),
    /// A typed value, from a variables file.
    Value(crate::value::Value),
}

/// Resolves a document.
pub fn resolve(_document: &Document, _input: &ResolveInput) -> (Config, Diagnostics) {
    (Config::default(), Diagnostics::new())
}
