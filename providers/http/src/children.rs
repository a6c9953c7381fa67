//! Lists below parents: one call, or some pages, for each parent.

use std::sync::Arc;

use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use provider_port::Kind;
use serde_json::Value as Json;

use crate::classify::Failure;
use crate::descriptor::model::{ListCall, Parent};
use crate::listing::Listing;
use crate::objects::id_text;
use crate::subject::{Subject, what};
use crate::template::CallScope;

/// The number of parents whose children are listed at the same time. The limiter of the API bounds the calls
/// further.
const AT_ONCE: usize = 16;

/// An item of a list, with the attributes that its object repeats of its parent.
pub(crate) struct Item {
    pub(crate) json: Json,
    pub(crate) of_parent: Attributes,
}

/// An object below which other objects are listed.
struct ParentObject {
    id: ObjectId,
    attributes: Attributes,
}

impl Subject<'_> {
    /// Returns the items of a list: of one call, or of one call for each parent. If `child` names its parent,
    /// only the items below that one.
    pub(crate) async fn list_items(
        &self,
        list: &ListCall,
        child: Option<&Attributes>,
    ) -> Result<Vec<Item>, Failure> {
        let parent = self.model.parent.as_ref().filter(|_| list.call.names_parent());
        let Some(parent) = parent else {
            let items = self.items(list, &CallScope::default()).await?;
            let item = |json| Item { json, of_parent: Attributes::new() };
            return Ok(items.into_iter().map(item).collect());
        };
        let of_parent = self.other(&parent.ty)?;
        let parents = match child.and_then(|child| of_parent.named_by(parent, list, child)) {
            Some(named) => vec![named],
            None => of_parent.parents(self.model.is_seen_by_lists()).await?,
        };
        let lists = stream::iter(parents)
            .map(|object| self.items_below(list, parent, of_parent, object))
            .buffered(AT_ONCE);
        lists.try_concat().await
    }

    /// Returns the id of the parent that the attributes of a child name; none if they do not.
    pub(crate) fn parent_of(&self, child: &Attributes) -> Option<ObjectId> {
        let parent = self.model.parent.as_ref()?;
        let of_parent = self.other(&parent.ty).ok()?;
        let below = self.model.list.iter().filter(|list| list.call.names_parent());
        let parents = below.map(|list| Some(of_parent.named_by(parent, list, child)?.id));
        parents.collect::<Option<Vec<_>>>()?.pop()
    }

    /// Returns the parent that the attributes of a child name, if they contain everything that the call of
    /// its list needs.
    fn named_by(
        &self,
        parent: &Parent,
        list: &ListCall,
        child: &Attributes,
    ) -> Option<ParentObject> {
        let mut attributes = Attributes::new();
        for (own, theirs) in &parent.attributes {
            let value = child.get(own).filter(|value| value.is_known() && !value.is_null());
            attributes.extend(value.map(|value| (theirs.clone(), value.clone())));
        }
        let id = attributes.get(&self.model.key).and_then(id_text).map(ObjectId)?;
        let is_enough =
            list.call.names_of_parent().iter().all(|name| attributes.contains_key(name));
        is_enough.then_some(ParentObject { id, attributes })
    }

    /// Returns all parents. A parent that does not fit the descriptor hides its children only if each of them
    /// can also be read by itself.
    async fn parents(&self, children_are_listed_only: bool) -> Result<Vec<ParentObject>, Failure> {
        let listing: Arc<Listing> = Box::pin(self.shared_list(None)).await?;
        if let Some(unfit) = listing.unfit.first().filter(|_| children_are_listed_only) {
            return Err(unfit.trouble.clone());
        }
        let parent = |object: &provider_port::Object| ParentObject {
            id: object.id.clone(),
            attributes: object.attributes.clone(),
        };
        Ok(listing.objects.iter().map(parent).collect())
    }

    /// Returns the items below one parent.
    async fn items_below(
        &self,
        list: &ListCall,
        parent: &Parent,
        of_parent: Subject<'_>,
        object: ParentObject,
    ) -> Result<Vec<Item>, Failure> {
        let scope = CallScope { parent: Some(&object.attributes), ..CallScope::default() };
        let items = match self.items(list, &scope).await {
            Err(failure) if failure.error.kind == Kind::NotFound => {
                return of_parent.without_children(list, &object.id, failure).await;
            }
            other => other?,
        };
        let mut repeated = Attributes::new();
        for (own, theirs) in &parent.attributes {
            let value = object.attributes.get(theirs).cloned();
            // Few items repeat the id of their parent.
            let value = value.or_else(|| {
                (*theirs == of_parent.model.key).then(|| Value::String(object.id.0.clone()))
            });
            repeated.extend(value.map(|value| (own.clone(), value)));
        }
        Ok(items.into_iter().map(|json| Item { json, of_parent: repeated.clone() }).collect())
    }

    /// Handles a 404 for the children of one parent. If the parent is gone by now, it has no children. If it
    /// exists, a 404 says nothing about its children, unless the descriptor says that it does.
    async fn without_children(
        &self,
        list: &ListCall,
        parent: &ObjectId,
        refusal: Failure,
    ) -> Result<Vec<Item>, Failure> {
        if list.may_lack {
            return Ok(Vec::new());
        }
        match Box::pin(self.read(parent)).await {
            Err(look) if look.error.kind == Kind::NotFound => Ok(Vec::new()),
            Err(look) => Err(look),
            Ok(_) => {
                let (name, shown) = (&self.schema.name, self.masker().line(&parent.0));
                let message = format!(
                    "{} found nothing below the {name} {shown}, which is there",
                    what(&list.call)
                );
                let said = refusal.error.said.unwrap_or_default().into();
                Err(Failure::new(Kind::InDoubt, message).said(said).help(
                    "check the path of `list`; where an object without children answers so, say `may_be_left_out = \
                     true` in `list`",
                ))
            }
        }
    }
}
