//! `/v2/billing`: the entries of the ledger, summed up in buckets.

use std::collections::BTreeSet;

use axum::response::Response;
use serde_json::{Value, json};

use crate::billing::bucket;
use crate::billing::ledger::Entry;
use crate::billing::report_window::{ReportQuery, Window};
use crate::billing::{self, BilledKind, dollars};
use crate::clock::{iso, now_ms};
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Shape, count, list as list_of, may, must, number, object, one_of, text,
};
use crate::problem::Problem;
use crate::rest::answer;
use crate::rest::request::RestRequest;

/// A column of amounts: its name and the kind of use. `None` is a kind that this service does not
/// have.
type Column = (&'static str, Option<BilledKind>);

/// A report.
struct Report {
    /// The columns with their kinds of use. A column without a kind is always 0.
    columns: &'static [Column],
    /// The field and the parameter with the id of an object, and the field with the number of
    /// objects; `None` for a report without objects.
    object: Option<(&'static str, &'static str)>,
}

const ALL: Report = Report {
    columns: &[
        ("podGpuAmount", Some(BilledKind::PodGpu)),
        ("podCpuAmount", Some(BilledKind::PodCpu)),
        ("podDiskAmount", Some(BilledKind::PodDisk)),
        ("serverlessGpuAmount", Some(BilledKind::WorkerGpu)),
        ("serverlessCpuAmount", Some(BilledKind::WorkerCpu)),
        ("serverlessDiskAmount", None),
        ("serverlessFeeAmount", None),
        ("storageStandardAmount", Some(BilledKind::VolumeStandard)),
        ("storageHighPerformanceAmount", Some(BilledKind::VolumeFast)),
        ("endpointAmount", None),
        ("clusterGpuAmount", None),
        ("clusterDiskAmount", None),
        ("clusterNetworkingAmount", None),
    ],
    object: None,
};

const SERVERLESS: Report = Report {
    columns: &[
        ("gpuAmount", Some(BilledKind::WorkerGpu)),
        ("cpuAmount", Some(BilledKind::WorkerCpu)),
        ("diskAmount", None),
        ("feeAmount", None),
    ],
    object: Some(("serverlessId", "uniqueServerlessCount")),
};

const VOLUMES: Report = Report {
    columns: &[
        ("standardAmount", Some(BilledKind::VolumeStandard)),
        ("highPerformanceAmount", Some(BilledKind::VolumeFast)),
    ],
    object: Some(("networkVolumeId", "uniqueNetworkVolumeCount")),
};

const PODS: Report = Report {
    columns: &[
        ("gpuAmount", Some(BilledKind::PodGpu)),
        ("cpuAmount", Some(BilledKind::PodCpu)),
        ("diskAmount", Some(BilledKind::PodDisk)),
    ],
    object: Some(("podId", "uniquePodCount")),
};

const CLUSTERS: Report = Report {
    columns: &[("gpuAmount", None), ("diskAmount", None), ("networkingAmount", None)],
    object: Some(("clusterId", "uniqueClusterCount")),
};

/// The report about the vendor's own endpoints, which this service does not have.
const PUBLIC_ENDPOINTS: Report = Report { columns: &[], object: None };

pub(super) fn operations() -> Vec<Operation> {
    vec![
        described("/billing", "listBilling", "What everything costs", &ALL),
        described(
            "/billing/serverless",
            "listServerlessBilling",
            "What the workers of endpoints cost",
            &SERVERLESS,
        ),
        described(
            "/billing/network-volumes",
            "listNetworkVolumeBilling",
            "What network volumes cost",
            &VOLUMES,
        ),
        described("/billing/pods", "listPodBilling", "What pods cost", &PODS),
        described(
            "/billing/clusters",
            "listClusterBilling",
            "What clusters cost: there are none",
            &CLUSTERS,
        ),
        described(
            "/billing/endpoints",
            "listEndpointBilling",
            "What public endpoints cost: there are none",
            &PUBLIC_ENDPOINTS,
        ),
    ]
}

fn described(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    report: &'static Report,
) -> Operation {
    let answer = move |request: RestRequest| list(request, report);
    let operation = op::get(path, id, summary, answer)
        .query("startTime", text().note("Default: 30 days before endTime"))
        .query("endTime", text().note("Default: now"))
        .query("bucketSize", one_of(bucket::NAMES).note("Default: day"))
        .query("lastN", count().at_least(1).note("The newest buckets, in the place of times"));
    let operation = match report.object {
        Some((field, _)) => operation.query(field, text()),
        None => operation,
    };
    operation.gives(200, report.shape())
}

impl Report {
    fn shape(&self) -> Shape {
        let amounts = self.columns.iter().map(|(name, _)| must(name, number()));
        let amounts: Vec<_> = amounts.chain([must("totalAmount", number())]).collect();
        let range = || [must("startTime", text()), must("endTime", text())];
        let query = object(range()).and([must("bucketSize", one_of(bucket::NAMES))]);
        let (record, query, metadata) = (object(range()), query, object([]));
        let (record, query, metadata) = match self.object {
            Some((field, unique)) => (
                record.and([must(field, text())]),
                query.and([may(field, text())]),
                metadata.and([must(unique, count())]),
            ),
            None => (record, query, metadata),
        };
        let metadata = metadata.and([
            must("query", query),
            must("recordCount", count()),
            must("totals", object(amounts.clone())),
        ]);
        object([must("records", list_of(record.and(amounts))), must("metadata", metadata)])
    }

    /// Returns the sums of entries: one for each column, and their total.
    fn amounts(&self, entries: &[Entry]) -> Value {
        let (mut amounts, mut total) = (json!({}), 0);
        for (name, what) in self.columns {
            let of = entries.iter().filter(|entry| Some(entry.what) == *what);
            let sum: i64 = of.map(|entry| entry.nanos).sum();
            total += sum;
            amounts[*name] = json!(dollars(sum));
        }
        amounts["totalAmount"] = json!(dollars(total));
        amounts
    }

    fn has(&self, entry: &Entry) -> bool {
        self.columns.iter().any(|(_, what)| *what == Some(entry.what))
    }
}

async fn list(request: RestRequest, report: &'static Report) -> Result<Response, Problem> {
    let question = ReportQuery {
        start: request.parameter("startTime"),
        end: request.parameter("endTime"),
        bucket: request.parameter("bucketSize"),
        last: request.parameter("lastN").and_then(|last| last.parse().ok()),
    };
    let window = Window::of(&question, now_ms())?;
    let wanted = report.object.and_then(|(field, _)| request.parameter(field));
    let is_wanted = |entry: &Entry| {
        report.has(entry) && wanted.as_ref().is_none_or(|wanted| *wanted == entry.object)
    };
    let entries = billing::entries(&request.app, window, is_wanted).await?;
    Ok(answer::shown(&request.app, shown(report, window, &question, wanted, entries)))
}

fn shown(
    report: &Report,
    window: Window,
    question: &ReportQuery,
    wanted: Option<String>,
    entries: Vec<Entry>,
) -> Value {
    let totals = report.amounts(&entries);
    let buckets = window.buckets(entries, report.object.is_some());
    let objects: BTreeSet<&str> = buckets.keys().map(|(_, object)| object.as_str()).collect();
    let mut query = json!({
        "startTime": iso(window.from),
        "endTime": iso(window.to),
        "bucketSize": question.bucket.as_deref().unwrap_or("day"),
    });
    let mut metadata = json!({ "recordCount": buckets.len(), "totals": totals });
    if let Some((field, unique)) = report.object {
        metadata[unique] = json!(objects.len());
        if let Some(wanted) = wanted {
            query[field] = json!(wanted);
        }
    }
    metadata["query"] = query;
    let record = |((start, object), entries): (&(i64, String), &Vec<Entry>)| {
        let mut record = report.amounts(entries);
        record["startTime"] = json!(iso(*start));
        record["endTime"] = json!(iso(window.bucket.next(*start)));
        if let Some((field, _)) = report.object {
            record[field] = json!(object);
        }
        record
    };
    let records: Vec<Value> = buckets.iter().map(record).collect();
    json!({ "records": records, "metadata": metadata })
}
