//! `plumb state mv`: gives objects other addresses, in this state or in another one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use apply::hand_over::{HandOverError, HandedOver, hand_over};
use apply::session::Session;
use engine::address::{Address, AddressError, AddressPattern, MoveRule, MoveRuleError};
use engine::journal::Record;
use engine::state::Snapshot;

use super::edit::nothing_pending;
use super::not_there;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::runtime;
use crate::stored_state;
use crate::system::System;

/// The maximum number of moves that are shown one by one.
const TOLD_MAX: usize = 20;

/// The new address of each object, by its present address.
type Addresses = BTreeMap<Address, Address>;

/// Gives objects other addresses: in the state of `other` if there is one, else in this state.
pub(super) fn run(
    base: &Path,
    folder: &Folder,
    (from, to): (&str, Option<&str>),
    other: Option<&Path>,
    output: &Output,
) -> Result<(), CommandError> {
    let parse = |text: &str| -> Result<AddressPattern, CommandError> {
        text.parse().map_err(|error: AddressError| CommandError::new(error.to_string()))
    };
    let (from, to) = (parse(from)?, parse(to.unwrap_or(from))?);
    let Some(other) = other else { return rename(folder, (from, to), output) };
    let there = Folder::new(base, Some(other))?;
    refuse_itself(folder, &there)?;
    let (addresses, counts) = hand_over_all(folder, &there, (&from, &to))?;
    tell(output, &addresses, Some(&there));
    if counts.with_secrets > 0 {
        output.talk(&format!(
            "note: {} of them hold secrets, of which each state has fingerprints of its own: the next apply there \
             sets these secrets again\n",
            counts.with_secrets
        ));
    }
    Ok(())
}

fn rename(
    folder: &Folder,
    (from, to): (AddressPattern, AddressPattern),
    output: &Output,
) -> Result<(), CommandError> {
    let mut moved = Addresses::new();
    stored_state::edit(folder, "state mv", |snapshot| {
        moved = addresses(snapshot, &from, &to)?;
        for (from, to) in &moved {
            if snapshot.entries.contains_key(to) {
                return Err(CommandError::new(format!("{to} is in the state already")));
            }
            nothing_pending(snapshot, from)?;
            nothing_pending(snapshot, to)?;
        }
        let record =
            |(from, to): (&Address, &Address)| Record::Moved { from: from.clone(), to: to.clone() };
        Ok(moved.iter().map(record).collect())
    })?;
    tell(output, &moved, None);
    Ok(())
}

/// Returns the present and new addresses of the objects that the user means.
fn addresses(
    snapshot: &Snapshot,
    from: &AddressPattern,
    to: &AddressPattern,
) -> Result<Addresses, CommandError> {
    let all = snapshot.entries.keys();
    let found: Addresses = match MoveRule::new(from.clone(), to.clone()) {
        Ok(rule) => all.filter_map(|from| Some((from.clone(), rule.target(from)?))).collect(),
        Err(MoveRuleError::Same) => {
            all.filter(|it| from.covers(it)).map(|it| (it.clone(), it.clone())).collect()
        }
        Err(why) => {
            return Err(CommandError::new(format!("{from} cannot become {to}: {why}")));
        }
    };
    if found.is_empty() {
        return Err(not_there(&from.to_string(), snapshot));
    }
    Ok(found)
}

fn tell(output: &Output, moved: &Addresses, there: Option<&Folder>) {
    let place = there.map(|there| format!(" in {}", there.path().display())).unwrap_or_default();
    let line = |(from, to): (&Address, &Address)| {
        render::safe::text(&format!("moved {from} to {to}{place}")) + "\n"
    };
    output.talk(&moved.iter().take(TOLD_MAX).map(line).collect::<String>());
    if moved.len() > TOLD_MAX {
        output.talk(&format!("and {} more\n", moved.len() - TOLD_MAX));
    }
}

fn refuse_itself(here: &Folder, there: &Folder) -> Result<(), CommandError> {
    let real = |folder: &Folder| std::fs::canonicalize(folder.plumb()).ok();
    let is_same_folder = real(here).is_some_and(|path| Some(path) == real(there));
    if is_same_folder || here.store()?.place() == there.any_store()?.place() {
        return Err(CommandError::new("the other state is this one")
            .help("without `--to DIR`, objects move within the state"));
    }
    Ok(())
}

fn hand_over_all(
    here: &Folder,
    there: &Folder,
    (from, to): (&AddressPattern, &AddressPattern),
) -> Result<(Addresses, HandedOver), CommandError> {
    let (store, other) = (here.store()?, there.store()?);
    let known = stored_state::read_some(here)?;
    addresses(&known, from, to)?;
    let holder = System::holder("state mv");
    runtime::wait_for(async {
        let mut here = Session::open(&*store, &holder, Duration::ZERO, &System, None).await?;
        let mut there = match Session::open(&*other, &holder, Duration::ZERO, &System, None).await {
            Ok(there) => there,
            Err(error) => {
                here.close().await?;
                return Err(error.into());
            }
        };
        let handed = match addresses(here.snapshot(), from, to) {
            Ok(addresses) => match hand_over(&mut here, &mut there, &addresses).await {
                Ok(Ok(counts)) => Ok((addresses, counts)),
                Ok(Err(why)) => Err(why.into()),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error),
        };
        // The other state is saved first: it must have the objects before this one lets them go.
        there.close().await?;
        here.close().await?;
        handed
    })
}

impl From<HandOverError> for CommandError {
    fn from(error: HandOverError) -> Self {
        let failed = Self::new(error.to_string());
        match error {
            HandOverError::InDoubt(_) => failed.status(Status::InDoubt).help(
                "nothing was changed; the next `plumb apply` looks it up; `plumb resolve` decides it by hand",
            ),
            HandOverError::Unfinished(_) => {
                failed.help("nothing was changed; `plumb apply` finishes it")
            }
            HandOverError::Taken(_) | HandOverError::Owned(_) => {
                failed.help("nothing was changed; `plumb state rm` there lets it go")
            }
            HandOverError::OwnService { .. } | HandOverError::Elsewhere { .. } => {
                failed.help("nothing was changed; objects can be handed over at one service only")
            }
        }
    }
}
