//! The language server, with a client that talks to it over stdin and stdout as an editor does.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;

use crate::editor_client::Editor;
use crate::harness::Project;

const FILE: &str = "plumb.toml";

/// A spec that uses most of the language.
const SPEC: &str = r#"[variable.env]
type = "string"
default = "dev"
description = "The environment."

[local]
label = "é😀-${var.env}"

[resource.network_volume.models]
name = "models-${local.label}"
size = 100
data_center_id = "EU-RO-1"

[resource.network_volume.models.lifecycle]
prevent_destroy = '${var.env == "prod"}'

[resource.value.each]
for_each = { a = 1, b = 2 }
depends_on = ["network_volume.models"]
input = "${network_volume.models.size} ${each.key}"

[output.id]
value = "${network_volume.models.id}"
"#;

#[test]
fn mistakes_are_shown_while_typing() {
    let project = Project::new(SPEC);
    let mut editor = Editor::start(&project);
    editor.open(FILE, SPEC);
    editor.wait_for(FILE, <[String]>::is_empty);
    // The mistake comes after characters that count as two UTF-16 units, in a text that is not saved.
    editor.replace(FILE, "-${var.env}\"\n\n", "-${var.evn}\"\n\n");
    let found = editor.wait_for(FILE, |found| !found.is_empty());
    assert_eq!(found, ["7 var.evn | there is no variable `evn`"]);
    editor.replace(FILE, "var.evn", "var.env");
    editor.wait_for(FILE, <[String]>::is_empty);
    // The rules of resource types are checked, too.
    editor.replace(FILE, "size = 100", "size = 5000");
    let found = editor.wait_for(FILE, |found| !found.is_empty());
    assert!(found[0].starts_with("11 5000 | a value that is not allowed"), "{found:?}");
    editor.replace(FILE, "size = 5000", "size =");
    let found = editor.wait_for(FILE, |found| found.iter().all(|it| !it.contains("5000")));
    assert!(!found.is_empty());
    editor.replace(FILE, "size =", "size = 10");
    editor.wait_for(FILE, <[String]>::is_empty);
    editor.end();
}

#[test]
fn every_file_of_the_folder_counts() {
    let project = Project::new(SPEC);
    project.write("other.plumb.toml", "[resource.value.other]\ninput = \"${local.lable}\"\n");
    let mut editor = Editor::start(&project);
    editor.open(FILE, SPEC);
    let found = editor.wait_for("other.plumb.toml", |found| !found.is_empty());
    assert_eq!(found, ["2 local.lable | there is no local value `lable`"]);
    // A file that is not on the disk yet declares the local.
    editor.open("new.plumb.toml", "[local]\nlable = 1\n");
    editor.wait_for("other.plumb.toml", <[String]>::is_empty);
    editor.close("new.plumb.toml");
    editor.wait_for("other.plumb.toml", |found| !found.is_empty());
    // Without an open file, no diagnostics are shown.
    editor.close(FILE);
    editor.wait_for("other.plumb.toml", <[String]>::is_empty);
    editor.end();
}

#[test]
fn completion_knows_attributes_addresses_and_functions() {
    let project = Project::new(SPEC);
    let mut editor = Editor::start(&project);
    editor.open(FILE, SPEC);
    let mut offers = |typed: &str, expected: &[&str]| {
        let plain = typed.replacen('|', "", 1);
        editor.replace(FILE, "[output.id]", &format!("{plain}\n[output.id]"));
        let labels = editor.labels(FILE, typed);
        for label in expected {
            assert!(labels.iter().any(|it| it == label), "{typed}: {label} is not in {labels:?}");
        }
        editor.replace(FILE, &format!("{plain}\n[output.id]"), "[output.id]");
        labels
    };
    // None of these texts is complete TOML.
    offers("[res|", &["resource"]);
    offers("[resource.|", &["value", "network_volume", "endpoint"]);
    let keys = offers("[resource.network_volume.b]\nname = \"b\"\n|", &["size", "for_each"]);
    assert!(!keys.contains(&"name".to_owned()) && keys[0] == "data_center_id", "{keys:?}");
    offers("[resource.value.c]\nlifecycle = { pre|", &["prevent_destroy"]);
    offers("[resource.value.c]\ninput = \"${var.|", &["env"]);
    offers("[resource.value.c]\ninput = \"${network_volume.models.|}\"", &["id", "size"]);
    offers("[resource.value.c]\ninput = '${value.each[\"a\"].|}'", &["output"]);
    offers("[resource.value.c]\ninput = \"${up|\"", &["upper"]);
    offers("[resource.value.c]\ninput = \"${net|\"", &["network_volume.models"]);
    offers("[resource.value.c]\nfor_each = { a = 1 }\ninput = \"${ea|}\"", &["each.key"]);
    offers("[resource.value.c]\ndepends_on = [\"net|\"", &["network_volume.models"]);
    offers("[resource.value.c]\nlifecycle = { ignore_changes = [\"|\"] }", &["input"]);
    offers("[resource.endpoint.c]\ngpu_ids = \"ADA|\"", &["ADA_24"]);
    offers("[variable.c]\ntype = |", &["string", "list(string)"]);
    offers("[variable.c]\nsensitive = |", &["true", "false"]);
    offers("[data.|", &["network_volume", "gpu_type", "state", "http"]);
    offers("[data.http.c]\nurl = \"https://a.example\"\n|", &["headers", "for_each"]);
    offers("[data.state.c]\n|", &["path", "bucket"]);
    offers("[data.gpu_type.c]\n|", &["memory_in_gb"]);
    offers("[data.http.c]\nurl = \"${data.http.c.|}\"", &["status", "json"]);
    offers("[[moved]]\n|", &["from", "to"]);
    offers("[[moved]]\nfrom = \"value.old\"\nto = \"value.|\"", &["value.each"]);
    offers("[[removed]]\n|", &["from", "destroy"]);
    offers("[[import]]\nto = \"|\"", &["value.each"]);
    let types = offers("[resource.gpu|", &[]);
    assert!(!types.contains(&"gpu_type".to_owned()), "{types:?}");
    let text = offers("[resource.value.c]\ninput = \"plain |\"", &[]);
    assert!(text.is_empty(), "{text:?}");
    editor.end();
}

#[test]
fn hover_explains_and_shows_the_state() {
    let spec = format!("[provider.serverless]\nlocal = true\n{SPEC}");
    let project = Project::new(&spec);
    let mut editor = Editor::start(&project);
    editor.open(FILE, &spec);
    let size = editor.hover(FILE, "si|ze = 100");
    assert!(size.contains("integer, required, in GB") && !size.contains("state"), "{size}");
    project.run(&["apply", "--yes"]).expect(0);
    editor.tell("workspace/didChangeWatchedFiles", json!({"changes": []}));
    let seen = |editor: &mut Editor<'_>| editor.hover(FILE, "si|ze = 100");
    crate::harness::wait_for("the state", || seen(&mut editor).contains("In the state: `100` GB"));
    let size = editor.hover(FILE, "models.si|ze}");
    assert!(size.contains("In the state: `100` GB"), "{size}");
    let volume = editor.hover(FILE, "[resource.network_volume.mod|els]");
    assert!(volume.contains("**network_volume.models**") && volume.contains(": id `"), "{volume}");
    let block = "[resource.network_volume.mod|els]";
    let planned = |editor: &mut Editor<'_>, what: &str| {
        crate::harness::wait_for(what, || editor.hover(FILE, block).contains(what));
    };
    planned(&mut editor, "By the state alone, a plan changes nothing.");
    editor.replace(FILE, "size = 100", "size = 250");
    planned(&mut editor, "      size  100 → 250 GB\n");
    assert!(editor.hover(FILE, block).contains(
        "a plan changes:\n\n```diff\n! ~ network_volume.models will be updated in place"
    ));
    editor.replace(FILE, "size = 250", "size = 100");
    let variable = editor.hover(FILE, "${va|r.env}\"\n\n");
    assert!(variable.contains("The environment.") && variable.contains("`\"dev\"`"), "{variable}");
    let key = editor.hover(FILE, "prevent_dest|roy");
    assert!(key.contains("deletes or replaces"), "{key}");
    let each = editor.hover(FILE, "${each.k|ey}");
    assert_eq!(each, "`each.key`: string");
    assert_eq!(editor.hover(FILE, "size = 1|00"), "");
    project.run(&["destroy", "--yes", "--var", "env=dev"]).expect(0);
    editor.end();
}

#[test]
fn hover_shows_no_secret() {
    let spec = "[variable.key]\ntype = \"string\"\ndefault = \"hunter2\"\n\
                [resource.value.a]\ninput = \"x-${var.key}\"\n";
    let project = Project::new(spec);
    project.run(&["apply", "--yes"]).expect(0);
    let mut editor = Editor::start(&project);
    editor.open(FILE, spec);
    let shown = editor.hover(FILE, "inp|ut =");
    assert!(shown.contains("x-hunter2"), "{shown}");
    // The state holds the value in clear, and the variable becomes a secret now.
    editor.replace(FILE, "type = \"string\"", "type = \"string\"\nsensitive = true");
    editor.wait_for(FILE, |_| true);
    let hidden = |editor: &mut Editor<'_>| editor.hover(FILE, "inp|ut =").contains("(sensitive)");
    crate::harness::wait_for("the secret", || hidden(&mut editor));
    let variable = editor.hover(FILE, "var.ke|y");
    assert!(variable.contains("Sensitive.") && !variable.contains("hunter2"), "{variable}");
    editor.end();
}

#[test]
fn definitions_references_and_rename() {
    let project = Project::new(SPEC);
    project.write("other.plumb.toml", "[output.size]\nvalue = \"${network_volume.models.size}\"\n");
    let mut editor = Editor::start(&project);
    editor.open(FILE, SPEC);
    let mut definition = |context: &str| {
        let params = editor.at(FILE, context);
        let found = editor.ask("textDocument/definition", params).unwrap();
        editor.words(&found)
    };
    assert_eq!(definition("${var.e|nv}\"\n\n"), "plumb.toml:1 env");
    assert_eq!(definition("${local.la|bel}"), "plumb.toml:7 label");
    assert_eq!(definition("[\"network_volume.mod|els\"]"), "plumb.toml:9 models");
    assert_eq!(definition("models.si|ze}"), "plumb.toml:11 size");
    // The text was changed a moment ago and is not saved. The places are those of the changed text.
    editor.replace(FILE, "[variable.env]", "# new\n\n[variable.env]");
    let mut params = editor.at(FILE, "[resource.network_volume.mod|els]");
    params["context"] = json!({"includeDeclaration": true});
    let found = editor.ask("textDocument/references", params).unwrap();
    let mut found: Vec<_> =
        found.as_array().unwrap().iter().map(|place| editor.words(place)).collect();
    found.sort();
    assert_eq!(
        found,
        [
            "other.plumb.toml:2 models",
            "plumb.toml:11 models",
            "plumb.toml:21 models",
            "plumb.toml:22 models",
            "plumb.toml:25 models",
        ]
    );
    let mut params = editor.at(FILE, "${network_volume.mod|els.size}");
    let place = editor.ask("textDocument/prepareRename", params.clone()).unwrap();
    assert_eq!(place["start"]["line"], 21);
    params["newName"] = "weights".into();
    let edit = editor.ask("textDocument/rename", params.clone()).unwrap();
    editor.open("other.plumb.toml", "[output.size]\nvalue = \"${network_volume.models.size}\"\n");
    let after = editor.edited(&edit, FILE);
    assert!(!after.contains("volume.models"), "{after}");
    assert!(after.contains("[resource.network_volume.weights.lifecycle]"), "{after}");
    assert!(editor.edited(&edit, "other.plumb.toml").contains("network_volume.weights.size"));
    project.write(FILE, &after);
    project.write("other.plumb.toml", editor.edited(&edit, "other.plumb.toml"));
    project.run(&["validate"]).expect(0);
    for (name, reason) in [("Weights", "is no name"), ("models", ""), ("9", "is no name")] {
        params["newName"] = name.into();
        let answer = editor.ask("textDocument/rename", params.clone());
        match answer {
            Err(said) => assert!(!reason.is_empty() && said.contains(reason), "{name}: {said}"),
            Ok(_) => assert!(reason.is_empty(), "{name}"),
        }
    }
    let mut params = editor.at(FILE, "value.ea|ch]");
    params["newName"] = "each".into();
    editor.ask("textDocument/rename", params).unwrap();
    editor.end();
}

#[test]
fn a_rename_of_what_exists_moves_it() {
    let spec = "[resource.value.a]\ninput = 1\n\n[[moved]]\nfrom = \"value.z\"\nto = \"value.a\"\n";
    let project = Project::new(spec);
    project.run(&["apply", "--yes"]).expect(0);
    let mut editor = Editor::start(&project);
    editor.open(FILE, spec);
    let mut params = editor.at(FILE, "value.|a]");
    params["newName"] = "b".into();
    let edit = editor.ask("textDocument/rename", params).unwrap();
    let said = editor.messages.join("\n");
    assert!(said.contains("The state knows objects of `value.a`"), "{said}");
    let after = editor.edited(&edit, FILE);
    assert!(
        after.contains("to = \"value.a\"\n\n[[moved]]\nfrom = \"value.a\"\nto = \"value.b\"\n"),
        "{after}"
    );
    project.write(FILE, &after);
    let planned = project.run(&["plan"]).expect(0);
    assert!(
        planned.stdout.contains("value.a") && planned.stdout.contains("0 to create, 0 to update"),
        "{}",
        planned.stdout
    );
    editor.end();
}

#[test]
fn every_suggestion_is_a_code_action() {
    let project = Project::new(SPEC);
    let mut editor = Editor::start(&project);
    editor.open(FILE, SPEC);
    editor.wait_for(FILE, <[String]>::is_empty);
    let id = "\"${network_volume.models.id}\"";
    for (right, wrong, fixed) in [
        ("[output.id]", "[ouput.id]", "[output.id]"),
        ("size = 100", "sice = 100", "size = 100"),
        ("[resource.value.each]", "[resource.valu.each]", "[resource.value.each]"),
        ("prevent_destroy =", "prevent_destory =", "prevent_destroy ="),
        ("type = \"string\"", "type = \"strng\"", "type = \"string\""),
        ("${local.label}", "${local.lable}", "${local.label}"),
        ("${local.label}", "${label}", "${local.label}"),
        (id, "\"${network_volume.model.id}\"", id),
        (id, "\"${network_volume.models.idd}\"", id),
        (id, "\"${lenth(var.env)}\"", "\"${length(var.env)}\""),
        ("\"network_volume.models\"", "\"network_volume.model\"", "\"network_volume.models\""),
        // A reference without quotes, and one without braces.
        (id, "network_volume.models.id", id),
        ("\"${network_volume.models.size} ${each.key}\"", "\"local.label\"", "\"${local.label}\""),
    ] {
        editor.replace(FILE, right, wrong);
        editor.wait_for(FILE, |found| !found.is_empty());
        let mut params = editor.at(FILE, &format!("|{wrong}"));
        let start = params["position"].clone();
        let end = json!({"line": start["line"], "character": 200});
        params["range"] = json!({"start": start, "end": end});
        params["context"] = json!({"diagnostics": []});
        let actions = editor.ask("textDocument/codeAction", params).unwrap();
        let action = &actions[0];
        assert_eq!(action["kind"], "quickfix", "{wrong}: {actions}");
        let after = editor.edited(&action["edit"], FILE);
        assert_eq!(after, SPEC.replacen(right, fixed, 1), "{wrong}: {action}");
        editor.replace(FILE, wrong, right);
        editor.wait_for(FILE, <[String]>::is_empty);
    }
    editor.end();
}

#[test]
fn a_file_is_formatted_as_plumb_fmt_does() {
    let text = "[local]\nb  = 1\na   = \"é😀\"\n[output.x]\nvalue=\"${local.a}\" # é😀";
    let project = Project::new(text);
    let mut editor = Editor::start(&project);
    editor.open(FILE, text);
    let document = editor.at(FILE, "|")["textDocument"].clone();
    let options = json!({"tabSize": 4, "insertSpaces": true});
    let params = json!({"textDocument": document, "options": options});
    let edits = editor.ask("textDocument/formatting", params.clone()).unwrap();
    let edit = json!({"changes": {document["uri"].as_str().unwrap(): edits}});
    let formatted = editor.edited(&edit, FILE);
    project.run(&["fmt"]).expect(0);
    assert_eq!(formatted, std::fs::read_to_string(project.path(FILE)).unwrap());
    assert_ne!(formatted, text);
    // A text that is not TOML stays as it is.
    editor.replace(FILE, "[output.x]", "[output.x");
    assert_eq!(editor.ask("textDocument/formatting", params).unwrap(), json!(null));
    editor.end();
}

#[test]
fn modules_are_followed_into_their_files() {
    let spec = "[module.app]\nsource = \"./modules/app\"\nsize = 1\n\
                [output.x]\nvalue = \"${module.app.url}\"\n";
    let project = Project::new(spec);
    let module = "[variable.size]\ntype = \"integer\"\ndescription = \"How large.\"\n\
                  [output.url]\nvalue = \"u-${var.size}\"\n";
    project.write("modules/app/plumb.toml", module);
    let mut editor = Editor::start(&project);
    editor.open(FILE, spec);
    editor.wait_for(FILE, <[String]>::is_empty);
    let mut definition = |context: &str| {
        let params = editor.at(FILE, context);
        let found = editor.ask("textDocument/definition", params).unwrap();
        editor.words(&found)
    };
    assert_eq!(definition("module.app.ur|l"), "modules/app/plumb.toml:4 url");
    assert_eq!(definition("si|ze = 1"), "modules/app/plumb.toml:1 size");
    assert!(editor.hover(FILE, "si|ze = 1").contains("How large."));
    assert_eq!(editor.labels(FILE, "${module.app.|url}"), ["url"]);
    // An unsaved change of the module shows where the module is called.
    editor.open("modules/app/plumb.toml", module);
    editor.replace("modules/app/plumb.toml", "[output.url]", "[output.link]");
    let found = editor.wait_for(FILE, |found| !found.is_empty());
    assert!(found[0].contains("no output `url`"), "{found:?}");
    editor.end();
}

#[test]
fn nothing_that_an_editor_sends_ends_the_server() {
    let project = Project::new("");
    let mut editor = Editor::start(&project);
    for (number, text) in [
        "",
        "[",
        "[[",
        "[resource",
        "=",
        "a = \"${",
        "a = '''",
        "[resource.value.a]\ninput = \"${",
        "[resource.value.a]\ninput = \"${value.a[",
        "\u{feff}[plumb]",
        "a = \"\\",
        "[local]\nx = \"${local.x}\"",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("f{number}.plumb.toml");
        editor.open(&name, text);
        for character in 0..40 {
            let place = json!({
                "textDocument": editor.at(&name, "|")["textDocument"],
                "position": {"line": character / 20, "character": character % 20},
            });
            for method in ["textDocument/completion", "textDocument/hover"] {
                editor.ask(method, place.clone()).unwrap();
            }
        }
        let place = editor.at(&name, "|");
        for method in ["definition", "references", "prepareRename", "documentSymbol", "codeAction"]
        {
            let _answer = editor.ask(&format!("textDocument/{method}"), place.clone());
        }
        editor.close(&name);
    }
    // Texts outside of all folders or in foreign folders, unknown methods, and nonsense.
    for uri in ["untitled:a", "file:///nowhere/plumb.toml", "file:///etc/hosts", "nonsense"] {
        let document = json!({"uri": uri, "languageId": "toml", "version": 1, "text": "[plumb]\n"});
        editor.tell("textDocument/didOpen", json!({"textDocument": document}));
        let params = json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 1}});
        let _answer = editor.ask("textDocument/hover", params);
    }
    let said = editor.ask("textDocument/nonsense", json!({})).unwrap_err();
    assert!(said.contains("no method"), "{said}");
    editor.tell("textDocument/didChange", json!({"nonsense": 1}));
    let _answer = editor.ask("textDocument/completion", json!([1, 2]));
    // A request that is cancelled while it waits gets one answer.
    editor.open("plumb.toml", SPEC);
    let params = editor.at("plumb.toml", "${var.e|nv}\"\n\n");
    let id = editor.ask_without_waiting("textDocument/definition", params);
    editor.tell("$/cancelRequest", json!({"id": id}));
    let _answer = editor.answer(id);
    assert!(editor.hover("plumb.toml", "si|ze").contains("integer"));
    editor.end();
}

#[test]
fn what_is_no_message_ends_the_server_with_a_reason() {
    let project = Project::new("");
    for sent in
        ["garbage\r\n\r\n", "Content-Length: 99999999999\r\n\r\n{}", "Content-Length: 2\r\n\r\n{}"]
    {
        let mut command = project.command(&["lsp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = command.spawn().expect("the binary runs");
        let mut stdin = server.stdin.take().expect("stdin is a pipe");
        stdin.write_all(sent.as_bytes()).expect("it listens");
        // The server must end by itself, although the editor is still there.
        let output = server.wait_with_output().expect("it ends");
        drop(stdin);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("what the editor sent cannot be read"), "{sent}: {said}");
        assert!(!output.status.success() && output.stdout.is_empty(), "{sent}");
    }
}

/// With ten thousand resources, typing does not wait until all of them are read. `benches/language_server.py`
/// measures the release build; the limit here is for the build of the tests on a busy machine.
#[test]
fn a_large_spec_is_no_reason_to_wait() {
    let mut spec = String::from("[resource.value.first]\ninput = \"x\"\n");
    for number in 0..10_000 {
        let input = format!("${{value.first.output}}-{number}");
        let _ = writeln!(spec, "[resource.value.r{number}]\ninput = \"{input}\"");
    }
    let project = Project::new(&spec);
    let mut editor = Editor::start(&project);
    editor.open(FILE, &spec);
    editor.wait_for(FILE, <[String]>::is_empty);
    editor.replace(
        FILE,
        "[resource.value.r9999]",
        "[resource.value.z]\ninput = \"${value.r99}\"\n[resource.value.r9999]",
    );
    let begin = Instant::now();
    let labels = editor.labels(FILE, "${value.r99|}");
    assert!(labels.contains(&"r99".to_owned()) && labels.contains(&"r9999".to_owned()));
    assert!(begin.elapsed().as_millis() < 2000, "{:?}", begin.elapsed());
    editor.end();
}
