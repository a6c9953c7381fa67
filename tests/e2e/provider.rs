//! `plumb provider`: descriptors that are made from `OpenAPI` documents manage the service that the documents
//! describe.

use std::process::Stdio;

use crate::harness::{KEY, Project, Service, data, http, wait_for};

/// Returns a project whose descriptor is made from the document of one interface of a service, without edits.
fn described(service: &Service, interface: &str, resources: &str) -> Project {
    let url = service.environment[interface].clone();
    let (status, document) = http("GET", &format!("{url}/openapi.json"), None);
    assert_eq!(status, 200, "{document}");
    let spec = format!(
        "[provider.acme]\ndescriptor = \"./acme.provider.toml\"\nurl = \"{url}\"\n{resources}"
    );
    let mut project = Project::new(&spec);
    project.set("ACME_KEY", KEY);
    project.write("openapi.json", &document);
    let arguments = ["--name", "acme", "--output", "acme.provider.toml"];
    project
        .run(&[&["provider", "from-openapi", "openapi.json"], &arguments[..]].concat())
        .expect(0);
    project
}

/// Applies a spec, changes it and destroys it, and expects that nothing is left to do after each step.
fn lives(project: &Project, spec: &str, change: (&str, &str)) {
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    let changed = spec.replace(change.0, change.1);
    assert_ne!(changed, spec);
    project.write("plumb.toml", &changed);
    let said = project.run(&["apply", "--yes"]).expect(0).said();
    assert!(said.contains("1 updated"), "{said}");
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.run(&["destroy", "--yes"]).expect(0);
}

#[test]
fn a_written_descriptor_manages_version_2_of_the_service() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let resources = "[resource.network_volume.models]\nname = \"models\"\nsize = 20\ndata_center = \"EU-RO-1\"\n\
                     [resource.template.worker]\nname = \"worker\"\nimage = \"worker:1\"\nserverless = true\n\
                     [resource.registry.hub]\nname = \"hub\"\nusername = \"u\"\npassword = \"p\"\n";
    let project = described(&service, "PLUMB_SERVERLESS_QUEUE_URL", resources);
    let spec = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    lives(&project, &spec, ("size = 20", "size = 30"));
}

#[test]
fn a_written_descriptor_manages_version_1_of_the_service() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let resources = "[resource.template.worker]\nname = \"worker\"\nimage_name = \"worker:1\"\n\
                     [resource.endpoint.chat]\nname = \"chat\"\ntemplate_id = \"${template.worker.id}\"\n";
    let project = described(&service, "PLUMB_SERVERLESS_REST_URL", resources);
    let spec = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    lives(&project, &spec, ("worker:1", "worker:2"));
}

#[test]
fn documents_and_descriptors_that_cannot_be_used_are_refused() {
    let project = Project::new("");
    let document = r#"{"openapi": "3.0.0", "info": {"title": "Acme"}, "paths": {
        "/zones": {
            "get": {"responses": {"200": {"content": {"application/json": {"schema": {"type": "array",
                "items": {"properties": {"id": {"type": "string"}, "name": {"type": "string"}}}}}}}}},
            "post": {
                "requestBody": {"content": {"application/json": {"schema": {"properties": {"name": {"type": "string"}}}}}},
                "responses": {"201": {"content": {"application/json": {"schema": {"properties": {"id": {"type": "string"}}}}}}}}
        },
        "/zones/{id}": {"delete": {}}}}"#;
    project.write("acme.json", document);
    project.write("parts.yaml", "openapi: 3.1.0\npaths:\n  /zones: {$ref: zones.yaml}\n");
    project.write("cut.json", &document[..200]);
    project.write("wrong.provider.toml", "[provider]\nnames = \"acme\"\n[api]\n[type]\n");
    let from =
        |document: &str| project.run(&["provider", "from-openapi", document]).expect(1).said();
    assert!(
        from("parts.yaml").contains("`zones.yaml` at #/paths/~1zones"),
        "{}",
        from("parts.yaml")
    );
    assert!(from("cut.json").contains("the document is no JSON"), "{}", from("cut.json"));
    assert!(from("none.json").contains("cannot read none.json"), "{}", from("none.json"));

    let output = ["--output", "acme.provider.toml"];
    let to_file = [&["provider", "from-openapi", "acme.json"], &output[..]].concat();
    let ran = project.run(&to_file).expect(0);
    assert!(
        ran.stderr.contains("provider acme: 1 type, 2 attributes, 2 of them typed"),
        "{}",
        ran.stderr
    );
    let again = project.run(&to_file).expect(1).said();
    assert!(again.contains("it may have been edited"), "{again}");
    let wanted = project.run(&["provider", "from-openapi", "acme.json", "--type", "zones"]);
    assert!(wanted.expect(1).said().contains("did you mean `zone`?"));

    let checked = project.run(&["provider", "check", "acme.provider.toml"]).expect(0).stdout;
    assert_eq!(checked, "The descriptor is valid: 1 type.\n");
    let wrong = project.run(&["provider", "check", "wrong.provider.toml"]).expect(1).said();
    assert!(wrong.contains("did you mean `name`?"), "{wrong}");

    let written = std::fs::read_to_string(project.path("acme.provider.toml")).unwrap();
    let foreign = written.replace("ACME_KEY", "MY_TOKEN").replace(", setting = \"url\"", "");
    project.write("foreign.provider.toml", foreign);
    let warned = project.run(&["provider", "check", "foreign.provider.toml"]).expect(0).said();
    assert!(warned.contains("set PLUMB_ALLOWED_KEYS=MY_TOKEN"), "{warned}");
    let block =
        "[provider.acme]\nsource = \"./foreign.provider.toml\"\nurl = \"http://127.0.0.1:9\"\n";
    project.write("plumb.toml", block);
    let unknown = project.run(&["validate"]).expect(1).said();
    assert!(unknown.contains("it has none"), "{unknown}");
}

#[test]
fn providers_are_listed_and_shown() {
    let project = Project::new("[provider.names]\nsource = \"catalog:powerdns\"\n");
    let listed = project.run(&["provider", "list"]).expect(0).stdout;
    for line in ["serverless ", "catalog:rabbitmq  catalog", "names             the spec  4 types"]
    {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    let shown = project.run(&["provider", "show", "catalog:powerdns", "--type", "zone"]);
    let shown = shown.expect(0).stdout;
    assert!(shown.contains("  read    GET /zones/${name}?rrsets=false\n"), "{shown}");
    let by_name = project.run(&["provider", "show", "names"]).expect(0).stdout;
    assert!(by_name.contains("record_set: "), "{by_name}");
    let of_spec = project.run(&["schema", "--type", "record_set"]).expect(1).said();
    assert!(of_spec.contains("plumb provider show names --type record_set"), "{of_spec}");
    let unknown = project.run(&["provider", "show", "powerdns"]).expect(1).said();
    assert!(unknown.contains("did you mean `catalog:powerdns`?"), "{unknown}");
}

/// Values for types of version 1, as the limits in the document do not suffice to make valid ones.
const VALUES: &str = "[networkvolume]\ndata_center_id = \"EU-RO-1\"\nsize = 20\n[networkvolume.change]\nsize = 30\n\
                      [template]\nimage_name = \"worker:1\"\n";

#[test]
fn a_written_descriptor_passes_the_suite_of_providers() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = described(&service, "PLUMB_SERVERLESS_REST_URL", "");
    project.write("values.toml", VALUES);
    let url = &service.environment["PLUMB_SERVERLESS_REST_URL"];
    let test =
        ["provider", "test", "acme.provider.toml", "--against", url, "--values", "values.toml"];
    let types = ["--type", "networkvolume", "--type", "template"];
    let table = project.run(&[&test[..], &types].concat()).expect(0).stdout;
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(
        rows,
        [
            "type           create  show    update  delete  refuse",
            "networkvolume  ok      ok      ok      ok      ok",
            "template       ok      ok      ok      ok      ok",
        ]
    );
    assert_eq!(service.names("/networkvolumes"), [""; 0]);
    assert!(!project.path("acme.objects.jsonl").exists());

    let wrong = VALUES.replace("EU-RO-1", "NOWHERE");
    project.write("values.toml", &wrong);
    let refused = project.run(&[&test[..], &types].concat()).expect(1);
    assert!(refused.stdout.contains("networkvolume: create: "), "{}", refused.said());
    assert!(!project.path("acme.objects.jsonl").exists(), "a refusal leaves nothing");
    let unknown = project.run(&[&test[..], &["--type", "networkvolumes"]].concat()).expect(1);
    assert!(unknown.said().contains("did you mean `networkvolume`?"), "{}", unknown.said());
}

/// Without a server, or with a wrong key, nothing is tried; with a wrong address there is no provider at all.
#[test]
fn a_server_that_cannot_be_tried_is_told_of_once() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = described(&service, "PLUMB_SERVERLESS_REST_URL", "");
    project.write("values.toml", VALUES);
    let url = service.environment["PLUMB_SERVERLESS_REST_URL"].clone();
    let test = |project: &Project, url: &str| {
        let command = ["provider", "test", "acme.provider.toml", "--against", url];
        let ran = project.run(&[&command[..], &["--values", "values.toml"]].concat()).expect(1);
        assert!(!project.path("acme.objects.jsonl").exists(), "{}", ran.said());
        ran.said()
    };
    let scheme = url.replace("http://", "");
    assert!(test(&project, &scheme).contains("cannot be used"), "{}", test(&project, &scheme));
    project.set("ACME_KEY", "wrong");
    let refused = test(&project, &url);
    assert!(refused.contains("the key is wrong or lacks a right"), "{refused}");
    let away = test(&project, "http://127.0.0.1:9");
    for said in [refused, away] {
        assert!(
            !said.contains("failed") && !said.contains("Kind") && !said.contains("Some("),
            "{said}"
        );
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
}

#[test]
fn what_a_killed_test_made_is_deleted_by_the_next_one() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:40"]);
    let project = described(&service, "PLUMB_SERVERLESS_REST_URL", "");
    project.write("values.toml", VALUES);
    let url = &service.environment["PLUMB_SERVERLESS_REST_URL"];
    let test =
        ["provider", "test", "acme.provider.toml", "--against", url, "--values", "values.toml"];
    let types = ["--type", "networkvolume", "--type", "template"];
    for moment in 0..4 {
        let mut command = project.command(&[&test[..], &types].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let before = service.mutations().len();
        wait_for("a call", || {
            service.mutations().len() > before + moment || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        let has_ended = child.wait().unwrap().code().is_some();
        let has_left = project.path("acme.objects.jsonl").exists();
        assert!(has_left || has_ended, "moment {moment}");
        project.run(&[&test[..], &["--clean"]].concat()).expect(0);
        assert_eq!(service.names("/networkvolumes"), [""; 0], "moment {moment}");
        assert_eq!(service.names("/templates"), [""; 0], "moment {moment}");
        assert!(!project.path("acme.objects.jsonl").exists());
    }
}

#[test]
fn marks_are_settled_on_a_server_and_comments_stay() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let resources = "[resource.network_volume.models]\nname = \"models\"\nsize = 20\ndata_center = \"EU-RO-1\"\n\
                     [resource.template.worker]\nname = \"worker\"\nimage = \"worker:1\"\n";
    let project = described(&service, "PLUMB_SERVERLESS_QUEUE_URL", resources);
    let ports = "[template.change]\nports = [\"80/http\", \"22/tcp\", \"90/http\"]\n";
    let values = format!("[network_volume]\ndata_center = \"EU-RO-1\"\n{ports}");
    project.write("values.toml", values);
    let written = std::fs::read_to_string(project.path("acme.provider.toml")).unwrap();
    let own = "# A comment of one's own.\n";
    project.write("acme.provider.toml", format!("{own}{written}"));
    let url = &service.environment["PLUMB_SERVERLESS_QUEUE_URL"];
    let prove =
        ["provider", "prove", "acme.provider.toml", "--against", url, "--values", "values.toml"];
    let types = ["--type", "network_volume", "--type", "template"];
    let said = project.run(&[&prove[..], &types].concat()).expect(0).stdout;
    for fact in [
        "network_volume                  names are not unique, and can change",
        "network_volume.data_center      an update does not change it",
        "template                        names are unique",
        "template.ports                  the order counts",
        "template.registry               the server fills in nothing",
    ] {
        assert!(said.contains(fact), "{fact}: {said}");
    }
    let settled = std::fs::read_to_string(project.path("acme.provider.toml")).unwrap();
    assert!(settled.starts_with(own));
    assert!(settled.contains("identity = \"one_time_name\"\n"), "{settled}");
    assert!(settled.contains("unique_name = true"), "{settled}");
    let marks = |text: &str, ty: &str| {
        let from = text.find(&format!("[type.{ty}]")).unwrap();
        let to = text[from + 1..].find("\n[type.").map_or(text.len(), |at| from + 1 + at);
        let to = text[to + 1..].find("\n[type.").map_or(text.len(), |at| to + 1 + at);
        text[from..to].matches("# to prove").count()
    };
    assert!(marks(&written, "template") > 5);
    assert_eq!(marks(&settled, "network_volume"), 0, "{settled}");
    assert_eq!(marks(&settled, "template"), 1, "fields of mounts are left: {settled}");
    assert!(!project.path("acme.objects.jsonl").exists());
    let (_, left) = http("GET", &format!("{url}/network-volumes"), None);
    assert!(!left.contains("plumb-"), "{left}");

    let spec = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    lives(&project, &spec, ("size = 20", "size = 30"));
}
