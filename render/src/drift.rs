//! Changes outside Plumb, for `plumb drift`.

use serde::Serialize;

use crate::diagnostics::DiagnosticView;
use crate::json;
use crate::paint::{Colour, Label, Page};
use crate::terminal;
use crate::view::{DriftView, LocationView, PlanView};

/// The name of the format of [`DriftReport`].
pub const DRIFT_FORMAT: &str = "plumb-drift/1";

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftReport<'a> {
    format: &'static str,
    /// The services that the providers act on.
    #[serde(skip_serializing_if = "<[LocationView]>::is_empty")]
    locations: &'a [LocationView],
    /// The objects that changed; none where they could not be looked at.
    drift: Option<&'a [DriftView]>,
    /// Errors, warnings and notes.
    diagnostics: Vec<DiagnosticView>,
}

impl<'a> DriftReport<'a> {
    /// The report on a plan's drift.
    pub fn new(view: &'a PlanView<'_>, diagnostics: Vec<DiagnosticView>) -> Self {
        let (locations, drift) = (view.locations.as_slice(), Some(view.drift.as_slice()));
        Self { format: DRIFT_FORMAT, locations, drift, diagnostics }
    }

    /// The report where nothing could be looked at. That nothing changed it does not say.
    pub fn refused(diagnostics: Vec<DiagnosticView>) -> Self {
        Self { format: DRIFT_FORMAT, locations: &[], drift: None, diagnostics }
    }

    /// As text, without the diagnostics, which are talk.
    pub fn text(&self, colour: Colour) -> String {
        let Some(drift) = self.drift else { return String::new() };
        let mut page = Page::new();
        terminal::locations(&mut page, self.locations);
        terminal::drift(&mut page, drift);
        let (objects, verb) = if drift.len() == 1 { ("object", "is") } else { ("objects", "are") };
        page.heading(
            match drift.len() {
                0 => "Nothing changed outside.".to_owned(),
                count => format!("{count} {objects} {verb} out of plumb."),
            },
            Label::Strong,
        );
        page.text(colour)
    }

    /// As JSON.
    pub fn json(&self) -> String {
        json::pretty(self)
    }
}

#[cfg(test)]
mod tests {
    use engine::diagnostics::{Diagnostics, Sources};

    use super::*;

    #[test]
    fn drift_as_text() {
        let none = PlanView::refused(&Sources::default(), &Diagnostics::new());
        assert_eq!(
            DriftReport::new(&none, Vec::new()).text(Colour::Off),
            "Nothing changed outside.\n"
        );
        let view = crate::terminal::tests::view();
        insta::assert_snapshot!(DriftReport::new(&view, Vec::new()).text(Colour::Off), @r#"
        Changed outside since the last run:
          ~ disk.eu changed
                name  "n" → "m"
                size  100 → 300 GB
                to keep it as it is, write: size = 300
          - disk.gone is gone

        2 objects are out of plumb.
        "#);
    }
}
