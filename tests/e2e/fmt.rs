//! `plumb fmt`: formats files.

use std::path::Path;

use crate::harness::Project;

const MESSY: &str = "#:schema ./plumb.schema.json\n[resource.value.a]\n  input={text='x',n=[1,2,]}   # kept\n\n\n[output.a]\nvalue=\"${value.a.id}\"\n";
const NEAT: &str = "#:schema ./plumb.schema.json\n[resource.value.a]\ninput = { text = 'x', n = [1, 2] } # kept\n\n[output.a]\nvalue = \"${value.a.id}\"\n";

fn read(project: &Project, name: &str) -> String {
    std::fs::read_to_string(project.path(name)).unwrap()
}

#[test]
fn files_of_a_spec_get_the_layout_and_are_named() {
    let project = Project::new(MESSY);
    project.write("modules/m/plumb.toml", "[output.x]\nvalue=1\n");
    project.write("prod.vars.toml", "env='prod'\n");
    project.write("notes.toml", "a=1\n");
    project.write(".hidden/plumb.toml", "a=1\n");
    let all = "plumb.toml\nprod.vars.toml\nmodules/m/plumb.toml\n";
    let listed = project.run(&["fmt", "--check"]).expect(1);
    assert_eq!(listed.stdout, all, "{}", listed.stderr);
    assert_eq!(read(&project, "plumb.toml"), MESSY, "a check changes nothing");
    assert_eq!(project.run(&["fmt", "modules"]).expect(0).stdout, "modules/m/plumb.toml\n");
    assert_eq!(project.run(&["fmt"]).expect(0).stdout, "plumb.toml\nprod.vars.toml\n");
    assert_eq!(read(&project, "plumb.toml"), NEAT);
    assert_eq!(read(&project, "notes.toml"), "a=1\n");
    assert_eq!(project.run(&["fmt", "--check"]).expect(0).stdout, "");
    assert_eq!(project.run(&["fmt", "notes.toml"]).expect(0).stdout, "notes.toml\n");
    project.run(&["validate"]).expect(0);
}

#[test]
fn what_is_no_toml_is_said_with_its_line_and_stays() {
    let broken = "[resource.value.a]\ninput = value.b.id\n";
    let project = Project::new(broken);
    project.write("b.plumb.toml", "[local]\nx=1\n");
    let run = project.run(&["fmt"]).expect(1);
    assert!(run.stderr.contains("plumb.toml:2:9"), "{}", run.stderr);
    assert_eq!(run.stdout, "b.plumb.toml\n", "the others get the layout");
    assert_eq!(read(&project, "plumb.toml"), broken);
    for (path, words) in [("nowhere", "cannot read nowhere"), (".", "plumb.toml:2:9")] {
        let said = project.run(&["fmt", path]).expect(1).stderr;
        assert!(said.contains(words), "{said}");
    }
    std::fs::create_dir(project.path("empty")).unwrap();
    let said = project.run(&["fmt", "empty"]).expect(1).stderr;
    assert!(said.contains("there is no spec in empty"), "{said}");
}

/// The specs that Plumb writes have the layout of `plumb fmt`.
#[test]
fn the_examples_have_the_layout() {
    let written = Project::new("");
    std::fs::remove_file(written.path("plumb.toml")).unwrap();
    written.run(&["init"]).expect(0);
    written.run(&["fmt", "--check"]).expect(0);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let examples = examples.to_str().unwrap();
    let run = Project::new("").run(&["fmt", "--check", examples]).expect(0);
    assert_eq!(run.stdout, "");
}
