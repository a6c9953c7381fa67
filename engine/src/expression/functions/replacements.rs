//! Replacements for functions of other languages, for advice in messages.

/// Returns the advice for a function of Terraform or `OpenTofu` that does not exist here; none for other
/// names.
pub(super) fn of(name: &str) -> Option<&'static str> {
    Some(match name {
        "timestamp" | "plantimestamp" => {
            "a plan does not depend on the clock: give the time by a variable, such as --var now=\"$(date -u +%FT%TZ)\""
        }
        "uuid" | "bcrypt" => {
            "a plan does not depend on chance: make the value once, and give it by a variable"
        }
        "uuidv5" => "write a digest: sha256(…)",
        "fileexists" => "write contains(fileset(\"folder\", \"*\"), \"name\")",
        "abspath" | "pathexpand" => "paths are relative to the folder of the spec",
        "templatestring" => "write the template where it is used: \"… ${…} …\"",
        "list" => "write [a, b]",
        "map" => "write { key = value }",
        "textencodebase64" | "textdecodebase64" => {
            "texts are UTF-8: base64encode(…), base64decode(…)"
        }
        "rsadecrypt" => "decrypt the value outside, and give it by a sensitive variable",
        _ => return None,
    })
}
