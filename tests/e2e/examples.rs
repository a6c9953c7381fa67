//! The examples: each one is valid, its plan equals the text beside it, and it can be applied and destroyed.
//!
//! `plan.txt` is the plan without options, `plan-NAME.txt` the one with `--var-file NAME.vars.toml`.
//! `UPDATE_EXAMPLES=1 cargo test` writes these files again. The example of a custom provider has its own
//! server and test.

use std::path::{Path, PathBuf};

use crate::harness::{Project, Service};

/// The address in the kept texts, in place of the service's address, whose port differs each time.
const ADDRESS: &str = "http://127.0.0.1:8080";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns a copy of an example, so that nothing is left in its folder, and a service with its data in the
/// copy.
fn copy(example: &str) -> (Project, Service) {
    let from = folder().join(example);
    let text = |name: &str| std::fs::read_to_string(from.join(name)).expect("a file of an example");
    let mut project = Project::new(&text("plumb.toml"));
    for name in names(&from)
        .iter()
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "toml"))
    {
        project.write(name, text(name));
    }
    project.set("PLUMB_VAR_REGISTRY_PASSWORD", "canary-registry-password");
    let service = Service::start(&project.path(".plumb/service"), &[]);
    (project, service)
}

/// Returns the plans of an example: for each, the file with its text, and its options.
fn plans(example: &str) -> Vec<(String, Vec<String>)> {
    let of_variables = names(&folder().join(example)).into_iter().filter_map(|name| {
        let plan = format!("plan-{}.txt", name.strip_suffix(".vars.toml")?);
        Some((plan, vec!["--var-file".to_owned(), name]))
    });
    [("plan.txt".to_owned(), Vec::new())].into_iter().chain(of_variables).collect()
}

fn with<'a>(command: &[&'a str], options: &'a [String]) -> Vec<&'a str> {
    command.iter().copied().chain(options.iter().map(String::as_str)).collect()
}

fn check(example: &str) {
    for (golden, options) in plans(example) {
        let (project, service) = copy(example);
        project.run(&with(&["validate"], &options[..])).expect(0);
        let plan = project.run(&with(&["plan"], &options[..])).expect(0);
        compare(example, &golden, &readable(&plan.stdout, &service));
        project.run(&with(&["apply", "--yes"], &options[..])).expect(0);
        let again = project.run(&with(&["plan", "--detailed-exitcode"], &options[..])).expect(0);
        assert!(again.stdout.contains("No changes"), "{example}: {}", again.stdout);
        assert!(!String::from_utf8_lossy(&project.written()).contains("canary-registry-password"));
    }
}

/// Returns a plan with the fixed address in place of the service's.
fn readable(plan: &str, service: &Service) -> String {
    let rest = &service.environment["PLUMB_SERVERLESS_REST_URL"];
    let base = rest.strip_suffix("/v1").expect("the address ends with the version");
    plan.replace(base, ADDRESS)
}

/// Compares a plan with the text that is kept for the example.
#[track_caller]
pub(crate) fn compare(example: &str, file: &str, text: &str) {
    let golden = folder().join(example).join(file);
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(&golden, text).expect("the example can be written");
        return;
    }
    let kept = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(
        kept, text,
        "the plan of {example} is another; UPDATE_EXAMPLES=1 writes {file} anew"
    );
}

#[test]
fn every_example_has_a_test() {
    let examples = names(&folder());
    assert_eq!(
        examples,
        [
            "acme",
            "docker",
            "environments",
            "github",
            "glue",
            "powerdns",
            "quickstart",
            "rabbitmq",
            "regions",
            "team"
        ]
    );
}

#[test]
fn quickstart() {
    check("quickstart");
}

#[test]
fn regions() {
    check("regions");
}

#[test]
fn environments() {
    check("environments");
}

/// In prod, `prevent_destroy` protects an object; in dev, it does not.
#[test]
fn environments_protects_prod_alone() {
    let (dev, _dev_service) = copy("environments");
    dev.run(&["apply", "--yes"]).expect(0);
    dev.run(&["destroy", "--yes"]).expect(0);
    let (prod, service) = copy("environments");
    prod.run(&["apply", "--yes", "--var-file", "prod.vars.toml"]).expect(0);
    let before = service.mutations().len();
    let refused = prod.run(&["destroy", "--yes", "--var-file", "prod.vars.toml"]).expect(1);
    for word in ["endpoint.chat is protected", "network_volume.models is protected"] {
        assert!(refused.stderr.contains(word), "{}", refused.stderr);
    }
    assert_eq!(service.mutations().len(), before, "nothing was called");
}

/// Three environments share the modules beside them. Each has its own state and plan.
#[test]
fn team() {
    for (environment, objects) in [("dev", 9), ("staging", 10), ("prod", 10)] {
        let project = Project::new("");
        std::fs::create_dir(project.path(".git")).expect("modules stay in their repository");
        for part in ["modules/storage", "modules/serving", environment] {
            let file = format!("{part}/plumb.toml");
            let text = std::fs::read(folder().join("team").join(&file)).expect("a file of team");
            project.write(&file, text);
        }
        let service = Service::start(&project.path(environment).join(".plumb/service"), &[]);
        let run =
            |command: &[&str]| project.run(&[&["-C", environment], command].concat()).expect(0);
        run(&["validate"]);
        let golden = format!("{environment}/plan.txt");
        compare("team", &golden, &readable(&run(&["plan"]).stdout, &service));
        let applied = run(&["apply", "--yes"]).said();
        assert!(applied.contains(&format!("{objects} created")), "{applied}");
        let again = run(&["plan", "--detailed-exitcode"]).stdout;
        assert!(again.contains("No changes"), "{again}");
    }
}

#[test]
fn glue() {
    check("glue");
}

/// A new release replaces the stamp and updates the objects that depend on it.
#[test]
fn glue_replaces_with_a_release() {
    let (project, _service) = copy("glue");
    project.run(&["apply", "--yes"]).expect(0);
    let plan = project.run(&["plan", "--var", "release=2026-12"]).expect(0);
    assert!(plan.stdout.contains("value.stamp will be replaced"), "{}", plan.stdout);
    assert!(
        plan.stdout.contains("0 to create, 3 to update, 1 to replace, 0 to delete"),
        "{}",
        plan.stdout
    );
}

/// Each TOML block of the page about the language is a complete spec, and can be applied.
#[test]
fn the_specs_of_the_language_page_are_valid() {
    for block in toml_blocks("spec.md") {
        let project = Project::new(&block);
        project.write("prompt.txt", "say hello\n");
        project.run(&["validate"]).expect(0);
        // A remote state needs a server, so its block is validated and not planned.
        if block.contains("[state]") {
            continue;
        }
        project.run(&["plan", "--no-refresh"]).expect(0);
        project.run(&["apply", "--yes", "--no-refresh"]).expect(0);
    }
}

/// Each TOML block of the page about Terraform is a spec, with the modules of the team beside it.
#[test]
fn the_specs_of_the_page_about_terraform_are_valid() {
    for block in toml_blocks("from-terraform.md") {
        let project = Project::new("");
        std::fs::create_dir(project.path(".git")).expect("modules stay in their repository");
        for module in ["modules/storage/plumb.toml", "modules/serving/plumb.toml"] {
            let text = std::fs::read(folder().join("team").join(module)).expect("a module");
            project.write(module, text);
        }
        project.write("prod/plumb.toml", block);
        project.run(&["validate", "prod"]).expect(0);
    }
}

/// Returns the TOML blocks of a page.
fn toml_blocks(page: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let page = std::fs::read_to_string(page).expect("a page");
    let rest = page.split("```toml\n").skip(1);
    let blocks: Vec<String> =
        rest.filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect();
    assert!(blocks.len() > 3, "{}", blocks.len());
    blocks
}

/// The page about planning has every reason in the words of a plan.
#[test]
fn the_page_of_planning_has_every_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("a file of the house");
    let (source, page) = (read("render/src/reason.rs"), read("docs/planning-behaviours.md"));
    let reasons: Vec<&str> = source
        .lines()
        .filter(|line| line.trim_start().starts_with("Reason::"))
        .filter_map(|line| line.split("=> \"").nth(1)?.strip_suffix("\","))
        .collect();
    assert!(reasons.len() > 10, "{reasons:?}");
    let missing: Vec<&&str> = reasons.iter().filter(|reason| !page.contains(**reason)).collect();
    assert!(missing.is_empty(), "docs/planning-behaviours.md lacks {missing:#?}");
}

/// The links of the pages lead to existing files and headings.
#[test]
fn links_of_the_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> = names(&root.join("docs"))
        .iter()
        .map(|name| root.join("docs").join(name))
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let mut broken = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") || link.contains(['\n', ' ']) {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                page.parent().expect("a folder").join(file)
            };
            if !leads(&target, heading) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

fn leads(target: &Path, heading: &str) -> bool {
    if heading.is_empty() {
        return target.exists();
    }
    let anchor = |line: &str| {
        let letters = line.trim_start_matches('#').trim().to_lowercase();
        letters.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>()
    };
    let text = std::fs::read_to_string(target).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|l| anchor(l).replace(' ', "-") == heading)
}
