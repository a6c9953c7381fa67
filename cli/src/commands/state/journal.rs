//! `plumb state journal` and `plumb state history`: show what happened since the last snapshot.

use engine::journal::Record;
use serde::Serialize;

use crate::args::Form;
use crate::error::CommandError;
use crate::folder::Folder;
use crate::output::Output;
use crate::runtime;
use crate::stored_state;

pub(super) fn journal(folder: &Folder, form: &Form, output: &Output) -> Result<(), CommandError> {
    print(&stored_state::read(folder)?.records, form, output);
    Ok(())
}

pub(super) fn history(folder: &Folder, form: &Form, output: &Output) -> Result<(), CommandError> {
    let mut runs = stored_state::read(folder)?.records;
    runs.retain(|r| matches!(r, Record::RunOpened { .. } | Record::RunClosed { .. }));
    let store = folder.any_store()?;
    let serials = runtime::wait_for(async { Ok(store.serials().await?) })?;
    if form.is_json() {
        output.data(&render::json::pretty(&History { runs, serials }));
        return Ok(());
    }
    print(&runs, form, output);
    if !serials.is_empty() {
        let serials: Vec<String> = serials.iter().map(ToString::to_string).collect();
        output.data(&format!(
            "older states are kept: serial {} (`plumb state pull --serial N`)\n",
            serials.join(", ")
        ));
    }
    Ok(())
}

/// The history in the form that `--json` prints.
#[derive(Serialize)]
struct History {
    /// The begin and end records of runs since the last snapshot.
    runs: Vec<Record>,
    /// The serials of the older states that are kept, sorted.
    serials: Vec<u64>,
}

fn print(records: &[Record], form: &Form, output: &Output) {
    let line = |record| {
        if form.is_json() { render::json::line(record) } else { render::journal::text(record) }
    };
    if records.is_empty() {
        output.talk("the journal is empty: it begins anew with each snapshot of the state\n");
    }
    output.data(&records.iter().map(line).collect::<String>());
}
