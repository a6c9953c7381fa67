//! Images that a spec names without a version.

use crate::harness::Project;

/// Returns a spec with a pod, and a template for each of two images of one name.
fn spec(image: &str) -> String {
    format!(
        "[provider.serverless]\nlocal = true\n\
         [resource.template.worker]\nfor_each = [\"a\", \"b\"]\nname = \"worker-${{each.key}}\"\n\
         image_name = \"{image}\"\nis_serverless = true\n\
         [resource.pod.box]\nname = \"the-box\"\nimage_name = \"{image}\"\ncpu_flavor_id = \"cpu3c\"\n"
    )
}

/// Returns the number of warnings about images that `validate` prints.
fn warnings(image: &str) -> usize {
    let said = Project::new(&spec(image)).run(&["validate"]).expect(0).said();
    said.matches("has no version").count()
}

#[test]
fn an_image_without_a_version_is_a_warning_once_for_all_instances() {
    for image in ["worker", "worker:latest", "registry.example:5000/team/worker"] {
        assert_eq!(warnings(image), 2, "{image}");
    }
    let digest = "0".repeat(64);
    for image in [
        "worker:1",
        "registry.example:5000/team/worker:2026-11",
        &format!("worker@sha256:{digest}"),
        &format!("worker:latest@sha256:{digest}"),
    ] {
        assert_eq!(warnings(image), 0, "{image}");
    }
}

#[test]
fn the_warning_says_how_to_pin_the_image_and_stops_nothing() {
    let project = Project::new(&spec("worker:latest"));
    let applied = project.run(&["apply", "--yes"]).expect(0).said();
    let warning = "warning: the image worker:latest has no version";
    for words in [warning, "worker:1.2", "worker@sha256:"] {
        assert!(applied.contains(words), "{applied}");
    }
    let again = project.run(&["plan", "--detailed-exitcode"]).expect(0).said();
    assert!(!again.contains("has no version"), "{again}");
}

/// In version 2 of the API, endpoints have images, too.
#[test]
fn images_of_version_2_are_looked_at_where_they_are_named() {
    let project = Project::new(
        "[provider.serverless]\nlocal = true\nversion = \"v2\"\n\
         [resource.endpoint.own]\nname = \"own-image\"\nimage_name = \"worker\"\ngpu_ids = \"ADA_24\"\n\
         [resource.template.pinned]\nname = \"pinned\"\nimage_name = \"worker:1\"\n\
         [resource.endpoint.copied]\nname = \"copied\"\ntemplate_id = \"${template.pinned.id}\"\n\
         gpu_ids = \"ADA_24\"\n",
    );
    let said = project.run(&["validate"]).expect(0).said();
    assert_eq!(said.matches("has no version").count(), 1, "{said}");
    assert!(said.contains("plumb.toml:6:14"), "{said}");
}
