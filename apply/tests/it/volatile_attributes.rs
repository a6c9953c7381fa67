//! Attributes that change by themselves and must be sent along: a version, by which an API tells that a
//! change was made of the live object.

use std::sync::Arc;

use async_trait::async_trait;
use engine::plan::input::Options;
use engine::schema::{Attribute, Presence, ProviderSchema};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};

use crate::cloud::Cloud;
use crate::world::{DISK, World};

/// The cloud with versions: a call on an object must send the object's last version, or it is refused.
struct Versions(Cloud);

impl Versions {
    /// Gives a type a version, and returns the provider that counts it.
    fn of(world: &mut World, ty: &str) -> Self {
        world.cloud.change_type(ty, |ty| {
            let integer = Attribute::new("integer".parse().unwrap());
            let version = Attribute { presence: Presence::Computed, volatile: true, ..integer };
            ty.attributes.insert("version".into(), version);
        });
        Self(world.cloud.clone())
    }

    /// Adds `by` to the version of the only object, as a change of it does. Returns the version, or 0 if
    /// there is no object.
    fn version(&self, by: i64) -> i64 {
        let mut shared = self.0.shared.lock().unwrap();
        let Some(object) = shared.objects.values_mut().next() else { return 0 };
        let version = object.get("version").and_then(Value::as_integer).unwrap_or(0) + by;
        object.insert("version".into(), Value::Integer(version));
        version
    }
}

#[async_trait]
impl Provider for Versions {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.0.schema()
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        self.0.list(ty).await
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        self.0.read(ty, id).await
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        self.0.find(ty, create).await
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let of = |attributes: Option<&Attributes>| {
            attributes.and_then(|it| it.get("version")).and_then(Value::as_integer)
        };
        let sent = of(Some(call.desired)).or(of(call.live));
        if call.id.is_some() && sent != Some(self.version(0)) {
            return Err(Error::new(Kind::Rejected, format!("{sent:?} is stale")));
        }
        let mut reply = self.0.perform(call).await?;
        let version = self.version(1);
        if let Some(object) = &mut reply.object {
            object.attributes.insert("version".into(), Value::Integer(version));
        }
        Ok(reply)
    }
}

async fn apply(world: &World, spec: &str) -> Vec<String> {
    let cloud: Arc<dyn Provider> = Arc::new(Versions(world.cloud.clone()));
    let providers = world.providers_with(cloud);
    let options = Options::default();
    let report = world.apply_through(&world.store, &providers, spec, &options).await.unwrap();
    report.failures.into_iter().map(|failure| failure.message).collect()
}

/// Somebody touches the object, so that only its version differs. The calls of the next run send the live
/// version, and succeed.
#[tokio::test(start_paused = true)]
async fn a_change_is_made_of_what_is_live() {
    let mut world = World::new();
    let versions = Versions::of(&mut world, "disk");
    assert_eq!(apply(&world, DISK).await, [""; 0]);
    versions.version(5);
    assert_eq!(apply(&world, &DISK.replace("size = 10", "size = 20")).await, [""; 0]);
    versions.version(5);
    let replaced = DISK.replace("\"eu\"", "\"us\"") + "lifecycle = { allow_data_loss = true }\n";
    assert_eq!(apply(&world, &replaced).await, [""; 0]);
    versions.version(5);
    assert_eq!(apply(&world, "").await, [""; 0]);
    assert!(world.cloud.names("disk").is_empty());
}

/// The second call of a run sends the version that the answer to the first call shows, and not the one that
/// the plan saw.
#[tokio::test(start_paused = true)]
async fn the_second_call_of_a_run_is_made_of_what_the_first_one_left() {
    let mut world = World::new();
    let versions = Versions::of(&mut world, "unit");
    let unit = "[resource.unit.u]\nname = \"u\"\nworkers = 1\n";
    assert_eq!(apply(&world, unit).await, [""; 0]);
    versions.version(5);
    assert_eq!(apply(&world, "").await, [""; 0]);
    assert!(world.cloud.names("unit").is_empty());
}
