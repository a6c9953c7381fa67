//! The `[[moved]]` blocks that `plumb plan --write-moves` adds to a spec.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use engine::address::MoveRule;
use engine::config::moved_block;
use engine::config::parse::parse;
use engine::diagnostics::Sources;

use crate::error::CommandError;
use crate::folder::Folder;

/// The file of the spec that gets the blocks.
const FILE: &str = "moves.plumb.toml";

/// Adds blocks to the spec of a folder, after the content that the file has. Returns the path of the file.
pub(crate) fn append(folder: &Folder, rules: &[MoveRule]) -> Result<PathBuf, CommandError> {
    let path = folder.join(FILE);
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot write moves to {}", path.display()), &error)
    };
    let known = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(fail(error)),
    };
    let added = added(&known, rules);
    if !is_read_back(&format!("{known}{added}"), rules) {
        return Err(CommandError::new(format!("moves cannot be added to {}", path.display()))
            .help(format!("write these blocks into another file of the spec:\n{}", added.trim())));
    }
    let mut file = OpenOptions::new().append(true).create(true).open(&path).map_err(fail)?;
    file.write_all(added.as_bytes()).map_err(fail)?;
    file.sync_all().map_err(fail)?;
    Ok(path)
}

/// Returns the text to add after the content of the file.
fn added(known: &str, rules: &[MoveRule]) -> String {
    let blocks: Vec<String> = rules.iter().map(moved_block).collect();
    let gap = match known {
        "" => "",
        known if known.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{gap}{}", blocks.join("\n"))
}

/// Returns true if a text ends with the blocks, as the spec's own parser reads it.
fn is_read_back(text: &str, rules: &[MoveRule]) -> bool {
    let mut sources = Sources::default();
    let file = sources.add(FILE, text);
    let (document, found) = parse(&sources, &[file]);
    !found.has_errors() && document.moved.len() >= rules.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(from: &str, to: &str) -> MoveRule {
        MoveRule::new(from.parse().unwrap(), to.parse().unwrap()).unwrap()
    }

    #[test]
    fn blocks_stand_behind_what_was_there() {
        let rules = [rule("value.a", "value.b"), rule("value.c", "value.c[\"it's ${x}\"]")];
        insta::assert_snapshot!(added("# kept", &rules), @r#"


        [[moved]]
        from = "value.a"
        to = "value.b"

        [[moved]]
        from = "value.c"
        to = "value.c[\"it's $${x}\"]"
        "#);
        for known in ["", "# kept", "[local]\na = 1\n"] {
            assert!(is_read_back(&format!("{known}{}", added(known, &rules)), &rules), "{known}");
        }
        assert!(!is_read_back(&format!("moved = []\n{}", added("moved = []\n", &rules)), &rules));
    }
}
