//! Calls of the functions that read files beside the spec. The files were read before: a scope has their
//! texts.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::access::entry_of;
use super::{Eval, Evaluator, Part, Stop, stop};
use crate::address::Name;
use crate::diagnostics::nearest;
use crate::expression::functions::{self, globs};
use crate::expression::parse::{Dialect, template};
use crate::expression::visit::{move_ranges, walk};
use crate::expression::{Expr, ExprError, FileRequest, Kind, Range, Root};
use crate::value::Value;

impl Evaluator<'_> {
    pub(super) fn file(&mut self, argument: &Expr) -> Eval {
        let text = self.content(argument, FileRequest::Text(""))?;
        Ok(Part::plain(Value::String(text)))
    }

    /// Returns the bytes of a file as a text, in the form of one function.
    pub(super) fn file_bytes(&mut self, argument: &Expr, shown: fn(&[u8]) -> String) -> Eval {
        let text = self.content(argument, FileRequest::Bytes(""))?;
        let bytes = STANDARD
            .decode(&*text)
            .map_err(|_| stop(argument.range, "the bytes of the file are not in base64", None))?;
        Ok(Part::plain(Value::string(shown(&bytes))))
    }

    /// Returns the paths in a folder that match a pattern.
    pub(super) fn file_set(&mut self, arguments: &[Expr]) -> Eval {
        let paths = self.content(&arguments[0], FileRequest::Listing(""))?;
        let part = self.eval(&arguments[1])?;
        let place = arguments[1].range;
        let Value::String(pattern) = &part.value else {
            return Err(stop(
                place,
                "the pattern of files is text that is known while planning",
                None,
            ));
        };
        if self.looks_into(&part) {
            return Err(stop(place, "the pattern of files cannot be a secret", None));
        }
        let patterns = globs::read(pattern).map_err(|message| stop(place, message, None))?;
        let named = paths.lines().filter(|path| globs::name(&patterns, path));
        let named: Vec<Value> = named.map(Value::string).collect();
        self.budget.items(named.len(), place)?;
        Ok(Part::plain(Value::set(named)))
    }

    /// Returns the text of a file with its parts filled in; the names in it are those of the given values.
    pub(super) fn template_file(&mut self, arguments: &[Expr], range: Range) -> Eval {
        let text = self.content(&arguments[0], FileRequest::Text(""))?;
        let values = self.eval(&arguments[1])?;
        let Value::Map(entries) = &values.value else {
            let message = "the values of a template are a map or an object whose names are known";
            return Err(stop(arguments[1].range, message, None));
        };
        let secret = self.looks_at_items(&values);
        let given = entries.iter().map(|(name, value)| {
            (name.clone(), entry_of(&values, name, value, arguments[1].range))
        });
        let given: Vec<(Name, Part)> = given.collect();
        let in_file = |stop: Stop| placed(stop, &arguments[0], &text, range, secret);
        let written =
            read_template(&text, &given).map_err(|error| in_file(Stop { error, fatal: false }))?;
        // The file sees nothing else, not even the variables of walks around the call.
        let outside = std::mem::replace(&mut self.bound, given);
        let mut moved = written.clone();
        move_ranges(&mut moved, &|_| range);
        let part = match self.eval(&moved) {
            // The parts are evaluated again for the place in the file.
            Err(stop) if !stop.fatal => self.eval(&written).and(Err(stop)),
            part => part,
        };
        self.bound = outside;
        part.map_err(in_file)
    }

    /// Returns the answer to a request of the spec for a file. The argument is the path of the request.
    fn content(&mut self, argument: &Expr, kind: FileRequest<'_>) -> Result<Arc<str>, Stop> {
        let part = self.eval(argument)?;
        self.looks_into(&part);
        let message = "the path of a file is text that stands in the spec";
        let no_path = || stop(argument.range, message, None);
        let Value::String(path) = &part.value else { return Err(no_path()) };
        let found = match kind.with_path(path).name() {
            Some(name) => self.scope.file(&name),
            None => Err(format!("`{path}` is no path of a file")),
        };
        // The message shows the path.
        let secret = self.secret(&part);
        let content =
            found.map_err(
                |message| {
                    if secret { no_path() } else { stop(argument.range, message, None) }
                },
            )?;
        self.budget.bytes(content.len(), argument.range)?;
        Ok(content)
    }
}

/// Reads a template that sees only these values.
fn read_template(text: &str, given: &[(Name, Part)]) -> Result<Expr, ExprError> {
    let written = template(text, Dialect::Names)?;
    let mut own: Vec<&Name> = given.iter().map(|(name, _)| name).collect();
    walk(&written, &mut |part| {
        if let Kind::For(walk) = &part.kind {
            own.extend(walk.key_variable.iter().chain([&walk.value_variable]));
        }
    });
    let mut wrong = None;
    walk(&written, &mut |part| {
        let error = |message: String, help: String| ExprError {
            range: part.range,
            message,
            help: Some(help),
            meant: None,
        };
        let found = match &part.kind {
            Kind::Root(Root::Named(name)) if !own.contains(&name) => {
                let near = nearest(name, own.iter().map(|name| &***name));
                let help = near.map_or_else(
                    || format!("give it to the template: {{ {name} = … }}"),
                    |near| format!("did you mean `{near}`?"),
                );
                error(format!("the template is given no value `{name}`"), help)
            }
            // The template is read after the files that the spec names.
            Kind::Call(call) if functions::file_request(&call.name).is_some() => {
                let help = "read it in the spec, and give its text to the template".to_owned();
                error(format!("a template cannot call {}()", call.name), help)
            }
            _ => return,
        };
        wrong.get_or_insert(found);
    });
    // A template with one part alone still gives a text.
    let range = written.range;
    match wrong {
        Some(error) => Err(error),
        None => Ok(Expr { kind: Kind::template(vec![written]), range }),
    }
}

/// Returns the error of a template at the place of the call, with the line in the file.
fn placed(stop: Stop, path: &Expr, text: &str, range: Range, secret: bool) -> Stop {
    if stop.fatal || secret {
        return stop.over_a_secret(
            range,
            "the template cannot be filled in with these values",
            None,
        );
    }
    let Kind::Literal(Value::String(path)) = &path.kind else { return stop };
    let start = (stop.error.range.start as usize).min(text.len());
    let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
    let message = format!("{}: see line {line} of `{path}`", stop.error.message);
    Stop { error: ExprError { range, message, ..stop.error }, fatal: false }
}
