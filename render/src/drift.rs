//! What changed outside, for `plumb drift`.

use serde::Serialize;

use crate::json;
use crate::paint::{Colour, Label, Page};
use crate::terminal;
use crate::view::DriftView;

/// The name of the format of [`DriftReport`].
pub const DRIFT_FORMAT: &str = "plumb-drift/1";

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftReport<'a> {
    format: &'static str,
    /// The objects that changed.
    drift: &'a [DriftView],
}

impl<'a> DriftReport<'a> {
    /// The report on a plan's drift.
    pub fn new(drift: &'a [DriftView]) -> Self {
        Self { format: DRIFT_FORMAT, drift }
    }

    /// As text.
    pub fn text(&self, colour: Colour) -> String {
        let mut page = Page::new();
        terminal::drift(&mut page, self.drift);
        let (objects, verb) =
            if self.drift.len() == 1 { ("object", "is") } else { ("objects", "are") };
        page.heading(
            match self.drift.len() {
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
    use super::*;

    #[test]
    fn drift_as_text() {
        assert_eq!(DriftReport::new(&[]).text(Colour::Off), "Nothing changed outside.\n");
        let view = crate::terminal::tests::view();
        insta::assert_snapshot!(DriftReport::new(&view.drift).text(Colour::Off), @r#"
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
