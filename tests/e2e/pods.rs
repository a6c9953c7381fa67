//! Pods: made, changed in place, stopped and started, replaced if data may be lost, and deleted.

use serde_json::{Value, json};

use crate::harness::{Project, Service, data};

/// A pod that mounts a network volume.
pub(crate) const POD: &str = r#"
[resource.pod.trainer]
name = "trainer"
image_name = "registry.example/train:1"
gpu_type_id = "NVIDIA A40"
docker_start_cmd = ["sleep", "600"]
env = { EPOCHS = "3" }
ports = ["8888/http"]
network_volume_id = "${network_volume.models.id}"
"#;

const VOLUME: &str = r#"
[resource.network_volume.models]
name = "models"
size = 100
data_center_id = "EU-RO-1"
"#;

fn spec() -> String {
    format!(
        "{VOLUME}{POD}running = true\nlifecycle = {{}}\n\n\
         [output.cost]\nvalue = \"${{pod.trainer.cost_per_hr}}\"\n"
    )
}

/// Applies a spec, and expects that nothing is left to do. Returns the calls.
fn settles(project: &Project, service: &Service, spec: &str) -> Vec<String> {
    project.write("plumb.toml", spec);
    let before = service.mutations().len();
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    service.mutations().split_off(before)
}

fn pod(service: &Service) -> Value {
    let mut pods = service.list("/pods");
    assert_eq!(pods.len(), 1, "{pods:?}");
    pods.remove(0)
}

#[test]
fn a_pod_lives() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with("", &service);
    settles(&project, &service, &spec());
    let made = pod(&service);
    assert_eq!((&made["name"], &made["gpu"]["id"]), (&json!("trainer"), &json!("NVIDIA A40")));
    let cost = project.run(&["output", "cost", "--raw"]).expect(0).stdout;
    let shown = made["costPerHr"].as_f64().unwrap();
    assert!((cost.trim().parse::<f64>().unwrap() - shown).abs() < f64::EPSILON, "{cost} {shown}");

    let changed = spec().replace("EPOCHS = \"3\"", "EPOCHS = \"4\"").replace("train:1", "train:2");
    assert_eq!(settles(&project, &service, &changed), ["PATCH /pods/{id}"]);
    assert_eq!((&pod(&service)["env"]["EPOCHS"], &pod(&service)["id"]), (&json!("4"), &made["id"]));

    let stopped = changed.replace("running = true", "running = false");
    project.write("plumb.toml", &stopped);
    let plan = project.run(&["plan"]).expect(0).said();
    assert!(plan.contains("starts or stops it"), "{plan}");
    assert_eq!(settles(&project, &service, &stopped), ["POST /pods/{id}/stop"]);
    assert_eq!(pod(&service)["desiredStatus"], "EXITED");

    // Somebody starts the pod, and the next apply stops it again.
    let id = made["id"].as_str().unwrap();
    service.request("POST", &format!("/pods/{id}/start"), None);
    let drift = project.run(&["plan"]).expect(0).said();
    assert!(drift.contains("running"), "{drift}");
    assert_eq!(settles(&project, &service, &stopped), ["POST /pods/{id}/stop"]);

    let started = changed.replace("\"trainer\"\n", "\"other\"\n");
    let calls = settles(&project, &service, &started);
    assert_eq!(calls, ["PATCH /pods/{id}", "POST /pods/{id}/start"]);
    assert_eq!(
        (&pod(&service)["desiredStatus"], &pod(&service)["id"]),
        (&json!("RUNNING"), &made["id"])
    );

    project.run(&["destroy", "--yes"]).expect(0);
    assert!(service.list("/pods").is_empty() && service.list("/networkvolumes").is_empty());
}

#[test]
fn what_would_lose_data_or_cannot_be_is_refused() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with("", &service);
    let with = |more: &str| {
        format!(
            "[resource.pod.p]\nname = \"p\"\nimage_name = \"i:1\"\n\
             docker_start_cmd = [\"sleep\", \"600\"]\n{more}"
        )
    };
    let own = "volume_in_gb = 20\ngpu_type_id = \"NVIDIA A40\"\n";
    settles(&project, &service, &with(own));
    let id = pod(&service)["id"].clone();
    for (more, said) in [
        ("volume_in_gb = 10\ngpu_type_id = \"NVIDIA A40\"\n", "the volume of a pod must increase"),
        ("volume_in_gb = 20\ngpu_type_id = \"NVIDIA L40\"\n", "allow_data_loss"),
        ("cpu_flavor_id = \"cpu3c\"\nvolume_in_gb = 20\n", "without a network volume"),
        ("running = false\nlocked = true\n", "a locked pod cannot be stopped"),
    ] {
        project.write("plumb.toml", with(more));
        let refused = project.run(&["plan"]).expect(1).said();
        assert!(refused.contains(said), "{more}: {refused}");
    }
    let other = own.replace("A40", "L40");
    let lossy = with(&format!("{other}lifecycle = {{ allow_data_loss = true }}\n"));
    settles(&project, &service, &lossy);
    assert_ne!(pod(&service)["id"], id);
    for (more, said) in [
        ("cpu_flavor_id = \"cpu3c\"\ngpu_count = 1\n", "has no GPUs"),
        ("vcpu_count = 4\n", "the service chooses vcpu_count"),
        ("running = false\nlocked = true\n", "a locked pod cannot be stopped"),
    ] {
        let project = Project::with(&with(more), &service);
        let refused = project.run(&["plan"]).expect(1).said();
        assert!(refused.contains(said), "{more}: {refused}");
    }
    let imageless = Project::with("[resource.pod.p]\nname = \"p\"\n", &service);
    let refused = imageless.run(&["apply", "--yes"]).expect(1).said();
    assert!(refused.contains("imageName is required"), "{refused}");
}

/// A pod without GPUs is made from a template and stopped from the start. Then it is unlocked and locked.
#[test]
fn a_stopped_pod_of_a_template() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with("", &service);
    let with = |more: &str| {
        format!(
            "[resource.template.t]\nname = \"t\"\nimage_name = \"i:1\"\nis_serverless = false\n\
             docker_start_cmd = [\"sleep\", \"600\"]\nenv = {{ FROM = \"template\" }}\n\n\
             [resource.pod.p]\nname = \"p\"\ntemplate_id = \"${{template.t.id}}\"\n\
             cpu_flavor_id = \"cpu3c\"\nvcpu_count = 4\n{more}"
        )
    };
    settles(&project, &service, &with("running = false\n"));
    let made = pod(&service);
    assert_eq!(made["desiredStatus"], "EXITED");
    assert_eq!((&made["cpuFlavorId"], &made["vcpuCount"]), (&json!("cpu3c"), &json!(4)));
    assert_eq!((&made["image"], &made["env"]["FROM"]), (&json!("i:1"), &json!("template")));
    settles(&project, &service, &with("locked = true\n"));
    assert_eq!(pod(&service)["desiredStatus"], "RUNNING");
    // The lock is removed first.
    settles(&project, &service, &with("locked = false\nrunning = false\n"));
    assert_eq!(pod(&service)["desiredStatus"], "EXITED");
    project.run(&["destroy", "--yes"]).expect(0);
    assert!(service.list("/pods").is_empty());
}

/// There is exactly one pod, as the spec wants it, whichever answers get lost.
#[test]
fn lost_answers_make_no_second_pod() {
    for kind in ["lost", "cut", "error500-after", "error500-before"] {
        let folder = data();
        let op = "op=POST /pods|PATCH /pods/{id}|POST /pods/{id}/stop|POST /pods/{id}/start";
        let fault = format!("{op},every=2,kind={kind}");
        let service = Service::start(folder.path(), &["--fault", &fault]);
        let project = Project::with("", &service);
        for (running, name) in [(false, "one"), (true, "two"), (false, "two"), (true, "three")] {
            let spec = format!(
                "[resource.pod.p]\nname = \"{name}\"\nimage_name = \"i:1\"\nrunning = {running}\n\
                 docker_start_cmd = [\"sleep\", \"600\"]\n"
            );
            project.write("plumb.toml", &spec);
            // The next run looks up calls that are in doubt at the end of this one.
            if project.run(&["apply", "--yes"]).code != Some(0) {
                project.run(&["apply", "--yes"]).expect(0);
            }
            project.run(&["plan", "--detailed-exitcode"]).expect(0);
            let status = if running { "RUNNING" } else { "EXITED" };
            assert_eq!(pod(&service)["desiredStatus"], status, "{kind} {name}");
            assert_eq!(pod(&service)["name"], name, "{kind}");
        }
    }
}

/// Secrets in the environment of a pod are sent, and are stored nowhere else.
#[test]
fn secrets_of_a_pod_are_not_shown() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = "[variable.token]\ntype = \"string\"\nsensitive = true\n\n\
                [resource.pod.p]\nname = \"p\"\nimage_name = \"i:1\"\n\
                docker_start_cmd = [\"sleep\", \"600\"]\nenv = { TOKEN = \"${var.token}\" }\n";
    let mut project = Project::with(spec, &service);
    let secret = "canary-token-4711";
    project.set("PLUMB_VAR_TOKEN", secret);
    let applied = project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(pod(&service)["env"]["TOKEN"], secret);
    let shown = project.run(&["state", "show", "pod.p", "--json"]).expect(0);
    let plan = project.run(&["plan", "--detailed-exitcode"]).expect(0);
    for said in [applied.said(), shown.said(), plan.said()] {
        assert!(!said.contains(secret), "{said}");
    }
    assert!(!String::from_utf8_lossy(&project.written()).contains(secret));
}
