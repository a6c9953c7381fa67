//! The content of a descriptor, as plain data that the rest of the crate interprets.
//!
//! Nothing is looked up here; the reader handles the text form and its mistakes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::address::Name;
use engine::diagnostics::Span;
use engine::digest::Digest;
use engine::expression::Expr;
use engine::schema::{
    Attribute, Identity, Operation, PhaseWords, Presence, Price, ReplaceOrder, Rule, SeenIn,
};
use engine::state::ObjectId;

use crate::bodies::BodyForm;
use crate::codec::Codec;
use crate::key_parts;
use crate::key_text::KeyText;
pub(crate) use crate::naming::Naming;
use crate::template::{ELEMENT, ONE_TIME, PARENT, PathTemplate, ValueTemplate, members, names};
pub(crate) use crate::transport::Method;

/// A provider as its descriptor describes it.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// The provider's name.
    pub(crate) name: Name,
    /// The digest of the descriptor's text.
    pub(crate) digest: Digest,
    /// The keys, by their names in `auth`.
    pub(crate) keys: BTreeMap<Name, KeySource>,
    pub(crate) certificates: Certificates,
    /// The authorization server that gives the key `token`; none if the provider has none.
    pub(crate) token: Option<TokenModel>,
    /// The time that an absence must last to count; none if the descriptor gives none.
    pub(crate) settle: Option<Duration>,
    /// The APIs of the provider.
    pub(crate) apis: BTreeMap<Name, Api>,
    /// The resource types of the provider.
    pub(crate) types: BTreeMap<Name, TypeModel>,
}

/// The sources of certificates: their contents, or the paths of their files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Certificates {
    /// The certificate authorities that are trusted in place of the system's.
    pub(crate) ca: Option<Source>,
    /// The client certificate.
    pub(crate) certificate: Option<Source>,
    /// The key of the client certificate.
    pub(crate) key: Option<Source>,
}

impl Certificates {
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.ca.iter().chain(&self.certificate).chain(&self.key)
    }
}

impl Descriptor {
    /// Returns the largest number of simultaneous calls to all APIs that the type calls.
    pub(crate) fn concurrency(&self) -> usize {
        let called: BTreeSet<&Name> = self.types.values().flat_map(TypeModel::apis).collect();
        let bounds = called.iter().filter_map(|name| self.apis.get(*name));
        bounds.map(|api| api.concurrency).sum::<usize>().max(1)
    }
}

impl TypeModel {
    /// Returns the APIs that the type calls.
    fn apis(&self) -> impl Iterator<Item = &Name> {
        self.calls().map(|call| &call.api)
    }

    /// Returns the attributes that reads need in addition to the id. Lists show them.
    pub(crate) fn named_by_reads(&self) -> BTreeSet<Name> {
        let names = self.read.iter().flat_map(|read| read.call.names());
        names.filter(|name| *name != self.key).collect()
    }

    /// Returns true if reads find only objects that lists show.
    pub(crate) fn is_seen_by_lists(&self) -> bool {
        self.read.is_empty() || !self.named_by_reads().iter().all(|name| self.is_part_of_key(name))
    }

    /// Returns true if the value of an attribute can be computed from the id.
    pub(crate) fn is_part_of_key(&self, name: &Name) -> bool {
        let key = self.attributes.get(&self.key).and_then(|it| it.schema.derived.as_ref());
        key.is_some_and(|key| key_parts::splits(key) && names(key).contains(name))
    }

    /// Returns true if an attribute has the value of an attribute of the parent.
    pub(crate) fn repeats_parent(&self, name: &Name) -> bool {
        self.parent.as_ref().is_some_and(|parent| parent.attributes.contains_key(name))
    }

    /// Returns true if lists show an attribute, or all attributes that it is derived from.
    pub(crate) fn is_listed(&self, name: &Name) -> bool {
        let shows = |name: &Name| {
            let Some(attribute) = self.attributes.get(name) else { return false };
            let is_read = |api| attribute.wires.get(api).is_some_and(|it| it.read_at.is_some());
            self.repeats_parent(name)
                || attribute.schema.seen_in == SeenIn::List
                    && self.list.iter().any(|list| is_read(&list.call.api))
        };
        let derived = self.attributes.get(name).and_then(|it| it.schema.derived.as_ref());
        match derived {
            Some(derived) => names(derived).iter().all(|name| &**name == "api" || shows(name)),
            None => shows(name),
        }
    }

    /// Returns the attributes whose live values name the object in the paths of these phases, because the
    /// phases send new values of them in other places. An attribute that stands only in paths is sent by
    /// them.
    pub(crate) fn named_by_paths(&self, phases: &[PhaseModel]) -> BTreeSet<Name> {
        let sent = self.attributes.iter().filter(|(name, attribute)| {
            phases.iter().any(|phase| phase.sends_beside_path(name, attribute))
        });
        sent.map(|(name, _)| name).filter(|name| **name != self.key).cloned().collect()
    }

    /// Returns all calls of the type.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &CallModel> {
        let programs = self.create.iter().chain(&self.update).chain(&self.delete);
        let phases = programs.flat_map(|program| &program.phases);
        let lists = self.list.iter().chain(&self.find).map(|list| &list.call);
        let reads = self.read.iter().map(|read| &read.call);
        phases.filter_map(|phase| phase.call.as_ref()).chain(lists).chain(reads)
    }
}

/// The sources of a text: the environment first, then the spec, then the descriptor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) env: Option<String>,
    pub(crate) setting: Option<String>,
    pub(crate) default: Option<String>,
}

/// The sources of a key.
#[derive(Clone, Debug)]
pub(crate) struct KeySource {
    pub(crate) source: Source,
    /// True if the key is no secret, such as the name of a user.
    pub(crate) public: bool,
}

/// An authorization server that gives tokens to a client (`OAuth2`, client credentials).
#[derive(Clone, Debug)]
pub(crate) struct TokenModel {
    pub(crate) address: Source,
    pub(crate) client: KeyText,
    pub(crate) secret: KeyText,
    pub(crate) scope: Option<String>,
}

impl TokenModel {
    /// Returns the names of the keys that the request for a token needs.
    pub(crate) fn key_names(&self) -> BTreeSet<&Name> {
        self.client.names().into_iter().chain(self.secret.names()).collect()
    }
}

/// One API of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) address: Source,
    /// The keys that each call sends.
    pub(crate) auth: Vec<Auth>,
    /// The headers that each call sends.
    pub(crate) headers: Vec<(String, KeyText)>,
    pub(crate) concurrency: usize,
    /// The largest body that the API accepts, in bytes; none if there is no bound.
    pub(crate) body_max: Option<usize>,
    pub(crate) naming: Naming,
    /// True if answers that show an object leave out empty attributes.
    pub(crate) omits_empty: bool,
    /// The places of an error's message in a body, in order of preference.
    pub(crate) message_at: Vec<WirePath>,
    pub(crate) errors: Vec<ErrorRow>,
}

impl Api {
    /// Returns the names of the keys that calls of the API send.
    pub(crate) fn key_names(&self) -> BTreeSet<&Name> {
        let texts = self.auth.iter().map(|auth| &auth.value);
        let texts = texts.chain(self.headers.iter().map(|(_, text)| text));
        texts.flat_map(KeyText::names).collect()
    }
}

/// The way to send a key.
#[derive(Clone, Debug)]
pub(crate) struct Auth {
    pub(crate) place: Place,
    pub(crate) value: KeyText,
    /// True if the value is sent as basic authentication.
    pub(crate) is_basic: bool,
}

/// A place in a request.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// The header with this name.
    Header(String),
    /// The parameter of the query with this name.
    Query(String),
}

/// A header of a call, with attributes filled in. A header with a null value is left out.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: ValueTemplate,
}

/// The keys that lead from the root of a body to a place in it.
pub(crate) type WirePath = Vec<String>;

/// One row of an API's error table: a known refusal, and its meaning.
#[derive(Clone, Debug)]
pub(crate) struct ErrorRow {
    /// The name that phases use, such as `in_use`.
    pub(crate) name: Option<String>,
    /// The statuses that the row is for; empty for all.
    pub(crate) statuses: BTreeSet<u16>,
    /// A part of the message, in lower case; none for any message.
    pub(crate) matching: Option<String>,
    pub(crate) meaning: Meaning,
    /// The place of the row in the descriptor.
    pub(crate) span: Span,
    pub(crate) help: Option<String>,
}

/// The meaning of a known refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Rejected,
    NotFound,
    Throttled,
    Unauthenticated,
    InDoubt,
    /// A success: the object is already as the call was to make it.
    Done,
}

/// The parent of a type: the type below whose objects the type's objects are.
#[derive(Clone, Debug)]
pub(crate) struct Parent {
    pub(crate) ty: Name,
    /// The attributes of a child, each with the attribute of its parent that it repeats.
    pub(crate) attributes: BTreeMap<Name, Name>,
    /// The place in the descriptor.
    pub(crate) span: Span,
}

/// A resource type.
#[derive(Clone, Debug)]
pub(crate) struct TypeModel {
    pub(crate) description: String,
    /// True if objects of the type can only be looked up.
    pub(crate) data_only: bool,
    /// The headers of all calls of the type.
    pub(crate) headers: Vec<Header>,
    /// The id of the only object of the type, if each account has one from the start; else none.
    pub(crate) singleton: Option<ObjectId>,
    pub(crate) parent: Option<Parent>,
    pub(crate) attributes: BTreeMap<Name, AttributeModel>,
    /// The calls that list all objects; their results are joined by the key.
    pub(crate) list: Vec<ListCall>,
    /// The calls that read one object; their results are joined. If empty, the object is searched in the
    /// list.
    pub(crate) read: Vec<ReadCall>,
    /// The search for a lost create; none if the identity alone is enough.
    pub(crate) find: Option<ListCall>,
    /// The attribute that holds the id.
    pub(crate) key: Name,
    pub(crate) create: Vec<ProgramModel>,
    pub(crate) update: Vec<ProgramModel>,
    pub(crate) delete: Vec<ProgramModel>,
    pub(crate) identity: Identity,
    /// The header of [`Identity::IdempotencyKey`]; none for other identities.
    pub(crate) idempotency_header: Option<String>,
    pub(crate) replace: ReplaceOrder,
    pub(crate) unique_name: bool,
    pub(crate) name_attribute: Option<Name>,
    pub(crate) delete_effect: Option<String>,
    /// The price of an object, with its place in the descriptor.
    pub(crate) price: Option<(Price, Span)>,
    pub(crate) rules: Vec<Rule>,
    /// The places of the rules in the descriptor.
    pub(crate) rule_spans: Vec<Span>,
}

/// An attribute and its forms on the wire.
#[derive(Clone, Debug)]
pub(crate) struct AttributeModel {
    pub(crate) schema: Attribute,
    /// The header of an answer that shows the attribute, in lower case; none if a body shows it.
    pub(crate) header: Option<String>,
    /// The forms by API; an API without one does not know the attribute.
    pub(crate) wires: BTreeMap<Name, WireShape>,
    /// True if the API merges the sent value into the existing one: it removes a key that is sent as null.
    pub(crate) merges: bool,
    /// The place in the descriptor which says that the attribute names a container image; none if it does
    /// not.
    pub(crate) image: Option<Span>,
}

impl AttributeModel {
    /// Returns true if requests to an API have a place for the attribute.
    pub(crate) fn is_written_to(&self, api: &Name) -> bool {
        self.wires.get(api).is_some_and(|wire| wire.write_at.is_some())
    }

    /// Returns true if requests to another API have a place for the attribute, and requests to this one have
    /// none.
    pub(crate) fn is_written_elsewhere(&self, api: &Name) -> bool {
        !self.is_written_to(api) && self.wires.keys().any(|other| self.is_written_to(other))
    }

    /// Returns true if a spec may give the attribute, and APIs show it, but no request has a place for it.
    pub(crate) fn is_only_shown(&self) -> bool {
        let is_given = self.schema.presence != Presence::Computed;
        is_given && !self.wires.is_empty() && !self.wires.keys().any(|api| self.is_written_to(api))
    }
}

/// The form of an attribute on the wire of one API.
#[derive(Clone, Debug)]
pub(crate) struct WireShape {
    /// The path in a written object; none if the attribute is never written.
    pub(crate) write_at: Option<WirePath>,
    /// The path in an answer; none if the attribute is never read.
    pub(crate) read_at: Option<WirePath>,
    /// The codecs that writing applies, in order.
    pub(crate) write: Vec<Codec>,
    /// The codecs that reading undoes, from the last to the first.
    pub(crate) read: Vec<Codec>,
    /// The value that is written in place of the attribute's own, computed from all attributes; a null is not
    /// written. None if the attribute's own value is written.
    pub(crate) value: Option<ValueTemplate>,
    /// The expression that computes the attribute's value from the whole `answer`; none if the value is a
    /// part of the answer.
    pub(crate) shown: Option<Expr>,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct CallModel {
    pub(crate) api: Name,
    pub(crate) request: Request,
    /// The place of the call in the descriptor.
    pub(crate) span: Span,
}

impl CallModel {
    /// Returns true if the call is a REST call.
    pub(crate) fn is_rest(&self) -> bool {
        matches!(self.request, Request::Rest { .. })
    }

    /// Returns the names in the templates of the call.
    pub(crate) fn names(&self) -> Vec<Name> {
        let mut names = self.names_in_path();
        names.extend(self.names_beside_path());
        names
    }

    /// Returns true if the call is made once for each parent.
    pub(crate) fn names_parent(&self) -> bool {
        self.names().iter().any(|name| &**name == PARENT)
    }

    /// Returns the attributes of a parent in the templates of the call, as in `${parent.id}`.
    pub(crate) fn names_of_parent(&self) -> BTreeSet<Name> {
        let Request::Rest { path, .. } = &self.request else { return BTreeSet::new() };
        let values = path.segments.iter().chain(path.query.iter().map(|(_, value)| value));
        values.flat_map(|value| members(&value.0, PARENT)).collect()
    }

    /// Returns the segments of the path that use a name.
    pub(crate) fn segments_with(&self, name: &str) -> Vec<&Expr> {
        let Request::Rest { path, .. } = &self.request else { return Vec::new() };
        let segments = path.segments.iter().map(|segment| &segment.0);
        segments.filter(|segment| names(segment).iter().any(|used| &**used == name)).collect()
    }

    /// Returns the names in the path.
    pub(crate) fn names_in_path(&self) -> Vec<Name> {
        match &self.request {
            Request::Rest { path, .. } => {
                path.segments.iter().flat_map(|value| names(&value.0)).collect()
            }
            Request::Graphql { .. } => Vec::new(),
        }
    }

    /// Returns the names in the query or in the arguments.
    pub(crate) fn names_beside_path(&self) -> Vec<Name> {
        match &self.request {
            Request::Rest { path, .. } => {
                path.query.iter().flat_map(|(_, value)| names(&value.0)).collect()
            }
            Request::Graphql { arguments, .. } => arguments
                .iter()
                .filter_map(|(_, argument)| match argument {
                    Argument::Value(template) => Some(names(&template.0)),
                    Argument::Sends => None,
                })
                .flatten()
                .collect(),
        }
    }
}

/// The content of a call.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// A REST request.
    Rest { method: Method, path: PathTemplate },
    /// A GraphQL operation on the field at the end of a path of fields.
    Graphql { mutation: bool, fields: Vec<String>, arguments: Vec<(String, Argument)> },
}

/// A GraphQL argument.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    /// The input object of the phase.
    Sends,
    /// A value.
    Value(ValueTemplate),
}

/// A call that shows several objects.
#[derive(Clone, Debug)]
pub(crate) struct ListCall {
    pub(crate) call: CallModel,
    /// The path of the items in the answer (in GraphQL: below the called field).
    pub(crate) items: WirePath,
    /// True if the answer may leave out a list without items.
    pub(crate) may_lack: bool,
    pub(crate) paging: Option<Paging>,
}

/// The paging of a long list.
#[derive(Clone, Debug)]
pub(crate) enum Paging {
    /// By number: `page` counts from `first`; a page with fewer than `size` items is the last one.
    Page { page: String, first: u64, size: Option<(String, u64)> },
    /// By the number of items before the page: `offset` counts items from 0.
    Offset { offset: String, size: (String, u64) },
    /// By cursor: the value at `next` is sent as `cursor` until there is none.
    Cursor { cursor: String, next: WirePath },
    /// By the header `Link: <…>; rel="next"`.
    Link,
}

/// A call that shows one object.
#[derive(Clone, Debug)]
pub(crate) struct ReadCall {
    pub(crate) call: CallModel,
    /// The path of the object in the answer.
    pub(crate) item: WirePath,
    /// The list that the call shows in place of an object; none if it shows an object.
    pub(crate) list: Option<ReadList>,
}

/// A list that belongs to one object, such as the members of a team.
#[derive(Clone, Debug)]
pub(crate) struct ReadList {
    /// The field that the list counts as.
    pub(crate) field: String,
    /// The path of the items in the answer.
    pub(crate) items: WirePath,
    pub(crate) paging: Option<Paging>,
}

/// The phases of one operation, for the objects for which `when` holds.
#[derive(Clone, Debug)]
pub(crate) struct ProgramModel {
    pub(crate) when: Option<Expr>,
    pub(crate) phases: Vec<PhaseModel>,
}

/// One phase.
#[derive(Clone, Debug)]
pub(crate) struct PhaseModel {
    /// The place of the phase in the descriptor.
    pub(crate) span: Span,
    pub(crate) operation: Operation,
    pub(crate) words: PhaseWords,
    pub(crate) call: Option<CallModel>,
    pub(crate) sends: SendsModel,
    pub(crate) headers: Vec<Header>,
    /// The form of its body.
    pub(crate) body: BodyForm,
    /// The attributes that are sent with other values than the object's.
    pub(crate) with: BTreeMap<Name, ValueTemplate>,
    /// The fields of the body in addition to the attributes, by path.
    pub(crate) fields: Vec<(WirePath, ValueTemplate)>,
    /// The set for whose elements the call is made, one by one; none for an ordinary call.
    pub(crate) elements: Option<Elements>,
    /// The place of the body in the sent object; none for the root.
    pub(crate) inside: Option<Inside>,
    /// The path of the object in the answer; none if the answer shows no object.
    pub(crate) item: Option<WirePath>,
    /// The operation of the server that the call begins; none if it begins none.
    pub(crate) polled: Option<OperationModel>,
    pub(crate) wait: Option<Wait>,
    pub(crate) retry: Option<RetryWhen>,
}

impl PhaseModel {
    /// Returns true if the phase declares that its call gives the object a value of an attribute, even if the
    /// call does not send it: a call that stops an object has no place for its state.
    pub(crate) fn tells(&self, name: &Name) -> bool {
        let is_named = |templates: &BTreeMap<Name, ValueTemplate>| templates.contains_key(name);
        is_named(&self.with)
            || matches!(&self.sends, SendsModel::These(sends) if is_named(sends))
            || self.sends_beside().contains(name)
    }

    /// Returns the attributes that the phase sends in addition to `sends` and `with`: fields of the body are
    /// computed from them, or the call is made for their elements.
    pub(crate) fn sends_beside(&self) -> BTreeSet<Name> {
        let names = self.fields.iter().flat_map(|(_, value)| names(&value.0));
        let set = self.elements.iter().map(|elements| elements.attribute.clone());
        let names = names.filter(|name| ![ONE_TIME, ELEMENT].contains(&&**name));
        names.chain(set).collect()
    }

    /// Returns true if the call has an attribute outside its path: in the body, the query or an argument.
    fn sends_beside_path(&self, name: &Name, attribute: &AttributeModel) -> bool {
        let Some(call) = &self.call else { return false };
        let is_written = attribute.is_written_to(&call.api);
        let in_body = match &self.sends {
            SendsModel::Nothing => false,
            SendsModel::All | SendsModel::Changed => is_written && takes_sends(&call.request),
            SendsModel::These(templates) => is_in(templates, name, is_written),
        };
        in_body
            || is_in(&self.with, name, is_written)
            || self.sends_beside().contains(name)
            || call.names_beside_path().contains(name)
    }
}

/// A set that is changed by one call for each element.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) attribute: Name,
    pub(crate) way: Way,
}

/// The kind of elements for which a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The elements that are wanted and do not exist yet.
    Adds,
    /// The elements that exist and are not wanted.
    Removes,
}

/// The place of a body: under a key, on its own or as the only item of a list.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    pub(crate) key: String,
    pub(crate) is_list: bool,
}

/// Returns true if an attribute is one of those that are sent, or is used in the value of another one.
fn is_in(templates: &BTreeMap<Name, ValueTemplate>, name: &Name, is_written: bool) -> bool {
    is_written && templates.contains_key(name)
        || templates.values().any(|template| names(&template.0).contains(name))
}

/// The attributes that a phase sends.
#[derive(Clone, Debug)]
pub(crate) enum SendsModel {
    Nothing,
    All,
    Changed,
    These(BTreeMap<Name, ValueTemplate>),
}

/// A wait after the call of a phase.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// The condition over `self`, the object as read.
    pub(crate) until: Expr,
    pub(crate) within: Duration,
    /// A description of the condition.
    pub(crate) words: String,
    pub(crate) failing: Option<Failing>,
}

/// A condition that ends a wait without success.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    pub(crate) when: Expr,
    /// The text of the error; none for a default text.
    pub(crate) reason: Option<Expr>,
}

/// An operation of the server, which is polled until it has ended.
#[derive(Clone, Debug)]
pub(crate) struct OperationModel {
    /// The place of the operation in the descriptor.
    pub(crate) span: Span,
    /// The call that shows the operation, filled in with the answer that began it; none for the address in
    /// the header `Location` of that answer.
    pub(crate) call: Option<CallModel>,
    /// The expression that computes the id of the object from the last answer; none if the answer does not
    /// show it.
    pub(crate) id: Option<Expr>,
    /// The condition over the answers of the operation.
    pub(crate) until: Expr,
    pub(crate) within: Duration,
    /// A description of the condition.
    pub(crate) words: String,
    pub(crate) failing: Option<Failing>,
}

/// The known refusals after which a call is tried again.
#[derive(Clone, Debug)]
pub(crate) struct RetryWhen {
    /// The rows of the error table, by name.
    pub(crate) errors: BTreeSet<String>,
    pub(crate) within: Duration,
}

/// Returns true if the arguments or the path of a call contain the sent values.
pub(crate) fn takes_sends(request: &Request) -> bool {
    match request {
        Request::Rest { .. } => true,
        Request::Graphql { arguments, .. } => {
            arguments.iter().any(|(_, argument)| matches!(argument, Argument::Sends))
        }
    }
}
