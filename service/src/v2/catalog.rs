//! `/v2/catalog`: the things that a client can ask for. This machine offers everything and always
//! has room.

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::templates;
use crate::catalog::gpus::{self, Gpu};
use crate::catalog::{CPU_FLAVORS, CUDA_VERSIONS, DATA_CENTERS, VCPU_PRICE, memory_per_vcpu};
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Field, Shape, count, flag, integer, list as list_of, may, must, named, number, object, one_of,
    text,
};
use crate::problem::Problem;
use crate::resources::template::Template;
use crate::resources::volume::TIERS;
use crate::rest::answer;
use crate::rest::request::RestRequest;
use crate::store::objects;

/// The levels of availability.
const LEVELS: &[&str] = &["NONE", "LOW", "MEDIUM", "HIGH"];
/// The level of everything on this machine.
const LEVEL: &str = "HIGH";
const PRODUCTS: &[&str] = &["POD", "CLUSTER", "SERVERLESS"];
const REGIONS: &[&str] = &[
    "NORTH_AMERICA",
    "SOUTH_AMERICA",
    "EUROPE",
    "ASIA",
    "MIDDLE_EAST",
    "AFRICA",
    "OCEANIA",
    "ANTARCTICA",
    "UNKNOWN",
];
/// The most CPUs of a worker.
const VCPUS_MAX: i64 = 32;
/// The most GPUs of one machine.
const GPUS_MAX: i64 = 8;

pub(super) fn operations() -> Vec<Operation> {
    let availability = |operation: Operation, products: &[&'static str]| {
        operation
            .query("include", list_of(one_of(&["AVAILABILITY"])))
            .query("product", list_of(one_of(products)).note("Needed with include"))
    };
    let gpu = |operation: Operation| {
        availability(operation, PRODUCTS)
            .query("count", count().at_least(1))
            .query("cloud", one_of(&["SECURE", "COMMUNITY"]))
            .query("cudaVersions", list_of(text()))
            .query("minCudaVersion", text())
    };
    let cpu = |operation: Operation| {
        availability(operation, &["POD", "SERVERLESS"]).query("vcpuCount", count().at_least(1))
    };
    let center = |operation: Operation| {
        let known = one_of(&["GPU_AVAILABILITY", "CPU_AVAILABILITY"]);
        operation.query("include", list_of(known))
    };
    let under = |name, shape| object([must(name, list_of(shape))]);
    vec![
        gpu(op::get("/catalog/gpus", "listGpuTypes", "List GPU types", list_gpus))
            .gives(200, named("ListGpuTypesResponse", under("gpus", gpu_shape()))),
        gpu(op::get("/catalog/gpus/{id}", "getGpuType", "Get a GPU type", read_gpu))
            .gives(200, gpu_shape()),
        cpu(op::get("/catalog/cpus", "listCpuTypes", "List CPU flavors", list_cpus))
            .gives(200, named("ListCpuTypesResponse", under("cpus", cpu_shape()))),
        cpu(op::get("/catalog/cpus/{id}", "getCpuType", "Get a CPU flavor", read_cpu))
            .gives(200, cpu_shape()),
        center(op::get(
            "/catalog/datacenters",
            "listDataCenters",
            "List data centers",
            list_centers,
        ))
        .query("regions", list_of(one_of(REGIONS)))
        .query("networkVolumeTypes", list_of(one_of(TIERS)))
        .query("globalNetwork", flag())
        .gives(200, named("ListDataCentersResponse", under("dataCenters", center_shape()))),
        center(op::get(
            "/catalog/datacenters/{id}",
            "getDataCenter",
            "Get a data center",
            read_center,
        ))
        .gives(200, center_shape()),
        op::get("/catalog/templates", "listPublicTemplates", "List public templates", list_public)
            .query("source", one_of(&["official", "verified", "community"]))
            .gives(200, named("PublicTemplates", under("templates", templates::template_shape()))),
    ]
}

fn available() -> Shape {
    object([must("id", text()), must("name", text()), must("availability", one_of(LEVELS))])
}

fn availability_fields() -> [Field; 2] {
    [may("availability", one_of(LEVELS)), may("dataCenters", list_of(available()))]
}

fn gpu_shape() -> Shape {
    let version = object([must("version", text()), must("available", flag())]);
    let price = object([
        must("secure", number()),
        must("community", number()),
        may("serverless", number()),
    ]);
    let most = object([must("secure", integer()), must("community", integer())]);
    let gpu = object([
        must("id", text()),
        must("name", text()),
        must("pool", text().or_null()),
        must("manufacturer", one_of(&["NVIDIA", "AMD", "UNKNOWN"])),
        must("memory", integer().note("GB")),
        must("secure", flag()),
        must("community", flag()),
        must("price", price.note("Dollars an hour for one")),
        must("maxCount", most),
        may("cudaVersions", list_of(version)),
    ]);
    named("GpuType", gpu.and(availability_fields()))
}

fn cpu_shape() -> Shape {
    let price = object([must("securePerVcpu", number()), must("serverlessPerVcpu", number())]);
    let cpu = object([
        must("id", text()),
        must("name", text()),
        must("group", text()),
        must("vcpu", object([must("min", integer()), must("max", integer())])),
        must("ramGbPerVcpu", number()),
        must("price", price.note("Dollars an hour")),
    ]);
    named("CpuType", cpu.and(availability_fields()))
}

fn center_shape() -> Shape {
    let center = object([
        must("id", text()),
        must("name", text()),
        must("region", one_of(REGIONS)),
        must("globalNetwork", flag()),
        must("networkVolumeTypes", list_of(one_of(TIERS))),
        must("compliance", list_of(text())),
        may("gpuAvailability", list_of(available())),
        may("cpuAvailability", list_of(available())),
    ]);
    named("DataCenter", center)
}

/// Returns true if the request asks for availability, which needs a product.
fn wants_availability(request: &RestRequest) -> Result<bool, Problem> {
    let wanted = request.parameters("include").iter().any(|include| include == "AVAILABILITY");
    if wanted && request.parameters("product").is_empty() {
        return Err(Problem::invalid("include=AVAILABILITY needs product"));
    }
    Ok(wanted)
}

async fn list_gpus(request: RestRequest) -> Result<Response, Problem> {
    let wanted = wants_availability(&request)?;
    let gpus = gpus::all().iter().map(|gpu| shown_gpu(gpu, wanted)).collect();
    Ok(super::listed(&request.app, "gpus", gpus))
}

async fn read_gpu(request: RestRequest) -> Result<Response, Problem> {
    let wanted = wants_availability(&request)?;
    let gpu = gpus::find(&request.id).ok_or_else(|| Problem::not_found("GPU type"))?;
    Ok(answer::shown(&request.app, shown_gpu(gpu, wanted)))
}

fn shown_gpu(gpu: &Gpu, with_availability: bool) -> Value {
    let mut price = json!({ "secure": gpu.secure_price(), "community": gpu.community_price() });
    if let Some(serverless) = gpu.serverless_price() {
        price["serverless"] = json!(serverless);
    }
    let mut shown = json!({
        "id": gpu.id,
        "name": gpu.name(),
        "pool": gpu.pool(),
        "manufacturer": gpu.manufacturer(),
        "memory": gpu.memory,
        "secure": true,
        "community": true,
        "price": price,
        "maxCount": { "secure": GPUS_MAX, "community": GPUS_MAX },
    });
    if with_availability {
        let version = |version: &&str| json!({ "version": version, "available": true });
        shown["cudaVersions"] = CUDA_VERSIONS.iter().map(version).collect();
        add_availability(&mut shown);
    }
    shown
}

fn add_availability(shown: &mut Value) {
    shown["availability"] = json!(LEVEL);
    let center = |id: &&str| json!({ "id": id, "name": id, "availability": LEVEL });
    shown["dataCenters"] = DATA_CENTERS.iter().map(center).collect();
}

async fn list_cpus(request: RestRequest) -> Result<Response, Problem> {
    let wanted = wants_availability(&request)?;
    let cpus = CPU_FLAVORS.iter().map(|flavor| shown_cpu(flavor, wanted)).collect();
    Ok(super::listed(&request.app, "cpus", cpus))
}

async fn read_cpu(request: RestRequest) -> Result<Response, Problem> {
    let wanted = wants_availability(&request)?;
    if !CPU_FLAVORS.contains(&request.id.as_str()) {
        return Err(Problem::not_found("CPU flavor"));
    }
    Ok(answer::shown(&request.app, shown_cpu(&request.id, wanted)))
}

fn shown_cpu(flavor: &str, with_availability: bool) -> Value {
    let name = if flavor.ends_with('g') { "General Purpose" } else { "Compute-Optimized" };
    let group = if flavor.starts_with("cpu5") { "Gen 5" } else { "Gen 3" };
    let mut shown = json!({
        "id": flavor,
        "name": name,
        "group": group,
        "vcpu": { "min": 2, "max": VCPUS_MAX },
        "ramGbPerVcpu": memory_per_vcpu(flavor),
        "price": { "securePerVcpu": VCPU_PRICE, "serverlessPerVcpu": VCPU_PRICE },
    });
    if with_availability {
        add_availability(&mut shown);
    }
    shown
}

async fn list_centers(request: RestRequest) -> Result<Response, Problem> {
    let regions = request.parameters("regions");
    let centers = DATA_CENTERS.iter().map(|id| shown_center(&request, id));
    let wanted = |center: &Value| {
        regions.is_empty() || regions.iter().any(|region| center["region"] == region.as_str())
    };
    let network = request.parameter("globalNetwork").is_some_and(|value| value == "false");
    // Every data center has the global network, so none lacks it.
    let centers = centers.filter(|center| wanted(center) && !network).collect();
    Ok(super::listed(&request.app, "dataCenters", centers))
}

async fn read_center(request: RestRequest) -> Result<Response, Problem> {
    if !DATA_CENTERS.contains(&request.id.as_str()) {
        return Err(Problem::not_found("data center"));
    }
    Ok(answer::shown(&request.app, shown_center(&request, &request.id)))
}

fn shown_center(request: &RestRequest, id: &str) -> Value {
    let region = match id.split('-').next().unwrap_or_default() {
        "US" | "CA" => "NORTH_AMERICA",
        "EU" | "EUR" => "EUROPE",
        "AP" => "ASIA",
        "OC" => "OCEANIA",
        _ => "UNKNOWN",
    };
    let mut shown = json!({
        "id": id,
        "name": id,
        "region": region,
        "globalNetwork": true,
        "networkVolumeTypes": TIERS,
        "compliance": [],
    });
    let include = request.parameters("include");
    let level = |id: &str, name: String| json!({ "id": id, "name": name, "availability": LEVEL });
    if include.iter().any(|include| include == "GPU_AVAILABILITY") {
        shown["gpuAvailability"] =
            gpus::all().iter().map(|gpu| level(gpu.id, gpu.name())).collect();
    }
    if include.iter().any(|include| include == "CPU_AVAILABILITY") {
        let flavors = CPU_FLAVORS.iter().map(|flavor| level(flavor, (*flavor).to_owned()));
        shown["cpuAvailability"] = flavors.collect();
    }
    shown
}

/// Lists the public templates. On this service they are the ones that its account has made public.
async fn list_public(request: RestRequest) -> Result<Response, Problem> {
    const MOST: usize = 100;
    let read = |conn: &Connection| objects::list::<Template>(conn, 0);
    let all = request.app.store.read(read).await?;
    let wanted = request.parameter("source").is_some_and(|source| source == "community");
    let public = all.iter().filter(|template| wanted && template.is_public).take(MOST);
    Ok(super::listed(&request.app, "templates", public.map(templates::shown).collect()))
}
