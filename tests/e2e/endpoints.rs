//! Endpoints, whose two APIs take and show different attributes: one apply sets all that the spec gives, or
//! the plan refuses it.

use serde_json::Value as Json;

use crate::harness::{Project, Service, data};

/// Returns a spec of an endpoint with these attributes, and of its template.
fn spec(endpoint: &str) -> String {
    format!(
        "[resource.template.worker]\nname = \"worker\"\nimage_name = \"i:1\"\nis_serverless = true\n\n\
         [resource.endpoint.chat]\nname = \"chat\"\ntemplate_id = \"${{template.worker.id}}\"\n{endpoint}\n"
    )
}

/// Applies a spec, and expects that nothing is left to do.
#[track_caller]
fn settles(project: &Project, spec: &str) {
    project.write("plumb.toml", spec);
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

fn endpoint(service: &Service) -> Json {
    let endpoints = service.list("/endpoints");
    assert_eq!(endpoints.len(), 1, "{endpoints:?}");
    endpoints[0].clone()
}

/// An apply finishes a half-made endpoint, although the other API shows attributes that its own calls do not
/// take.
#[test]
fn a_create_by_types_that_was_refused_halfway_is_finished() {
    let folder = data();
    let service = Service::start(folder.path(), &["--worker-quota", "1"]);
    let by_types = "gpu_type_ids = [\"NVIDIA A40\"]\nworkers_max = 2\n";
    let project = Project::with(&spec(by_types), &service);
    let said = project.run(&["apply", "--yes"]).expect(1).said();
    assert!(said.contains("cannot go beyond"), "{said}");
    let mended = by_types.replace('2', "1") + "idle_timeout = 42\n";
    settles(&project, &spec(&mended));
    let made = endpoint(&service);
    assert_eq!((&made["name"], &made["workersMax"]), (&"chat".into(), &1.into()));
    assert_eq!(made["idleTimeout"], 42);
    project.run(&["destroy", "--yes"]).expect(0);
}

/// The calls of the half-made endpoint have no place for types. The calls of another program send them.
#[test]
fn a_create_by_pools_that_was_refused_halfway_becomes_one_by_types() {
    let folder = data();
    let service = Service::start(folder.path(), &["--worker-quota", "1"]);
    let by_pools = spec("gpu_ids = \"ADA_24\"\nworkers_max = 2\n");
    let project = Project::with(&by_pools, &service);
    let said = project.run(&["apply", "--yes"]).expect(1).said();
    assert!(said.contains("cannot go beyond"), "{said}");
    settles(&project, &spec("gpu_type_ids = [\"NVIDIA A40\"]\nworkers_max = 1\n"));
    let made = endpoint(&service);
    assert_eq!((&made["name"], &made["workersMax"]), (&"chat".into(), &1.into()));
    assert_eq!(made["gpuTypeIds"], serde_json::json!(["NVIDIA A40"]));
}

/// Setting types of an endpoint by pools changes its pools. The plan refuses to have both as the spec says.
#[test]
fn pools_beside_new_types_are_refused_while_planning() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let (pools, types) = ("gpu_ids = \"ADA_24\"\n", "gpu_type_ids = [\"NVIDIA A40\"]\n");
    let project = Project::with("", &service);
    settles(&project, &spec(pools));
    for pools in [pools, "gpu_ids = \"AMPERE_48\"\n", "gpu_ids = \"\"\n"] {
        project.write("plumb.toml", spec(&format!("{pools}{types}")));
        let said = project.run(&["plan"]).expect(1).said();
        assert!(said.contains("wants exactly one of gpu_ids and gpu_type_ids"), "{said}");
    }
    project.write("plumb.toml", spec(types));
    let said = project.run(&["plan"]).expect(0).said();
    assert!(!said.contains("no longer managed"), "{said}");
    settles(&project, &spec(types));
    settles(&project, &spec(&format!("{types}idle_timeout = 42\n")));
    settles(&project, &spec("gpu_type_ids = [\"NVIDIA L4\"]\nidle_timeout = 42\n"));
    assert_eq!(endpoint(&service)["gpuTypeIds"], serde_json::json!(["NVIDIA L4"]));
    // An endpoint by types cannot get pools in place.
    project.write("plumb.toml", spec(pools));
    let said = project.run(&["plan"]).expect(1).said();
    assert!(said.contains("cannot get gpu_ids in place"), "{said}");
}

#[test]
fn what_rest_has_no_word_for_is_refused_while_planning() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let by_types = |kind: &str| {
        spec(&format!("gpu_type_ids = [\"NVIDIA A40\"]\nflash_boot_type = \"{kind}\"\n"))
    };
    let project = Project::with(&by_types("PRIORITY_FLASHBOOT"), &service);
    let refused = |project: &Project| {
        let said = project.run(&["plan"]).expect(1).said();
        assert!(said.contains("takes no PRIORITY_FLASHBOOT"), "{said}");
        assert!(said.contains("flash_boot_type = "), "{said}");
    };
    refused(&project);
    assert!(service.mutations().is_empty());
    settles(&project, &by_types("FLASHBOOT"));
    project.write("plumb.toml", by_types("PRIORITY_FLASHBOOT"));
    refused(&project);
    settles(&project, &by_types("OFF"));
    assert_eq!(endpoint(&service)["flashboot"], false);
    // For an endpoint by pools, the API has a word for this value.
    let by_pools = spec("gpu_ids = \"ADA_24\"\nflash_boot_type = \"PRIORITY_FLASHBOOT\"\n");
    settles(&Project::with("", &service), &by_pools.replace("worker\"\nimage", "w2\"\nimage"));
}

#[test]
fn cpu_workers_are_had_without_gpus() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let cpus = "gpu_ids = \"\"\ninstance_ids = [\"cpu3c-2-4\"]\n";
    let project = Project::with(&spec("instance_ids = [\"cpu3c-2-4\"]\n"), &service);
    let said = project.run(&["plan"]).expect(1).said();
    assert!(said.contains("\"\" for CPU workers"), "{said}");
    settles(&project, &spec(cpus));
    let made = endpoint(&service);
    assert_eq!((&made["computeType"], &made["gpuTypeIds"]), (&"CPU".into(), &Json::Array(vec![])));
    project.write("plumb.toml", spec("gpu_ids = \"\"\ninstance_ids = []\n"));
    let said = project.run(&["plan"]).expect(1).said();
    assert!(said.contains("without GPUs wants instance_ids"), "{said}");
    settles(&project, &spec(&cpus.replace("2-4", "4-8")));
    // An empty part of the list is a mistake.
    project.write("plumb.toml", spec("gpu_ids = \"ADA_24,\"\n"));
    let said = project.run(&["plan"]).expect(1).said();
    assert!(said.contains("gpu_ids is an empty text"), "{said}");
}

/// An endpoint that shows no GPUs, because no pool has its types, is kept and updated.
#[test]
fn types_that_no_pool_has_are_no_endpoint_without_gpus() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let by_types = "gpu_type_ids = [\"Tesla T4\"]\nworkers_max = 1\n";
    let project = Project::with("", &service);
    settles(&project, &spec(by_types));
    settles(&project, &spec(&by_types.replace('1', "2")));
    assert_eq!(endpoint(&service)["workersMax"], 2);
}

const VOLUMES: &str = r#"
[resource.network_volume.a]
name = "a"
size = 5
data_center_id = "EU-RO-1"

[resource.network_volume.b]
name = "b"
size = 5
data_center_id = "US-KS-2"
"#;

/// Returns the names of the volumes that the endpoint mounts beside its first one.
fn volumes(service: &Service) -> Vec<String> {
    let ids = endpoint(service)["networkVolumeIds"].clone();
    let volumes = service.list("/networkvolumes").into_iter();
    let mounted = volumes.filter(|it| ids.as_array().unwrap().contains(&it["id"]));
    let mut names: Vec<_> = mounted.map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_volumes_of_a_spec_stay_when_the_first_one_changes() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with("", &service);
    let both = "network_volume_ids = [\"${network_volume.a.id}\", \"${network_volume.b.id}\"]\n";
    let first = |name: &str| format!("network_volume_id = \"${{network_volume.{name}.id}}\"\n");
    let with = |lines: &str| spec(&format!("gpu_ids = \"ADA_24\"\n{lines}")) + VOLUMES;
    for lines in [both.to_owned(), first("a") + both, first("b") + both] {
        settles(&project, &with(&lines));
        assert_eq!(volumes(&service), ["a", "b"], "{lines}");
    }
    // If the spec does not mention the other volumes, the service decides about them.
    project.write("plumb.toml", with(&first("a")));
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    let change = plan["changes"].as_array().unwrap().iter();
    let change = change.filter(|it| it["address"] == "endpoint.chat").collect::<Vec<_>>();
    assert_ne!(change[0]["after"]["network_volume_ids"], change[0]["before"]["network_volume_ids"]);
    settles(&project, &with(&first("a")));
}

/// An empty text in the spec means that there is to be none. Without the attribute, the object keeps its
/// value.
#[test]
fn what_is_mounted_or_bound_is_let_go_by_an_empty_text() {
    let folder = data();
    let quirks = ["--quirks", "server-defaults,null-as-empty"];
    for extra in [&[][..], &quirks] {
        let data = folder.path().join(extra.len().to_string());
        let service = Service::start(&data, extra);
        let project = Project::with("", &service);
        for (hardware, given) in [
            (
                "gpu_ids = \"ADA_24\"",
                &[
                    ("network_volume_id", "${network_volume.a.id}"),
                    ("locations", "EU-RO-1"),
                    ("min_cuda_version", "12.4"),
                    ("hub_release_id", "r1"),
                    ("flash_environment_id", "e1"),
                ][..],
            ),
            (
                "gpu_type_ids = [\"NVIDIA A40\"]",
                &[
                    ("network_volume_id", "${network_volume.a.id}"),
                    ("locations", "EU-RO-1"),
                    ("min_cuda_version", "12.4"),
                ],
            ),
        ] {
            let with = |of: &dyn Fn(&str) -> String| {
                let lines =
                    given.iter().map(|(name, value)| format!("{name} = \"{}\"\n", of(value)));
                spec(&format!("{hardware}\n{}", lines.collect::<String>())) + VOLUMES
            };
            let (all, none) = (with(&str::to_owned), with(&|_| String::new()));
            // An empty text works in the create, and for values that the endpoint has.
            settles(&project, &none);
            settles(&project, &all);
            assert_eq!(endpoint(&service)["dataCenterIds"], serde_json::json!(["EU-RO-1"]));
            project.write("plumb.toml", &none);
            let plan = project.run(&["plan", "--json"]).expect(0).json();
            let change = plan["changes"].as_array().unwrap().iter();
            let change = change.filter(|it| it["address"] == "endpoint.chat").collect::<Vec<_>>();
            assert_eq!(change[0]["causes"].as_array().unwrap().len(), given.len());
            settles(&project, &none);
            assert_eq!(endpoint(&service)["dataCenterIds"], serde_json::json!([]));
            project.run(&["destroy", "--yes"]).expect(0);
        }
    }
}

#[test]
fn a_template_lets_go_of_its_credential() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let with = |id: &str| {
        format!(
            "[resource.template.t]\nname = \"t\"\nimage_name = \"i:1\"\n\
             container_registry_auth_id = \"{id}\"\n\n\
             [resource.registry_auth.r]\nname = \"r\"\nusername = \"u\"\npassword = \"p\"\n"
        )
    };
    let project = Project::with("", &service);
    for id in ["", "${registry_auth.r.id}", ""] {
        settles(&project, &with(id));
        let templates = service.list("/templates");
        assert_eq!(templates[0]["containerRegistryAuthId"].is_null(), id.is_empty());
    }
}

/// A reference to a missing object is named in the error.
#[test]
fn an_id_that_leads_nowhere_is_named() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let endpoint = "name = \"one\"\ntemplate_id = \"nosuchtempl\"\ngpu_ids = \"ADA_24\"\n";
    let project = Project::with(&format!("[resource.endpoint.e]\n{endpoint}"), &service);
    let said = project.run(&["apply", "-y"]).expect(1).stderr;
    assert!(said.contains("template \"nosuchtempl\" not found"), "{said}");
    // A secret id is not shown.
    let secret = "[variable.t]\ntype = \"string\"\nsensitive = true\ndefault = \"nosuchtempl\"\n";
    let endpoint = endpoint.replace("nosuchtempl", "${var.t}");
    project.write("plumb.toml", format!("{secret}[resource.endpoint.e]\n{endpoint}"));
    let said = project.run(&["apply", "-y"]).expect(1).stderr;
    assert!(said.contains("not found") && !said.contains("nosuchtempl"), "{said}");
}
