//! `plumb state init`: makes the first state in a shared place, on purpose.

use std::time::Duration;

use apply::session::fold;
use state::Loaded;

use crate::error::CommandError;
use crate::folder::Folder;
use crate::output::Output;
use crate::runtime;
use crate::system::System;

pub(super) fn run(folder: &Folder, output: &Output) -> Result<(), CommandError> {
    let store = folder.any_store()?;
    let holder = System::holder("state init");
    let made = runtime::wait_for(async {
        if store.load().await?.snapshot.is_some() {
            return Ok(false);
        }
        let mut held = store.lock(&holder, Duration::ZERO).await?;
        // Another user may have made it in the meantime.
        let is_first = held.loaded().snapshot.is_none();
        if is_first {
            let folded = fold(Loaded::nothing(), &System)?;
            held.initialise(&folded.snapshot).await?;
        }
        held.release().await?;
        Ok(is_first)
    })?;
    let place = render::safe::text(&store.place());
    output.talk(&if made {
        format!("made a state in {place}\n")
    } else {
        format!("there is a state in {place} already\n")
    });
    Ok(())
}
