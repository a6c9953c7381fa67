//! A command about a saved plan or the state calls the service that the spec names, or none.

use crate::acceptance::{ASKING, relayed};
use crate::harness::{Project, Service, data};
use crate::recording_proxy::Mood;

/// Returns a spec with the address of the service and a variable without a value, and its project.
fn addressed(service: &Service) -> (String, Project) {
    let url = |api: &str| &service.environment[&format!("PLUMB_SERVERLESS_{api}_URL")];
    let spec = format!(
        "[provider.serverless]\nrest_url = \"{}\"\ngraphql_url = \"{}\"\nqueue_url = \"{}\"\n\
         [variable.size]\ntype = \"integer\"\n\
         [resource.network_volume.v]\nname = \"v\"\nsize = \"${{var.size}}\"\n\
         data_center_id = \"EU-RO-1\"\n",
        url("REST"),
        url("GRAPHQL"),
        url("QUEUE"),
    );
    let mut project = Project::new(&spec);
    let name = "PLUMB_SERVERLESS_API_KEY";
    project.set(name, &service.environment[name]);
    project.set("PLUMB_ALLOWED_HOSTS", "127.0.0.1");
    (spec, project)
}

#[test]
fn a_saved_plan_needs_no_variable_to_find_the_service_of_its_spec() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let (_, project) = addressed(&service);
    project.run(&["plan", "--var", "size=5", "--out", "p.json"]).expect(0);
    let applied = project.run(&["apply", "p.json", "-y"]).expect(0);
    assert_eq!(service.names("/networkvolumes"), ["v"], "{}", applied.said());
    assert!(!project.path(".plumb/service").exists(), "no service of this machine was started");
}

#[test]
fn a_saved_plan_acts_where_its_own_spec_says() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let (spec, project) = addressed(&service);
    project.run(&["plan", "--var", "size=5", "--out", "p.json"]).expect(0);
    project.write("plumb.toml", spec.replace("rest_url", "rest_ulr"));
    project.run(&["apply", "p.json", "-y"]).expect(0);
    assert_eq!(service.names("/networkvolumes"), ["v"]);
    assert!(!project.path(".plumb/service").exists(), "no service of this machine was started");
}

#[test]
fn resolve_takes_the_variables_that_a_provider_block_needs_and_no_others() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = "[variable.which]\ntype = \"string\"\n[variable.size]\ntype = \"integer\"\n\
        [provider.vault]\ndescriptor = \"./${var.which}.provider.toml\"\n\
        [resource.volume.v]\nname = \"v\"\nsize = \"${var.size}\"\ndata_center_id = \"EU-RO-1\"\n";
    let (project, recorder) = relayed(spec, &service);
    project.write("vault.provider.toml", ASKING);
    recorder.mood(Mood::Lose, true);
    project.run(&["apply", "-y", "--var", "which=vault", "--var", "size=5"]).expect(4);
    recorder.mood(Mood::Pass, true);
    let id = service.list("/networkvolumes")[0]["id"].as_str().unwrap().to_owned();
    let adopt = ["resolve", "volume.v", "--adopt", &id];
    let refused = project.run(&adopt).expect(1);
    assert!(refused.stderr.contains("which"), "{}", refused.said());
    assert!(!refused.stderr.contains("there is no provider"), "{}", refused.said());
    project.run(&[&adopt[..], &["--var", "which=vault"]].concat()).expect(0);
}

#[test]
fn a_missing_variable_is_no_missing_descriptor() {
    let spec = "[variable.secret]\ntype = \"string\"\n[variable.which]\ntype = \"string\"\n\
        [provider.vault]\ndescriptor = \"./vault.provider.toml\"\n\
        [provider.other]\ndescriptor = \"./${var.which}.provider.toml\"\n\
        [resource.volume.v]\nname = \"${var.secret}\"\nsize = 5\ndata_center_id = \"EU-RO-1\"\nhue = 1\n";
    let project = Project::new(spec);
    project.write("vault.provider.toml", ASKING);
    let unknown = project.run(&["validate"]).expect(0).stderr;
    assert!(!unknown.contains("there is no provider"), "{unknown}");
    assert!(unknown.contains("`secret`") && unknown.contains("`which`"), "{unknown}");
    assert!(unknown.contains("the resources of the spec were not checked"), "{unknown}");
    let refused = project.run(&["plan"]).expect(1).stderr;
    assert!(refused.contains("`secret`") && refused.contains("`which`"), "{refused}");
    // All providers are known, so the resources are checked although a variable is missing.
    project.write(
        "plumb.toml",
        spec.replace("[provider.other]\ndescriptor = \"./${var.which}.provider.toml\"\n", ""),
    );
    let refused = project.run(&["validate"]).expect(1).stderr;
    assert!(refused.contains("hue") && refused.contains("`secret`"), "{refused}");
}

/// Two instances of the serverless provider act on two accounts, each with its own key.
#[test]
fn the_serverless_provider_can_stand_twice() {
    let (one, two) = (data(), data());
    let (one, two) = (Service::start(one.path(), &[]), Service::start(two.path(), &[]));
    let volume = |name: &str| {
        format!(
            "[resource.network_volume.{name}]\nname = \"{name}\"\nsize = 5\ndata_center_id = \"EU-RO-1\"\n"
        )
    };
    let spec = format!(
        "[provider.serverless]\n[provider.eu]\nsource = \"catalog:serverless\"\n{}provider = \"serverless\"\n{}provider = \"eu\"\n",
        volume("a"),
        volume("b")
    );
    let mut project = Project::with(&spec, &one);
    for name in ["REST_URL", "GRAPHQL_URL", "QUEUE_URL", "API_KEY"] {
        let name = format!("PLUMB_SERVERLESS_{name}");
        project.set(&format!("{name}_EU"), &two.environment[&name]);
    }
    let applied = project.run(&["apply", "--yes"]).expect(0);
    assert!(!applied.said().contains("has no effect"), "{}", applied.said());
    assert_eq!(
        (one.names("/networkvolumes"), two.names("/networkvolumes")),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.run(&["destroy", "--yes"]).expect(0);
    assert!(one.names("/networkvolumes").is_empty() && two.names("/networkvolumes").is_empty());
}
