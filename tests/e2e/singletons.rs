//! The settings of a server, which exist from the start: taken over, changed, and reset or left alone.

use serde_json::{Value, json};

use crate::harness::Project;
use crate::small_server::{self, Answer, Request};

/// The settings that the server has.
struct Settings(Value);

impl Default for Settings {
    fn default() -> Self {
        Self(json!({"theme": "plain", "limit": 10}))
    }
}

impl Settings {
    fn answer(&mut self, request: &Request) -> Answer {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/settings") => {}
            ("PATCH", "/settings") => {
                let body: Value = serde_json::from_str(&request.body).expect("JSON");
                for (name, value) in body.as_object().expect("an object") {
                    self.0[name] = value.clone();
                }
            }
            ("DELETE", "/settings") => *self = Self::default(),
            _ => return Answer::new(405, "{}"),
        }
        Answer::new(200, self.0.to_string())
    }
}

const DESCRIPTOR: &str = r#"
[provider]
name = "site"

[api.rest]
address = { setting = "url" }

[type.settings]
singleton = "settings"
read = "rest: GET /settings"
update = [ { call = "rest: PATCH /settings", sends = "changed" } ]
DELETE

[type.settings.attribute]
theme = { type = "string" }
limit = { type = "integer" }
"#;

const RESET: &str = "delete = [ { call = \"rest: DELETE /settings\" } ]";

fn project(delete: &str, url: &str) -> (Project, impl Fn(&str) -> String) {
    let url = url.to_owned();
    let spec = move |settings: &str| {
        format!("[provider.site]\ndescriptor = \"./site.toml\"\nurl = \"{url}\"\n\n{settings}")
    };
    let project = Project::new(&spec(MINE));
    project.write("site.toml", DESCRIPTOR.replace("DELETE\n", &format!("{delete}\n")));
    (project, spec)
}

const MINE: &str = "[resource.settings.main]\ntheme = \"dark\"\n";

#[test]
fn settings_are_taken_over_and_reset() {
    let (url, world) = small_server::start(Settings::answer);
    let has = || world.lock().expect("the settings").0.clone();
    let (project, spec) = project(RESET, &url);
    let planned = project.run(&["plan"]).expect(0).stdout;
    assert!(planned.contains("\"plain\" → \"dark\""), "{planned}");
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(has(), json!({"theme": "dark", "limit": 10}));
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    world.lock().expect("the settings").0["theme"] = "bright".into();
    project.run(&["drift"]).expect(2);
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(has()["theme"], "dark");

    project.write("plumb.toml", spec(""));
    let planned = project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(has(), json!({"theme": "plain", "limit": 10}), "{}", planned.said());
    // The object still exists, and is taken over again.
    project.write("plumb.toml", spec(MINE));
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["destroy", "--yes"]).expect(0);
    assert_eq!(has()["theme"], "plain");
}

#[test]
fn settings_that_nothing_resets_are_left_alone() {
    let (url, world) = small_server::start(Settings::answer);
    let (project, spec) = project("", &url);
    project.run(&["apply", "--yes"]).expect(0);
    project.write("plumb.toml", spec(""));
    let planned = project.run(&["plan"]).expect(0).stdout;
    assert!(planned.contains("the API has no call that deletes it"), "{planned}");
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    assert_eq!(world.lock().expect("the settings").0["theme"], "dark");
    project.write("plumb.toml", spec(MINE));
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    for (more, why) in [
        ("for_each = [\"a\", \"b\"]\n", "there is one settings in an account"),
        ("[resource.settings.other]\ntheme = \"x\"\n", "there is one settings in an account"),
    ] {
        project.write("plumb.toml", spec(&format!("{MINE}{more}")));
        let said = project.run(&["validate"]).expect(1).said();
        assert!(said.contains(why), "{said}");
    }
}
