//! Real editors with the language server.

use std::process::Command;

use crate::harness::Project;

const SPEC: &str = r#"[local]
label = "é-x"

[resource.network_volume.models]
name = "models-${local.label}"
size = 5000
data_center_id = "EU-RO-1"

[output.id]
value = "${network_volume.models.id}"
"#;

#[test]
fn neovim_is_an_editor_for_specs() {
    let program = std::env::var_os("PLUMB_NVIM").unwrap_or_else(|| "nvim".into());
    let project = Project::new(SPEC);
    project.write("session.lua", include_str!("neovim.lua"));
    let mut command = Command::new(program);
    command.args(["--headless", "-u", "NONE", "-i", "NONE", "plumb.toml"]);
    command.args(["-c", "luafile session.lua"]);
    // The editor must end, also if the session fails.
    command
        .args(["-c", "cquit"])
        .current_dir(project.path(""))
        .env("PLUMB", env!("CARGO_BIN_EXE_plumb"));
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no `nvim`; install it, or name it in PLUMB_NVIM");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    insta::assert_snapshot!(said.trim(), @r#"
    diagnostic 6 a value that is not allowed: size is 5000 and may be at most 4000 GB
    help: write 4000 or less
    corrected true
    hover **size**: integer, required, in GB, at least 0, at most 4000
    completion data_center_id
    definition 4
    renamed title = "é-x" name = "models-${local.title}"
    formatted size = 50
    "#);
}
