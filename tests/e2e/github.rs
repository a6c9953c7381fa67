//! The descriptor of GitHub, against a server that stores what it gets. A proxy before it checks each request
//! and each answer against the published description. If the proxy is not installed, the tests say so and run
//! without it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::catalog::{Server, curl, example, free_port, installed, spec, start};
use crate::examples::compare;
use crate::github_server::{Organisation, Repository};
use crate::harness::Project;
use crate::small_server;

const TOKEN: &str = "canary-github-token";
const SEALED: &str = "Y2FuYXJ5LXNlYWxlZC12YWx1ZQ==";

/// Returns a file that `.ci/servers` installed.
fn in_servers(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("PLUMB_TEST_SERVERS").map(PathBuf::from);
    let folder =
        folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/servers"));
    installed("prism", &[folder.join(name).to_str().expect("a path")])
}

/// Returns the parts of the description that the tests use: the proxy would need ten seconds to read all of
/// it.
fn part_of(description: &Path) -> Value {
    let text = std::fs::read_to_string(description).expect("the description");
    let mut whole: Value = serde_json::from_str(&text).expect("JSON");
    let kept = |path: &str| {
        let below = ["/labels", "/branches", "/actions/variables", "/actions/secrets", "/topics"];
        let rest = path.strip_prefix("/repos/{owner}/{repo}");
        path == "/orgs/{org}/repos"
            || path.starts_with("/orgs/{org}/teams")
            || rest
                .is_some_and(|rest| rest.is_empty() || below.iter().any(|it| rest.starts_with(it)))
    };
    let paths = whole["paths"].as_object_mut().expect("paths");
    paths.retain(|path, _| kept(path));
    for path in paths.values_mut() {
        without_examples(path);
    }
    let mut needed = BTreeSet::new();
    references(&whole, &whole["paths"], &mut needed);
    let mut part =
        json!({"openapi": whole["openapi"], "info": whole["info"], "paths": whole["paths"]});
    for reference in needed {
        let names: Vec<&str> = reference.split('/').skip(1).collect();
        let [components, kind, name] = names.as_slice() else { panic!("{reference}") };
        part[components][kind][name] = whole[components][kind][name].take();
    }
    part
}

fn without_examples(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            if entries.contains_key("schema") {
                entries.remove("examples");
            }
            entries.values_mut().for_each(without_examples);
        }
        Value::Array(items) => items.iter_mut().for_each(without_examples),
        _ => {}
    }
}

/// Collects all parts of a document that a part refers to, directly or indirectly.
fn references(whole: &Value, part: &Value, found: &mut BTreeSet<String>) {
    if let Some(reference) = part["$ref"].as_str()
        && found.insert(reference.to_owned())
    {
        let target = whole.pointer(&reference[1..]).expect("what is referred to");
        references(whole, target, found);
    }
    match part {
        Value::Object(entries) => entries.values().for_each(|it| references(whole, it, found)),
        Value::Array(items) => items.iter().for_each(|it| references(whole, it, found)),
        _ => {}
    }
}

/// Starts the proxy before a server. It refuses requests and answers that the description does not allow.
fn prism(upstream: &str) -> Option<Server> {
    let program = in_servers("node_modules/.bin/prism")?;
    let description = in_servers("github.json")?;
    let folder = tempfile::tempdir().expect("a folder");
    let document = folder.path().join("part.json");
    std::fs::write(&document, part_of(&description).to_string()).expect("a file");
    let port = free_port();
    let mut command = Command::new(program);
    command.args(["proxy", "--port", &port.to_string()]).arg(document).arg(upstream);
    let server = start(command, folder, format!("http://127.0.0.1:{port}"));
    Some(server.ready(&["-H", &bearer(), "-H", VERSION], "/orgs/acme/repos"))
}

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}")
}

const VERSION: &str = "X-GitHub-Api-Version: 2022-11-28";

impl Server {
    /// Expects that the proxy found no fault with a request or an answer.
    #[track_caller]
    fn expect_no_violation(&self) {
        let log = std::fs::read_to_string(self.folder.path().join("output")).expect("the log");
        // The log has a line for each request before the lines about it.
        let about = |line: &&str| line.contains("Violation") || line.contains("Forwarding");
        let lines: Vec<&str> = log.lines().filter(about).collect();
        assert!(!lines.iter().any(|line| line.contains("Violation")), "{lines:#?}");
        assert!(log.contains("/orgs/acme/repos"), "the proxy was asked: {log}");
    }
}

fn project(url: &str) -> Project {
    let mut project = example("github");
    project.set("GITHUB_URL", url);
    project.set("GITHUB_TOKEN", TOKEN);
    project.set("PLUMB_VAR_DEPLOY_KEY", SEALED);
    project
}

/// A spec of the test, its organisation, and the proxy for its calls, if it is installed.
struct Managed {
    project: Project,
    world: Arc<Mutex<Organisation>>,
    proxy: Option<Server>,
}

impl Managed {
    fn start() -> Self {
        let (upstream, world) = small_server::start(Organisation::answer);
        let proxy = prism(&upstream);
        let url = proxy.as_ref().map_or(upstream, |proxy| proxy.url.clone());
        let project = project(&url);
        let plan = project.run(&["plan"]).expect(0).stdout;
        let address = url.trim_start_matches("http://");
        compare("github", "plan.txt", &plan.replace(address, "api.github.com"));
        Self { project, world, proxy }
    }

    fn world(&self) -> MutexGuard<'_, Organisation> {
        self.world.lock().expect("the organisation")
    }

    /// Returns a value of the only repository.
    fn shop(&self, look: impl Fn(&Repository) -> &Value) -> Value {
        look(&self.world().repositories[0]).clone()
    }

    /// Runs a command. Expects that the proxy found no fault, and then the exit status.
    #[track_caller]
    fn run(&self, arguments: &[&str], status: i32) -> String {
        let ran = self.project.run(arguments);
        if let Some(proxy) = &self.proxy {
            proxy.expect_no_violation();
        }
        ran.expect(status).said()
    }

    /// Applies another spec. Expects that nothing is left to do.
    #[track_caller]
    fn apply(&self, spec: &str) -> String {
        self.project.write("plumb.toml", spec);
        let said = self.run(&["apply", "--yes"], 0);
        self.run(&["plan", "--detailed-exitcode"], 0);
        said
    }

    fn make(&self) {
        let said = self.apply(&spec(&self.project));
        for secret in [TOKEN, SEALED] {
            assert!(!said.contains(secret), "{said}");
            assert!(!String::from_utf8_lossy(&self.project.written()).contains(secret));
        }
        assert_eq!(self.shop(|it| &it.own["topics"]), json!(["shop", "web"]));
        assert_eq!(self.shop(|it| &it.own["allow_merge_commit"]), false);
        assert_eq!(self.world().members, ["ada", "grace", "linus"]);
        let teams = self.shop(|it| &it.protections["main"]["restrictions"]["teams"]);
        assert_eq!(teams[0]["slug"], "shop");
        assert_eq!(self.shop(|it| &it.secrets["DEPLOY_KEY"]["encrypted_value"]), SEALED);
    }

    /// Changes an object of each type. The label keeps its id.
    fn change(&self) -> String {
        let label = self.shop(|it| &it.labels["urgent"]["id"]);
        let text = spec(&self.project)
            .replace("description = \"The shop\"", "homepage = \"https://shop.example\"")
            .replace("topics = [\"shop\", \"web\"]", "topics = [\"shop\"]\nhas_wiki = false")
            .replace("Those who build the shop", "Builders")
            .replace("\"linus\"", "\"Barbara\"")
            .replace("name = \"urgent\"", "name = \"now\"\ndescription = \"Do it now\"")
            .replace("approvals = 1\nrequire_code_owner_reviews = true", "enforce_admins = true")
            .replace("value = \"eu-1\"", "value = \"eu-2\"")
            .replace("568250167242549743", "568250167242549744");
        self.apply(&text);
        assert_eq!(self.world().members, ["ada", "grace", "Barbara"]);
        assert_eq!(self.shop(|it| &it.labels["now"]["id"]), label);
        assert_eq!(self.shop(|it| &it.own["description"]), Value::Null);
        assert_eq!(self.shop(|it| &it.own["topics"]), json!(["shop"]));
        let reviews = self.shop(|it| &it.protections["main"]["required_pull_request_reviews"]);
        assert_eq!(reviews, Value::Null);
        assert_eq!(self.shop(|it| &it.secrets["DEPLOY_KEY"]["key_id"]), "568250167242549744");
        text
    }

    /// Changes objects outside Plumb, and expects that drift shows that and an apply undoes it.
    fn drift(&self, text: &str) {
        {
            let shop = &mut self.world().repositories[0];
            shop.own["allow_merge_commit"] = true.into();
            let rules = shop.protections.get_mut("main").expect("rules");
            rules["enforce_admins"]["enabled"] = false.into();
            shop.variables.get_mut("REGION").expect("a variable")["value"] = "us-1".into();
        }
        let drift = self.run(&["drift"], 2);
        for word in ["allow_merge_commit", "enforce_admins", "us-1"] {
            assert!(drift.contains(word), "{drift}");
        }
        self.apply(text);
        assert_eq!(self.shop(|it| &it.variables["REGION"]["value"]), "eu-2");
    }

    /// Expects that a label which a new repository has from the start is refused, and can be taken over.
    fn take_over(&self, text: &str) {
        let label = json!({"id": 999, "node_id": "L", "url": "https://api.github.com/x", "name": "bug", "color": "d73a4a", "description": null, "default": true});
        self.world().repositories[0].labels.insert("bug".to_owned(), label);
        let bug = "\n[resource.label.bug]\nrepository = \"${repository.shop.name}\"\nname = \"bug\"\ncolor = \"D73A4A\"\n";
        self.project.write("plumb.toml", format!("{text}{bug}"));
        let refused = self.run(&["apply", "--yes"], 1);
        assert!(refused.contains("shop|bug"), "{refused}");
        self.run(&["import", "label.bug", "999"], 0);
        self.run(&["plan", "--detailed-exitcode"], 0);
    }

    /// Expects that a variable with another name is another object, and that a repository is not renamed.
    fn rename(&self, text: &str) {
        self.apply(&text.replace("\"REGION\"", "\"PLACE\""));
        let variables: Vec<String> =
            self.world().repositories[0].variables.keys().cloned().collect();
        assert_eq!(variables, ["PLACE"]);
        self.project.write("plumb.toml", text.replace("name = \"shop\"", "name = \"store\""));
        let refused = self.run(&["plan"], 1);
        assert!(refused.contains("the repository shop is not renamed"), "{refused}");
    }

    /// Lets the state forget each object, and takes it over again by its id.
    fn forget(&self, text: &str) {
        self.apply(text);
        let team = self.world().teams[0]["id"].to_string();
        for (address, id) in [
            ("repository.shop", self.shop(|it| &it.own["id"]).to_string()),
            ("team.shop", team),
            ("label.urgent", self.shop(|it| &it.labels["now"]["id"]).to_string()),
            ("branch_protection.main", "shop|main".to_owned()),
            ("actions_variable.region", "shop|REGION".to_owned()),
            ("actions_secret.deploy_key", "shop|DEPLOY_KEY".to_owned()),
        ] {
            self.run(&["state", "rm", address], 0);
            self.run(&["import", address, &id], 0);
        }
        self.apply(text);
    }
}

/// Objects of all types are created, changed, imported, replaced and destroyed, with drift; after each step,
/// a plan is empty.
#[test]
fn github_is_managed() {
    let managed = Managed::start();
    managed.make();
    let text = managed.change();
    managed.drift(&text);
    managed.take_over(&text);
    managed.rename(&text);
    managed.forget(&text);
    managed.run(&["destroy", "--yes"], 0);
    let world = managed.world();
    assert!(world.repositories.is_empty() && world.teams.is_empty());
    expect_all_calls(&world.log);
}

/// Expects that each call of the descriptor was made.
fn expect_all_calls(log: &[String]) {
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("providers/catalog/github.toml");
    let text = std::fs::read_to_string(catalog).expect("the descriptor");
    let calls = text.split("\"github: ").skip(1).filter_map(|rest| rest.split('"').next());
    let is_made = |call: &&str| {
        let parts = |text: &str| {
            let path = text.split('?').next().unwrap_or_default();
            path.split(['/', ' ']).map(str::to_owned).collect::<Vec<_>>()
        };
        let wanted = parts(call);
        log.iter().map(|made| parts(made)).any(|made| {
            let is_like = |(own, made): (&String, &String)| own == made || own.starts_with("${");
            made.len() == wanted.len() && wanted.iter().zip(&made).all(is_like)
        })
    };
    let (made, missing): (Vec<&str>, Vec<&str>) = calls.partition(is_made);
    assert!(made.len() > 25 && missing.is_empty(), "{} made; not made: {missing:#?}", made.len());
}

/// The proxy reports a request that the description does not allow, so its silence proves something.
#[test]
fn a_request_of_another_form_is_found() {
    let (upstream, _world) = small_server::start(Organisation::answer);
    let Some(proxy) = prism(&upstream) else { return };
    let url = format!("{}/orgs/acme/repos", proxy.url);
    let json = "content-type: application/json";
    let head = [
        "-H",
        &bearer(),
        "-H",
        VERSION,
        "-H",
        json,
        "-d",
        r#"{"name": "x", "has_wiki": "no"}"#,
        &url,
    ];
    curl(&head);
    let log = std::fs::read_to_string(proxy.folder.path().join("output")).expect("the log");
    assert!(log.contains("Violation: request.body"), "{log}");
}
