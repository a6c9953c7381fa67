//! The diagnostics of modules, one constructor each.

use crate::address::ModulePath;
use crate::config::diagnostics::{listed, shown};
use crate::diagnostics::{Diagnostic, Span};

/// A source that is neither a folder nor a repository.
pub(super) fn no_source(source: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a module cannot be found")
        .at(at)
        .label(format!("`{}` is neither a folder nor the address of a repository", shown(source)))
        .help(
            "write `./FOLDER` or `../FOLDER`, or the address of a git repository with a `revision`",
        )
}

/// A revision where there is no repository.
pub(super) fn revision_of_a_folder(at: Span) -> Diagnostic {
    Diagnostic::error("a folder has no revision")
        .at(at)
        .label("the module is a folder")
        .help("remove the line, or give the address of a git repository as `source`")
}

/// A repository without a revision.
pub(super) fn no_revision(at: Span) -> Diagnostic {
    Diagnostic::error("a repository needs a revision")
        .at(at)
        .label("it may hold something else tomorrow")
        .help("add `revision = \"TAG\"`, or the hash of a commit")
}

/// A password in the address of a repository.
pub(super) fn secret_in_source(at: Span) -> Diagnostic {
    Diagnostic::error("a credential in the spec")
        .at(at)
        .label("everyone who can read the spec can read it")
        .help("leave it out: git finds credentials by its own settings")
}

/// A path that leaves its repository.
pub(super) fn outside_its_repository(at: Span) -> Diagnostic {
    Diagnostic::error("a path outside of its repository")
        .at(at)
        .label("this leads out of the repository")
}

/// A descriptor in a repository without its path.
pub(super) fn no_file(at: Span) -> Diagnostic {
    Diagnostic::error("a descriptor in a repository needs its path")
        .at(at)
        .label("the repository may hold several")
        .help("add `file = \"PATH/NAME.provider.toml\"`, its path in the repository")
}

/// A module whose text could not be read.
pub(super) fn unread(reason: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a module cannot be read").at(at).label(reason.to_owned())
}

/// A module that calls itself, maybe by way of others.
pub(super) fn endless(path: &ModulePath, at: Span) -> Diagnostic {
    Diagnostic::error("a module calls itself")
        .at(at)
        .label(format!("`{path}` would never end"))
        .help("remove one of the calls")
}

/// More instances of modules than can be.
pub(super) fn too_many(most: usize, at: Span) -> Diagnostic {
    Diagnostic::error("too many modules")
        .at(at)
        .label(format!("this makes more than {most} instances of modules"))
}

/// A precondition of an output of a module, which is a value inside the spec.
pub(super) fn output_condition(at: Span) -> Diagnostic {
    Diagnostic::error("a precondition of an output in a module")
        .at(at)
        .label("only outputs of the spec itself have preconditions")
        .help("give it to the resource that the output shows, or to the output of the spec")
}

/// A block that a module cannot have.
pub(super) fn not_in_a_module(block: &str, at: Span) -> Diagnostic {
    let help = match block {
        "provider" => "configure the provider in the spec; the module uses it",
        "import" => "write the import in the spec: `to = \"module.NAME.TYPE.NAME\"`",
        _ => "write it in the spec that calls the module",
    };
    Diagnostic::error(format!("a module has no `{block}`"))
        .at(at)
        .label("this is a module")
        .help(help)
}

/// A variable of a module that bears the name of a key of the call.
pub(super) fn reserved_variable(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a reserved name")
        .at(at)
        .label(format!("`{name}` of a `[module.NAME]` block means something else"))
        .help("give the variable another name")
}

/// An input that the module does not declare.
pub(super) fn unknown_input<'a>(
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    Diagnostic::error("unknown input")
        .at(at)
        .label(format!("the module has no variable `{}`", shown(name)))
        .choices(name, known)
}

/// Inputs that a module needs.
pub(super) fn missing_inputs(names: &[&str], at: Span) -> Diagnostic {
    let names = listed(names.iter().copied());
    Diagnostic::error("missing input")
        .at(at)
        .label(format!("the module needs {names}"))
        .help("add the missing lines to this block")
}

/// A reference to a module with instances that names none of them.
pub(super) fn no_instance_named(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a module with `for_each` has instances")
        .at(at)
        .label(format!("which instance of `module.{name}`?"))
        .help(format!("write `module.{name}[\"KEY\"].OUTPUT`, or `[for …]` over all of them"))
}

/// A reference to an instance of a module that has none.
pub(super) fn no_instances(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a module without `for_each` has no instances")
        .at(at)
        .label(format!("`module.{name}` is one"))
        .help(format!("write `module.{name}.OUTPUT`"))
}

/// A `for_each` or `enabled` of a module that cannot be known before the plan is made.
pub(super) fn not_known(key: &str, reason: &str, at: Span) -> Diagnostic {
    Diagnostic::error(format!("`{key}` of a module must be known beforehand"))
        .at(at)
        .label(reason.to_owned())
        .help("use variables, locals and files here; what a resource computes can only be an input")
}

/// A value of `for_each` or `enabled` that is of the wrong type.
pub(super) fn wrong_value(key: &str, at: Span) -> Diagnostic {
    let expected = match key {
        "enabled" => "expected true or false",
        _ => "expected a table, or a list of distinct texts",
    };
    Diagnostic::error("wrong type").at(at).label(expected)
}

/// A table of providers that is none.
pub(super) fn bad_providers(at: Span) -> Diagnostic {
    Diagnostic::error("wrong type")
        .at(at)
        .label("expected a table of provider names")
        .help("write `providers = { NAME_IN_THE_MODULE = \"NAME_HERE\" }`; with `for_each`, also `'NAME_HERE[\"${each.key}\"]'`")
}
