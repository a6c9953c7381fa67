//! `plumb console` and `plumb graph`.

use std::io::Write as _;
use std::process::Stdio;

use crate::harness::{Project, Ran, ran};

const SPEC: &str = r#"
[variable.env]
default = "dev"
[variable.token]
sensitive = true
default = "canary-token"
[local]
names = ["b", "a"]
[resource.value.one]
input = { token = "${var.token}", size = 3 }
[resource.value.two]
for_each = "${local.names}"
input = "${each.key} of ${var.env}"
depends_on = ["value.one"]
"#;

fn type_in(project: &Project, text: &str) -> Ran {
    let mut command = project.command(&["console"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    ran(&child.wait_with_output().expect("it ends"))
}

#[test]
fn expressions_see_variables_locals_and_the_state() {
    let project = Project::new(SPEC);
    project.run(&["apply", "--yes"]).expect(0);
    let typed = "upper(var.env)\nsort(local.names)[0]\nvalue.two[\"a\"].output\n[for x in\nlocal.names : x]\n\
                 value.one.output.size + 1\n";
    let answers = type_in(&project, typed).expect(0);
    assert_eq!(
        answers.stdout,
        "\"DEV\"\n\"a\"\n\"a of dev\"\n[\"b\", \"a\"]\n4\n",
        "{}",
        answers.said()
    );
    let secret = type_in(&project, "var.token\nvalue.one.output\n");
    assert!(!secret.said().contains("canary-token"), "{}", secret.said());
    assert!(secret.stdout.contains("(sensitive"), "{}", secret.said());
    let wrong = type_in(&project, "value.three.id\n1 +\n").expect(1);
    assert!(
        wrong.stderr.contains("value.three") && wrong.stderr.contains("syntax"),
        "{}",
        wrong.said()
    );
}

#[test]
fn a_graph_has_every_form() {
    let project = Project::new(SPEC);
    let of = |form: &str| project.run(&["graph", "--format", form]).expect(0).stdout;
    assert_eq!(of("text"), "value.one\nvalue.two\n  after value.one\n");
    assert!(of("dot").contains("\"value.two\" -> \"value.one\""));
    assert!(of("mermaid").contains("n1 --> n0"));
    assert!(of("svg").starts_with("<svg "));
}
