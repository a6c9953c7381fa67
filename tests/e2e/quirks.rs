//! The quirks of the real service. For each, a service that has only this quirk is used through a whole
//! lifecycle.

use crate::harness::{Project, Service, data};
use crate::lifecycle::SPEC;
use crate::pods::POD;

/// Applies a spec, changes it and destroys it with one quirk, and expects that nothing is left to do after
/// each apply.
fn lives_with(quirk: &str) {
    let folder = data();
    let service = Service::start(folder.path(), &["--quirks", quirk]);
    let spec = format!("{SPEC}{POD}");
    let project = Project::with(&spec, &service);
    project.run(&["apply", "-y"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    let changed = spec.replace("size = 100", "size = 150").replace("= 3", "= 2");
    project.write("plumb.toml", changed.replace("[\"8888/http\"]", "[]\nrunning = false"));
    project.run(&["apply", "-y"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.run(&["drift"]).expect(0);
    project.run(&["destroy", "-y"]).expect(0);
    let templates = "/templates?includeEndpointBoundTemplates=true";
    for collection in ["/networkvolumes", templates, "/pods"] {
        assert!(service.list(collection).is_empty(), "{quirk} {collection}");
    }
    assert_eq!(project.run(&["state", "list"]).expect(0).stdout, "", "{quirk}");
}

#[test]
fn lists_in_any_order_nulls_as_texts_and_defaults_of_the_server() {
    for quirk in ["shuffled-lists", "null-as-empty", "server-defaults", "fb-suffix"] {
        lives_with(quirk);
    }
}

#[test]
fn templates_that_hide_and_templates_that_stay() {
    for quirk in ["bound-templates-hidden", "template-delay=1"] {
        lives_with(quirk);
    }
}

#[test]
fn lists_that_are_late_or_wrong() {
    for quirk in ["stale-lists=300", "list-omits-one", "list-doubles-one"] {
        lives_with(quirk);
    }
}

#[test]
fn other_statuses_and_no_bodies() {
    for quirk in ["created-201", "no-body", "html-errors"] {
        lives_with(quirk);
    }
}

#[test]
fn a_retired_version_says_so() {
    let folder = data();
    let service = Service::start(folder.path(), &["--quirks", "gone-410"]);
    let project = Project::with(SPEC, &service);
    let said = project.run(&["plan"]).expect(1).said();
    assert!(said.contains("retired"), "{said}");
}

#[test]
fn an_html_page_is_no_answer() {
    let folder = data();
    let service = Service::start(folder.path(), &["--quirks", "html-errors"]);
    // GraphQL keeps its form, so only a volume is requested.
    let volume =
        "[resource.network_volume.v]\nname = \"v\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n";
    let mut project = Project::with(volume, &service);
    project.set("PLUMB_SERVERLESS_API_KEY", "wrong-key-41c");
    let said = project.run(&["plan"]).expect(1).said();
    assert!(said.contains("HTML page") && !said.contains("wrong-key-41c"), "{said}");
}
