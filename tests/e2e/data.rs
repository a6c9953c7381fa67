//! Data blocks: objects, states and addresses that others made and a spec reads.

use serde_json::json;

use crate::harness::{Project, Service, data};

/// Makes a volume as another tool would; returns its id.
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
