//! `plumb state`: commands that show and edit the state.

mod begin;
mod edit;
mod journal;
mod migrate;
mod mv;
mod transfer;

use std::path::Path;

use engine::address::Address;
use engine::diagnostics::nearest;
use engine::state::Snapshot;
use render::state::StateView;

use crate::args::{Form, State};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::stored_state;

pub(crate) fn run(base: &Path, args: &State, output: &Output) -> Result<Status, CommandError> {
    let folder = Folder::new(base, None)?;
    match args {
        State::List => {
            if let Some(snapshot) = stored_state::read_here(&folder)?.snapshot {
                output.data(&render::state::list(&snapshot));
            }
        }
        State::Show { address, form } => show(&folder, address, form, output)?,
        State::Mv { from, to, folder: other } => {
            mv::run(base, &folder, (from, to.as_deref()), other.as_deref(), output)?;
        }
        State::Rm { addresses } => edit::rm(&folder, addresses, output)?,
        State::Relocate { provider } => edit::relocate(&folder, provider, output)?,
        State::Init => begin::run(&folder, output)?,
        State::Migrate { from } => migrate::run(base, &folder, from, output)?,
        State::Pull { serial } => transfer::pull(&folder, *serial, output)?,
        State::Push { file, force } => transfer::push(base, &folder, file, *force, output)?,
        State::History(form) => journal::history(&folder, form, output)?,
        State::Journal(form) => journal::journal(&folder, form, output)?,
    }
    Ok(Status::Done)
}

fn show(folder: &Folder, address: &str, form: &Form, output: &Output) -> Result<(), CommandError> {
    let wanted = parse(address)?;
    let snapshot = stored_state::read_some(folder)?;
    let view = StateView::new(&snapshot).map_err(|error| stored_state::damaged(&error))?;
    let wanted = wanted.to_string();
    let found = view.resources.iter().find(|resource| resource.address == wanted);
    let Some(resource) = found else { return Err(not_there(&wanted, &snapshot)) };
    output.data(&if form.is_json() {
        render::json::pretty(resource)
    } else {
        render::state::resource_text(resource, output.colour())
    });
    Ok(())
}

/// Parses an address that the user typed.
pub(crate) fn parse(text: &str) -> Result<Address, CommandError> {
    text.parse()
        .map_err(|error: engine::address::AddressError| CommandError::new(error.to_string()))
}

/// Returns the error about an address that the state does not have.
pub(crate) fn not_there(address: &str, snapshot: &Snapshot) -> CommandError {
    let known: Vec<String> = snapshot.entries.keys().map(ToString::to_string).collect();
    let error = CommandError::new(format!("{address} is not in the state"));
    match nearest(address, known.iter().map(String::as_str)) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("`plumb state list` lists what is"),
    }
}
