//! The content of a descriptor, as plain data that the rest of the crate interprets.
//!
//! Nothing here looks anything up; the text form and its mistakes are the reader's.

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
    /// The keys, by the names that `auth` has for them.
    pub(crate) keys: BTreeMap<Name, KeySource>,
    pub(crate) certificates: Certificates,
    /// The authorization server that gives the key `token`.
    pub(crate) token: Option<TokenModel>,
    /// The time that an absence must last to count, if the descriptor says.
    pub(crate) settle: Option<Duration>,
    /// Its APIs.
    pub(crate) apis: BTreeMap<Name, Api>,
    /// Its resource types.
    pub(crate) types: BTreeMap<Name, TypeModel>,
}

/// The sources of certificates: their content, or the paths of their files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Certificates {
    /// The authorities that are trusted in the place of the system's.
    pub(crate) ca: Option<Source>,
    /// The certificate that is shown to servers.
    pub(crate) certificate: Option<Source>,
    /// Its key.
    pub(crate) key: Option<Source>,
}

impl Certificates {
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.ca.iter().chain(&self.certificate).chain(&self.key)
    }
}

impl Descriptor {
    /// Returns the largest number of simultaneous calls, to all APIs that its types call.
    pub(crate) fn concurrency(&self) -> usize {
        let called: BTreeSet<&Name> = self.types.values().flat_map(TypeModel::apis).collect();
        let bounds = called.iter().filter_map(|name| self.apis.get(*name));
        bounds.map(|api| api.concurrency).sum::<usize>().max(1)
    }
}

impl TypeModel {
    /// The APIs that it calls.
    fn apis(&self) -> impl Iterator<Item = &Name> {
        self.calls().map(|call| &call.api)
    }

    /// Returns the attributes that reads need beside the id. Lists show them.
    pub(crate) fn named_by_reads(&self) -> BTreeSet<Name> {
        let names = self.read.iter().flat_map(|read| read.call.names());
        names.filter(|name| *name != self.key).collect()
    }

    /// Returns true if an object that no list shows is one that no read shows either.
    pub(crate) fn is_seen_by_lists(&self) -> bool {
        self.read.is_empty() || !self.named_by_reads().iter().all(|name| self.is_part_of_key(name))
    }

    /// Returns true if an attribute can be told from the id.
    pub(crate) fn is_part_of_key(&self, name: &Name) -> bool {
        let key = self.attributes.get(&self.key).and_then(|it| it.schema.derived.as_ref());
        key.is_some_and(|key| key_parts::splits(key) && names(key).contains(name))
    }

    /// Returns true if an attribute has the value of one of the parent.
    pub(crate) fn repeats_parent(&self, name: &Name) -> bool {
        self.parent.as_ref().is_some_and(|parent| parent.attributes.contains_key(name))
    }

    /// Returns true if lists show an attribute, or all that it derives from.
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

    /// The attributes by which a path in these phases names an object, as it is: what they send
    /// elsewhere. What stands in paths alone is sent by them.
    pub(crate) fn named_by_paths(&self, phases: &[PhaseModel]) -> BTreeSet<Name> {
        let sent = self.attributes.iter().filter(|(name, attribute)| {
            phases.iter().any(|phase| phase.sends_beside_path(name, attribute))
        });
        sent.map(|(name, _)| name).filter(|name| **name != self.key).cloned().collect()
    }

    /// All its calls.
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
    /// True if it is no secret, such as the name of a user.
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
    /// The names of the keys that it is asked with.
    pub(crate) fn key_names(&self) -> BTreeSet<&Name> {
        self.client.names().into_iter().chain(self.secret.names()).collect()
    }
}

/// One API of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) address: Source,
    /// The keys that each call is sent with.
    pub(crate) auth: Vec<Auth>,
    /// The headers that each call is sent with.
    pub(crate) headers: Vec<(String, KeyText)>,
    pub(crate) concurrency: usize,
    /// The most bytes of a body that it takes.
    pub(crate) body_max: Option<usize>,
    pub(crate) naming: Naming,
    /// True if answers that show an object leave out what is empty.
    pub(crate) omits_empty: bool,
    /// The places of an error's message in a body, in order of preference.
    pub(crate) message_at: Vec<WirePath>,
    pub(crate) errors: Vec<ErrorRow>,
}

impl Api {
    /// The names of the keys that its calls are sent with.
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
    /// True if the value is sent in the form of basic authentication.
    pub(crate) is_basic: bool,
}

/// A place in a request.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A header of this name.
    Header(String),
    /// A parameter of the query.
    Query(String),
}

/// A header of a call, filled in with attributes. One that is null is left out.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: ValueTemplate,
}

/// Keys from the root of a body to a place in it.
pub(crate) type WirePath = Vec<String>;

/// One row of an API's error table: which refusals are known, and what they mean.
#[derive(Clone, Debug)]
pub(crate) struct ErrorRow {
    /// The name that phases use, such as `in_use`.
    pub(crate) name: Option<String>,
    /// For which statuses; none: for all.
    pub(crate) statuses: BTreeSet<u16>,
    /// A part of the message, in lower case; none: any message.
    pub(crate) matching: Option<String>,
    pub(crate) meaning: Meaning,
    /// Its place in the descriptor.
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

/// The type below whose objects the objects of another type stand.
#[derive(Clone, Debug)]
pub(crate) struct Parent {
    pub(crate) ty: Name,
    /// The attributes of a child, and the attributes of its parent that they repeat.
    pub(crate) attributes: BTreeMap<Name, Name>,
    /// Its place in the descriptor.
    pub(crate) span: Span,
}

/// A resource type.
#[derive(Clone, Debug)]
pub(crate) struct TypeModel {
    pub(crate) description: String,
    /// True if specs only look its objects up.
    pub(crate) data_only: bool,
    /// The headers of all its calls.
    pub(crate) headers: Vec<Header>,
    /// The id of the only object, where each account has one from the start.
    pub(crate) singleton: Option<ObjectId>,
    pub(crate) parent: Option<Parent>,
    pub(crate) attributes: BTreeMap<Name, AttributeModel>,
    /// The calls that list all objects, joined by the key.
    pub(crate) list: Vec<ListCall>,
    /// The calls that read one object, joined; empty: the list is filtered.
    pub(crate) read: Vec<ReadCall>,
    /// The search for a lost create, where the identity alone does not say.
    pub(crate) find: Option<ListCall>,
    /// The attribute that holds the id.
    pub(crate) key: Name,
    pub(crate) create: Vec<ProgramModel>,
    pub(crate) update: Vec<ProgramModel>,
    pub(crate) delete: Vec<ProgramModel>,
    pub(crate) identity: Identity,
    /// The header of [`Identity::IdempotencyKey`].
    pub(crate) idempotency_header: Option<String>,
    pub(crate) replace: ReplaceOrder,
    pub(crate) unique_name: bool,
    pub(crate) name_attribute: Option<Name>,
    pub(crate) delete_effect: Option<String>,
    /// The price of an object, with its place in the descriptor.
    pub(crate) price: Option<(Price, Span)>,
    pub(crate) rules: Vec<Rule>,
    /// The place of each rule in the descriptor.
    pub(crate) rule_spans: Vec<Span>,
}

/// An attribute and its shapes on the wire.
#[derive(Clone, Debug)]
pub(crate) struct AttributeModel {
    pub(crate) schema: Attribute,
    /// The header of an answer that shows it, in lower case.
    pub(crate) header: Option<String>,
    /// By API; an API that is not there does not know the attribute.
    pub(crate) wires: BTreeMap<Name, WireShape>,
    /// True if the API merges what it is sent into what it has: a key goes where it is sent as null.
    pub(crate) merges: bool,
    /// The place that says that it names a container image.
    pub(crate) image: Option<Span>,
}

impl AttributeModel {
    /// Returns true if an API has a place for the attribute in what is sent to it.
    pub(crate) fn is_written_to(&self, api: &Name) -> bool {
        self.wires.get(api).is_some_and(|wire| wire.write_at.is_some())
    }

    /// Returns true if the attribute is written to another API, and this one has no place for it.
    pub(crate) fn is_written_elsewhere(&self, api: &Name) -> bool {
        !self.is_written_to(api) && self.wires.keys().any(|other| self.is_written_to(other))
    }

    /// Returns true if a spec may give the attribute, APIs show it, and none has a place for it in what is sent.
    pub(crate) fn is_only_shown(&self) -> bool {
        let is_given = self.schema.presence != Presence::Computed;
        is_given && !self.wires.is_empty() && !self.wires.keys().any(|api| self.is_written_to(api))
    }
}

/// The form of an attribute on the wire of one API.
#[derive(Clone, Debug)]
pub(crate) struct WireShape {
    /// Its path in a written object; none: it is never written.
    pub(crate) write_at: Option<WirePath>,
    /// Its path in an answer; none: it is never read.
    pub(crate) read_at: Option<WirePath>,
    /// The codecs that writing applies, in order.
    pub(crate) write: Vec<Codec>,
    /// The codecs that reading undoes, from the last to the first.
    pub(crate) read: Vec<Codec>,
    /// The value that is written in place of the attribute's own, made of all attributes; null writes nothing.
    pub(crate) value: Option<ValueTemplate>,
    /// The attribute's value by the whole `answer`, in place of a part of it.
    pub(crate) shown: Option<Expr>,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct CallModel {
    pub(crate) api: Name,
    pub(crate) request: Request,
    /// Its place in the descriptor.
    pub(crate) span: Span,
}

impl CallModel {
    /// Returns true if it is a REST call.
    pub(crate) fn is_rest(&self) -> bool {
        matches!(self.request, Request::Rest { .. })
    }

    /// The names that its templates use.
    pub(crate) fn names(&self) -> Vec<Name> {
        let mut names = self.names_in_path();
        names.extend(self.names_beside_path());
        names
    }

    /// Returns true if it is made once for each parent.
    pub(crate) fn names_parent(&self) -> bool {
        self.names().iter().any(|name| &**name == PARENT)
    }

    /// The attributes of a parent that its templates use, as in `${parent.id}`.
    pub(crate) fn names_of_parent(&self) -> BTreeSet<Name> {
        let Request::Rest { path, .. } = &self.request else { return BTreeSet::new() };
        let values = path.segments.iter().chain(path.query.iter().map(|(_, value)| value));
        values.flat_map(|value| members(&value.0, PARENT)).collect()
    }

    /// The segments of its path that use a name.
    pub(crate) fn segments_with(&self, name: &str) -> Vec<&Expr> {
        let Request::Rest { path, .. } = &self.request else { return Vec::new() };
        let segments = path.segments.iter().map(|segment| &segment.0);
        segments.filter(|segment| names(segment).iter().any(|used| &**used == name)).collect()
    }

    /// The names that its path uses.
    pub(crate) fn names_in_path(&self) -> Vec<Name> {
        match &self.request {
            Request::Rest { path, .. } => {
                path.segments.iter().flat_map(|value| names(&value.0)).collect()
            }
            Request::Graphql { .. } => Vec::new(),
        }
    }

    /// The names that its query or its arguments use.
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

/// A call that shows many objects.
#[derive(Clone, Debug)]
pub(crate) struct ListCall {
    pub(crate) call: CallModel,
    /// The path of the items in the answer (in GraphQL: below the called field).
    pub(crate) items: WirePath,
    /// True if a list without items may be left out of the answer.
    pub(crate) may_lack: bool,
    pub(crate) paging: Option<Paging>,
}

/// The paging of a long list.
#[derive(Clone, Debug)]
pub(crate) enum Paging {
    /// By number: `page` counts from `first`; a page with fewer than `size` items is the last.
    Page { page: String, first: u64, size: Option<(String, u64)> },
    /// By the number of items before it: `offset` counts items from 0.
    Offset { offset: String, size: (String, u64) },
    /// By cursor: what stands at `next` is sent as `cursor` until there is none.
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
    /// The list that it shows in the place of an object.
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

/// The phases of one operation, for the objects that `when` holds for.
#[derive(Clone, Debug)]
pub(crate) struct ProgramModel {
    pub(crate) when: Option<Expr>,
    pub(crate) phases: Vec<PhaseModel>,
}

/// One phase.
#[derive(Clone, Debug)]
pub(crate) struct PhaseModel {
    /// Its place in the descriptor.
    pub(crate) span: Span,
    pub(crate) operation: Operation,
    pub(crate) words: PhaseWords,
    pub(crate) call: Option<CallModel>,
    pub(crate) sends: SendsModel,
    pub(crate) headers: Vec<Header>,
    /// The form of its body.
    pub(crate) body: BodyForm,
    /// Attributes that are sent with other values than the object's.
    pub(crate) with: BTreeMap<Name, ValueTemplate>,
    /// Fields of the body beside the attributes, by path.
    pub(crate) fields: Vec<(WirePath, ValueTemplate)>,
    /// The set for whose elements its call is made, one by one.
    pub(crate) elements: Option<Elements>,
    /// The place of the body in what is sent.
    pub(crate) inside: Option<Inside>,
    /// The path of the object in the answer; none: the answer shows no object.
    pub(crate) item: Option<WirePath>,
    /// The operation of the server that its call begins.
    pub(crate) polled: Option<OperationModel>,
    pub(crate) wait: Option<Wait>,
    pub(crate) retry: Option<RetryWhen>,
}

impl PhaseModel {
    /// Returns true if the phase says that its call gives the object a value of an attribute, whether the call has a
    /// place for it or not: a call that stops an object has none for its state.
    pub(crate) fn tells(&self, name: &Name) -> bool {
        let is_named = |templates: &BTreeMap<Name, ValueTemplate>| templates.contains_key(name);
        is_named(&self.with)
            || matches!(&self.sends, SendsModel::These(sends) if is_named(sends))
            || self.sends_beside().contains(name)
    }

    /// The attributes that it sends beside `sends` and `with`: fields of the body are made of them, or its call is made
    /// for their elements.
    pub(crate) fn sends_beside(&self) -> BTreeSet<Name> {
        let names = self.fields.iter().flat_map(|(_, value)| names(&value.0));
        let set = self.elements.iter().map(|elements| elements.attribute.clone());
        let names = names.filter(|name| ![ONE_TIME, ELEMENT].contains(&&**name));
        names.chain(set).collect()
    }

    /// Returns true if its call has an attribute elsewhere than in its path: in the body, the query or an argument.
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

/// A set that is changed with a call for each element.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) attribute: Name,
    pub(crate) way: Way,
}

/// The elements for which a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Those that are wanted and not there.
    Adds,
    /// Those that are there and not wanted.
    Removes,
}

/// The place of a body: under a key, alone or as the one item of a list.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    pub(crate) key: String,
    pub(crate) is_list: bool,
}

/// Returns true if an attribute is one of those that are sent, or stands in what is sent as another.
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

/// A wait after a phase's call.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// Over `self`, the object as read.
    pub(crate) until: Expr,
    pub(crate) within: Duration,
    /// In words.
    pub(crate) words: String,
    pub(crate) failing: Option<Failing>,
}

/// A condition that ends a wait without success.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    pub(crate) when: Expr,
    /// The text of the error.
    pub(crate) reason: Option<Expr>,
}

/// An operation of the server, which is looked at until it has ended.
#[derive(Clone, Debug)]
pub(crate) struct OperationModel {
    /// Its place in the descriptor.
    pub(crate) span: Span,
    /// The call that shows it, filled in with the answer that began it; none: the header `Location` of that answer.
    pub(crate) call: Option<CallModel>,
    /// The id of the object, over its last answer.
    pub(crate) id: Option<Expr>,
    /// Over its answers.
    pub(crate) until: Expr,
    pub(crate) within: Duration,
    /// In words.
    pub(crate) words: String,
    pub(crate) failing: Option<Failing>,
}

/// The known refusals that are worth another try.
#[derive(Clone, Debug)]
pub(crate) struct RetryWhen {
    /// The rows of the error table, by name.
    pub(crate) errors: BTreeSet<String>,
    pub(crate) within: Duration,
}

/// Returns true if a call's arguments or path take what the phase sends.
pub(crate) fn takes_sends(request: &Request) -> bool {
    match request {
        Request::Rest { .. } => true,
        Request::Graphql { arguments, .. } => {
            arguments.iter().any(|(_, argument)| matches!(argument, Argument::Sends))
        }
    }
}
