//! The entry for plan files.

use engine::diagnostics::{Diagnostics, Sources};
use engine::plan::file;
use render::Colour;
use render::view::PlanView;

use super::harmless;

/// Reads a plan file as it is, and with the correct digest.
pub(crate) fn plan(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    drop(file::read(text));
    let Some(text) = file::with_its_digest(text) else { return };
    let Ok(read) = file::read(&text) else { return };
    let (sources, found) = (Sources::default(), Diagnostics::new());
    let mut view = PlanView::new(&read.plan, &sources, &found, None);
    view.restore(&read.view);
    let options = render::terminal::Options { colour: Colour::Off, steps: true };
    harmless(&render::terminal::plan(&view, options));
    harmless(&render::markdown::plan(&view));
    harmless(&render::json::pretty(&view));
    let again = file::write(&read);
    let back = file::read(&again).expect("what was written can be read");
    assert_eq!(file::digest(&back.plan), file::digest(&read.plan));
}
