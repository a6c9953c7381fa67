//! Lists that are behind: an absence is believed when it has lasted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::plan::input::Options;
use engine::schema::ProviderSchema;
use engine::state::ObjectId;
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};
use tokio::time::Instant;

use crate::cloud::Cloud;
use crate::world::{DISK, World, converges};

/// How long what it shows may be behind.
const SETTLE: Duration = Duration::from_secs(10);

/// The cloud, seen by who sees no object before a certain time.
struct Behind {
    cloud: Cloud,
    shows: Instant,
    /// Whether a read shows no more than a list.
    reads_too: bool,
}

impl Behind {
    fn beside(world: &World, by: Duration, reads_too: bool) -> Arc<dyn Provider> {
        world.cloud.shared.lock().unwrap().settle = SETTLE;
        Arc::new(Self { cloud: world.cloud.clone(), shows: Instant::now() + by, reads_too })
    }

    fn is_behind(&self) -> bool {
        Instant::now() < self.shows
    }
}

#[async_trait]
impl Provider for Behind {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.cloud.schema()
    }

    fn settle(&self) -> Duration {
        SETTLE
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        if self.is_behind() { Ok(Vec::new()) } else { self.cloud.list(ty).await }
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        if self.reads_too && self.is_behind() {
            return Err(Error::new(Kind::NotFound, "no such object"));
        }
        self.cloud.read(ty, id).await
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        self.cloud.find(ty, create).await
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        self.cloud.perform(call).await
    }
}

async fn apply(world: &World, provider: Arc<dyn Provider>) -> Duration {
    let (providers, began) = (world.providers_with(provider), Instant::now());
    let options = Options::default();
    world.apply_through(&world.store, &providers, DISK, &options).await.unwrap();
    began.elapsed()
}

/// A second object would be made, and nobody would know of the first any more.
#[tokio::test(start_paused = true)]
async fn what_does_not_show_yet_is_not_made_again() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.cloud.take_log();
    let late = Behind::beside(&world, Duration::from_secs(8), true);
    apply(&world, late).await;
    assert_eq!(world.cloud.take_log(), [""; 0]);
    assert_eq!(world.plan_text(DISK).await, "");
}

/// What has been missing for so long is gone.
#[tokio::test(start_paused = true)]
async fn what_is_gone_is_made_again() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.cloud.shared.lock().unwrap().objects.clear();
    world.cloud.take_log();
    let late = Behind::beside(&world, Duration::ZERO, true);
    apply(&world, late).await;
    assert_eq!(world.cloud.take_log(), ["create disk", "activate disk"]);
    converges(&world, DISK).await;
}

/// Where a read shows it, nobody waits.
#[tokio::test(start_paused = true)]
async fn what_a_read_shows_is_not_waited_for() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let late = Behind::beside(&world, Duration::from_secs(8), false);
    assert!(apply(&world, late).await < SETTLE);
}
