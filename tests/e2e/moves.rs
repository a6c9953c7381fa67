//! Blocks of the spec that give objects other addresses, or let objects go.

use crate::harness::Project;

const SPEC: &str = r#"
[resource.value.a]
input = "one"

[resource.value.many]
for_each = ["x", "y"]
input = "${value.a.id}:${each.key}"
"#;

const MODULE: &str = r#"
[resource.value.first]
input = "one"

[resource.value.many]
for_each = ["x", "y"]
input = "${value.first.id}:${each.key}"

[[moved]]
from = "value.a"
to = "value.first"
"#;

const CALLER: &str = r#"
[module.app]
source = "./app"

[[moved]]
from = "value.*"
to = "module.app.value.*"
"#;

/// Returns the addresses of the state with the ids of their objects.
fn ids(project: &Project) -> Vec<(String, String)> {
    let list = project.run(&["state", "list"]).expect(0).stdout;
    let id = |address: &str| {
        let shown = project.run(&["state", "show", address, "--json"]).expect(0).json();
        (address.to_owned(), shown["id"].to_string())
    };
    list.lines().map(id).collect()
}

#[test]
fn a_spec_becomes_a_module_and_every_object_stays() {
    let project = Project::new(SPEC);
    project.run(&["apply", "--yes"]).expect(0);
    let before = ids(&project);
    project.write("plumb.toml", CALLER);
    project.write("app/app.plumb.toml", MODULE);
    let plan = project.run(&["plan", "--detailed-exitcode"]).expect(2).stdout;
    assert!(
        plan.contains("→ module.app.value.first gets this address")
            && plan.contains("moved from value.a"),
        "{plan}"
    );
    assert!(
        plan.contains("Plan: 0 to create, 0 to update, 0 to replace, 0 to delete, 3 to move."),
        "{plan}"
    );
    let json = project.run(&["plan", "--json"]).expect(0).json();
    assert_eq!(json["summary"]["move"], 3, "{json}");
    assert_eq!(json["changes"][0]["moved_from"], "value.a", "{json}");
    let markdown = project.run(&["plan", "--format", "markdown"]).expect(0).stdout;
    assert!(markdown.contains("moved from value.many[\"x\"]"), "{markdown}");
    // A saved plan does the same, once.
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    let applied = project.run(&["apply", "plan.json"]).expect(0).said();
    assert!(applied.contains("3 moved"), "{applied}");
    project.run(&["apply", "plan.json"]).expect(3);
    let after: Vec<String> = ids(&project).into_iter().map(|(_, id)| id).collect();
    assert_eq!(after, before.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>());
    let again = project.run(&["plan", "--detailed-exitcode"]).expect(0).stdout;
    assert!(again.contains("No changes."), "{again}");
    let state = project.run(&["state", "pull"]).expect(0).json();
    let entry = &state["entries"]["module.app.value.many[\"x\"]"];
    assert_eq!(entry["dependencies"][0], "module.app.value.first", "{state}");
}

#[test]
fn a_renamed_module_takes_all_its_instances_along() {
    let spec = |name: &str, more: &str| {
        format!("[module.{name}]\nsource = \"./app\"\nfor_each = [\"eu\", \"us\"]\n{more}")
    };
    let project = Project::new(&spec("app", ""));
    project.write("app/app.plumb.toml", MODULE);
    project.run(&["apply", "--yes"]).expect(0);
    let moved = "[[moved]]\nfrom = \"module.app\"\nto = \"module.web\"\n";
    project.write("plumb.toml", spec("web", moved));
    let applied = project.run(&["apply", "--yes"]).expect(0).said();
    assert!(applied.contains("0 created, 0 updated, 0 replaced, 0 deleted, 6 moved"), "{applied}");
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.write("plumb.toml", spec("app", moved));
    let refused = project.run(&["plan"]).expect(1).said();
    assert!(refused.contains("moved and still in the spec"), "{refused}");
}

#[test]
fn what_is_removed_is_let_go_and_reviewed() {
    let project = Project::new(SPEC);
    project.run(&["apply", "--yes"]).expect(0);
    project.write(
        "plumb.toml",
        "[[removed]]\nfrom = \"value.many\"\n[[removed]]\nfrom = \"value.a\"\ndestroy = true\n",
    );
    let plan = project.run(&["plan"]).expect(0).stdout;
    assert!(
        plan.contains("value.many[\"x\"] will leave the state, and stays where it is"),
        "{plan}"
    );
    assert!(plan.contains("1 to delete, 2 to forget"), "{plan}");
    let applied = project.run(&["apply", "--yes"]).expect(0).said();
    assert!(applied.contains("1 deleted, 2 forgotten"), "{applied}");
    assert_eq!(project.run(&["state", "list"]).expect(0).stdout, "");
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn a_renamed_block_is_noticed_and_its_move_is_written() {
    let project = Project::new(SPEC);
    project.run(&["apply", "--yes"]).expect(0);
    let renamed = SPEC.replace("value.a]", "value.b]").replace("value.many]", "value.more]");
    project.write("plumb.toml", renamed.replace("value.a.id", "value.b.id"));
    project.write("moves.plumb.toml", "# kept");
    let noted = project.run(&["plan"]).expect(0);
    assert!(noted.stderr.contains("value.a may be called value.b now"), "{}", noted.stderr);
    assert!(noted.stdout.contains("3 to create"), "{}", noted.stdout);
    // The other moves are proposed only after the first one, whose id is in their inputs.
    let said = project.run(&["plan", "--write-moves"]).expect(0);
    assert!(said.stderr.contains("wrote 1 move to moves.plumb.toml"), "{}", said.stderr);
    assert!(said.stdout.contains("0 to delete, 3 to move"), "{}", said.stdout);
    let written = std::fs::read_to_string(project.path("moves.plumb.toml")).unwrap();
    assert!(
        written.starts_with("# kept\n\n[[moved]]\nfrom = \"value.a\"\nto = \"value.b\"\n"),
        "{written}"
    );
    assert!(written.contains("from = \"value.many\"\nto = \"value.more\"\n"), "{written}");
    project.run(&["apply", "--yes"]).expect(0);
    let again = project.run(&["plan", "--write-moves", "--detailed-exitcode"]).expect(0);
    assert!(!again.stderr.contains("wrote"), "{}", again.stderr);
}

#[test]
fn instances_of_a_block_become_instances_of_a_module_by_one_move() {
    let project = Project::new(SPEC);
    project.run(&["apply", "--yes"]).expect(0);
    project.write(
        "plumb.toml",
        "[resource.value.a]\ninput = \"one\"\n[module.app]\nsource = \"./app\"\n\
         for_each = [\"x\", \"y\"]\ninput = \"${value.a.id}:${each.key}\"\n",
    );
    project.write(
        "app/plumb.toml",
        "[variable.input]\ntype = \"string\"\n[resource.value.it]\ninput = \"${var.input}\"\n",
    );
    let said = project.run(&["plan", "--write-moves"]).expect(0);
    assert!(said.stdout.contains("0 to create, 0 to update, 0 to replace, 0 to delete, 2 to move"));
    let written = std::fs::read_to_string(project.path("moves.plumb.toml")).unwrap();
    let block = "[[moved]]\nfrom = \"value.many[*]\"\nto = \"module.app[*].value.it\"\n";
    assert_eq!(written, block);
}

#[test]
fn state_mv_takes_blocks_modules_and_other_states() {
    let project = Project::new(SPEC);
    project.run(&["apply", "--yes"]).expect(0);
    let before = ids(&project);
    let said = project.run(&["state", "mv", "value.*", "module.app.value.*"]).expect(0).said();
    assert!(said.contains("moved value.many[\"x\"] to module.app.value.many[\"x\"]"), "{said}");
    project.run(&["state", "mv", "module.app", "module.web[eu]"]).expect(0);
    for (from, to, words) in [
        ("value.a", "value.b", "value.a is not in the state"),
        ("module.web", "value.b", "a module cannot become a resource"),
        ("module.web[eu].value.many[x]", "module.web[eu].value.many[y]", "is in the state already"),
        ("module.web[eu].value.many[x]", "other.b", "the type of an object cannot change"),
    ] {
        let said = project.run(&["state", "mv", from, to]).expect(1).said();
        assert!(said.contains(words), "{from} {to}: {said}");
    }
    let said = project.run(&["state", "mv", "module.web", "--to", "."]).expect(1).said();
    assert!(said.contains("the other state is this one"), "{said}");
    std::fs::create_dir(project.path("other")).unwrap();
    project.write("other/plumb.toml", SPEC);
    for (from, to) in [("value.a", "value.a"), ("value.many", "value.many")] {
        let from = format!("module.web[eu].{from}");
        let said = project.run(&["state", "mv", &from, to, "--to", "other"]).expect(0).said();
        assert!(said.contains(&format!("to {to}")) && said.contains("other"), "{said}");
    }
    assert_eq!(project.run(&["state", "list"]).expect(0).stdout, "");
    let other = project.run(&["-C", "other", "state", "list"]).expect(0).stdout;
    assert_eq!(other.lines().count(), before.len(), "{other}");
    project.run(&["-C", "other", "plan", "--detailed-exitcode"]).expect(0);
}
