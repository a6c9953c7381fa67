//! A provider in front of the cloud, with slow calls and wrong answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::schema::ProviderSchema;
use engine::state::ObjectId;
use provider_port::{Call, Error, Lookup, Object, Provider, Reply};
use tokio_util::sync::CancellationToken;

use crate::cloud::Cloud;
use crate::world::World;

/// A provider in front of the cloud that waits before it sends a call, stops the run meanwhile, or answers
/// with another object.
pub(crate) struct Busy {
    pub(crate) cloud: Cloud,
    pub(crate) waits: Duration,
    pub(crate) stop: Option<CancellationToken>,
    /// The object that each read shows, or None if a read shows the object that was asked for.
    pub(crate) shows: Option<ObjectId>,
    /// True if a read stops the run and never answers.
    pub(crate) hangs: bool,
    /// The answer to the first search, which is behind. If it is empty, the search asks the cloud.
    pub(crate) behind: Mutex<Vec<Object>>,
    /// The answer to the first read, which is behind, too, or None if the read asks the cloud.
    pub(crate) was: Mutex<Option<Object>>,
}

impl Busy {
    pub(crate) fn new(world: &World, waits: Duration) -> Self {
        let cloud = world.cloud.clone();
        Self {
            cloud,
            waits,
            stop: None,
            shows: None,
            hangs: false,
            behind: Mutex::default(),
            was: Mutex::default(),
        }
    }
}

#[async_trait]
impl Provider for Busy {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.cloud.schema()
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        self.cloud.list(ty).await
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        if self.hangs {
            self.stop.iter().for_each(CancellationToken::cancel);
            std::future::pending::<()>().await;
        }
        let was = self.was.lock().unwrap().take();
        match was {
            Some(object) => Ok(object),
            None => self.cloud.read(ty, self.shows.as_ref().unwrap_or(id)).await,
        }
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        let behind = std::mem::take(&mut *self.behind.lock().unwrap());
        if behind.is_empty() { self.cloud.find(ty, create).await } else { Ok(behind) }
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        tokio::time::sleep(self.waits).await;
        self.stop.iter().for_each(CancellationToken::cancel);
        call.permit.ask().await?;
        self.cloud.perform(call).await
    }
}
