//! The README's first command, on the embedded service.

use crate::harness::Project;

fn quickstart() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart/plumb.toml");
    std::fs::read_to_string(path).expect("the quickstart's spec")
}

#[test]
fn the_quickstart_works_on_a_bare_laptop() {
    let project = Project::new(&quickstart());
    let first = project.run(&["apply", "--yes"]).expect(0);
    assert!(
        first.stderr.lines().next().is_some_and(|line| line.contains("service")),
        "{}",
        first.stderr
    );
    let again = project.run(&["apply", "--yes"]).expect(0);
    assert!(again.said().contains("No changes"), "{}", again.said());
    let input = r#"{"prompt":"hi"}"#;
    let job = project.run(&["job", "run", "endpoint.chat", input]).expect(0);
    assert_eq!(job.stdout, format!("{input}\n"));
    project.run(&["destroy", "--yes"]).expect(0);
    let ignore = std::fs::read_to_string(project.path(".plumb/.gitignore")).unwrap();
    assert_eq!(ignore.trim(), "*");
}

#[test]
fn init_writes_a_spec_that_applies_and_never_overwrites() {
    let project = Project::new("");
    std::fs::remove_file(project.path("plumb.toml")).unwrap();
    project.run(&["init"]).expect(0);
    let read = |name: &str| std::fs::read_to_string(project.path(name)).unwrap();
    let (spec, schema) = (read("plumb.toml"), read("plumb.schema.json"));
    assert!(spec.starts_with("#:schema ./plumb.schema.json\n"), "{spec}");
    assert_eq!(schema, project.run(&["schema", "--spec"]).expect(0).stdout);
    project.run(&["validate"]).expect(0);
    project.run(&["apply", "--yes"]).expect(0);
    let before = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    project.run(&["init"]).expect(1);
    assert_eq!(std::fs::read_to_string(project.path("plumb.toml")).unwrap(), before);
    project.run(&["destroy", "--yes"]).expect(0);
}
