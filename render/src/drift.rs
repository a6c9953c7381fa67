//! Changes outside Plumb, for `plumb drift`.

use engine::diagnostics::Sources;
use engine::write_back::Written;
use serde::Serialize;

use crate::diagnostics::DiagnosticView;
use crate::json;
use crate::paint::{Colour, Label, Line, Page};
use crate::safe;
use crate::terminal;
use crate::view::{DriftView, LocationView, PlanView};

/// The name of the format of [`DriftReport`].
pub const DRIFT_FORMAT: &str = "plumb-drift/1";

/// The report of `plumb drift`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftReport<'a> {
    format: &'static str,
    /// The services that the providers act on.
    #[serde(skip_serializing_if = "<[LocationView]>::is_empty")]
    locations: &'a [LocationView],
    /// The objects that changed; none if they could not be looked at.
    drift: Option<&'a [DriftView]>,
    /// The attributes that were written into the spec; none if that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Vec<WrittenView>>,
    /// Errors, warnings and notes.
    diagnostics: Vec<DiagnosticView>,
}

/// An attribute that was written into the spec.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrittenView {
    /// The address of the block.
    address: String,
    /// The attribute.
    attribute: String,
    /// The file.
    file: String,
    /// The line in the file after the change, from 1.
    line: usize,
    /// The value as TOML; null if the attribute was removed.
    value: Option<String>,
}

impl WrittenView {
    /// Returns the views of all attributes that were written into files.
    pub fn all(written: &[Written], sources: &Sources) -> Vec<Self> {
        let view = |written: &Written| Self {
            address: written.block.to_string(),
            attribute: written.attribute.to_string(),
            file: sources.get(written.file).map(|source| source.path.clone()).unwrap_or_default(),
            line: written.line,
            value: written.value.clone(),
        };
        written.iter().map(view).collect()
    }

    /// Returns the line about the attribute.
    fn line(&self) -> Line {
        let Self { address, attribute, file, line, value } = self;
        let place = safe::text(&format!("{file}:{line}"));
        let what = match value {
            Some(value) => safe::toml(&format!("{attribute} = {value}")).into_owned(),
            None => format!("{} is taken out", safe::text(attribute)),
        };
        let address = format!(" {}: ", safe::text(address));
        Line::new(1).then(place, Label::Faint).plain(address).then(what, Label::Strong)
    }
}

impl<'a> DriftReport<'a> {
    /// Returns the report on a plan's drift.
    pub fn new(view: &'a PlanView<'_>, diagnostics: Vec<DiagnosticView>) -> Self {
        let (locations, drift) = (view.locations.as_slice(), Some(view.drift.as_slice()));
        Self { format: DRIFT_FORMAT, locations, drift, written: None, diagnostics }
    }

    /// Returns the report if nothing could be looked at. It does not say that nothing changed.
    pub fn refused(diagnostics: Vec<DiagnosticView>) -> Self {
        Self { format: DRIFT_FORMAT, locations: &[], drift: None, written: None, diagnostics }
    }

    /// Adds the attributes that were written into the spec.
    #[must_use]
    pub fn with_written(self, written: Vec<WrittenView>) -> Self {
        Self { written: Some(written), ..self }
    }

    /// Returns the report as text, without the diagnostics, which are printed separately.
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
        if let Some(written) = &self.written {
            page.gap();
            let heading = if written.is_empty() {
                "Nothing was written into the spec."
            } else {
                "Written into the spec:"
            };
            page.heading(heading, Label::Strong);
            for written in written {
                page.push(written.line());
            }
        }
        page.text(colour)
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> String {
        json::pretty(self)
    }
}

#[cfg(test)]
mod tests {
    use engine::diagnostics::Diagnostics;

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
