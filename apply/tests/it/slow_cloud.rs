//! Another way to the cloud, on which calls take long and answers are mixed up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::schema::ProviderSchema;
use engine::state::ObjectId;
use provider_port::{Call, Error, Lookup, Object, Provider, Reply};
use tokio_util::sync::CancellationToken;

use crate::cloud::Cloud;
use crate::world::World;

/// Waits its turn for long before it sends, or is stopped meanwhile, or mixes objects up.
pub(crate) struct Busy {
    pub(crate) cloud: Cloud,
    pub(crate) waits: Duration,
    pub(crate) stop: Option<CancellationToken>,
    /// Whatever is read, this object is shown.
    pub(crate) shows: Option<ObjectId>,
    /// The run is stopped while it reads, and no answer comes.
    pub(crate) hangs: bool,
    /// What the first search shows, which is behind.
    pub(crate) behind: Mutex<Vec<Object>>,
    /// What the first read after a call shows, which is behind, too.
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
