//! Reads: lists, single objects and look-ups of lost creates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::Name;
use engine::digest::SealKey;
use engine::plan::{agree, is_stable};
use engine::schema::{Attribute, Identity, Presence, SeenIn};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use futures_util::future::join_all;
use provider_port::{Kind, Lookup, Object};
use serde_json::Value as Json;

use crate::calls::{Payload, Shown};
use crate::children::Item;
use crate::classify::Failure;
use crate::descriptor::model::{CallModel, ListCall, Paging, ReadCall, ReadList};
use crate::empty::Look;
use crate::listing::Listing;
use crate::objects::{id_text, join};
use crate::paging::Page;
use crate::subject::{Subject, unreadable};
use crate::template::{CallScope, ONE_TIME};
use crate::wire::at;
use crate::words::message;

/// The most pages of a list: a server that always names another page would be read without end.
const PAGES_MAX: usize = 10_000;

/// The advice about an answer without a list.
const NO_LIST: &str = "the descriptor and the API do not agree; where the API leaves out an empty list, \
                       say `may_be_left_out = true` in `list`";
/// The advice about an answer that is a list as a whole.
const IS_LIST: &str = "the answer itself is the list: leave `items` out";
/// The most keys of an answer that a message names.
const KEYS_MAX: usize = 12;

impl Subject<'_> {
    /// Returns all objects: the lists joined by id. If two lists show an attribute, the first one counts; an
    /// object that only one of them shows exists.
    pub(crate) async fn list(&self) -> Result<Listing, Failure> {
        self.list_beside(None).await
    }

    /// Returns all objects; if the attributes of a `child` name its parent, only the objects below that one.
    async fn list_beside(&self, child: Option<&Attributes>) -> Result<Listing, Failure> {
        if let (Some(id), true) = (&self.model.singleton, self.model.list.is_empty()) {
            return match Box::pin(self.read(id)).await {
                Ok(object) => Ok(Listing { objects: vec![object], unfit: Vec::new() }),
                Err(failure) if failure.error.kind == Kind::NotFound => Ok(Listing::default()),
                Err(failure) => Err(failure),
            };
        }
        let lists = join_all(self.model.list.iter().map(|list| self.list_items(list, child))).await;
        let mut listing = Listing::default();
        let mut objects: BTreeMap<ObjectId, Look> = BTreeMap::new();
        for (number, (list, items)) in self.model.list.iter().zip(lists).enumerate() {
            let empties = self.empties(&list.call.api, &[SeenIn::List]);
            let mut listed = BTreeSet::new();
            for Item { json: item, of_parent } in items? {
                match self.object_below(&list.call.api, &item, None, &of_parent) {
                    Ok(object) => {
                        let is_new = listed.insert(object.id.clone());
                        let look = objects.entry(object.id.clone()).or_default();
                        let twin = self.differs_in(&object.attributes, look.shown(), !is_new);
                        if let Some(differs) = twin {
                            let trouble = self.ambiguous(&list.call, &object.id, &differs);
                            listing.add_ambiguous(object.id, trouble);
                            continue;
                        }
                        look.add(number, object.attributes, (&empties, &item));
                        look.lack(self.absent(&list.call.api, &item));
                    }
                    Err(reason) => listing.unfit.push(self.unfit(&list.call, &item, &reason)?),
                }
            }
        }
        let unfit = listing.unfit_ids();
        objects.retain(|id, _| !unfit.contains(id));
        let lists = self.model.list.len();
        let objects = objects.into_iter();
        listing.objects =
            objects.map(|(id, look)| self.derived(id, look.attributes(lists))).collect();
        listing.refuse_another_shape()?;
        Ok(listing)
    }

    /// Returns the lists for callers that look for one object. If the known attributes name its parent, only
    /// the lists below that one.
    pub(crate) async fn shared_list(
        &self,
        child: Option<&Attributes>,
    ) -> Result<Arc<Listing>, Failure> {
        let parent = child.and_then(|child| self.parent_of(child));
        let listed = match parent {
            Some(parent) => self.shared.below(&parent).list(self.list_beside(child)).await,
            None => self.shared.whole().list(self.list()).await,
        };
        listed.map_err(|failure| failure.masked_by(&self.masker()))
    }

    /// Returns one object from the lists.
    async fn listed(&self, id: &ObjectId) -> Result<Object, Failure> {
        let listing = self.shared_list(self.key_parts(id).as_ref()).await?;
        if let Some(trouble) = listing.trouble_of(id) {
            return Err(trouble.clone());
        }
        let found = listing.objects.iter().find(|object| object.id == *id);
        found.cloned().ok_or_else(|| self.not_found(id))
    }

    /// Returns the attributes that reads of an object need in addition to its id, as the lists show them.
    async fn named_by_reads(&self, id: &ObjectId) -> Result<Attributes, Failure> {
        let names = self.model.named_by_reads();
        if names.is_empty() {
            return Ok(Attributes::new());
        }
        let parts = self.key_parts(id).unwrap_or_default();
        let mut named = if names.iter().all(|name| parts.contains_key(name)) {
            parts
        } else {
            self.listed(id).await?.attributes
        };
        named.retain(|name, _| names.contains(name));
        Ok(named)
    }

    /// Reads one object, by its own calls or from the lists.
    pub(crate) async fn read(&self, id: &ObjectId) -> Result<Object, Failure> {
        let object = self.read_as_spelled(id).await?;
        if object.id == *id {
            return Ok(object);
        }
        let name = &self.schema.name;
        let shown = self.masker().line(&object.id.0);
        let message =
            format!("the {name} {id} is shown as {shown}: the API spells its id otherwise");
        Err(Failure::new(Kind::InDoubt, message).help(format!(
            "forget it with `plumb state rm ADDRESS`, write its id in the spec as the API does, and take it \
             over with `plumb import ADDRESS {shown}`"
        )))
    }

    /// Reads one object; its id has the spelling of the API, which may differ in upper and lower case from
    /// the one that a client chose.
    pub(crate) async fn read_as_spelled(&self, id: &ObjectId) -> Result<Object, Failure> {
        if !self.may_be_key(id) {
            return Err(self.another_key(id));
        }
        if self.model.read.is_empty() {
            return self.listed(id).await;
        }
        let named = self.named_by_reads(id).await?;
        let reads = self.model.read.iter().map(|read| self.read_one(read, id, &named));
        let reads = join_all(reads).await;
        let mut look: Option<Look> = None;
        let mut spelled = id.clone();
        let mut mute = None;
        for (number, (read, call)) in reads.into_iter().zip(&self.model.read).enumerate() {
            match read {
                Ok(Some((object, item))) => {
                    let empties = self.empties(&call.call.api, &[SeenIn::List, SeenIn::Read]);
                    let look = look.get_or_insert_default();
                    look.add(number, object.attributes, (&empties, &item));
                    look.lack(self.absent(&call.call.api, &item));
                    // An answer without an id is about the object that was asked for.
                    if object.id != *id {
                        spelled = object.id;
                    }
                }
                Ok(None) if call.call.is_rest() => mute = Some(&call.call),
                Ok(None) => {}
                Err(failure) if failure.error.kind == Kind::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        match (look, mute) {
            (Some(mut look), _) => {
                // The object has the attributes by which it was read: few APIs repeat the values in the
                // address.
                look.know(named);
                Ok(self.derived(spelled, look.attributes(self.model.read.len())))
            }
            (None, Some(call)) => Err(self.missing(call, id).await),
            (None, None) => Err(self.not_found(id)),
        }
    }

    /// Handles a success without an object. It does not prove that the object is gone, as a 404 does, or a
    /// null in GraphQL, because a proxy before the API may send it. The lists show if the object is gone.
    async fn missing(&self, call: &CallModel, id: &ObjectId) -> Failure {
        if self.model.list.is_empty() {
            return unreadable(call, "it shows no object").transient();
        }
        match self.list().await {
            Ok(listing) if !listing.shows(id) => self.not_found(id),
            Ok(_) => unreadable(call, "it shows nothing of an object that is listed").transient(),
            Err(failure) => failure,
        }
    }

    /// Returns the object that a call shows, and the answer.
    async fn read_one(
        &self,
        read: &ReadCall,
        id: &ObjectId,
        named: &Attributes,
    ) -> Result<Option<(Object, Json)>, Failure> {
        let scope = CallScope {
            live: Some(named),
            id: Some(&id.0),
            id_attribute: Some(&self.model.key),
            ..CallScope::default()
        };
        if let Some(list) = &read.list {
            return self.read_list(read, list, id, &scope).await.map(Some);
        }
        let prepared = self.prepare(&read.call, &scope)?;
        let shown = self.caller.call(&prepared, &|_| {}).await?;
        let in_headers = self.in_headers(&shown);
        let json = shown.json.unwrap_or(Json::Null);
        let Some(item) = at(&json, &read.item).filter(|item| !item.is_null()) else {
            return Ok(None);
        };
        let object = self.object(&read.call.api, item, Some(id));
        let mut object = object.map_err(|reason| unreadable(&read.call, &reason))?;
        if !object.id.0.eq_ignore_ascii_case(&id.0) {
            return Err(unreadable(&read.call, "it shows another object"));
        }
        object.attributes.extend(in_headers);
        Ok(Some((object, item.clone())))
    }

    /// Returns an object with its own list, which a call shows page by page.
    async fn read_list(
        &self,
        read: &ReadCall,
        list: &ReadList,
        id: &ObjectId,
        scope: &CallScope<'_>,
    ) -> Result<(Object, Json), Failure> {
        let ReadList { field, items, paging } = list;
        let (call, items, paging) = (read.call.clone(), items.clone(), paging.clone());
        let call = ListCall { call, items, may_lack: false, paging };
        let subject: Subject<'_> = *self;
        let items = Box::pin(subject.items(&call, scope)).await?;
        let json = Json::from_iter([(field.clone(), Json::Array(items))]);
        let object = self.object(&read.call.api, &json, Some(id));
        let object = object.map_err(|reason| unreadable(&read.call, &reason))?;
        Ok((object, json))
    }

    /// Finds the objects that a create in doubt may have made.
    pub(crate) async fn find(&self, lookup: &Lookup<'_>) -> Result<Vec<Object>, Failure> {
        if let Some(find) = &self.model.find {
            return self.find_by(find, lookup).await;
        }
        match &self.model.identity {
            Identity::OneTimeName { attribute } => {
                let has_name = |object: &Object| {
                    let name = object.attributes.get(attribute).and_then(Value::as_str);
                    name.is_some_and(|name| lookup.nonce.is(name))
                };
                let listing = self.shared_list(lookup.desired).await?;
                listing.refuse_unfit(|name| lookup.nonce.is(name))?;
                Ok(listing.objects.iter().filter(|o| has_name(o)).cloned().collect())
            }
            Identity::UniqueName { attribute } => {
                let wanted = self.wanted_name(attribute, lookup)?;
                let has_name = |object: &Object| object.attributes.get(attribute) == Some(&wanted);
                let listing = self.shared_list(lookup.desired).await?;
                listing.refuse_unfit(|name| wanted.as_str() == Some(name))?;
                Ok(listing.objects.iter().filter(|o| has_name(o)).cloned().collect())
            }
            Identity::ClientId { attribute } => {
                let id = self.wanted_id(attribute, lookup)?;
                match self.read_as_spelled(&id).await {
                    Ok(object) if object.id == id => Ok(vec![object]),
                    Ok(object) => Err(self.is_no_proof(&id, &object.id)),
                    Err(failure) if failure.error.kind == Kind::NotFound => Ok(Vec::new()),
                    Err(failure) => Err(failure),
                }
            }
            Identity::IdempotencyKey | Identity::Ask | Identity::Local => {
                Err(self.cannot_find("nothing in the API tells which object it made"))
            }
        }
    }

    /// Returns the failure about an object with the id of a lost create in another spelling: it may have
    /// existed before.
    fn is_no_proof(&self, id: &ObjectId, shown: &ObjectId) -> Failure {
        let shown = self.masker().line(&shown.0);
        let message =
            format!("{id} is shown as {shown}: it may be of this create, or of another client");
        Failure::new(Kind::InDoubt, message)
    }

    /// Finds the objects of a lost create by the search of the descriptor.
    async fn find_by(&self, find: &ListCall, lookup: &Lookup<'_>) -> Result<Vec<Object>, Failure> {
        let found = self.found_by(find, lookup).await?;
        if self.model.identity == Identity::IdempotencyKey && !found.is_empty() {
            self.refuse_unproven(find, lookup, &found).await?;
        }
        Ok(found)
    }

    /// Refuses objects that a lost create may not have made. They contain nothing that was drawn for the
    /// create, so the filter is the only proof. A server that does not know the filter shows the same objects
    /// for another drawn text, and an object that differs from the sent values may have another owner.
    async fn refuse_unproven(
        &self,
        find: &ListCall,
        lookup: &Lookup<'_>,
        found: &[Object],
    ) -> Result<(), Failure> {
        if find.call.names().iter().any(|name| &**name == ONE_TIME) {
            let nonce = lookup.nonce.another();
            let others = self.found_by(find, &Lookup { nonce: &nonce, ..*lookup }).await?;
            if found.iter().any(|own| others.iter().any(|other| other.id == own.id)) {
                let why = "its search shows the same whatever it is asked for";
                return Err(self.cannot_find(why));
            }
            return Ok(());
        }
        let sent = lookup.desired.iter().flat_map(|desired| desired.iter());
        let telling: Vec<_> =
            sent.filter(|(name, value)| !value.is_null() && self.tells(name)).collect();
        // Both sides are in clear here, so no fingerprint is computed; any key will do.
        let key = SealKey::from_random([0; 32]);
        let is_like = |object: &Object| {
            let shown = |name: &Name| object.attributes.get(name);
            telling.iter().all(|(name, sent)| shown(name).is_none_or(|it| agree(sent, it, &key)))
        };
        if found.iter().all(is_like) {
            return Ok(());
        }
        Err(self.cannot_find("what its search shows is not what the create sent"))
    }

    /// Returns true if an answer shows the value of an attribute that was sent: it is shown, and does not
    /// change by itself.
    fn tells(&self, name: &Name) -> bool {
        let attribute = self.schema.attributes.get(name);
        let is_shown = |it: &Attribute| it.seen_in == SeenIn::List;
        attribute.is_some_and(is_shown) && is_stable(self.schema, name)
    }

    async fn found_by(&self, find: &ListCall, lookup: &Lookup<'_>) -> Result<Vec<Object>, Failure> {
        let asked = self.asked_for(find, lookup)?;
        let scope = CallScope {
            desired: lookup.desired,
            nonce: Some(&lookup.nonce.0),
            ..CallScope::default()
        };
        let items = match self.items(find, &scope).await {
            Err(failure) if failure.error.kind == Kind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut found = Vec::new();
        for item in items {
            let object = self.object(&find.call.api, &item, None);
            let mut object = object.map_err(|reason| unreadable(&find.call, &reason))?;
            join(&mut object.attributes, self.absent(&find.call.api, &item));
            if self.is_wanted(&object, lookup)? && shows(&object, &asked) {
                found.push(self.derived(object.id, object.attributes));
            }
        }
        Ok(found)
    }

    /// Returns true if an object in a search result fits the search, by the type's identity: many APIs show
    /// all objects if they do not know a filter, or objects with similar names.
    fn is_wanted(&self, object: &Object, lookup: &Lookup<'_>) -> Result<bool, Failure> {
        let name = |attribute: &Name| {
            let name = object.attributes.get(attribute);
            name.ok_or_else(|| self.cannot_find(&format!("its search shows no `{attribute}`")))
        };
        match &self.model.identity {
            Identity::OneTimeName { attribute } => {
                Ok(name(attribute)?.as_str().is_some_and(|name| lookup.nonce.is(name)))
            }
            Identity::UniqueName { attribute } => {
                Ok(*name(attribute)? == self.wanted_name(attribute, lookup)?)
            }
            Identity::ClientId { attribute } => Ok(object.id == self.wanted_id(attribute, lookup)?),
            Identity::IdempotencyKey | Identity::Ask | Identity::Local => Ok(true),
        }
    }

    fn wanted_name(&self, attribute: &Name, lookup: &Lookup<'_>) -> Result<Value, Failure> {
        let wanted = lookup.desired.and_then(|desired| desired.get(attribute)).cloned();
        let wanted = wanted.filter(|name| !name.is_null());
        wanted.ok_or_else(|| self.cannot_find("the name that it was to get is not known"))
    }

    fn wanted_id(&self, attribute: &Name, lookup: &Lookup<'_>) -> Result<ObjectId, Failure> {
        let wanted = lookup.desired.and_then(|desired| desired.get(attribute));
        // An id that the spec need not give is drawn; a required one is never drawn.
        let known = self.schema.attributes.get(attribute);
        let drawn = self.derived_key().is_none()
            && known.is_none_or(|known| known.presence != Presence::Required);
        let drawn = || drawn.then(|| lookup.nonce.0.clone());
        let id = wanted.and_then(id_text).or_else(drawn).map(ObjectId);
        id.ok_or_else(|| self.cannot_find("the id that it was to get is not known"))
    }

    /// Returns the attributes that a search filters by, with the values of the create, if they are the only
    /// proof for its result. An object with the name or the id of the create proves itself, so none are
    /// returned for it.
    fn asked_for(&self, find: &ListCall, lookup: &Lookup<'_>) -> Result<Attributes, Failure> {
        let mut asked = Attributes::new();
        if !matches!(self.model.identity, Identity::IdempotencyKey | Identity::Ask) {
            return Ok(asked);
        }
        for name in find.call.names() {
            let Some(attribute) = self.schema.attributes.get(&name) else { continue };
            let wanted = lookup.desired.and_then(|desired| desired.get(&name));
            let Some(wanted) = wanted else {
                // Without a filter the search would return everything.
                let why = format!("the `{name}` that it was to get is not known any more");
                return Err(self.cannot_find(&why));
            };
            if attribute.seen_in != SeenIn::Never {
                asked.insert(name, wanted.clone());
            }
        }
        Ok(asked)
    }

    fn cannot_find(&self, why: &str) -> Failure {
        let message = format!("a lost create of {} cannot be looked up: {why}", self.schema.name);
        Failure::new(Kind::InDoubt, message)
            .help("look into the API, then say what is there with `plumb resolve`")
    }

    /// Returns the failure about an id that the descriptor cannot have made. A person typed a part of it, or
    /// the state has the object under an older key: the object is not gone.
    fn another_key(&self, id: &ObjectId) -> Failure {
        let (name, key) = (&self.schema.name, &self.model.key);
        let form = self.derived_key().map(ToString::to_string).unwrap_or_default();
        let message =
            format!("{id} is no id of a {name}: the descriptor makes its `{key}` as {form}");
        Failure::new(Kind::InDoubt, message).help(
            "give the whole id in this form; if the state has the object by an older key, forget it with \
             `plumb state rm ADDRESS`, and take it over by its new one with `plumb import ADDRESS ID`",
        )
    }

    /// Returns the items of a list, page by page.
    pub(crate) async fn items(
        &self,
        list: &ListCall,
        scope: &CallScope<'_>,
    ) -> Result<Vec<Json>, Failure> {
        let mut prepared = self.prepare(&list.call, scope)?;
        let first = match &prepared.payload {
            Payload::Rest { path, .. } => path.clone(),
            _ => String::new(),
        };
        let mut items = Vec::new();
        let mut page = Page::first(list.paging.as_ref());
        for _ in 0..PAGES_MAX {
            if let (Payload::Rest { path, .. }, Some(paging)) =
                (&mut prepared.payload, &list.paging)
            {
                *path = page.path(&first, paging);
            }
            prepared.names_object =
                page.may_be_none() || scope.parent.is_some() || scope.id.is_some();
            let shown = match self.caller.call(&prepared, &|_| {}).await {
                Err(failure) if page.may_be_none() && failure.error.kind == Kind::NotFound => {
                    return Ok(items);
                }
                other => other?,
            };
            let found = self.items_of(list, &shown)?;
            let Some(paging) = &list.paging else { return Ok(found) };
            let ids = self.ids(&list.call.api, &found);
            items.extend(found);
            if let (Paging::Link, Some(link)) = (paging, &shown.link) {
                match self.caller.next_link(&prepared, link)? {
                    Some(url) => prepared.payload = Payload::Link { url },
                    None => return Ok(items),
                }
                continue;
            }
            let next = page.next(paging, ids, shown.json.as_ref());
            if !next.map_err(|why| unreadable(&list.call, why))? {
                return Ok(items);
            }
        }
        Err(unreadable(&list.call, "its pages do not end"))
    }

    /// Returns the items of an answer. An answer without a list counts as empty only if the descriptor allows
    /// that, and if the answer contains no error.
    fn items_of(&self, list: &ListCall, shown: &Shown) -> Result<Vec<Json>, Failure> {
        let json = shown.json.as_ref().unwrap_or(&Json::Null);
        let is_empty = |json: &Json| {
            let is_body = json.is_null() || json.is_object() && !list.items.is_empty();
            is_body && message(json, self.caller.api(&list.call.api)).is_none()
        };
        match at(json, &list.items) {
            Some(Json::Array(items)) => Ok(items.clone()),
            None | Some(Json::Null) if list.may_lack && is_empty(json) => Ok(Vec::new()),
            _ => Err(self.no_list(list, json)),
        }
    }

    /// Returns the failure of an answer without a list at its path. The keys that stand there tell a wrong
    /// path from an empty list that is left out.
    fn no_list(&self, list: &ListCall, json: &Json) -> Failure {
        let depth = (0..=list.items.len()).rev();
        let reached = depth.filter_map(|depth| Some((depth, at(json, &list.items[..depth])?)));
        let mut objects = reached.filter_map(|(depth, json)| Some((depth, json.as_object()?)));
        let place = match list.items.as_slice() {
            [] => String::new(),
            path => format!(" at `{}`", path.join(".")),
        };
        let none = format!("it shows no list{place}, where one was expected");
        let Some((depth, object)) = objects.next().filter(|(_, object)| !object.is_empty()) else {
            let help = if json.is_array() { IS_LIST } else { NO_LIST };
            return unreadable(&list.call, &none).help(help);
        };
        let path = |key: &String| {
            let parents = list.items[..depth].iter();
            self.masker().line(&parents.chain([key]).cloned().collect::<Vec<_>>().join("."))
        };
        let keys: Vec<_> =
            object.keys().take(KEYS_MAX).map(|key| format!("`{}`", path(key))).collect();
        let failure = unreadable(&list.call, &format!("{none}; it has {}", keys.join(", ")));
        match object.iter().find(|(_, value)| value.is_array()) {
            Some((key, _)) => failure.help(format!(
                "`items` is the path to the list in the answer, such as `items = \"{}\"`",
                path(key)
            )),
            None => failure.help(NO_LIST),
        }
    }

    /// Returns the ids that distinguish the items of one page from those of another.
    fn ids(&self, api: &Name, items: &[Json]) -> Vec<Json> {
        let wires = self.model.attributes.get(&self.model.key).map(|key| &key.wires);
        let path = wires.and_then(|wires| wires.get(api)?.read_at.as_ref());
        let id = |item| path.and_then(|path| at(item, path)).unwrap_or(item);
        items.iter().map(|item| id(item).clone()).collect()
    }
}

/// Returns true if an object agrees with all attributes of a filter: a server may not know the filter.
fn shows(object: &Object, asked: &Attributes) -> bool {
    asked
        .iter()
        .all(|(name, value)| object.attributes.get(name).is_none_or(|shown| shown.same(value)))
}
