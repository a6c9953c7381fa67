//! A test that computes the examples of the functions here and with `terraform console`, and compares the
//! results. Without `terraform` on the PATH, the test compares nothing and says so.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use engine::address::Block;
use engine::expression::Root;
use engine::expression::evaluate::{Scope, evaluate};
use engine::expression::functions::{Reference, references};
use engine::expression::parse::{Dialect, expression};
use engine::stored::from_json;
use engine::value::{Datum, Value};

/// The files of the examples.
const FILES: [(&str, &str); 5] = [
    ("prompt.txt", "Be brief.\n"),
    ("hello.tpl", "Hello ${name}:%{ for tag in tags } ${tag}%{ endfor }\n"),
    ("conf/a.txt", ""),
    ("conf/b.txt", ""),
    ("conf/x.json", ""),
];

/// The functions that Terraform does not have. `OpenTofu` has all of these but `tomldecode`.
const NOT_TERRAFORM: [&str; 5] =
    ["base64gunzip", "base64gzip", "cidrcontains", "tomldecode", "urldecode"];

struct Examples;

impl Scope for Examples {
    fn root(&self, _: &Root) -> Result<Datum, String> {
        Err("an example refers to nothing".to_owned())
    }

    fn resource(&self, _: &Block, _: Option<&str>) -> Result<Datum, String> {
        Err("an example refers to nothing".to_owned())
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        match path {
            "conf/" => return Ok("a.txt\nb.txt\nx.json".into()),
            "base64:prompt.txt" => return Ok("QmUgYnJpZWYuCg==".into()),
            _ => {}
        }
        let file = FILES.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| Arc::from(*text)).ok_or_else(|| "no such file".to_owned())
    }
}

fn computed(call: &str) -> Value {
    let expr = expression(call, Dialect::Spec).expect("an example is an expression");
    evaluate(&expr, &Examples).unwrap_or_else(|error| panic!("{call}: {error}")).value
}

/// Returns the answer of `terraform console` to a line; `None` if there is no terraform.
fn console(line: &str, folder: &Path) -> Option<String> {
    let mut child = Command::new("terraform")
        .args(["console", "-no-color"])
        .current_dir(folder)
        .env("CHECKPOINT_DISABLE", "1")
        .env("TF_CLI_CONFIG_FILE", folder.join("none.tfrc"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take().expect("it is piped").write_all(line.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "terraform console: {said}");
    Some(String::from_utf8(output.stdout).expect("it prints text"))
}

#[test]
fn the_examples_of_functions_give_what_terraform_gives() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("conf")).expect("a folder");
    for (name, text) in FILES {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    std::fs::write(folder.path().join("none.tfrc"), "").expect("a file");
    let common = |reference: &Reference| !NOT_TERRAFORM.contains(&reference.name);
    let examples: Vec<Reference> = references().filter(common).collect();
    let calls: Vec<String> =
        examples.iter().map(|it| format!("jsonencode([{}])", it.example.call)).collect();
    // `terraform console` prints only the result of the last line.
    let line = format!("jsonencode([{}])\n", calls.join(", "));
    let Some(printed) = console(&line, folder.path()) else {
        eprintln!("nothing was compared: there is no `terraform` on the PATH");
        return;
    };
    let text: String = serde_json::from_str(printed.trim()).expect("a text in quotes");
    let answers: Vec<String> = serde_json::from_str(&text).expect("a list of texts");
    assert_eq!(answers.len(), examples.len(), "{printed}");
    for (Reference { example, .. }, json) in examples.iter().zip(answers) {
        let given = from_json(&serde_json::from_str(&json).expect("a JSON text"));
        let given = given.as_items().and_then(<[Value]>::first).expect("one value");
        // JSON has no sets.
        let mine = match computed(example.call) {
            Value::Set(items) => Value::List(items),
            other => other,
        };
        assert!(mine.same(given), "{}: {mine:?}, and terraform says {given:?}", example.call);
    }
}
