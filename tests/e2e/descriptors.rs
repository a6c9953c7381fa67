//! The sources of descriptors: a git repository at a revision, and one block for several instances of a
//! provider.

use std::path::Path;

use crate::acme;
use crate::harness::Project;
use crate::modules::{commit, git};

/// Makes a git repository with the descriptor of the example.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let acme = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/acme/acme.provider.toml");
    std::fs::create_dir(folder.path().join("providers")).unwrap();
    std::fs::copy(acme, folder.path().join("providers/acme.provider.toml")).unwrap();
    git(folder.path(), &["init", "--quiet"]);
    commit(folder.path(), "v1");
    folder
}

/// Returns a project of the example whose descriptor comes from the repository that `block` names.
fn project(server: &acme::Server, block: &str) -> Project {
    let project = server.project();
    let spec = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    let found = "source = \"./acme.provider.toml\"";
    assert!(spec.contains(found));
    let spec = spec.replace(found, block);
    project.write("plumb.toml", spec);
    std::fs::remove_file(project.path("acme.provider.toml")).unwrap();
    project
}

#[test]
fn a_descriptor_in_a_repository_is_fetched_by_init_alone_and_pinned() {
    let (server, shared) = (acme::Server::start(), repository());
    let url = format!("file://{}", shared.path().display());
    let block =
        format!("source = \"{url}\"\nrevision = \"v1\"\nfile = \"providers/acme.provider.toml\"");
    let project = project(&server, &block);
    let early = project.run(&["plan"]).expect(1).said();
    assert!(early.contains("it was not fetched yet: run `plumb init`"), "{early}");
    assert!(early.contains("plumb.toml:16:10"), "{early}");
    let fetched = project.run(&["init"]).expect(0).said();
    assert!(fetched.contains("what the spec uses of 1 repositories is there"), "{fetched}");
    let lock = std::fs::read_to_string(project.path("plumb.lock")).unwrap();
    assert!(lock.contains("[[repository]]") && lock.contains("digest = \"blake3:"), "{lock}");

    // All commands about types know those of the descriptor.
    let listed = project.run(&["provider", "list"]).expect(0).stdout;
    assert!(listed.contains("acme") && listed.contains("the spec"), "{listed}");
    let shown = project.run(&["provider", "show", "acme"]).expect(0).stdout;
    assert!(shown.contains("keep_days"), "{shown}");
    let schema = project.run(&["schema", "--spec"]).expect(0).stdout;
    assert!(schema.contains("keep_days"));

    // A plan file holds the descriptor, so it can be applied where nothing was fetched.
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    let folder = std::fs::read_dir(project.path(".plumb/modules")).unwrap().next().unwrap();
    let folder = folder.unwrap().path();
    std::fs::rename(&folder, project.path("elsewhere")).unwrap();
    project.run(&["apply", "plan.json"]).expect(0);
    assert_eq!(server.with(|account| account.buckets.len()), 1);
    std::fs::rename(project.path("elsewhere"), &folder).unwrap();
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    // A change of the fetched files is reported, and a moved tag is found at the next fetch.
    let fetched = folder.join("providers/acme.provider.toml");
    let text = std::fs::read_to_string(&fetched).unwrap();
    std::fs::write(&fetched, text.replace("storage.acme.example", "evil.example")).unwrap();
    let changed = project.run(&["plan"]).expect(1).said();
    assert!(changed.contains("what was fetched is not what plumb.lock says"), "{changed}");
    let own = shared.path().join("providers/acme.provider.toml");
    std::fs::write(own, text.replace("3650", "3000")).unwrap();
    commit(shared.path(), "v1");
    let moved = project.run(&["init"]).expect(1).said();
    assert!(moved.contains("at v1 is not what plumb.lock says"), "{moved}");
    assert!(moved.contains("remove its entry from plumb.lock"), "{moved}");
}

#[test]
fn mistakes_in_the_place_of_a_descriptor_are_told() {
    let (server, shared) = (acme::Server::start(), repository());
    let url = format!("file://{}", shared.path().display());
    let whole =
        format!("source = \"{url}\"\nrevision = \"v1\"\nfile = \"providers/acme.provider.toml\"");
    let with = |from: &str, to: &str| whole.replace(from, to);
    let local = format!("[local]\nplace = \"{url}\"\n\n[provider.acme]\n");
    for (block, init, words) in [
        (with("revision = \"v1\"\n", ""), 1, "a repository needs a revision"),
        (with("file = \"providers/acme.provider.toml\"", ""), 1, "needs its path"),
        (with("\"providers/acme", "\"../acme"), 1, "this leads out of the repository"),
        (with("\"v1\"", "\"${var.hook_secret}\""), 1, "`revision` cannot be computed"),
        (with("file://", "https://me:secret@git.example/"), 1, "a credential in the spec"),
        (format!("{whole}\ndescriptor = \"./a.toml\""), 0, "a provider has one descriptor"),
        (with("providers/acme", "acme"), 0, "the descriptor acme.provider.toml of a repository"),
        (with(&url, "${local.place}"), 1, "the address of a repository cannot be computed"),
    ] {
        let project = project(&server, &block);
        let spec = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
        project.write("plumb.toml", spec.replace("[provider.acme]\n", &local));
        project.run(&["init"]).expect(init);
        let refused = project.run(&["validate"]).expect(1).said();
        assert!(refused.contains(words), "{block}: {refused}");
        assert!(!refused.contains("unknown resource type"), "{block}: {refused}");
    }
    // Errors of git are shown in git's words.
    for (block, words) in [
        (with("\"v1\"", "\"v9\""), "at v9"),
        (with(&url, "file:///nowhere/at/all"), "cannot fetch file:///nowhere/at/all at v1"),
        (with(&url, "http://127.0.0.1:1/x.git"), "cannot fetch http://127.0.0.1:1/x.git at v1"),
    ] {
        let failed = project(&server, &block).run(&["init"]).expect(1).said();
        assert!(failed.contains(words), "{block}: {failed}");
    }
    let mut project = project(&server, &whole);
    project.set("PATH", "/nowhere");
    let failed = project.run(&["init"]).expect(1).said();
    assert!(failed.contains("cannot run `git`") && failed.contains("install git"), "{failed}");
}

/// Starts a server for each of two regions. Returns them, and a project with one block for both.
fn regions() -> (acme::Server, acme::Server, Project) {
    let (eu, us) = (acme::Server::start(), acme::Server::start());
    let mut project = eu.project();
    project.set("ACME_URL", "");
    project.write(
        "plumb.toml",
        format!(
            "[local]\nregions = {{ eu = \"{}\", us = \"{}\" }}\n\n[provider.acme]\nfor_each = \"${{local.regions}}\"\n\
             source = \"./acme.provider.toml\"\nurl = \"${{each.value}}\"\n\n[resource.bucket.reports]\n\
             for_each = [\"eu\", \"us\"]\nprovider = 'acme[\"${{each.key}}\"]'\nname = \"reports-of-${{each.key}}\"\nregion = \"north\"\n\n\
             [resource.bucket.alone]\nprovider = 'acme[\"us\"]'\nname = \"alone-in-us\"\nregion = \"south\"\n",
            eu.address, us.address
        ),
    );
    (eu, us, project)
}

fn buckets(server: &acme::Server) -> Vec<String> {
    server.with(|account| account.buckets.keys().cloned().collect())
}

#[test]
fn one_block_has_a_provider_for_each_region() {
    let (eu, us, project) = regions();
    let spec = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    project.run(&["validate"]).expect(0);
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(buckets(&eu), ["reports-of-eu"]);
    assert_eq!(buckets(&us), ["alone-in-us", "reports-of-us"]);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    let listed = project.run(&["provider", "list"]).expect(0).stdout;
    assert!(listed.contains("acme[\"eu\"]") && listed.contains("acme[\"us\"]"), "{listed}");

    // A saved plan uses both instances, and drift is found in the right region.
    us.with(|account| account.buckets.remove("reports-of-us"));
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    project.run(&["apply", "plan.json"]).expect(0);
    assert_eq!(buckets(&us), ["alone-in-us", "reports-of-us"]);

    // An instance is kept as long as the state has objects of it.
    let without_eu = spec.replacen("eu = \"", "xx = \"", 1);
    let gone = without_eu.replace("[\"eu\", \"us\"]", "[\"us\"]");
    project.write("plumb.toml", &gone);
    let refused = project.run(&["plan"]).expect(1).said();
    let help = "keep the key `eu` in `for_each` of [provider.acme] until its resources are gone";
    assert!(refused.contains(help), "{refused}");
    project.write("plumb.toml", &without_eu);
    let refused = project.run(&["plan"]).expect(1).said();
    assert!(refused.contains("there is no `acme[\"eu\"]`, only"), "{refused}");
    project.write("plumb.toml", spec.replace("[\"eu\", \"us\"]", "[\"us\"]"));
    project.run(&["apply", "--yes"]).expect(0);
    assert!(buckets(&eu).is_empty());
    project.write("plumb.toml", &gone);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.run(&["destroy", "--yes"]).expect(0);
    assert!(buckets(&us).is_empty());
}

#[test]
fn modules_and_keys_choose_among_the_instances_of_a_provider() {
    let (eu, us, mut project) = regions();
    let spec = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    let (head, _) = spec.split_once("[resource.bucket.reports]").unwrap();
    let module = "[module.region]\nsource = \"./region\"\nfor_each = \"${local.regions}\"\n\
                  providers = { acme = 'acme[\"${each.key}\"]' }\nregion = \"${each.key}\"\n";
    std::fs::create_dir(project.path("region")).unwrap();
    project.write(
        "region/main.plumb.toml",
        "[variable.region]\ntype = \"string\"\n[resource.bucket.own]\nname = \"own-of-${var.region}\"\nregion = \"north\"\n\
         [resource.bucket.named]\nprovider = \"acme\"\nname = \"named-of-${var.region}\"\nregion = \"north\"\n",
    );
    project.write("plumb.toml", format!("{head}{module}"));
    // One instance has a key of its own, and the other one uses the common key.
    project.set("ACME_KEY_EU", "wrong");
    let refused = project.run(&["plan"]).expect(1).said();
    assert!(refused.contains("this key is not known"), "{refused}");
    project.set("ACME_KEY_EU", acme::KEY);
    project.set("ACME_KEY", "wrong");
    project.set("ACME_KEY_US", acme::KEY);
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(buckets(&eu), ["named-of-eu", "own-of-eu"]);
    assert_eq!(buckets(&us), ["named-of-us", "own-of-us"]);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    let bucket = "[resource.bucket.b]\nname = \"bucket-of-b\"\nregion = \"north\"\n";
    for (block, words) in [
        (bucket.to_owned(), "or, with `for_each`, `provider = 'acme[\"${each.key}\"]'`"),
        (format!("{bucket}provider = 'acme[\"${{each.key}}\"]'"), "this block has no keys"),
        (format!("{bucket}provider = \"${{local.regions.eu}}\""), "a provider cannot be computed"),
        (format!("{bucket}provider = 'acme[\"asia\"]'"), "unknown provider"),
    ] {
        project.write("plumb.toml", format!("{head}{block}"));
        let refused = project.run(&["validate"]).expect(1).said();
        assert!(refused.contains(words), "{block}: {refused}");
    }
}
