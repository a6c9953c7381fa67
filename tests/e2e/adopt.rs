//! `plumb adopt`: writes the spec of existing objects that no state knows, and takes the objects over.

use serde_json::{Value, json};

use crate::harness::{Project, Service, data};

const TOKEN: &str = "canary-token-5d1e";

/// Makes an object without Plumb. Returns its id.
fn make(service: &Service, collection: &str, body: &Value) -> String {
    let (status, said) = service.request("POST", collection, Some(body));
    assert!((200..300).contains(&status), "{collection} {body}: {said}");
    let made: Value = serde_json::from_str(&said).unwrap();
    made["id"].as_str().unwrap().to_owned()
}

/// Makes 200 objects of all types, as a team would have made them by hand.
fn make_many(service: &Service) {
    let registries: Vec<String> = (0..5)
        .map(|at| {
            let password = format!("canary-password-{at}");
            let body =
                json!({"name": format!("hub {at}"), "username": "bot", "password": password});
            make(service, "/containerregistryauth", &body)
        })
        .collect();
    let volumes: Vec<String> = (0..60)
        .map(|at| {
            let place = if at < 40 { "EU-RO-1" } else { "US-KS-2" };
            let size = if at < 30 { 100 } else { 100 + at };
            let body = json!({"name": format!("models-{at}"), "size": size, "dataCenterId": place});
            make(service, "/networkvolumes", &body)
        })
        .collect();
    let templates: Vec<String> = (0..55)
        .map(|at| {
            let mut body = json!({
                "name": format!("Worker {at}"),
                "imageName": format!("registry.example/worker:{}", at % 4),
                "isServerless": true,
                "env": {"MODEL": "tiny", "PROMPT": "say \"${hi}\""},
            });
            if at < 5 {
                body["containerRegistryAuthId"] = json!(registries[at]);
                body["env"]["HF_TOKEN"] = json!(TOKEN);
                body["dockerStartCmd"] = json!(["python", "-c", "print('a\\n')\n"]);
            }
            make(service, "/templates", &body)
        })
        .collect();
    for at in 0..80 {
        let mut body = json!({
            "name": format!("chat-{at}"),
            "templateId": templates[at % templates.len()],
            "gpuTypeIds": ["NVIDIA GeForce RTX 4090"],
            "workersMin": 0,
            "workersMax": usize::from(at < 3),
            "idleTimeout": 5 + at % 2,
        });
        if at % 2 == 0 {
            body["networkVolumeId"] = json!(volumes[at % 40]);
        }
        make(service, "/endpoints", &body);
    }
}

/// Gives each variable of the adopted spec a value.
fn give_variables(project: &mut Project) -> usize {
    let text = std::fs::read_to_string(project.path("adopted.plumb.toml")).unwrap();
    let names = text.lines().filter_map(|line| line.strip_prefix("[variable.")?.strip_suffix(']'));
    let names: Vec<String> = names.map(str::to_owned).collect();
    for name in &names {
        let value = if name.contains("hf_token") { TOKEN } else { "given-by-a-person" };
        project.set(&format!("PLUMB_VAR_{}", name.to_uppercase()), value);
    }
    names.len()
}

#[test]
fn two_hundred_objects_of_all_types_are_adopted_and_the_plan_is_empty() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    make_many(&service);
    let before = service.mutations().len();
    let mut project = Project::with("[plumb]\nname = \"team\"\n", &service);

    let dry = project.run(&["adopt", "--dry-run"]).expect(0);
    assert!(dry.stderr.contains("200 objects"), "{}", dry.stderr);
    assert!(!project.path(".plumb").exists() && !project.path("adopted.plumb.toml").exists());
    let refused = project.run(&["adopt"]).expect(1);
    assert!(refused.stderr.contains("needs confirmation"), "{}", refused.stderr);

    let adopted = project.run(&["adopt", "--yes"]).expect(0);
    assert!(adopted.stderr.contains("Adopted 200 objects"), "{}", adopted.stderr);
    assert!(adopted.stderr.contains("never shows `password`"), "{}", adopted.stderr);
    let text = std::fs::read_to_string(project.path("adopted.plumb.toml")).unwrap();
    assert!(text.ends_with(&dry.stdout), "the same spec as the dry run's");
    assert!(!text.contains("[[import]]") && !text.contains(TOKEN), "{text}");
    assert!(text.contains("for_each") && text.contains("\"${template."), "{text}");
    assert!(text.len() < 40_000, "{} bytes", text.len());
    let written = project.written();
    let holds = |secret: &str| written.windows(secret.len()).any(|it| it == secret.as_bytes());
    assert!(!holds(TOKEN) && !adopted.said().contains(TOKEN), "the token is in a file");

    // There are five passwords, five user names and five tokens.
    assert_eq!(give_variables(&mut project), 15);
    let plan = project.run(&["plan", "--detailed-exitcode"]).expect(0);
    assert!(plan.stdout.contains("No changes"), "{}", plan.said());
    project.run(&["drift"]).expect(0);
    let again = project.run(&["adopt", "--yes"]).expect(0);
    assert!(again.stderr.contains("Nothing to adopt"), "{}", again.said());
    assert_eq!(service.mutations().len(), before, "nothing was called");
    let state = project.run(&["state", "list"]).expect(0).stdout;
    assert_eq!(state.lines().count(), 200, "{state}");
}

#[test]
fn some_are_chosen_and_later_ones_refer_to_what_the_spec_has() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let volume = |name: &str| json!({"name": name, "size": 10, "dataCenterId": "EU-RO-1"});
    let models = make(&service, "/networkvolumes", &volume("models"));
    make(&service, "/networkvolumes", &volume("cache"));
    let template = json!({
        "name": "worker", "imageName": "registry.example/worker:1", "isServerless": true,
    });
    let template = make(&service, "/templates", &template);
    let endpoint = json!({
        "name": "chat", "templateId": template, "networkVolumeId": models, "workersMax": 1,
        "gpuTypeIds": ["NVIDIA GeForce RTX 4090"],
    });
    make(&service, "/endpoints", &endpoint);
    // A folder without a spec can be used, too.
    let project = Project::with("", &service);
    std::fs::remove_file(project.path("plumb.toml")).unwrap();

    let unknown = project.run(&["adopt", "--type", "volume", "--yes"]).expect(1).stderr;
    assert!(unknown.contains("there are: ") && unknown.contains("network_volume"), "{unknown}");
    let outside = project.run(&["adopt", "--out", "sub/x.plumb.toml", "--yes"]).expect(1).stderr;
    assert!(outside.contains("is no spec file of the folder"), "{outside}");
    let none = project.run(&["adopt", "--match", "nothing*", "--yes"]).expect(0).stderr;
    assert!(none.contains("Nothing to adopt"), "{none}");

    let args = ["adopt", "--type", "network_volume", "--match", "m*s", "--out", "plumb.toml", "-y"];
    project.run(&args).expect(0);
    let spec = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    assert!(spec.contains("[resource.network_volume.models]\nname = \"models\"\n"), "{spec}");
    assert!(!spec.contains("cache"), "{spec}");
    project.run(&["adopt", "--type", "endpoint", "-y"]).expect(0);
    let spec = std::fs::read_to_string(project.path("adopted.plumb.toml")).unwrap();
    assert!(spec.contains("network_volume_id = \"${network_volume.models.id}\""), "{spec}");
    assert!(spec.contains(&format!("template_id = \"{template}\"")), "{spec}");
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    // The same file gets more blocks.
    project.run(&["adopt", "-y"]).expect(0);
    let more = std::fs::read_to_string(project.path("adopted.plumb.toml")).unwrap();
    assert!(more.starts_with(&spec) && more.contains("[resource.template.worker]"), "{more}");
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

/// A command that ends between writing the spec and writing the state leaves imports. The next apply finishes
/// them.
#[test]
fn what_was_written_and_not_taken_over_is_finished_by_an_apply() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let volume = json!({"name": "models", "size": 10, "dataCenterId": "EU-RO-1"});
    let id = make(&service, "/networkvolumes", &volume);
    let project = Project::with("", &service);
    let spec = project.run(&["adopt", "--dry-run"]).expect(0).stdout;
    let import = format!("\n[[import]]\nto = \"network_volume.models\"\nid = \"{id}\"\n");
    project.write("adopted.plumb.toml", spec + &import);
    let waiting = project.run(&["adopt", "--yes"]).expect(0).stderr;
    assert!(waiting.contains("Nothing to adopt"), "{waiting}");
    let applied = project.run(&["apply", "--yes"]).expect(0).said();
    assert!(applied.contains("1 imported"), "{applied}");
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}
