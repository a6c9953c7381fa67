//! Lists that are behind: a run believes that an object is gone once it was missing for the settle time.

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

/// The settle time of the provider.
const SETTLE: Duration = Duration::from_secs(10);

/// A provider in front of the cloud, whose lists show no object before the time `shows`.
struct Behind {
    cloud: Cloud,
    shows: Instant,
    /// True if reads show no object before that time, either.
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

/// Neither lists nor reads show the disk for 8 seconds. The run does not make a second disk, which would
/// make an orphan of the first.
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

/// A disk that was missing for the whole settle time is gone, and the run makes it again.
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

/// A list does not show the disk, and a read does: the run does not wait.
#[tokio::test(start_paused = true)]
async fn what_a_read_shows_is_not_waited_for() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let late = Behind::beside(&world, Duration::from_secs(8), false);
    assert!(apply(&world, late).await < SETTLE);
}
