//! Saved plans: an apply does exactly what the plan says, or refuses it.

use serde_json::json;

use crate::harness::{Project, Service, data, ran};
use crate::lifecycle::SPEC;

#[test]
fn a_saved_plan_runs_without_its_spec_and_makes_one_call_a_step() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    let plan = project.run(&["plan", "--out", "plan.json", "--json"]).expect(0).json();
    std::fs::remove_file(project.path("plumb.toml")).unwrap();
    let show = project.run(&["show", "plan.json"]).expect(0);
    assert!(show.stdout.contains("endpoint.chat"), "{}", show.said());
    project.run(&["apply", "plan.json", "--yes"]).expect(0);
    assert_eq!(service.mutations().len(), plan["steps"].as_array().unwrap().len());
    let before = service.mutations().len();
    project.run(&["apply", "plan.json", "--yes"]).expect(3);
    assert_eq!(service.mutations().len(), before, "a plan runs once");
}

#[test]
fn a_saved_plan_that_lacks_the_key_says_so_as_json_too() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    let mut command = project.command(&["apply", "plan.json", "--yes", "--json"]);
    let output = command.env_remove("PLUMB_SERVERLESS_API_KEY").output().unwrap();
    let said = ran(&output).expect(1).json();
    assert_eq!((&said["event"], &said["plan"]["complete"]), (&json!("planned"), &json!(false)));
    let why = said["plan"]["diagnostics"].to_string();
    assert!(why.contains("PLUMB_SERVERLESS_API_KEY"), "{said}");
}

#[test]
fn a_plan_that_no_longer_fits_is_refused_and_unrelated_changes_are_not_minded() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    project.write("plumb.toml", SPEC.replace("size = 100", "size = 200"));
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    let before = service.mutations().len();
    let id = service.list("/networkvolumes")[0]["id"].as_str().unwrap().to_owned();
    service.request("PATCH", &format!("/networkvolumes/{id}"), Some(&json!({"size": 150})));
    let refused = project.run(&["apply", "plan.json", "-y"]).expect(3);
    let said = refused.said();
    assert!(said.contains("network_volume.models") && said.contains("size"), "{said}");
    assert_eq!(service.mutations().len(), before + 1, "only the stranger's own call");
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    let endpoint = service.list("/endpoints")[0]["id"].as_str().unwrap().to_owned();
    service.request("PATCH", &format!("/endpoints/{endpoint}"), Some(&json!({"workersMax": 9})));
    project.run(&["apply", "plan.json", "-y"]).expect(0);
    assert_eq!(service.list("/networkvolumes")[0]["size"], 200);
}

/// Each copy of the folder has its own state, which knows nothing of the other copy.
#[test]
fn a_first_plan_that_is_applied_in_two_copies_of_a_folder_makes_each_object_once() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let (first, second) = (Project::with(SPEC, &service), Project::with(SPEC, &service));
    first.run(&["plan", "--out", "plan.json"]).expect(0);
    std::fs::copy(first.path("plan.json"), second.path("plan.json")).unwrap();
    first.run(&["apply", "plan.json"]).expect(0);
    let before = service.mutations().len();
    let refused = second.run(&["apply", "plan.json"]).expect(3).stderr;
    assert!(refused.contains("named \"chat\""), "{refused}");
    assert!(refused.contains("plumb import endpoint.chat "), "{refused}");
    assert_eq!(service.mutations().len(), before, "nothing is called");
    for (collection, name) in
        [("/networkvolumes", "models"), ("/templates", "worker"), ("/endpoints", "chat")]
    {
        assert_eq!(service.names(collection), [name]);
    }
    // The plan reports the same about the objects as the refusal, and they can be taken over.
    let plan = second.run(&["plan"]);
    assert!(plan.said().contains("named \"worker\" exists already"), "{}", plan.said());
    for (address, collection) in [
        ("network_volume.models", "/networkvolumes"),
        ("template.worker", "/templates"),
        ("endpoint.chat", "/endpoints"),
    ] {
        let id = service.list(collection)[0]["id"].as_str().unwrap().to_owned();
        second.run(&["import", address, &id]).expect(0);
    }
    let plan = second.run(&["plan"]).expect(0);
    assert!(plan.said().contains("No changes of resources"), "{}", plan.said());
}

#[test]
fn a_name_that_others_bear_is_no_obstacle_to_a_plan_that_was_made_knowing_it() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = SPEC.split("[resource.template").next().unwrap();
    let project = Project::with(spec, &service);
    let volume = json!({"name": "models", "size": 10, "dataCenterId": "EU-RO-1"});
    let make = || assert!(service.request("POST", "/networkvolumes", Some(&volume)).0 < 300);
    make();
    let plan = project.run(&["plan", "--out", "plan.json"]).expect(0);
    assert!(plan.said().contains("a second one with this name will be created"), "{}", plan.said());
    // `plumb show` reports the same for the saved plan.
    for format in ["text", "markdown", "json"] {
        let shown = project.run(&["show", "plan.json", "--format", format]).expect(0).said();
        assert!(shown.contains("a second one with this name will be created"), "{format}: {shown}");
        assert!(shown.contains("plumb.toml"), "{format}: {shown}");
    }
    make();
    project.run(&["apply", "plan.json"]).expect(3);
    // A plan without a refresh knows nothing of the others.
    project.run(&["plan", "--no-refresh", "--out", "plan.json"]).expect(0);
    project.run(&["apply", "plan.json"]).expect(3);
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    project.run(&["apply", "plan.json"]).expect(0);
    assert_eq!(service.names("/networkvolumes"), ["models", "models", "models"]);
}

#[test]
fn a_plan_of_another_folder_is_applied_there_or_not_at_all() {
    let project = Project::new("");
    for folder in ["env", "a/b c"] {
        project.write(&format!("{folder}/plumb.toml"), "[resource.value.a]\ninput = 1\n");
        project.run(&["plan", folder, "--out", "p.json"]).expect(0);
        let refused = project.run(&["apply", "p.json"]).expect(3).stderr;
        let command = if folder == "env" {
            "`plumb -C env apply ../p.json`"
        } else {
            "`plumb -C 'a/b c' apply ../../p.json`"
        };
        assert!(refused.contains(command), "{refused}");
        assert!(!project.path(".plumb").exists(), "nothing is left in a folder that is not meant");
        let up = if folder == "env" { "../p.json" } else { "../../p.json" };
        project.run(&["-C", folder, "apply", up]).expect(0);
        project.run(&["plan", folder, "--detailed-exitcode"]).expect(0);
    }
    // The folder is not below the current one. The plan has its name.
    project.write("one/plumb.toml", "[resource.value.a]\ninput = 1\n");
    project.run(&["-C", "env", "plan", "../one", "--out", "p.json"]).expect(0);
    let refused = project.run(&["-C", "env", "apply", "p.json"]).expect(3).stderr;
    assert!(refused.contains("folder one"), "{refused}");
    project.run(&["-C", "one", "apply", "../env/p.json"]).expect(0);
    // The current folder counts as the same under any name.
    project.run(&["-C", "env", "plan", ".", "--out", "p.json"]).expect(0);
    project.run(&["-C", "env", "apply", "p.json"]).expect(0);
}

/// As long as there is no state, only the spec tells which folder the plan is for.
#[test]
fn the_plan_of_a_first_run_is_applied_in_its_folder_or_in_a_copy_of_it() {
    let project = Project::new("");
    let spec = |value: u8| format!("[resource.value.a]\ninput = {value}\n");
    for (folder, value) in [("dev", 1), ("prod", 2), ("checkout/dev", 1)] {
        project.write(&format!("{folder}/plumb.toml"), spec(value));
    }
    project.run(&["-C", "dev", "plan", "--out", "../p.json"]).expect(0);
    std::fs::remove_file(project.path("plumb.toml")).unwrap();
    for (folder, why) in [("prod", "from the spec that is here"), (".", "there is no spec here")] {
        let file = if folder == "." { "p.json" } else { "../p.json" };
        let refused = project.run(&["-C", folder, "apply", file]).expect(3).stderr;
        assert!(refused.contains("a plan of another folder") && refused.contains(why), "{refused}");
        assert!(!project.path(folder).join(".plumb").exists(), "{folder}");
    }
    project.run(&["-C", "checkout/dev", "apply", "../../p.json"]).expect(0);
    // In its own folder, the plan is applied as it was reviewed, even if the spec has changed since.
    project.write("dev/plumb.toml", spec(3));
    project.run(&["-C", "dev", "apply", "../p.json"]).expect(0);
    project.run(&["-C", "dev", "plan", "--out", "../p.json"]).expect(0);
    let refused = project.run(&["-C", "prod", "apply", "../p.json"]).expect(3).stderr;
    assert!(refused.contains("there is none here"), "{refused}");
    assert!(!project.path("prod/.plumb").exists());
}

#[test]
fn a_saved_plan_takes_no_variable_that_it_does_not_need() {
    let spec = "[variable.n]\ntype = \"integer\"\n[variable.key]\ntype = \"string\"\nsensitive = true\n\
        [resource.value.a]\ninput = [\"${var.n}\", \"${var.key}\"]\n";
    let project = Project::new(spec);
    let given = ["--var", "n=5", "--var", "key=canary"];
    project.run(&[&["plan", "--out", "p.json"][..], &given].concat()).expect(0);
    for wrong in ["n=6", "n=5", "nothing=1"] {
        let arguments = ["apply", "p.json", "--var", "key=canary", "--var", wrong];
        let refused = project.run(&arguments).expect(1).stderr;
        assert!(refused.contains("does not go with this saved plan"), "{refused}");
    }
    assert!(!project.path(".plumb/state.json").exists());
    project.run(&["apply", "p.json", "--var", "key=canary"]).expect(0);
}

#[test]
fn init_says_a_command_that_can_be_pasted() {
    let project = Project::new("");
    let said = project.run(&["init", "with space/x"]).expect(0).said();
    assert!(said.contains("`plumb plan 'with space/x'`"), "{said}");
}

#[test]
fn a_damaged_plan_is_refused() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    let text = std::fs::read_to_string(project.path("plan.json")).unwrap();
    project.write("changed.json", text.replacen("100", "101", 1));
    project.write("half.json", &text[..text.len() / 2]);
    project.write("other.json", "{\"format\": \"terraform\"}");
    for name in ["changed.json", "half.json", "other.json"] {
        let refused = project.run(&["apply", name, "-y"]);
        assert!(matches!(refused.code, Some(1 | 3 | 8)), "{name}: {:?}", refused.code);
    }
    assert!(service.mutations().is_empty());
}

/// A plan file holds no secret. To apply it, only the provider blocks of the spec are read.
#[test]
fn a_secret_is_asked_for_again_and_no_default_of_one_is_saved() {
    let spec = |default: &str| {
        format!(
            "[variable.word]\ntype = \"string\"\n{default}sensitive = true\n\
             [resource.value.a]\ninput = \"${{var.word}}\"\n"
        )
    };
    let mut project = Project::new(&spec("default = \"swordfish\"\n"));
    let said = project.run(&["plan", "--out", "plan.json"]).expect(1).said();
    assert!(said.contains("the default of the variable `word` (plumb.toml:3)"), "{said}");
    project.write("plumb.toml", spec(""));
    project.run(&["plan", "--out", "plan.json", "--var", "word=swordfish"]).expect(0);
    let said = project.run(&["apply", "plan.json", "--yes"]).expect(1).said();
    assert!(said.contains("PLUMB_VAR_WORD"), "{said}");
    let other = ["apply", "plan.json", "--yes", "--var", "word=halibut"];
    let said = project.run(&other).expect(3).said();
    assert!(said.contains("has another value") && !said.contains("halibut"), "{said}");
    project.set("PLUMB_VAR_WORD", "swordfish");
    project.run(&["apply", "plan.json", "--yes"]).expect(0);
}

#[test]
fn a_plan_is_saved_over_nothing_but_a_plan() {
    let project = Project::new("[resource.value.a]\ninput = 1\n");
    project.run(&["apply", "--yes"]).expect(0);
    project.write("notes.txt", "of somebody");
    std::os::unix::fs::symlink("notes.txt", project.path("link")).unwrap();
    let read = |name: &str| std::fs::read_to_string(project.path(name)).unwrap();
    let kept = ["plumb.toml", ".plumb/state.json", "notes.txt", "link"];
    let before = kept.map(read);
    for name in kept.into_iter().chain(["other.plumb.toml", ".plumb/plan.json", "."]) {
        let said = project.run(&["plan", "--out", name]).expect(1).said();
        assert!(said.contains("the plan is not saved"), "{name}: {said}");
    }
    assert_eq!(kept.map(read), before);
    assert!(!project.path("other.plumb.toml").exists());
    for _ in 0..2 {
        project.run(&["plan", "--out", "plan.json"]).expect(0);
    }
    project.run(&["apply", "--yes", "plan.json"]).expect(0);
}

#[test]
fn a_pipe_that_a_plan_is_saved_to_stays_one() {
    use std::os::unix::fs::FileTypeExt as _;
    let project = Project::new("[resource.value.a]\ninput = 1\n");
    let pipe = project.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reading = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    project.run(&["plan", "--out", "pipe"]).expect(0);
    let saved = reading.join().unwrap();
    assert!(saved.contains("plumb-plan-file/"), "{saved}");
    assert!(std::fs::symlink_metadata(pipe).unwrap().file_type().is_fifo());
    project.write("plan.json", saved);
    project.run(&["apply", "--yes", "plan.json"]).expect(0);
}
