//! Policies of the spec and of separate folders, for each change and for the whole plan.

use serde_json::Value;

use crate::harness::{Project, Service, data};
use crate::lifecycle::SPEC;

const POLICIES: &str = r#"
[policy.keep-volumes]
for = "network_volume"
assert = 'action != "delete" && action != "replace"'
message = "${address} holds data."

[policy.few-workers]
assert = "sum([for it in plan.resources : it.new.workers_max if it.type == \"endpoint\"]) <= 10"
message = "At most 10 workers in all."

[policy.team]
for = "all"
severity = "warn"
assert = 'new == null || startswith(new.name, "team-")'
message = "${name} does not begin with the name of a team."

[policy.elsewhere]
for = "a_type_of_another_provider"
assert = 'old.size < 3'
"#;

/// Returns a project with a policy folder.
fn project(service: &Service) -> Project {
    let project = Project::with(SPEC, service);
    std::fs::create_dir(project.path("rules")).unwrap();
    project.write("rules/team.policy.toml", POLICIES);
    project
}

#[test]
fn a_denied_plan_calls_nothing() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = project(&service);
    let applied = project.run(&["apply", "--yes", "--policy", "rules"]).expect(0);
    assert!(
        applied.stderr.contains("does not begin with the name of a team"),
        "{}",
        applied.said()
    );

    let calls = service.mutations().len();
    let text = SPEC.replace("workers_max = 3", "workers_max = 11");
    project.write("plumb.toml", text);
    let denied = project.run(&["apply", "--yes", "--policy", "rules"]).expect(1);
    assert!(denied.said().contains("At most 10 workers in all."), "{}", denied.said());
    assert!(denied.said().contains("rules/team.policy.toml:8"), "{}", denied.said());
    // What is denied is shown, too.
    for words in ["workers_max", "3 → 11", "Refused because of 1 error. Nothing is changed."] {
        assert!(denied.stdout.contains(words), "{words}: {}", denied.said());
    }
    assert!(!denied.said().contains("incomplete"), "{}", denied.said());
    assert!(denied.said().contains("` is 11"), "{}", denied.said());
    let plan = project.run(&["plan", "--json", "--policy", "rules"]).expect(1).json();
    let is_it =
        |it: &Value| it["summary"] == "At most 10 workers in all." && it["severity"] == "error";
    assert!(plan["diagnostics"].as_array().unwrap().iter().any(is_it), "{plan}");
    let page = project.run(&["plan", "--format", "markdown", "--policy", "rules"]).expect(1);
    assert!(page.stdout.contains("At most 10 workers in all."), "{}", page.stdout);

    let destroyed = project.run(&["destroy", "--yes", "--policy", "rules"]).expect(1);
    assert!(destroyed.said().contains("network_volume.models holds data."), "{}", destroyed.said());
    assert_eq!(service.mutations().len(), calls);
}

#[test]
fn a_saved_plan_holds_its_policies() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = project(&service);
    project.run(&["plan", "--out", "plan", "--policy", "rules"]).expect(0);
    let saved = std::fs::read_to_string(project.path("plan")).unwrap();
    assert!(saved.contains("keep-volumes"), "{saved}");
    std::fs::remove_dir_all(project.path("rules")).unwrap();
    let applied = project.run(&["apply", "plan"]).expect(0);
    assert!(
        applied.stderr.contains("does not begin with the name of a team"),
        "{}",
        applied.said()
    );
    project.run(&["plan", "--policy", "rules"]).expect(1);
}

#[test]
fn a_policy_of_what_is_made_is_judged_before_the_call() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let policy = "\n[policy.short]\nfor = \"endpoint\"\nassert = 'length(new.template_id) < 3'\n\
                  message = \"The id of the template is long.\"\n";
    let project = Project::with(&format!("{SPEC}{policy}"), &service);
    let planned = project.run(&["plan", "--steps"]).expect(0).stdout;
    assert!(planned.contains("require endpoint.chat"), "{planned}");
    let failed = project.run(&["apply", "--yes"]).expect(1);
    assert!(failed.said().contains("The id of the template is long."), "{}", failed.said());
    assert!(service.names("/endpoints").is_empty());
    assert_eq!(service.names("/networkvolumes"), ["models"]);
}

#[test]
fn mistakes_of_policies_are_shown() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    std::fs::create_dir(project.path("rules")).unwrap();
    let said = project.run(&["validate", "--policy", "rules"]).expect(1).said();
    assert!(said.contains("there is no policy file in rules"), "{said}");
    let text = "[policy.a]\nfor = \"endpoint\"\nassert = 'new.workers_maxx > 3'\n[variable.x]\ndefault = 1\n";
    project.write("rules/a.toml", text);
    let said = project.run(&["validate", "--policy", "rules"]).expect(1).said();
    assert!(said.contains("did you mean `workers_max`?"), "{said}");
    assert!(said.contains("a policy file holds only policies"), "{said}");
    assert!(said.contains("rules/a.toml:4"), "{said}");
    project.run(&["validate"]).expect(0);
}
