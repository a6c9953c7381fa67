//! Look-ups of data that is no object of an API: the question for the shell, and its answer as an object.

use std::collections::BTreeMap;
use std::time::Duration;

use super::diagnostics as say;
use crate::address::Name;
use crate::config::Fetched;
use crate::config::backends;
use crate::config::settings::StateSettings;
use crate::diagnostics::{Diagnostics, Span};
use crate::duration;
use crate::plan::data_request::{Fetch, HttpRequest, StatePlace};
use crate::value::{Attributes, Datum, Path, Paths, Value};

/// The longest time of a request if the block gives none.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time that a block may give.
const TIMEOUT_MAX: Duration = Duration::from_mins(10);

/// The attributes that a block gives, evaluated, with their places.
pub(super) struct Given {
    pub(super) values: BTreeMap<Name, (Datum, Span)>,
    pub(super) header: Span,
}

impl Given {
    fn value(&self, name: &str) -> Option<&Value> {
        Some(&self.values.get(name)?.0.value)
    }

    fn text(&self, name: &str) -> Option<Name> {
        self.value(name)?.as_str().map(Name::from)
    }

    /// Returns the place of the value of an attribute, or that of the block if it does not give the
    /// attribute.
    fn place(&self, name: &str) -> Span {
        self.values.get(name).map_or(self.header, |(_, span)| *span)
    }

    fn is_secret(&self, names: &[&str]) -> bool {
        let given = names.iter().filter_map(|name| self.values.get(*name));
        given.into_iter().any(|(datum, _)| !datum.sensitive.is_empty())
    }

    /// Returns the question that a block asks; none if the block is wrong, which a diagnostic then says.
    pub(super) fn question(&self, kind: Fetched, found: &mut Diagnostics) -> Option<Fetch> {
        match kind {
            Fetched::State => self.state_place(found).map(Fetch::State),
            Fetched::Http => self.request(found).map(Fetch::Http),
        }
    }

    fn state_place(&self, found: &mut Diagnostics) -> Option<StatePlace> {
        if let Some(path) = self.text("path") {
            return Some(StatePlace::Folder(path));
        }
        let backend = self.values.get("backend");
        if let Some((_, at)) = backend.filter(|(datum, _)| datum.value.as_str() == Some("file")) {
            found.push(say::file_without_path(*at));
            return None;
        }
        let mut settings = StateSettings::file();
        settings.header = Some(self.header);
        let mut named = None;
        for (name, (datum, span)) in &self.values {
            if &**name == "backend" {
                settings.backend = datum.value.as_str().unwrap_or_default().into();
                named = Some(*span);
            } else {
                settings.values.insert(name.clone(), (datum.value.clone(), *span));
            }
        }
        let wrong = backends::check(&mut settings, (self.header, named.unwrap_or(self.header)));
        let is_right = !wrong.has_errors();
        found.extend(wrong);
        is_right.then_some(StatePlace::Backend(settings))
    }

    fn request(&self, found: &mut Diagnostics) -> Option<HttpRequest> {
        let url = self.url(found);
        let timeout = self.timeout(found);
        let headers = self.value("headers").and_then(Value::as_map).into_iter().flatten();
        let headers =
            headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into())));
        let expected = match self.value("expected_status") {
            Some(Value::List(items)) => items.iter().filter_map(Value::as_integer).collect(),
            _ => Vec::new(),
        };
        Some(HttpRequest {
            url: url?,
            headers: headers.collect(),
            expected_status: expected,
            timeout: timeout?,
            is_secret: self.is_secret(&["url", "headers"]),
        })
    }

    fn url(&self, found: &mut Diagnostics) -> Option<Name> {
        let is_right = |url: &Name| url.starts_with("http://") || url.starts_with("https://");
        let url = self.text("url").filter(is_right);
        if url.is_none() {
            found.push(say::not_an_address(self.place("url")));
        }
        url
    }

    fn timeout(&self, found: &mut Diagnostics) -> Option<Duration> {
        let Some(text) = self.text("timeout") else { return Some(TIMEOUT) };
        let timeout = duration::parse(&text).filter(|it| !it.is_zero() && *it <= TIMEOUT_MAX);
        if timeout.is_none() {
            found.push(say::no_timeout(self.place("timeout")));
        }
        timeout
    }

    /// Returns the answer, together with the attributes that the block gives, as an object. The answer to a
    /// secret request may repeat the secret, so it is secret, unless the block says that it is not.
    pub(super) fn object(&self, answer: &Datum) -> (Attributes, Paths) {
        let (mut attributes, mut sensitive) = (Attributes::new(), answer.sensitive.clone());
        let told = match self.value("sensitive") {
            Some(Value::Bool(told)) => Some(*told),
            _ => None,
        };
        let is_secret = told.unwrap_or_else(|| self.is_secret(&["url", "headers"]));
        for (name, value) in answer.value.as_map().into_iter().flatten() {
            attributes.insert(name.clone(), value.clone());
            if is_secret {
                sensitive.insert(Path::attribute(name.clone()));
            }
        }
        for (name, (datum, _)) in &self.values {
            attributes.insert(name.clone(), datum.value.clone());
            sensitive.extend_below(&Path::attribute(name.clone()), &datum.sensitive);
        }
        (attributes, sensitive)
    }
}
