//! One resource type of a configured provider, and the calls that read it.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::address::Name;
use engine::schema::{ProviderSchema, TypeSchema};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_port::{Error, Kind, Secrets};

use crate::calls::{Caller, Payload, Prepared, Shown};
use crate::classify::Failure;
use crate::descriptor::model::{Argument, CallModel, Descriptor, Header, Request, TypeModel};
use crate::graphql::Selection;
use crate::masker::{Masker, SecretNames};
use crate::shared::SharedLists;
use crate::template::{CallScope, Unfilled};
use crate::wire::encode;

/// The types of a configured provider.
pub(crate) struct Types {
    pub(crate) descriptor: Arc<Descriptor>,
    /// The types for the engine, with addresses filled into their derivations.
    pub(crate) schema: Arc<ProviderSchema>,
    /// The lists in which single objects are looked up, by type.
    lists: BTreeMap<Name, SharedLists>,
}

impl Types {
    pub(crate) fn new(descriptor: Arc<Descriptor>, schema: ProviderSchema) -> Self {
        let lists =
            descriptor.types.keys().map(|ty| (ty.clone(), SharedLists::default())).collect();
        Self { descriptor, schema: Arc::new(schema), lists }
    }
}

/// One type of a configured provider.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) types: &'a Types,
    pub(crate) caller: &'a Caller,
    pub(crate) model: &'a TypeModel,
    /// The type for the engine, with addresses filled into its derivations.
    pub(crate) schema: &'a TypeSchema,
    /// The lists of the type, shared by all callers that look for one object at the same time.
    pub(crate) shared: &'a SharedLists,
    /// The masker of the call that these calls belong to; none outside of a change.
    pub(crate) masker: Option<&'a Masker>,
}

impl<'a> Subject<'a> {
    /// Returns one type of a provider, by name.
    pub(crate) fn of(types: &'a Types, caller: &'a Caller, ty: &str) -> Result<Self, Failure> {
        let Types { descriptor, schema, lists } = types;
        let found = (descriptor.types.get(ty), schema.types.get(ty), lists.get(ty));
        if let (Some(model), Some(schema), Some(shared)) = found {
            return Ok(Subject { types, caller, model, schema, shared, masker: None });
        }
        let message = format!("the provider {} has no resource type `{ty}`", descriptor.name);
        Err(Failure::new(Kind::Rejected, message))
    }

    /// Returns another type of the provider.
    pub(crate) fn other(&self, ty: &str) -> Result<Self, Failure> {
        Subject::of(self.types, self.caller, ty)
    }

    pub(crate) fn not_found(&self, id: &ObjectId) -> Failure {
        Failure::new(Kind::NotFound, format!("there is no {} {id}", self.schema.name))
    }

    /// Returns the masker of the call, or else one that knows the keys and the sensitive attributes of the
    /// type.
    pub(crate) fn masker(&self) -> Masker {
        let of_type = || {
            let names = SecretNames::of(self.model, &Secrets::default(), &Attributes::new());
            self.caller.masker.clone().with_names(names)
        };
        self.masker.cloned().unwrap_or_else(of_type)
    }

    /// Returns the failure of a call that lacks a part of its address, or an argument.
    pub(crate) fn unfilled(
        &self,
        words: &str,
        id: Option<&str>,
        Unfilled(reason): &Unfilled,
    ) -> Failure {
        let name = &self.schema.name;
        let what = id.map_or_else(|| name.to_string(), |id| format!("{name} {id}"));
        let message = format!("{words} of {what} cannot be filled in: {reason}");
        Failure::new(Kind::Rejected, message)
    }

    /// Returns the attributes that the headers of an answer show.
    pub(crate) fn in_headers(&self, shown: &Shown) -> Attributes {
        let mut attributes = Attributes::new();
        for (name, model) in &self.model.attributes {
            let Some(header) = &model.header else { continue };
            let text = shown.headers.iter().find(|(own, _)| own == header).map(|(_, text)| text);
            let value = text.and_then(|text| Value::string(&**text).convert(&model.schema.ty).ok());
            attributes.extend(value.map(|value| (name.clone(), value)));
        }
        attributes
    }

    /// Fills in a reading call.
    pub(crate) fn prepare(
        &self,
        call: &'a CallModel,
        scope: &CallScope<'_>,
    ) -> Result<Prepared<'a>, Failure> {
        let what = what(call);
        let unfilled = |reason| self.unfilled(&what, scope.id, &reason);
        let naming = self.caller.api(&call.api).naming;
        let payload = match &call.request {
            Request::Rest { method, path } => Payload::Rest {
                method: *method,
                path: path.fill(scope).map_err(unfilled)?,
                body: None,
            },
            Request::Graphql { fields, arguments, .. } => Payload::Graphql {
                fields,
                arguments: arguments
                    .iter()
                    .filter_map(|(name, argument)| match argument {
                        Argument::Value(template) => Some((name, template)),
                        Argument::Sends => None,
                    })
                    .map(|(name, template)| {
                        let value = template.fill(scope).map_err(unfilled)?;
                        let wire = encode(&value, &engine::types::Type::Any, naming);
                        let wire = wire.map_err(|e| crate::calls::unwritable(&what, &e))?;
                        Ok((name.clone(), wire))
                    })
                    .collect::<Result<_, Failure>>()?,
                selection: Some(Selection::of(self.model, &call.api, naming)),
            },
        };
        let headers = headers(&self.model.headers, scope).map_err(unfilled)?;
        let names_object = scope.id.is_some() && matches!(call.request, Request::Rest { .. });
        Ok(Prepared {
            api: &call.api,
            what,
            payload,
            mutation: false,
            names_object,
            headers,
            header: None,
            masker: self.masker(),
            permit: None,
        })
    }
}

/// Fills in headers. A header with a null value is left out.
pub(crate) fn headers(
    headers: &[Header],
    scope: &CallScope<'_>,
) -> Result<Vec<(String, String)>, Unfilled> {
    let mut filled = Vec::new();
    for Header { name, value } in headers {
        filled.extend(value.text(scope)?.map(|text| (name.clone(), text)));
    }
    Ok(filled)
}

/// Returns the failure of an answer that is not of the expected form.
pub(crate) fn unreadable(call: &CallModel, reason: &str) -> Failure {
    let message = format!("{} got an answer that cannot be read: {reason}", what(call));
    Failure::new(Kind::InDoubt, message)
        .help("the descriptor and the API do not agree; check their versions")
}

/// Returns a description of a call, without values.
pub(crate) fn what(call: &CallModel) -> String {
    match &call.request {
        Request::Rest { method, path } => format!("{} {}", method.as_str(), path.words()),
        Request::Graphql { mutation, fields, .. } => {
            format!("{} {}", if *mutation { "mutation" } else { "query" }, fields.join("."))
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}
