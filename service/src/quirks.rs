//! Quirks: ways in which the real service departs from its documents, each off by default.
//!
//! A quirk changes every answer that it concerns, for as long as the service runs. A one-time
//! mishap (a lost answer, a 500) is a fault, not a quirk.
//!
//! # Text form
//!
//! `NAME` or `NAME=SECONDS` / `NAME=MS`, several separated by commas:
//!
//! | name | what the service then does |
//! |---|---|
//! | `shuffled-lists` | lists, and lists of GPU types inside endpoints, come in a random order |
//! | `null-as-empty` | `""` where a text has no value |
//! | `server-defaults` | fills GPU types, data centres, `networkVolumeIds` and `flashboot` that were left out |
//! | `fb-suffix` | the name of an endpoint with FlashBoot reads back with ` -fb` appended |
//! | `bound-templates-hidden` | templates in use are hidden without `includeEndpointBoundTemplates=true` |
//! | `template-delay[=SECONDS]` | a template cannot be deleted for 120 (or SECONDS) seconds after its last use |
//! | `stale-lists[=MS]` | lists show a write only after 1000 (or the given number of) milliseconds |
//! | `list-omits-one` | every other list leaves out the object that was made last |
//! | `list-doubles-one` | every list shows its first object twice |
//! | `created-201` | REST creates answer 201 |
//! | `no-body` | REST updates answer 204 without a body |
//! | `html-errors` | REST errors are an HTML page |
//! | `gone-410` | REST answers 410 to everything |

use std::fmt;
use std::str::FromStr;

/// One way in which the real service departs from its documents. [`Quirk::HELP`] describes its text
/// form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// Lists come in a random order.
    ShuffledLists,
    /// A text without a value is shown as `""`.
    NullAsEmpty,
    /// The server fills fields that were left out.
    ServerDefaults,
    /// Names of endpoints with `FlashBoot` read back with a suffix.
    FbSuffix,
    /// Templates in use are hidden from lists.
    BoundTemplatesHidden,
    /// A template cannot be deleted for this many milliseconds after its last use.
    TemplateDelay(i64),
    /// Lists show a write only after this many milliseconds.
    StaleLists(i64),
    /// Every other list leaves out the newest object.
    ListOmitsOne,
    /// Every list shows its first object twice.
    ListDoublesOne,
    /// REST creates answer 201.
    Created201,
    /// REST updates answer 204 without a body.
    NoBody,
    /// REST errors are an HTML page.
    HtmlErrors,
    /// REST answers 410 to everything.
    Gone410,
}

/// The reason for which a text is not a quirk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuirkError {
    /// No quirk has this name.
    #[error("there is no quirk `{name}`; there are: {known}", known = known())]
    Unknown {
        /// The given name.
        name: String,
    },
    /// The quirk takes no number, or the given value is not a number.
    #[error("`{text}`: {reason}")]
    Value {
        /// The given text.
        text: String,
        /// The explanation of the mistake.
        reason: &'static str,
    },
}

/// Every quirk with its name and its default number.
const ALL: &[(&str, Quirk)] = &[
    ("shuffled-lists", Quirk::ShuffledLists),
    ("null-as-empty", Quirk::NullAsEmpty),
    ("server-defaults", Quirk::ServerDefaults),
    ("fb-suffix", Quirk::FbSuffix),
    ("bound-templates-hidden", Quirk::BoundTemplatesHidden),
    ("template-delay", Quirk::TemplateDelay(120_000)),
    ("stale-lists", Quirk::StaleLists(1000)),
    ("list-omits-one", Quirk::ListOmitsOne),
    ("list-doubles-one", Quirk::ListDoublesOne),
    ("created-201", Quirk::Created201),
    ("no-body", Quirk::NoBody),
    ("html-errors", Quirk::HtmlErrors),
    ("gone-410", Quirk::Gone410),
];

fn known() -> String {
    ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl Quirk {
    /// The description of the text form, for help texts.
    pub const HELP: &'static str = "\
A comma-separated list of shuffled-lists, null-as-empty, server-defaults, fb-suffix, \
bound-templates-hidden, template-delay[=SECONDS], stale-lists[=MS], list-omits-one, \
list-doubles-one, created-201, no-body, html-errors, gone-410.";

    /// Reads a comma-separated list of quirks; empty parts are ignored.
    pub fn parse_list(text: &str) -> Result<Vec<Quirk>, QuirkError> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
    }

    /// Returns the name of the quirk, without its number.
    pub fn name(&self) -> &'static str {
        let same = |other: &Quirk| std::mem::discriminant(self) == std::mem::discriminant(other);
        ALL.iter().find(|(_, quirk)| same(quirk)).map_or("", |(name, _)| name)
    }
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quirk::TemplateDelay(ms) => write!(f, "{}={}", self.name(), ms / 1000),
            Quirk::StaleLists(ms) => write!(f, "{}={ms}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

impl FromStr for Quirk {
    type Err = QuirkError;

    fn from_str(text: &str) -> Result<Quirk, QuirkError> {
        let (name, value) = match text.trim().split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (text.trim(), None),
        };
        let Some((_, quirk)) = ALL.iter().find(|(known, _)| *known == name) else {
            return Err(QuirkError::Unknown { name: name.to_owned() });
        };
        let Some(value) = value else { return Ok(*quirk) };
        let wrong = |reason| QuirkError::Value { text: text.to_owned(), reason };
        let number = value.parse::<u32>().map(i64::from);
        match quirk {
            Quirk::TemplateDelay(_) => number
                .map(|seconds| Quirk::TemplateDelay(seconds * 1000))
                .map_err(|_| wrong("expected a whole number of seconds after `=`")),
            Quirk::StaleLists(_) => number
                .map(Quirk::StaleLists)
                .map_err(|_| wrong("expected a whole number of milliseconds after `=`")),
            _ => Err(wrong("this quirk takes no number")),
        }
    }
}

/// The quirks that are on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quirks(Vec<Quirk>);

impl Quirks {
    pub(crate) fn new(quirks: Vec<Quirk>) -> Quirks {
        Quirks(quirks)
    }

    /// Returns true if a quirk without a number is on.
    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.0.contains(&quirk)
    }

    /// Returns the milliseconds after its last use during which a template cannot be deleted.
    pub(crate) fn template_delay_ms(&self) -> i64 {
        let delay = |quirk: &Quirk| match quirk {
            Quirk::TemplateDelay(ms) => Some(*ms),
            _ => None,
        };
        self.0.iter().find_map(delay).unwrap_or(0)
    }

    /// Returns the age in milliseconds at which lists show a write.
    pub(crate) fn stale_lists_ms(&self) -> i64 {
        let stale = |quirk: &Quirk| match quirk {
            Quirk::StaleLists(ms) => Some(*ms),
            _ => None,
        };
        self.0.iter().find_map(stale).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quirk_reads_back_from_its_text() {
        for (name, quirk) in ALL {
            assert_eq!(name.parse::<Quirk>().as_ref(), Ok(quirk));
            assert_eq!(quirk.to_string().parse::<Quirk>().as_ref(), Ok(quirk));
        }
        assert_eq!(
            Quirk::parse_list(" stale-lists=50, ,template-delay=2"),
            Ok(vec![Quirk::StaleLists(50), Quirk::TemplateDelay(2000)])
        );
    }

    #[test]
    fn the_help_names_every_quirk() {
        for (name, _) in ALL {
            assert!(Quirk::HELP.contains(name), "{name}");
        }
    }

    #[test]
    fn a_wrong_quirk_says_what_there_is() {
        let error = "shuffled".parse::<Quirk>().unwrap_err().to_string();
        assert!(error.contains("`shuffled`") && error.contains("shuffled-lists"), "{error}");
        assert!("no-body=1".parse::<Quirk>().unwrap_err().to_string().contains("takes no number"));
        assert!("stale-lists=x".parse::<Quirk>().is_err());
    }
}
