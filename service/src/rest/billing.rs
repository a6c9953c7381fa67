//! `/billing`: the entries of the ledger, summed up in buckets.

use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::request::RestRequest;
use crate::billing::ledger::Entry;
use crate::billing::report_window::{ReportQuery, Window};
use crate::billing::{self, BilledKind, bucket, dollars};
use crate::clock::{iso, now_ms};
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Shape, integer, list as list_of, may, must, named, number, object, one_of, text,
};
use crate::problem::Problem;

/// The subject of a report: the field with the id of an object, and the kinds of use.
struct Report {
    field: &'static str,
    what: &'static [BilledKind],
}

const ENDPOINTS: Report =
    Report { field: "endpointId", what: &[BilledKind::WorkerGpu, BilledKind::WorkerCpu] };
const VOLUMES: Report = Report {
    field: "networkVolumeId",
    what: &[BilledKind::VolumeStandard, BilledKind::VolumeFast],
};
const PODS: Report =
    Report { field: "podId", what: &[BilledKind::PodGpu, BilledKind::PodCpu, BilledKind::PodDisk] };

pub(super) fn operations() -> Vec<Operation> {
    vec![
        described("/billing/endpoints", "EndpointBilling", "What endpoints cost", &ENDPOINTS),
        described("/billing/networkvolumes", "NetworkVolumeBilling", "What volumes cost", &VOLUMES),
        described("/billing/pods", "PodBilling", "What pods cost, with their disks", &PODS),
    ]
}

fn described(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    report: &'static Report,
) -> Operation {
    op::get(path, id, summary, move |request: RestRequest| list(request, report))
        .query("startTime", text().note("Default: 30 days before endTime"))
        .query("endTime", text().note("Default: now"))
        .query("bucketSize", one_of(bucket::NAMES).note("Default: day"))
        .query(report.field, text())
        .gives(200, list_of(record_shape()))
}

fn record_shape() -> Shape {
    let record = object([
        must("amount", number().note("Dollars")),
        must("time", text().note("The beginning of the bucket")),
        must("timeBilledMs", integer()),
        may("endpointId", text()),
        may("networkVolumeId", text()),
        may("podId", text()),
    ]);
    named("BillingRecord", record)
}

async fn list(request: RestRequest, report: &'static Report) -> Result<Response, Problem> {
    let question = ReportQuery {
        start: request.parameter("startTime"),
        end: request.parameter("endTime"),
        bucket: request.parameter("bucketSize"),
        last: None,
    };
    let window = Window::of(&question, now_ms())?;
    let wanted = request.parameter(report.field);
    let is_wanted = |entry: &Entry| {
        let is_named = wanted.as_ref().is_none_or(|wanted| *wanted == entry.object);
        is_named && report.what.contains(&entry.what)
    };
    let entries = billing::entries(&request.app, window, is_wanted).await?;
    let buckets = window.buckets(entries, true);
    let records = buckets.iter().map(|((start, object), entries)| {
        let nanos = entries.iter().map(|entry| entry.nanos).sum();
        // The disks of a pod are used at the same time as the pod, so their time is left out.
        let machines = entries.iter().filter(|entry| entry.what != BilledKind::PodDisk);
        json!({
            "amount": dollars(nanos),
            "time": iso(*start),
            "timeBilledMs": machines.map(|entry| entry.ms).sum::<i64>(),
            report.field: object,
        })
    });
    Ok(answer::shown(&request.app, Value::Array(records.collect())))
}
