//! Variables and their values in this run.
//!
//! No message shows a value, even if the variable is not sensitive. The one exception is a value that a
//! validation refuses, because a message without the value would not help.

use std::collections::{BTreeMap, BTreeSet};

use super::constant::{constant, from_toml};
use super::given::{Given, GivenPlaces};
use super::{Document, Item, RawBlock, SpecExpr, Variable, diagnostics as say, validations};
use crate::address::Name;
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::{Expr, Kind, Root};
use crate::stored::from_json;
use crate::types::Type;
use crate::value::{Datum, Value};

/// Returns the name of the environment variable that gives a variable its value.
pub fn environment_name(name: &str) -> String {
    format!("PLUMB_VAR_{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// Returns the variables of a document with the values given for them, or else their defaults.
pub fn variables(
    document: &Document,
    given: (&BTreeMap<Name, Given>, &GivenPlaces),
) -> (BTreeMap<Name, Variable>, Diagnostics) {
    let (variables, _, diagnostics) = read(document, given);
    (variables, diagnostics)
}

/// Returns the variables, and the names of those without a value because of a mistake.
pub(super) fn read(
    document: &Document,
    (given, places): (&BTreeMap<Name, Given>, &GivenPlaces),
) -> (BTreeMap<Name, Variable>, BTreeSet<Name>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    for name in given.keys().filter(|name| !document.variables.contains_key(*name)) {
        let known = document.variables.keys().map(|name| &**name);
        diagnostics.push(say::unknown_variable(name, places.get(name), known));
    }
    let (mut variables, mut wrong) = (BTreeMap::new(), BTreeSet::new());
    for (name, block) in &document.variables {
        let mut found = Diagnostics::new();
        let mut reader = Reader { document, name, block, diagnostics: &mut found };
        let given = given.get(name).map(|given| (given, places.get(name)));
        variables.insert(name.clone(), reader.variable(given));
        let is_broken = |item: &Item| document.broken.contains(&item.value.span);
        let is_open = !variables[name].value.value.is_known();
        if found.has_errors() || is_open || block.items.values().any(is_broken) {
            wrong.insert(name.clone());
        }
        diagnostics.extend(found);
    }
    validations::check(document, &variables, &wrong, &mut diagnostics);
    (variables, wrong, diagnostics)
}

/// A variable as a module declares it.
pub(super) struct Declaration {
    pub(super) ty: Type,
    pub(super) default: Option<SpecExpr>,
    pub(super) is_sensitive: bool,
    /// False if a null means the default, or is refused.
    pub(super) is_nullable: bool,
    /// The values that it may have; none if it may have any value.
    pub(super) allowed: Option<Vec<Value>>,
}

/// Returns the variables of a module, whose values come from its callers.
pub(super) fn declarations(
    document: &Document,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Name, Declaration> {
    let declare = |(name, block): (&Name, &RawBlock)| {
        let declaration = Reader { document, name, block, diagnostics }.declaration();
        (name.clone(), declaration)
    };
    document.variables.iter().map(declare).collect()
}

/// Reads one variable.
struct Reader<'a> {
    document: &'a Document,
    name: &'a Name,
    block: &'a RawBlock,
    diagnostics: &'a mut Diagnostics,
}

impl Reader<'_> {
    fn variable(&mut self, given: Option<(&Given, Option<&String>)>) -> Variable {
        let sensitive = self.flag("sensitive", false);
        let nullable = self.flag("nullable", true);
        self.text("description");
        let written_default = self.constant("default");
        let ty = self.ty(written_default.as_ref());
        let secret_default = match &written_default {
            Some(value)
                if sensitive && !matches!(value, Value::Null) && value.as_str() != Some("") =>
            {
                self.item("default").map(|item| item.value.span)
            }
            _ => None,
        };
        let default =
            written_default.and_then(|value| self.fitting("default", &value, &ty, sensitive));
        let allowed = self.allowed(&ty, sensitive);
        let value = match given.filter(|(given, _)| !matches!(given, Given::Unset)) {
            Some((given, place)) => {
                let value = self.given((given, place), &ty, sensitive);
                let is_refused = !nullable && matches!(value, Some(Value::Null));
                if is_refused && default.is_some() { default.clone() } else { value }
            }
            None if given.is_some() && !self.block.items.contains_key("default") => {
                let residual = Expr::nowhere(Kind::Root(Root::Var(self.name.clone())));
                Some(Value::unknown(ty.clone(), residual))
            }
            None if default.is_none() && !self.block.items.contains_key("default") => {
                self.diagnostics.push(say::missing_variable(
                    self.name,
                    sensitive,
                    self.block.header,
                ));
                None
            }
            None => default.clone(),
        };
        if !nullable && (matches!(value, Some(Value::Null)) || default == Some(Value::Null)) {
            self.diagnostics.push(say::null_not_allowed(self.name, self.block.header));
        }
        if let (Some(value), Some(allowed)) = (&value, &allowed)
            && value.is_known()
        {
            let place = given.and_then(|(_, place)| place);
            self.check_allowed((value, sensitive), allowed, (given.is_some(), place));
        }
        let value = value.unwrap_or(Value::Null);
        let value = if sensitive { Datum::secret(value) } else { Datum::plain(value) };
        Variable { ty, value, sensitive, secret_default, span: self.block.header }
    }

    fn declaration(&mut self) -> Declaration {
        let is_sensitive = self.flag("sensitive", false);
        let is_nullable = self.flag("nullable", true);
        self.text("description");
        let default = self.constant("default");
        let ty = self.ty(default.as_ref());
        let default = default.and_then(|value| self.fitting("default", &value, &ty, is_sensitive));
        if !is_nullable && default == Some(Value::Null) {
            self.diagnostics.push(say::null_not_allowed(self.name, self.block.header));
        }
        let default = default.map(|value| {
            let span =
                self.block.items.get("default").map_or(self.block.header, |it| it.value.span);
            SpecExpr { expr: Expr::literal(value), span }
        });
        let allowed = self.allowed(&ty, is_sensitive);
        Declaration { ty, default, is_sensitive, is_nullable, allowed }
    }

    /// Returns the item under a key; none if a mistake in it was reported.
    fn item(&self, key: &str) -> Option<&Item> {
        let item = self.block.items.get(key)?;
        (!self.document.broken.contains(&item.value.span)).then_some(item)
    }

    fn constant(&mut self, key: &str) -> Option<Value> {
        let (span, value) = {
            let item = self.item(key)?;
            (item.value.span, constant(&item.value.expr))
        };
        if value.is_none() {
            self.diagnostics.push(say::not_constant(&format!("`{key}` of a variable"), span));
        }
        value
    }

    fn text(&mut self, key: &str) -> Option<Name> {
        let value = self.constant(key)?;
        if let Value::String(text) = value {
            return Some(text);
        }
        let at = self.block.items[key].value.span;
        self.diagnostics.push(say::wrong_type(&Type::String, None, at));
        None
    }

    fn flag(&mut self, key: &str, without: bool) -> bool {
        match self.constant(key) {
            None => without,
            Some(Value::Bool(flag)) => flag,
            Some(_) => {
                let at = self.block.items[key].value.span;
                self.diagnostics.push(say::wrong_type(&Type::Boolean, None, at));
                // If the flag cannot be read, the variable counts as sensitive.
                true
            }
        }
    }

    fn ty(&mut self, default: Option<&Value>) -> Type {
        if !self.block.items.contains_key("type") {
            return match default.map(Value::type_of) {
                Some(ty) if ty != Type::Null => ty,
                _ if self.block.items.contains_key("default") => Type::Any,
                _ => {
                    self.diagnostics.push(say::no_type(self.name, self.block.header));
                    Type::Any
                }
            };
        }
        let Some(text) = self.text("type") else { return Type::Any };
        text.parse().unwrap_or_else(|_| {
            let at = self.block.items["type"].value.span;
            self.diagnostics.push(say::unknown_value_type(&text, at));
            Type::Any
        })
    }

    /// Returns the place that shows an error of a key: never the line of a sensitive value.
    fn place(&self, key: &str, sensitive: bool) -> Span {
        match self.block.items.get(key) {
            Some(item) if !sensitive => item.value.span,
            _ => self.block.header,
        }
    }

    fn fitting(&mut self, key: &str, value: &Value, ty: &Type, sensitive: bool) -> Option<Value> {
        match value.convert(ty) {
            Ok(value) => Some(value.with_optional_attributes(ty)),
            Err(misfit) => {
                let at = self.place(key, sensitive);
                let reason = format!("`{key}` of `{}`: {}", self.name, misfit.shown(sensitive));
                self.diagnostics.push(say::misfit(&reason, ty, value, at));
                None
            }
        }
    }

    fn allowed(&mut self, ty: &Type, sensitive: bool) -> Option<Vec<Value>> {
        let value = self.constant("allowed")?;
        let list = Type::list(ty.clone());
        let fitting = self.fitting("allowed", &value, &list, sensitive)?;
        Some(fitting.as_items()?.to_vec())
    }

    fn given(
        &mut self,
        (given, place): (&Given, Option<&String>),
        ty: &Type,
        sensitive: bool,
    ) -> Option<Value> {
        match value_of(given, ty, sensitive) {
            Ok(value) => Some(value),
            Err(reason) => {
                let at = self.block.header;
                let spelled = ty.spelled_out().filter(|_| !self.block.items.contains_key("type"));
                let diagnostic = match spelled {
                    Some(spelled) => say::default_tells_no_type(self.name, &spelled, at),
                    None => say::bad_given(self.name, ty, sensitive, &reason, at),
                };
                self.diagnostics.push(say::given_by(diagnostic, place));
                None
            }
        }
    }

    /// Checks the value, which is the default unless it is given.
    fn check_allowed(
        &mut self,
        (value, sensitive): (&Value, bool),
        allowed: &[Value],
        (given, place): (bool, Option<&String>),
    ) {
        if allowed.iter().any(|one| one.same(value)) {
            return;
        }
        let texts: Option<Vec<&str>> = allowed.iter().map(Value::as_str).collect();
        let choices = texts.filter(|_| !sensitive);
        let at = if given { self.block.header } else { self.place("default", sensitive) };
        let diagnostic = say::not_allowed(self.name, given, choices, at);
        self.diagnostics.push(say::given_by(diagnostic, place));
    }
}

/// Returns the value given for a variable of type `ty`, as the spec sees it. Else returns the reason that it
/// does not fit, without the place inside the value if it is sensitive.
pub fn value_of(given: &Given, ty: &Type, sensitive: bool) -> Result<Value, String> {
    let value = match given {
        Given::Text(text) if *ty == Type::String => Value::string(&**text),
        Given::Text(text) => {
            let json = || {
                serde_json::from_str(text)
                    .ok()
                    .filter(|_| text.trim_start().starts_with(['[', '{']))
            };
            match from_toml(text) {
                Ok(value) => value,
                Err(why) => match json() {
                    Some(json) => from_json(&json),
                    None => return Err(no_value(why, ty, text)),
                },
            }
        }
        Given::Value(value) => value.clone(),
        Given::Unset => return Err("no value was given".to_owned()),
    };
    let value = value.convert(ty).map_err(|misfit| misfit.shown(sensitive))?;
    Ok(value.with_optional_attributes(ty))
}

/// Returns the reason that a text is no value. TOML's own message about a bare word would not help, because
/// it is about the word's first letter.
fn no_value(why: String, ty: &Type, text: &str) -> String {
    match ty {
        Type::Integer => "this is no integer".to_owned(),
        Type::Number => "this is no number".to_owned(),
        Type::Boolean => "this is neither true nor false".to_owned(),
        _ if text.contains(['"', '\'', '[', '{']) => why,
        _ => "this is not a TOML value: texts stand in quotes there".to_owned(),
    }
}
