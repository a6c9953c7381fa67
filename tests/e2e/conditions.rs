//! Preconditions and postconditions: refused while planning, or judged during an apply.

use serde_json::Value;

use crate::harness::{Project, Service, data};

const SPEC: &str = r#"
[variable.least]
default = 1

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true

[[resource.template.worker.lifecycle.postcondition]]
condition = "length(self.id) >= var.least"
message = "The id ${self.id} is shorter than ${var.least}."

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_max = 1

[[resource.endpoint.chat.lifecycle.precondition]]
condition = "length(template.worker.id) < 1000 / var.least"
message = "The template has a long id."

[output.id]
value = "${template.worker.id}"

[[output.id.precondition]]
condition = 'endpoint.chat.id != ""'
message = "There is no endpoint."
"#;

#[test]
fn conditions_are_judged_around_the_calls() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    let planned = project.run(&["plan", "--steps"]).expect(0).stdout;
    assert!(planned.contains("verify template.worker"), "{planned}");
    assert!(planned.contains("require endpoint.chat"), "{planned}");

    // The template, whose id is too short, is made. The resource that needs it is not.
    let failed = project.run(&["apply", "--yes", "--var", "least=500"]).expect(1);
    assert!(failed.said().contains("is shorter than 500."), "{}", failed.said());
    assert!(failed.said().contains("the postcondition at plumb.toml:11"), "{}", failed.said());
    assert_eq!(project.run(&["state", "list"]).expect(0).stdout, "template.worker\n");
    assert!(service.names("/endpoints").is_empty());

    // The id is known by now, so the plan refuses the same condition before any call.
    let calls = service.mutations().len();
    let refused = project.run(&["apply", "--yes", "--var", "least=500"]).expect(1);
    assert!(refused.said().contains("`length(self.id)` is "), "{}", refused.said());
    let plan = project.run(&["plan", "--json", "--var", "least=500"]).expect(1).json();
    let summary = |it: &Value| it["summary"].as_str().unwrap_or_default().contains("shorter than");
    assert!(plan["diagnostics"].as_array().unwrap().iter().any(summary), "{plan}");
    assert_eq!(service.mutations().len(), calls);

    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(service.names("/endpoints"), ["chat"]);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn a_saved_plan_judges_its_conditions_and_an_output_keeps_its_value() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = SPEC.replace("endpoint.chat.id != \"\"", "endpoint.chat.id == \"x\"");
    let project = Project::with(&spec, &service);
    project.run(&["plan", "--out", "plan"]).expect(0);
    let failed = project.run(&["apply", "plan"]).expect(1);
    assert!(failed.said().contains("There is no endpoint."), "{}", failed.said());
    assert!(failed.said().contains("its preconditions hold"), "{}", failed.said());
    assert_eq!(service.names("/endpoints"), ["chat"]);
    let outputs = project.run(&["output", "--json"]).expect(0).json();
    assert!(outputs.get("id").is_none(), "{outputs}");
    let refused = project.run(&["plan"]).expect(1);
    assert!(refused.said().contains("`endpoint.chat.id` is "), "{}", refused.said());
}
