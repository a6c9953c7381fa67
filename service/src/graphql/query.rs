//! The root of queries.

use juniper::{FieldResult, graphql_object};

use super::Ctx;
use super::account::Account;
use super::templates::TemplateView;
use crate::resources::template::Template;
use crate::store::objects;

/// The root of queries.
pub(super) struct Query;

#[graphql_object(context = Ctx)]
impl Query {
    /// The account that the key belongs to.
    fn myself() -> Account {
        Account
    }

    /// A template by its id.
    async fn pod_template(context: &Ctx, id: String) -> FieldResult<Option<TemplateView>> {
        let read = move |conn: &rusqlite::Connection| objects::find::<Template>(conn, &id);
        Ok(context.app.store.read(read).await?.map(TemplateView))
    }
}
