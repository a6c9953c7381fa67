//! `plumb validate`: checks a spec without any call.

use std::path::Path;

use engine::config::Config;
use engine::diagnostics::{Diagnostic, Diagnostics};
use render::diagnostics::DiagnosticView;

use crate::args::{SpecArgs, Validate};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::resolved::{self, Resolved};
use crate::runtime;
use crate::stored_state;

pub(crate) fn run(base: &Path, args: &Validate, output: &Output) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let policies = args.policy.policies.clone();
    let spec = SpecArgs { unset: true, policies, ..args.spec.clone() };
    let resolved = resolved::read(&folder, base, &spec, &stored_state::no_state())?;
    let unset = unset(&resolved.config);
    let found = match unset.as_slice() {
        [] => runtime::wait_for(resolved::check_rules(&resolved))?,
        unset => Diagnostics::from_iter([without_values(unset)]),
    };
    let Resolved { sources, mut diagnostics, config, .. } = resolved;
    diagnostics.extend(found);
    diagnostics.sort();
    let valid = !diagnostics.has_errors();
    if args.json {
        let all = DiagnosticView::all(&diagnostics, &sources);
        output.answer(&render::json::pretty(
            &serde_json::json!({"valid": valid, "diagnostics": all}),
        ));
    } else {
        output.diagnostics(&diagnostics, &sources);
        if valid {
            let count = config.resources.len();
            let blocks = if count == 1 { "resource" } else { "resources" };
            output.data(&format!("The spec is valid: {count} {blocks}.\n"));
        }
    }
    Ok(if valid { Status::Done } else { Status::Failed })
}

/// Returns the variables that have no value.
fn unset(config: &Config) -> Vec<&str> {
    let variables = config.variables.iter();
    let unset = variables.filter(|(_, variable)| !variable.value.value.is_known());
    unset.map(|(name, _)| &**name).collect()
}

fn without_values(unset: &[&str]) -> Diagnostic {
    let names: Vec<String> = unset.iter().map(|name| format!("`{name}`")).collect();
    let subject = if names.len() == 1 { "a variable has" } else { "some variables have" };
    Diagnostic::note(format!("{subject} no value: {}", names.join(", ")))
        .detail("The rules of the resource types need values, so they were not checked.")
        .help("give values with --var or --var-file to check the rules, too")
}
