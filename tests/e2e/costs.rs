//! The cost of a plan: it is shown, policies see it, it equals the service's prices, and it matches the
//! service's bill.

use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{Project, Service, data};

const SPEC: &str = r#"
[resource.network_volume.models]
name = "models"
size = 100
data_center_id = "EU-RO-1"

[resource.pod.trainer]
name = "trainer"
image_name = "registry.example/train:1"
gpu_type_id = "NVIDIA A40"
docker_start_cmd = ["sleep", "600"]
volume_in_gb = 30
"#;

#[test]
fn an_estimate_agrees_with_the_bill() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    let plan = project.run(&["plan"]).expect(0).stdout;
    assert!(plan.contains("costs 7.00 USD a month\n"), "{plan}");
    assert!(plan.contains("Cost: 0.00 → 642.80 USD a month (0.0000 → 0.8805 an hour)."), "{plan}");
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    let began = Instant::now();
    project.run(&["apply", "--yes"]).expect(0);
    let made = Instant::now();
    std::thread::sleep(std::time::Duration::from_secs(2));
    for (address, bills) in
        [("network_volume.models", "/billing/networkvolumes"), ("pod.trainer", "/billing/pods")]
    {
        let least = made.elapsed();
        let billed: f64 = service.list(bills).iter().filter_map(|it| it["amount"].as_f64()).sum();
        let most = began.elapsed();
        let change = change(&plan, address);
        let hourly = change["cost"]["after"]["hourly_max"].as_f64().unwrap();
        // The bill rounds each of its parts down by less than a thousand millionth.
        let [least, most] = [least, most].map(|time| hourly * time.as_secs_f64() / 3600.0);
        assert!(billed > least - 1e-7 && billed < most + 1e-7, "{least} < {billed} < {most}");
    }

    // Unchanged resources count in the total, but changes without a change of cost are not mentioned.
    project.write("plumb.toml", SPEC.replace("size = 100", "size = 200"));
    let plan = project.run(&["plan"]).expect(0).stdout;
    assert!(plan.contains("costs 7.00 → 14.00 USD a month\n"), "{plan}");
    assert!(
        plan.contains("Cost: 642.80 → 649.80 USD a month (0.8805 → 0.8901 an hour)."),
        "{plan}"
    );
    project.write("plumb.toml", SPEC);
    let plan = project.run(&["plan"]).expect(0).stdout;
    assert!(!plan.contains("Cost:"), "{plan}");
    project.write("plumb.toml", "");
    let saved = project.run(&["plan", "--out", "p.json"]).expect(0).stdout;
    assert!(
        saved.contains("Cost: 642.80 → 0.00 USD a month (0.8805 → 0.0000 an hour)."),
        "{saved}"
    );
    let shown = project.run(&["show", "p.json", "--format", "markdown"]).stdout;
    assert!(shown.contains("\nCost: 642.80 → 0.00 USD a month"), "{shown}");
    project.run(&["apply", "p.json"]).expect(0);
}

fn change<'a>(plan: &'a Value, address: &str) -> &'a Value {
    let changes = plan["changes"].as_array().unwrap();
    changes.iter().find(|change| change["address"] == address).unwrap()
}

/// The prices in the descriptors are those of the catalog.
#[test]
fn prices_are_those_of_the_service() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let v2 = service.environment["PLUMB_SERVERLESS_QUEUE_URL"].clone();
    let (status, catalog) = crate::harness::http("GET", &format!("{v2}/catalog/gpus"), None);
    assert_eq!(status, 200, "{catalog}");
    let catalog: Value = serde_json::from_str(&catalog).unwrap();
    let gpus = catalog["gpus"].as_array().unwrap();
    assert!(gpus.len() > 40, "{}", gpus.len());
    let ids: Vec<&Value> = gpus.iter().map(|gpu| &gpu["id"]).collect();
    let mut pools: Vec<&Value> = gpus.iter().map(|gpu| &gpu["pool"]).collect();
    pools.retain(|pool| !pool.is_null());
    let spec = format!(
        "[local]\ngpus = {}\npools = {}\n{}",
        json!(ids),
        json!(pools),
        r#"
[resource.pod.secure]
for_each = "${toset(local.gpus)}"
name = "secure"
image_name = "i:1"
gpu_type_id = "${each.key}"
container_disk_in_gb = 1
volume_in_gb = 0

[resource.pod.community]
for_each = "${toset(local.gpus)}"
name = "community"
image_name = "i:1"
gpu_type_id = "${each.key}"
gpu_count = 2
cloud_type = "COMMUNITY"
container_disk_in_gb = 1
volume_in_gb = 0

[resource.template.t]
name = "t"
image_name = "i:1"
FOR_V1

[resource.endpoint.e]
for_each = "${toset(local.pools)}"
name = "eee"
template_id = "${template.t.id}"
gpu_ids = "${each.key}"
workers_min = 1
workers_max = 2
"#
    );
    for (version, for_v1) in [("v1", "is_serverless = true"), ("v2", "")] {
        let provider = format!("[provider.serverless]\nversion = \"{version}\"\n");
        let spec = provider + &spec.replace("FOR_V1", for_v1);
        let project = Project::with(&spec, &service);
        let plan = project.run(&["plan", "--json"]).expect(0).json();
        let disk = 0.1 / 730.0;
        for gpu in gpus {
            let id = gpu["id"].as_str().unwrap();
            let check = |address: String, bound: &str, expected: f64| {
                let cost = &change(&plan, &address)["cost"]["after"][bound];
                let cost = cost.as_f64().unwrap();
                assert!((cost - expected).abs() < 1e-8, "{version} {address}: {cost} {expected}");
            };
            let price = |name: &str| gpu["price"][name].as_f64();
            check(format!("pod.secure[\"{id}\"]"), "hourly_max", price("secure").unwrap() + disk);
            let community = 2.0 * price("community").unwrap() + disk;
            check(format!("pod.community[\"{id}\"]"), "hourly_min", community);
            if let (Some(pool), Some(price)) = (gpu["pool"].as_str(), price("serverless")) {
                let endpoint = format!("endpoint.e[\"{pool}\"]");
                check(endpoint.clone(), "hourly_min", price);
                check(endpoint, "hourly_max", 2.0 * price);
            }
        }
    }
}

#[test]
fn policies_see_the_cost() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let policies = r#"
[policy.budget]
assert = "plan.cost.USD.after.hourly_max * 730 <= 600"
message = "The plan costs up to ${floor(plan.cost.USD.after.hourly_max * 730)} USD a month."

[policy.each]
assert = "alltrue([for it in plan.changes : try(it.cost.after.hourly_max, 0) < 0.5])"
message = "One of the ${length(plan.changes)} objects is too dear."
severity = "warn"
"#;
    let project = Project::with(&format!("{SPEC}{policies}"), &service);
    let refused = project.run(&["plan"]).expect(1).said();
    assert!(refused.contains("The plan costs up to 642 USD a month."), "{refused}");
    assert!(refused.contains("One of the 2 objects is too dear."), "{refused}");
    project.write("plumb.toml", format!("{SPEC}{policies}").replace("<= 600", "<= 700"));
    project.run(&["plan"]).expect(0);
}
