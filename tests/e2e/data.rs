//! Data blocks: a spec reads objects, states and web addresses that others made.

use serde_json::json;

use crate::harness::{Project, Service, data};

/// Makes a volume without Plumb. Returns its id.
fn volume(service: &Service, name: &str, place: &str) -> String {
    let body = json!({ "name": name, "size": 50, "dataCenterId": place });
    let (status, made) = service.request("POST", "/networkvolumes", Some(&body));
    assert_eq!(status, 200, "{made}");
    let made: serde_json::Value = serde_json::from_str(&made).expect("JSON");
    made["id"].as_str().expect("an id").to_owned()
}

const SPEC: &str = r#"
[data.network_volume.shared]
name = "shared"

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_min = 0
workers_max = 1
network_volume_id = "${data.network_volume.shared.id}"

[output.place]
value = "${data.network_volume.shared.data_center_id}"
"#;

#[test]
fn an_object_that_others_made_is_looked_up_and_used() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["validate"]).expect(0);

    let refused = project.run(&["plan"]).expect(1);
    assert!(refused.said().contains("nothing is found by this look-up"), "{}", refused.said());
    assert!(
        refused.said().contains("lists no `network_volume`")
            || refused.said().contains("none of the 0"),
        "{}",
        refused.said()
    );

    let id = volume(&service, "shared", "EU-RO-1");
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    project.run(&["apply", "plan.json"]).expect(0);
    assert_eq!(service.list("/endpoints")[0]["networkVolumeId"], json!(id));
    assert_eq!(project.run(&["output", "--raw", "place"]).expect(0).stdout.trim(), "EU-RO-1");
    assert!(project.run(&["plan"]).expect(0).stdout.contains("No changes."));
    assert!(project.run(&["plan", "--no-refresh"]).expect(0).stdout.contains("No changes."));
    let listed = project.run(&["state", "list"]).expect(0).stdout;
    assert_eq!(listed, "endpoint.chat\ntemplate.worker\n");

    volume(&service, "shared", "US-KS-2");
    let refused = project.run(&["plan"]).expect(1);
    assert!(refused.said().contains("2 objects are meant by this look-up"), "{}", refused.said());
    assert!(refused.said().contains(&id), "{}", refused.said());
    project.write("plumb.toml", SPEC.replace("name = \"shared\"", &format!("id = \"{id}\"")));
    assert!(project.run(&["plan"]).expect(0).stdout.contains("No changes."));
    let destroyed = project.run(&["destroy", "--yes"]).expect(0);
    assert!(destroyed.said().contains("2 deleted"), "{}", destroyed.said());
    assert_eq!(service.list("/networkvolumes").len(), 2);
}

#[test]
fn a_saved_plan_is_stale_once_the_look_up_finds_another_object() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let id = volume(&service, "shared", "EU-RO-1");
    let project = Project::with(SPEC, &service);
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    service.request("DELETE", &format!("/networkvolumes/{id}"), None);
    volume(&service, "shared", "EU-RO-1");
    let stale = project.run(&["apply", "plan.json"]).expect(3);
    assert!(stale.said().contains("stale plan"), "{}", stale.said());
    assert_eq!(service.list("/endpoints").len(), 0);
}

#[test]
fn look_ups_of_a_module_are_its_own() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let eu = volume(&service, "eu", "EU-RO-1");
    let us = volume(&service, "us", "US-KS-2");
    let project = Project::with(
        "[module.site]\nsource = \"./site\"\nfor_each = [\"eu\", \"us\"]\nname = \"${each.key}\"\n\
         [output.ids]\nvalue = '${[for one in module.site : one.id]}'\n",
        &service,
    );
    project.write(
        "site/site.plumb.toml",
        "[variable.name]\ntype = \"string\"\n[data.network_volume.own]\nname = \"${var.name}\"\n\
         [output.id]\nvalue = \"${data.network_volume.own.id}\"\n",
    );
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(project.run(&["output", "ids", "--json"]).expect(0).json(), json!([eu, us]));
}

/// A spec whose state another spec reads.
const NETWORK: &str = r#"
[variable.token]
type = "string"
sensitive = true

[resource.value.net]
input = "vpc-1"

[output.vpc_id]
value = "${value.net.output}"

[output.token]
value = "${var.token}"
sensitive = true
"#;

#[test]
fn the_outputs_of_another_state_are_read() {
    let state = "[data.state.network]\npath = \"./network\"\n";
    let mut project = Project::new(&format!(
        "{state}[resource.value.app]\ninput = \"in ${{data.state.network.outputs.vpc_id}}\"\n\
         [output.app]\nvalue = \"${{value.app.output}}\"\n",
    ));
    project.set("PLUMB_VAR_TOKEN", "hunter2-token");
    project.write("network/plumb.toml", NETWORK);
    project.run(&["validate"]).expect(0);
    let refused = project.run(&["plan"]).expect(1);
    assert!(refused.said().contains("there is no state in ./network"), "{}", refused.said());

    project.run(&["apply", "network", "--yes"]).expect(0);
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    project.write("network/plumb.toml", NETWORK.replace("vpc-1", "vpc-2"));
    project.run(&["apply", "network", "--yes"]).expect(0);
    // The inputs of the plan have changed.
    project.run(&["apply", "plan.json"]).expect(3);
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(project.run(&["output", "--raw", "app"]).expect(0).stdout.trim(), "in vpc-2");

    // A damaged or missing state does not count as an empty one.
    project.write(
        "plumb.toml",
        format!("{state}[output.id]\nvalue = \"${{data.state.network.outputs.vpc_id}}\"\n"),
    );
    let kept = std::fs::read(project.path("network/.plumb/state.json")).expect("a state");
    project.write("network/.plumb/state.json", "{");
    assert!(project.run(&["plan"]).expect(1).said().contains("cannot be read"));
    project.write("network/.plumb/state.json", kept);
    project.run(&["plan"]).expect(0);

    // Of a sensitive output, only the fingerprint is known.
    let token = "${data.state.network.outputs.token}";
    project.write("plumb.toml", format!("{state}[resource.value.app]\ninput = \"{token}\"\n"));
    let refused = project.run(&["plan"]).expect(1);
    let said = refused.said();
    assert!(said.contains("a look-up keeps only the fingerprint of a secret"), "{said}");
    assert!(said.contains("give the secret as a variable"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn the_answer_of_an_address_is_read() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    volume(&service, "shared", "EU-RO-1");
    let rest = service.environment["PLUMB_SERVERLESS_REST_URL"].clone();
    let key = service.environment["PLUMB_SERVERLESS_API_KEY"].clone();
    let spec = format!(
        "[variable.key]\ntype = \"string\"\nsensitive = true\n\
         [data.http.volumes]\nurl = \"{rest}/networkvolumes\"\n\
         headers = {{ Authorization = \"Bearer ${{var.key}}\" }}\n\
         [resource.value.first]\ninput = \"${{data.http.volumes.json[0].name}}\"\n\
         [output.first]\nvalue = \"${{nonsensitive(data.http.volumes.json[0].name)}}\"\n"
    );
    let mut project = Project::with(&spec, &service);
    project.set("PLUMB_VAR_KEY", &key);
    project.run(&["validate"]).expect(0);
    let planned = project.run(&["plan", "-v"]).expect(0);
    assert!(!planned.said().contains(&key) && !planned.stdout.contains(&key));
    // The answer to a request with a secret counts as a secret. The apply has it in clear.
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(project.run(&["output", "--raw", "first"]).expect(0).stdout.trim(), "shared");
    assert!(project.run(&["plan"]).expect(0).stdout.contains("No changes."));
    assert!(!String::from_utf8_lossy(&project.written()).contains(&key));

    project.set("PLUMB_VAR_KEY", "another-key-hunter2");
    let refused = project.run(&["plan"]).expect(1);
    assert!(refused.said().contains("the answer has status 401"), "{}", refused.said());
    assert!(!refused.said().contains("hunter2"), "{}", refused.said());
    project.write("plumb.toml", spec.replace("[resource", "expected_status = [401]\n[resource"));
    let missing = project.run(&["plan"]).expect(1);
    assert!(!missing.said().contains("status 401"), "{}", missing.said());
    project.write("plumb.toml", spec.replace("http://", "ftp://"));
    let refused = project.run(&["plan"]).expect(1);
    assert!(refused.said().contains("not an http or https address"), "{}", refused.said());
}

#[test]
fn prices_and_bills_are_looked_up() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = "[data.gpu_type.small]\ndisplay_name = \"L4\"\n\
                [output.price]\nvalue = \"${data.gpu_type.small.secure_price}\"\n";
    let project = Project::with(spec, &service);
    project.run(&["apply", "--yes"]).expect(0);
    let price = project.run(&["output", "price", "--json"]).expect(0).json();
    assert!(price.as_f64().is_some_and(|price| price > 0.0), "{price}");

    let bill = "[output.amount]\nvalue = \"${data.network_volume_bill.v.amount}\"\n";
    let with_bill = |id: &str| {
        format!("{spec}[data.network_volume_bill.v]\nnetwork_volume_id = \"{id}\"\n{bill}")
    };
    project.write("plumb.toml", with_bill("none"));
    let refused = project.run(&["plan"]).expect(1);
    assert!(refused.said().contains("nothing is found by this look-up"), "{}", refused.said());
    project.write("plumb.toml", with_bill(&volume(&service, "shared", "EU-RO-1")));
    crate::harness::wait_for("a bill", || project.run(&["apply", "--yes"]).code == Some(0));
    let amount = project.run(&["output", "amount", "--json"]).expect(0).json();
    let (_, bills) = service.request("GET", "/billing/networkvolumes?bucketSize=month", None);
    let bills: serde_json::Value = serde_json::from_str(&bills).expect("JSON");
    let (amount, billed) = (amount.as_f64(), bills[0]["amount"].as_f64());
    assert!(amount.is_some_and(|amount| amount > 0.0) && amount <= billed, "{amount:?} {bills}");

    project.write("plumb.toml", "[resource.gpu_type.x]\nid = \"L4\"\n");
    let refused = project.run(&["validate"]).expect(1);
    assert!(refused.said().contains("write `[data.gpu_type.x]`"), "{}", refused.said());
}
