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
fn expressions_see_the_outputs_and_resources_of_modules() {
    let project = Project::new(
        "[module.eu]\nsource = \"./m\"\nsize = 2\n[module.all]\nsource = \"./m\"\n\
         for_each = [\"a\"]\nsize = 3\n",
    );
    let module = "[variable.size]\ntype = \"integer\"\n[resource.value.v]\ninput = \"${var.size}\"\n\
                  [output.twice]\nvalue = \"${value.v.output * 2}\"\n";
    std::fs::create_dir(project.path("m")).unwrap();
    project.write("m/plumb.toml", module);
    project.run(&["apply", "--yes"]).expect(0);
    let typed = "module.eu.twice\nmodule.all[\"a\"].twice\nmodule.eu\nmodule.eu.value.v.output\n\
                 module.all[\"a\"].value.v.output + 1\n";
    let answers = type_in(&project, typed).expect(0);
    assert_eq!(answers.stdout, "4\n6\n{ twice = 4 }\n2\n4\n", "{}", answers.said());
    for (typed, words) in [
        ("module.no.twice", "there is no module `no`"),
        ("var.no", "there is no variable `no`"),
        ("module", "`module` is no name of the spec"),
        ("value.no.output", "neither the spec nor the state has `value.no`"),
    ] {
        let wrong = type_in(&project, &format!("{typed}\n")).expect(1);
        assert!(wrong.stderr.contains(words), "{typed}: {}", wrong.said());
    }
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
