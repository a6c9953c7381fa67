//! Endpoints, whose two APIs take and show different things: what a spec gives is there after one
//! apply, or it is refused before.

use serde_json::Value as Json;

use crate::harness::{Project, Service, data};

/// An endpoint with these attributes, and the template that it runs.
fn spec(endpoint: &str) -> String {
    format!(
        "[resource.template.worker]\nname = \"worker\"\nimage_name = \"i:1\"\nis_serverless = true\n\n\
         [resource.endpoint.chat]\nname = \"chat\"\ntemplate_id = \"${{template.worker.id}}\"\n{endpoint}\n"
    )
}

/// Applies, and looks that nothing is left to do.
#[track_caller]
fn settles(project: &Project, spec: &str) {
    project.write("plumb.toml", spec);
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

fn endpoint(service: &Service) -> Json {
    let endpoints = service.list("/endpoints");
    assert_eq!(endpoints.len(), 1, "{endpoints:?}");
    endpoints[0].clone()
}

/// What another API shows of the object is nothing that its own calls need to take.
#[test]
fn a_create_by_types_that_was_refused_halfway_is_finished() {
    let folder = data();
    let service = Service::start(folder.path(), &["--worker-quota", "1"]);
    let by_types = "gpu_type_ids = [\"NVIDIA A40\"]\nworkers_max = 2\n";
    let project = Project::with(&spec(by_types), &service);
    let said = project.run(&["apply", "--yes"]).expect(1).said();
    assert!(said.contains("cannot go beyond"), "{said}");
    let mended = by_types.replace('2', "1") + "idle_timeout = 42\n";
    settles(&project, &spec(&mended));
    let made = endpoint(&service);
    assert_eq!((&made["name"], &made["workersMax"]), (&"chat".into(), &1.into()));
    assert_eq!(made["idleTimeout"], 42);
    project.run(&["destroy", "--yes"]).expect(0);
}
