//! The cost of the workers, pods and volumes of this service: a ledger of their time at the prices
//! of the catalog. Nobody is billed; the ledger can be compared with the cost estimates of plans.
//!
//! Time counts while the service runs. A killed service loses the use of less than a minute, which
//! it has not written yet.

pub(crate) mod bucket;
pub(crate) mod ledger;
pub(crate) mod meter;
pub(crate) mod report_window;

use rusqlite::Connection;

use crate::app::App;
use crate::catalog::{self, gpus};
use crate::pods::model::Pod;
use crate::problem::Problem;
use crate::resources::endpoint::Endpoint;
use ledger::Entry;
use report_window::Window;

/// The parts of a dollar in which amounts are counted.
pub(crate) const NANOS: i64 = 1_000_000_000;

/// Returns an amount in dollars, for people.
#[expect(clippy::cast_precision_loss, reason = "the amounts of one machine fit a float exactly")]
pub(crate) fn dollars(nanos: i64) -> f64 {
    nanos as f64 / NANOS as f64
}

/// Returns the amount for a price in dollars.
#[expect(clippy::cast_possible_truncation, reason = "prices are small")]
fn nanos(dollars: f64) -> i64 {
    (dollars * 1e9).round() as i64
}

/// Writes all use up to now into the ledger, and returns the wanted entries of a window.
pub(crate) async fn entries(
    app: &App,
    window: Window,
    is_wanted: impl Fn(&Entry) -> bool,
) -> Result<Vec<Entry>, Problem> {
    app.meter.settle(app).await?;
    let read = move |conn: &Connection| ledger::between(conn, window.from, window.to);
    let mut entries = app.store.read(read).await?;
    entries.retain(is_wanted);
    Ok(entries)
}

/// The price of an hour of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Price {
    pub(crate) what: BilledKind,
    pub(crate) nanos_per_hour: i64,
}

/// The kind of use that has a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BilledKind {
    WorkerGpu,
    WorkerCpu,
    VolumeStandard,
    VolumeFast,
    PodGpu,
    PodCpu,
    PodDisk,
}

impl BilledKind {
    const ALL: [BilledKind; 7] = [
        BilledKind::WorkerGpu,
        BilledKind::WorkerCpu,
        BilledKind::VolumeStandard,
        BilledKind::VolumeFast,
        BilledKind::PodGpu,
        BilledKind::PodCpu,
        BilledKind::PodDisk,
    ];

    /// Returns the name of the kind in the store.
    fn name(self) -> &'static str {
        match self {
            BilledKind::WorkerGpu => "worker-gpu",
            BilledKind::WorkerCpu => "worker-cpu",
            BilledKind::VolumeStandard => "volume-standard",
            BilledKind::VolumeFast => "volume-fast",
            BilledKind::PodGpu => "pod-gpu",
            BilledKind::PodCpu => "pod-cpu",
            BilledKind::PodDisk => "pod-disk",
        }
    }

    fn named(name: &str) -> Option<BilledKind> {
        BilledKind::ALL.into_iter().find(|what| what.name() == name)
    }
}

/// Returns the price of a worker of an endpoint.
pub(crate) fn worker_price(endpoint: &Endpoint) -> Price {
    if endpoint.compute_type == "CPU" {
        let instances = endpoint.instances();
        let cpus = instances.first().and_then(|instance| instance.split('-').nth(1)?.parse().ok());
        let cpus = cpus.unwrap_or(endpoint.vcpu_count);
        let nanos_per_hour = nanos(catalog::VCPU_PRICE).saturating_mul(cpus);
        return Price { what: BilledKind::WorkerCpu, nanos_per_hour };
    }
    let gpu = endpoint.gpu_type_ids.first().and_then(|id| gpus::find(id));
    let price = gpu.map_or(0.0, |gpu| gpu.serverless_price().unwrap_or(gpu.secure_price()));
    let nanos_per_hour = nanos(price).saturating_mul(endpoint.gpu_count);
    Price { what: BilledKind::WorkerGpu, nanos_per_hour }
}

/// Returns the price of a running pod, without its disks.
pub(crate) fn pod_price(pod: &Pod) -> Price {
    let Some(gpu) = pod.gpu_type_id.as_deref().and_then(gpus::find) else {
        let nanos_per_hour = nanos(catalog::VCPU_PRICE).saturating_mul(pod.vcpu_count);
        return Price { what: BilledKind::PodCpu, nanos_per_hour };
    };
    let asked = match pod.cloud.as_str() {
        "COMMUNITY" => gpu.community_price(),
        _ => gpu.secure_price(),
    };
    let offered = pod.bid_per_gpu.filter(|_| pod.interruptible);
    let nanos_per_hour = nanos(offered.unwrap_or(asked)).saturating_mul(pod.gpu_count);
    Price { what: BilledKind::PodGpu, nanos_per_hour }
}

/// Returns the price of the disks of a pod. A running pod pays for its container disk and its
/// volume. A stopped pod pays only for its volume, at twice the price.
fn pod_disk_price(pod: &Pod) -> Price {
    let volume = if pod.has_own_volume() { pod.container.volume_in_gb } else { 0 };
    let gigabytes = if pod.is_wanted() {
        pod.container.container_disk_in_gb.saturating_add(volume)
    } else {
        volume.saturating_mul(2)
    };
    // Dollars for a gigabyte and a month of 730 hours.
    let nanos_per_hour = nanos(0.10).saturating_mul(gigabytes) / 730;
    Price { what: BilledKind::PodDisk, nanos_per_hour }
}

/// Returns the price of a volume, by its size in gigabytes.
fn volume_price(tier: &str, gigabytes: i64) -> Price {
    // Dollars for a gigabyte and a month of 730 hours.
    let (what, price) = match tier {
        "HIGH_PERFORMANCE" => (BilledKind::VolumeFast, 0.14),
        _ => (BilledKind::VolumeStandard, 0.07),
    };
    Price { what, nanos_per_hour: nanos(price).saturating_mul(gigabytes) / 730 }
}
