//! The JSON Schema of a spec, checked with taplo, the TOML tool behind the editor extension Even Better TOML.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::Project;

/// Returns if taplo accepts some specs by a schema, with its output; `None` if taplo is not installed.
fn taplo(folder: &Path, specs: &[PathBuf], schema: &str) -> Option<(bool, String)> {
    let program = std::env::var_os("PLUMB_TAPLO").unwrap_or_else(|| "taplo".into());
    let file = folder.join("plumb.schema.json");
    std::fs::write(&file, schema).unwrap();
    let url = format!("file://{}", file.display());
    let mut command = Command::new(program);
    let output = command.args(["check", "--no-auto-config", "--schema", &url]).args(specs).output();
    let Ok(output) = output else {
        let skipped = "skipped: there is no `taplo`; install it, or name it in PLUMB_TAPLO";
        drop(writeln!(std::io::stderr(), "{skipped}"));
        return None;
    };
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Collects the folders with a spec below a folder.
fn specs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            specs(&path, found);
        } else if path.file_name().is_some_and(|name| name == "plumb.toml") {
            found.push(folder.to_owned());
        }
    }
}

#[test]
fn taplo_finds_every_example_valid() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut folders = Vec::new();
    specs(&examples, &mut folders);
    assert!(folders.len() >= 5, "{folders:?}");
    let project = Project::new("");
    // Most specs have the same schema, and each start of taplo takes time.
    let mut by_schema: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for folder in folders {
        let here = folder.to_str().unwrap();
        let schema = project.run(&["-C", here, "schema", "--spec"]).expect(0).stdout;
        by_schema.entry(schema).or_default().push(folder.join("plumb.toml"));
    }
    for (schema, specs) in by_schema {
        let Some((is_valid, said)) = taplo(&project.path(""), &specs, &schema) else { return };
        assert!(is_valid, "{specs:?}: {said}");
    }
}

#[test]
fn taplo_finds_mistakes() {
    let project = Project::new("");
    let schema = project.run(&["schema", "--spec"]).expect(0).stdout;
    let mistakes = [
        ("[plumb]\nnmae = \"x\"", "'nmae' was unexpected"),
        ("[outputs]\nx = 1", "'outputs' was unexpected"),
        ("[variable.x]\nsensitive = \"yes\"", "is not of type \"boolean\""),
        ("[resource.valu.x]\ninput = 1", "'valu' was unexpected"),
        ("[resource.network_volume.a]\nname = \"a\"\nsize = 1", "\"data_center_id\" is a required"),
        ("[resource.template.a]\nname = \"a\"\nid = \"x\"", "'id' was unexpected"),
        ("[resource.endpoint.a]\nname = \"a\"\nworkers_max = -1", "is less than the minimum"),
        ("[resource.endpoint.a]\nname = \"a\"\nworkers_max = \"x\"", "does not match"),
        ("[resource.endpoint.a]\nname = \"a\"\ngpu_ids = \"ADA_25\"", "\"ADA_25\" is not valid"),
        ("[resource.value.a]\nlifecycle = { retian = true }", "'retian' was unexpected"),
        ("[state]\nbackend = \"s3\"\nprefix = \"x\"", "\"bucket\" is a required"),
        ("[[import]]\nid = \"a\"", "\"to\" is a required"),
        ("[[moved]]\nfrom = \"value.a\"", "\"to\" is a required"),
        ("[data.http.a]\nurll = \"https://a.example\"", "'urll' was unexpected"),
        ("[data.network_volume.a]\nnmae = \"a\"", "'nmae' was unexpected"),
        ("[resource.gpu_type.a]\nid = \"a\"", "'gpu_type' was unexpected"),
        ("[output.x]\nsensitive = true", "\"value\" is a required"),
    ];
    let mut specs = Vec::new();
    for (number, (spec, _)) in mistakes.iter().enumerate() {
        project.write(&format!("mistake-{number}.toml"), format!("{spec}\n"));
        specs.push(project.path(&format!("mistake-{number}.toml")));
    }
    let Some((_, said)) = taplo(&project.path(""), &specs, &schema) else { return };
    // The file of each mistake is in the line below it.
    let said: Vec<&str> = said.lines().collect();
    for (number, (spec, mistake)) in mistakes.iter().enumerate() {
        let file = format!("mistake-{number}.toml:");
        let is_found = |pair: &[&str]| pair[0].contains(mistake) && pair[1].contains(&file);
        assert!(said.windows(2).any(is_found), "{spec}: {}", said.join("\n"));
    }
}

#[test]
fn types_of_descriptors_are_in_the_schema() {
    let project = Project::new("[provider.acme]\ndescriptor = \"./acme.provider.toml\"\n");
    let acme = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/acme/acme.provider.toml");
    project.write("acme.provider.toml", std::fs::read_to_string(acme).unwrap());
    let schema = project.run(&["schema", "--spec"]).expect(0).json();
    let types = schema["properties"]["resource"]["properties"].as_object().unwrap();
    let own = ["endpoint", "value"];
    assert!(own.iter().all(|ty| types.contains_key(*ty)), "{:?}", types.keys());
    let types = types.len();
    // A descriptor that cannot be used may have any type.
    project.write("acme.provider.toml", "[type.x");
    let schema = project.run(&["schema", "--spec"]).expect(0).json();
    let resource = &schema["properties"]["resource"];
    assert_eq!(resource["additionalProperties"], true);
    assert!(resource["properties"].as_object().unwrap().len() < types);
}
