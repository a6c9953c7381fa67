//! The resource types that a document may describe: the calls that create, list, read, change and delete objects.

use std::collections::BTreeMap;

use crate::document::Document;
use crate::document::reference;
use crate::operation::{Method, Operation, operations};
use crate::report::LeftOut;
use crate::route::{Route, RouteKey};

/// A call of a type, with its path.
#[derive(Clone)]
pub(crate) struct CallDraft<'a> {
    pub(crate) operation: Operation<'a>,
    pub(crate) route: Route,
}

/// A type whose calls are known.
pub(crate) struct Candidate<'a> {
    /// The path of one object.
    pub(crate) item: Route,
    /// The item path of the parent type; none if there is none.
    pub(crate) parent: Option<RouteKey>,
    /// The number of parameters of the item path that name the object below its parent.
    pub(crate) own: usize,
    pub(crate) list: CallDraft<'a>,
    pub(crate) read: Option<CallDraft<'a>>,
    /// The calls that make, change and delete objects; none if objects can only be looked up.
    pub(crate) management: Option<Management<'a>>,
}

/// The calls that make, change and delete objects.
pub(crate) struct Management<'a> {
    pub(crate) create: CallDraft<'a>,
    pub(crate) update: Option<CallDraft<'a>>,
    pub(crate) delete: CallDraft<'a>,
}

type Calls<'a> = BTreeMap<Method, CallDraft<'a>>;

/// The calls of a document, by the keys of their paths.
pub(crate) struct Paths<'a>(BTreeMap<RouteKey, Calls<'a>>);

impl<'a> Paths<'a> {
    pub(crate) fn of(document: &'a Document) -> Self {
        let mut paths: BTreeMap<RouteKey, Calls<'a>> = BTreeMap::new();
        for (path, of_path) in operations(document) {
            let Some(route) = Route::read(path) else { continue };
            let calls = paths.entry(route.key()).or_default();
            for (method, operation) in of_path {
                let call = CallDraft { operation, route: route.clone() };
                calls.entry(method).or_insert(call);
            }
        }
        Self(paths)
    }

    fn call(&self, key: &str, method: Method) -> Option<&CallDraft<'a>> {
        self.0.get(key)?.get(&method)
    }

    /// Returns all operations.
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation<'a>> {
        self.0.values().flat_map(BTreeMap::values).map(|call| call.operation)
    }

    /// Returns the types, parents first, and the paths that look like types and are none.
    pub(crate) fn candidates(&self) -> (Vec<Candidate<'a>>, Vec<LeftOut>) {
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        for calls in self.0.iter().filter(|(key, _)| key.ends_with("/{}")).map(|(_, calls)| calls) {
            let Some(item) = calls.values().next().map(|call| call.route.clone()) else { continue };
            match self.candidate(&item, calls, &mut left_out) {
                Ok(candidate) => found.push(candidate),
                Err(None) => {}
                Err(Some(reason)) => left_out.push(LeftOut::new(braced(&item), reason)),
            }
        }
        let order = |candidate: &Candidate<'a>| (candidate.item.depth(), candidate.item.key());
        found.sort_by_key(order);
        (found, left_out)
    }

    /// Returns the type at an item path. If objects are made there and it is still no type, returns the
    /// reason.
    fn candidate(
        &self,
        item: &Route,
        calls: &Calls<'a>,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<Candidate<'a>, Option<String>> {
        let parent = item.items_above().into_iter().find(|above| self.0.contains_key(above));
        let above = parent.as_ref().map_or(0, |key| key.matches("{}").count());
        let own = item.parameters().len() - above;
        let read = calls.get(&Method::Get).cloned();
        let create = self.create(item, own, calls);
        let create = create.or_else(|| self.elsewhere(read.as_ref(), Method::Post));
        let fail = |reason: String| Err(create.is_some().then_some(reason));
        if own > item.own_parameters() || own == 0 {
            let inner = item.parameters().len() - item.own_parameters();
            let name = item.parameters().get(inner.saturating_sub(1)).copied().unwrap_or_default();
            return fail(format!("no type holds the `{{{name}}}` of its path"));
        }
        let Some(list) = self.list(item, own, create.as_ref()) else {
            return fail("nothing lists its objects".to_owned());
        };
        let management = match (create, calls.get(&Method::Delete).cloned()) {
            (Some(create), Some(delete)) => {
                let update = update(&create, calls);
                Some(Management { create, update, delete })
            }
            (Some(_), None) => {
                left_out.push(LeftOut::new(braced(item), "nothing deletes an object"));
                None
            }
            (None, _) => None,
        };
        Ok(Candidate { item: item.clone(), parent, own, list, read, management })
    }

    /// Returns the call that lists: that of the path above, or one elsewhere.
    fn list(
        &self,
        item: &Route,
        own: usize,
        create: Option<&CallDraft<'a>>,
    ) -> Option<CallDraft<'a>> {
        let here = self.call(&item.key_above(own), Method::Get);
        let beside = create.filter(|create| create.route.parameters().is_empty());
        let beside = beside.and_then(|create| self.call(&create.route.key(), Method::Get));
        let elsewhere = || {
            let noun =
                item.nouns().into_iter().next().filter(|_| own == item.parameters().len())?;
            let lists = self.0.values().filter_map(|calls| calls.get(&Method::Get));
            let lists = lists.filter(|call| {
                call.route.parameters().is_empty() && call.route.nouns().first() == Some(&noun)
            });
            lists.min_by_key(|call| call.route.depth())
        };
        here.or(beside).or_else(elsewhere).cloned()
    }

    /// Returns the call that creates: a POST to a path above, or a PUT to the object itself.
    fn create(&self, item: &Route, own: usize, calls: &Calls<'a>) -> Option<CallDraft<'a>> {
        let posts = (1..=own).filter_map(|levels| self.call(&item.key_above(levels), Method::Post));
        posts.chain(calls.get(&Method::Put)).next().cloned()
    }

    /// Returns a call to a path without parameters whose answer has the same schema as that of a read.
    fn elsewhere(&self, read: Option<&CallDraft<'a>>, method: Method) -> Option<CallDraft<'a>> {
        let schema = reference(read?.operation.answer()?)?;
        let calls = self.0.values().filter_map(|calls| calls.get(&method));
        let mut alike = calls.filter(|call| {
            call.route.parameters().is_empty()
                && call.operation.answer().and_then(reference) == Some(schema)
        });
        alike.next().cloned()
    }
}

/// Returns the call that changes an object: a PATCH, or a PUT or POST to the object that does not make it.
fn update<'a>(create: &CallDraft<'a>, calls: &Calls<'a>) -> Option<CallDraft<'a>> {
    let is_put = create.operation.method == Method::Put;
    let updates = [Method::Patch, Method::Put, Method::Post];
    let mut updates = updates.iter().filter(|method| !(is_put && **method == Method::Put));
    let update = updates.find_map(|method| calls.get(method)).cloned();
    update.or_else(|| is_put.then(|| create.clone()))
}

/// Returns a path as a document writes it.
pub(crate) fn braced(route: &Route) -> String {
    let parameters = route.parameters();
    route.filled(&parameters.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>())
}
