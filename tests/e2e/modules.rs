//! Modules: folders and repositories with specs that another spec calls.

use std::path::Path;
use std::process::Command;

use crate::harness::Project;

const SPEC: &str = r#"
[module.net]
source = "./modules/net"
for_each = { eu = "EU-1", us = "US-2" }
region = "${each.value}"

[resource.value.user]
input = '${module.net["eu"].id}'

[output.labels]
value = '${[for one in module.net : one.label]}'
"#;

const NET: &str = r#"
[variable.region]
type = "string"

[variable.size]
type = "integer"
default = 2

[local]
label = '${var.region}-${var.size} ${file("note.txt")} ${filebase64("logo.bin")}'

[resource.value.a]
input = "${local.label}"

[resource.value.b]
for_each = ["x", "y"]
input = "${value.a.id}:${each.key}"

[output.id]
value = "${value.a.id}"

[output.label]
value = "${value.a.output}"
"#;

/// The bytes of a file that is no text.
const LOGO: [u8; 3] = [0xff, 0, 0xfe];

fn project() -> Project {
    let project = Project::new(SPEC);
    project.write("modules/net/net.plumb.toml", NET);
    project.write("modules/net/note.txt", "hello");
    std::fs::write(project.path("modules/net/logo.bin"), LOGO).unwrap();
    project
}

#[test]
fn a_saved_plan_holds_its_modules_and_their_files() {
    let project = project();
    project.run(&["validate"]).expect(0);
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    let elsewhere = project.path("modules");
    std::fs::rename(&elsewhere, project.path("gone")).unwrap();
    let applied = project.run(&["apply", "plan.json"]).expect(0);
    assert!(applied.said().contains("7 created"), "{}", applied.said());
    std::fs::rename(project.path("gone"), &elsewhere).unwrap();
    let again = project.run(&["plan"]).expect(0);
    assert!(again.stdout.contains("No changes."), "{}", again.stdout);
    let listed = project.run(&["state", "list"]).expect(0).stdout;
    assert_eq!(
        listed,
        "value.user\nmodule.net[\"eu\"].value.a\nmodule.net[\"eu\"].value.b[\"x\"]\n\
         module.net[\"eu\"].value.b[\"y\"]\nmodule.net[\"us\"].value.a\n\
         module.net[\"us\"].value.b[\"x\"]\nmodule.net[\"us\"].value.b[\"y\"]\n"
    );
    let labels = project.run(&["output", "labels"]).expect(0).stdout;
    assert!(
        labels.contains("EU-1-2 hello /wD+") && labels.contains("US-2-2 hello /wD+"),
        "{labels}"
    );
}

#[test]
fn commands_take_addresses_through_modules() {
    let project = project();
    project.run(&["apply", "--yes"]).expect(0);
    project.write("plumb.toml", SPEC.replace("US-2", "US-3").replace("EU-1", "EU-9"));
    let plan = project.run(&["plan", "--target", "module.net[us]"]).expect(0).stdout;
    assert!(plan.contains(r#"module.net["us"].value.a will be updated"#), "{plan}");
    assert!(!plan.contains(r#"module.net["eu"].value.a will"#), "{plan}");
    let shown = project.run(&["state", "show", "module.net[eu].value.b[x]"]).expect(0).stdout;
    assert!(shown.contains(":x"), "{shown}");
    // If an instance leaves the spec, an apply deletes all that it holds, and nothing else.
    project.write("plumb.toml", SPEC.replace(r#", us = "US-2""#, ""));
    let plan = project.run(&["plan"]).expect(0).stdout;
    assert!(plan.contains("0 to create, 0 to update, 0 to replace, 3 to delete"), "{plan}");
    let nothing = project.run(&["plan", "--target", "module.nett"]).expect(1);
    assert!(nothing.said().contains("module.nett"), "{}", nothing.said());
}

#[test]
fn a_module_stays_in_its_repository() {
    let project = project();
    project.write("env/plumb.toml", SPEC.replace("./modules/net", "../modules/net"));
    let refused = project.run(&["validate", "env"]).expect(1).said();
    assert!(refused.contains("in no git repository"), "{refused}");
    std::fs::create_dir(project.path(".git")).unwrap();
    project.run(&["validate", "env"]).expect(0);
    project.write("env/plumb.toml", SPEC.replace("./modules/net", "../../"));
    let refused = project.run(&["validate", "env"]).expect(1).said();
    assert!(refused.contains("it lies outside of"), "{refused}");
    project.write("modules/net/net.plumb.toml", NET.replace("note.txt", "link.txt"));
    std::os::unix::fs::symlink("/etc/hostname", project.path("modules/net/link.txt")).unwrap();
    let refused = project.run(&["validate"]).expect(1).said();
    assert!(refused.contains("it lies outside the module's folder"), "{refused}");
}

/// Runs git in a folder, without the git settings of the user.
pub(crate) fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let done = Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

pub(crate) fn commit(folder: &Path, tag: &str) {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "--quiet", "-m", "x"]);
    git(folder, &["tag", "--force", tag]);
}

#[test]
fn a_repository_is_fetched_by_init_alone_and_pinned() {
    let shared = tempfile::tempdir().unwrap();
    let net = shared.path().join("modules/net");
    std::fs::create_dir_all(&net).unwrap();
    std::fs::write(net.join("net.plumb.toml"), NET).unwrap();
    std::fs::write(net.join("note.txt"), "hello").unwrap();
    std::fs::write(net.join("logo.bin"), LOGO).unwrap();
    git(shared.path(), &["init", "--quiet"]);
    commit(shared.path(), "v1");

    let url = format!("file://{}", shared.path().display());
    let call = format!("source = \"{url}\"\nrevision = \"v1\"\nfolder = \"modules/net\"");
    let project = Project::new(&SPEC.replace(r#"source = "./modules/net""#, &call));
    let early = project.run(&["plan"]).expect(1).said();
    assert!(early.contains("it was not fetched yet: run `plumb init`"), "{early}");
    let fetched = project.run(&["init"]).expect(0).said();
    assert!(fetched.contains("fetched") && fetched.contains("at v1"), "{fetched}");
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    let lock = std::fs::read_to_string(project.path("plumb.lock")).unwrap();
    assert!(lock.contains("digest = \"blake3:") && lock.contains("revision = \"v1\""), "{lock}");

    // A moved tag is found at the next fetch, and changes nothing before that.
    std::fs::write(net.join("note.txt"), "other").unwrap();
    commit(shared.path(), "v1");
    project.run(&["init"]).expect(0);
    project.run(&["plan"]).expect(0);
    std::fs::remove_dir_all(project.path(".plumb/modules")).unwrap();
    let moved = project.run(&["init"]).expect(1).said();
    assert!(moved.contains("is not what plumb.lock says"), "{moved}");
    std::fs::remove_file(project.path("plumb.lock")).unwrap();
    project.run(&["init"]).expect(0);
    let plan = project.run(&["plan"]).expect(0).stdout;
    assert!(plan.contains("EU-1-2 other"), "{plan}");

    // A change of the fetched files is found.
    let folder = std::fs::read_dir(project.path(".plumb/modules")).unwrap().next().unwrap();
    std::fs::write(folder.unwrap().path().join("modules/net/note.txt"), "evil").unwrap();
    let changed = project.run(&["plan"]).expect(1).said();
    assert!(changed.contains("is not what plumb.lock says"), "{changed}");
    let gone = SPEC.replace(r#"source = "./modules/net""#, &call.replace("v1", "v2"));
    project.write("plumb.toml", gone);
    let missing = project.run(&["init"]).expect(1).said();
    assert!(missing.contains("cannot fetch file://"), "{missing}");
}

/// An optional attribute of an object that is not given is null, in variables, in their defaults and in inputs.
#[test]
fn attributes_that_are_left_out_are_null() {
    let project = Project::new(
        "[variable.regions]\ntype = \"map(object{workers = integer, size? = integer})\"\n\
         default = { eu = { workers = 1 }, us = { workers = 2, size = 20 } }\n\
         [module.m]\nsource = \"./m\"\nfor_each = \"${var.regions}\"\n\
         size = \"${coalesce(each.value.size, 10)}\"\nlimits = [{ min = 1 }]\n\
         [output.all]\nvalue = \"${{ for k, m in module.m : k => m.all }}\"\n",
    );
    std::fs::create_dir(project.path("m")).unwrap();
    project.write(
        "m/plumb.toml",
        "[variable.size]\ntype = \"integer\"\n[variable.limits]\n\
         type = \"list(object{min = integer, max? = integer})\"\n\
         [output.all]\nvalue = \"${var.size} ${var.limits[0].max == null}\"\n",
    );
    project.run(&["apply", "--yes"]).expect(0);
    let all = project.run(&["output", "--json"]).expect(0).json();
    assert_eq!(all["all"], serde_json::json!({"eu": "10 true", "us": "20 true"}), "{all}");
    let given = "regions={ asia = { workers = 1 } }";
    project.run(&["apply", "--yes", "--var", given]).expect(0);
    let all = project.run(&["output", "--json"]).expect(0).json();
    assert_eq!(all["all"], serde_json::json!({"asia": "10 true"}), "{all}");
}
