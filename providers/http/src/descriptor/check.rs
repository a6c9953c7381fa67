//! Checks of names within a type: each name that is used must exist.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::config::policies::plan_type;
use engine::diagnostics::Span;
use engine::expression::check;
use engine::expression::{Expr, ExprError, Root};
use engine::schema::{Identity, OnChange, Presence, RuleOn, SeenIn};
use engine::types::{Field, Type};

use super::model::{CallModel, Failing, PhaseModel, ProgramModel, SendsModel, TypeModel};
use super::reader::Reader;
use super::{diagnostics, price};
use crate::template::{ANSWER, ELEMENT, ONE_TIME, PARENT, SELF, names};

/// The check of one type.
struct Check<'a> {
    reader: &'a mut Reader,
    name: &'a str,
    span: Span,
    model: &'a TypeModel,
}

pub(super) fn type_model(reader: &mut Reader, (name, span): (&str, Span), model: &TypeModel) {
    let mut check = Check { reader, name, span, model };
    if model.data_only {
        check.data_only();
    } else if model.singleton.is_some() {
        check.singleton();
    } else {
        check.programs();
        check.identity();
    }
    check.calls();
    check.reads();
    check.find();
    check.attributes();
    check.rules();
    price::check(check.reader, name, model);
}

/// Checks the types whose objects attributes hold.
pub(super) fn held_types(
    reader: &mut Reader,
    models: &BTreeMap<Name, TypeModel>,
    spans: &BTreeMap<Name, Span>,
) {
    let known: Vec<&str> = models.keys().map(|name| &**name).collect();
    for (name, model) in models {
        let held =
            model.attributes.values().filter_map(|attribute| attribute.schema.holds.as_ref());
        for held in held.filter(|held| !models.contains_key(*held)) {
            let Some(&span) = spans.get(name) else { continue };
            reader.push(diagnostics::unknown_name(span, "type", held, &known));
        }
    }
}

impl<'a> Check<'a> {
    fn say(&mut self, summary: &str, label: &str, help: &str) {
        self.say_at(self.span, summary, label, help);
    }

    fn say_at(&mut self, span: Span, summary: &str, label: &str, help: &str) {
        let summary = format!("type `{}`: {summary}", self.name);
        self.reader.push(diagnostics::misfit(span, &summary, label, help));
    }

    fn all_programs(&self) -> impl Iterator<Item = &'a ProgramModel> + use<'a> {
        let model = self.model;
        model.create.iter().chain(&model.update).chain(&model.delete)
    }

    /// Checks that a type whose objects are only looked up has no calls that change them.
    fn data_only(&mut self) {
        self.key();
        if self.all_programs().next().is_some() || self.model.find.is_some() {
            self.say(
                "objects that are only looked up do not change",
                "`create`, `update`, `delete` and `find` are for what specs manage",
                "remove them, or remove `data_only`",
            );
        }
        let mut attributes = self.model.attributes.iter();
        let given = attributes.find(|(_, it)| it.schema.presence != Presence::Computed);
        if let Some((name, _)) = given {
            self.say(
                "objects that are only looked up are not given anything",
                &format!("`{name}` is not computed"),
                &format!("add `computed = true` to `{name}`, or remove `data_only`"),
            );
        }
    }

    /// Checks a type with only one object, which exists from the start, and stays.
    fn singleton(&mut self) {
        self.updates();
        let has = |programs: &[ProgramModel]| !programs.is_empty();
        if self.model.read.is_empty() {
            let help = "add `read = \"api: GET /settings\"`";
            self.say("the only object of a type is read", "nothing reads it", help);
        }
        if has(&self.model.create) || self.model.find.is_some() {
            self.say(
                "the only object of a type is never made",
                "`create` and `find` are for objects that are made",
                "remove them, or remove `singleton`",
            );
        }
        if self.model.parent.is_some() || self.model.data_only {
            self.say(
                "the only object of a type stands alone",
                "`parent` and `data_only` are for objects of which there are several",
                "remove them, or remove `singleton`",
            );
        }
        let mut attributes = self.model.attributes.iter();
        let replaces = attributes.find(|(_, it)| {
            it.schema.on_change == OnChange::Replace && it.schema.presence != Presence::Computed
        });
        if let Some((name, _)) = replaces {
            self.say(
                "the only object of a type is never replaced",
                &format!("a change of `{name}` would"),
                &format!("remove `on_change` of `{name}`"),
            );
        }
    }

    fn programs(&mut self) {
        for (word, programs) in [("create", &self.model.create), ("delete", &self.model.delete)] {
            if !programs.iter().any(|program| program.when.is_none()) {
                let label = format!("objects cannot be {word}d in every case");
                self.say(
                    &format!("there is no `{word}` for all objects"),
                    &label,
                    &format!("add `{word} = [{{ call = \"…\" }}]`"),
                );
            }
        }
        self.updates();
    }

    fn updates(&mut self) {
        if self.all_programs().any(|program| program.phases.is_empty()) {
            self.say(
                "an operation has no phases",
                "nothing would be called",
                "add a phase; an `update` that has nothing to call is left out",
            );
        }
        let updatable = self.model.attributes.iter().find(|(_, attribute)| {
            attribute.schema.on_change == OnChange::Update
                && attribute.schema.presence != Presence::Computed
        });
        if let (Some((attribute, _)), true) = (updatable, self.model.update.is_empty()) {
            self.say(
                "there is no `update`",
                &format!("`{attribute}` could not be changed"),
                "add `update`, or give the attributes `on_change = \"replace\"`",
            );
        }
    }

    /// Checks that every name in a template, and every sent name, is an attribute.
    fn calls(&mut self) {
        for phase in self.all_programs().flat_map(|program| &program.phases) {
            let mut used: Vec<Name> = phase.with.keys().cloned().collect();
            used.extend(phase.with.values().flat_map(|template| names(&template.0)));
            if let SendsModel::These(sends) = &phase.sends {
                used.extend(sends.keys().cloned());
                used.extend(sends.values().flat_map(|template| names(&template.0)));
            }
            used.extend(phase.call.iter().flat_map(CallModel::names));
            let looks = phase.polled.iter().filter_map(|polled| polled.call.as_ref());
            used.extend(looks.flat_map(CallModel::names).filter(|name| &**name != ANSWER));
            used.extend(phase.fields.iter().flat_map(|(_, value)| names(&value.0)));
            used.extend(phase.headers.iter().flat_map(|header| names(&header.value.0)));
            if phase.elements.is_some() {
                used.retain(|name| &**name != ELEMENT);
            }
            self.known_all(used, "the phase", phase.span);
            self.elements(phase);
        }
        let headers = self.model.headers.iter().flat_map(|header| names(&header.value.0));
        self.known_all(headers.collect(), "`headers`", self.span);
        let when = self.all_programs().filter_map(|p| p.when.as_ref()).flat_map(names);
        self.known_all(when.filter(|name| &**name != OLD).collect(), "`when`", self.span);
        self.lists();
    }

    /// Checks that a set whose elements have their own calls is shown by reads.
    fn elements(&mut self, phase: &PhaseModel) {
        let Some(elements) = &phase.elements else { return };
        let name = &elements.attribute;
        self.known(name, "the phase", phase.span);
        let Some(attribute) = self.model.attributes.get(name) else { return };
        let schema = &attribute.schema;
        if !matches!(schema.ty, Type::Set(_)) || schema.seen_in == SeenIn::Never {
            let label = format!("`{name}` is no set that reads show");
            let help = "give it the type `set(…)`, and a `read` that shows it";
            self.say_at(phase.span, "elements are added to sets", &label, help);
        }
        let makes = |program: &ProgramModel| {
            program.phases.first().is_some_and(|first| first.span == phase.span)
        };
        let has_use = phase.call.as_ref().is_some_and(|call| {
            let fields = phase.fields.iter().flat_map(|(_, value)| names(&value.0));
            call.names().into_iter().chain(fields).any(|name| &*name == ELEMENT)
        });
        if self.model.create.iter().any(makes) || !has_use {
            let label = "it makes the object, or its call does not name `${element}`";
            let help =
                "add a phase behind the one that makes the object, with `${element}` in its call";
            self.say_at(phase.span, "the phase changes no element", label, help);
        }
        if phase.retry.is_some() || phase.polled.is_some() {
            let label = "each element has a call of its own";
            let help = "leave out `retry_when` and `operation`: the next apply goes on with the elements that are left";
            self.say_at(phase.span, "a call for elements is not repeated or polled", label, help);
        }
    }

    /// Checks that the call of a list uses no names, or only those of the parent.
    fn lists(&mut self) {
        let has_parent = self.model.parent.is_some();
        let named =
            self.model.list.iter().flat_map(|list| {
                list.call.names().into_iter().map(move |name| (name, list.call.span))
            });
        let odd = named.into_iter().find(|(name, _)| !has_parent || &**name != PARENT);
        if let Some((name, span)) = odd {
            self.say_at(
                span,
                "a list cannot depend on an object",
                &format!("its call names `{name}`"),
                "list with a call that has no parts to fill in, or once for each parent: with `${parent.id}`, \
                 and `parent = { type = \"zone\", attributes = { zone = \"id\" } }`",
            );
        }
    }

    /// Checks that a read uses only the id, and attributes that lists show.
    fn reads(&mut self) {
        for call in self.model.read.iter().map(|read| &read.call) {
            for name in sorted(call.names()) {
                self.known(&name, "`read`", call.span);
                let is_there = self.model.attributes.contains_key(&name);
                let is_known = name == self.model.key || self.model.is_part_of_key(&name);
                if !is_there || is_known || self.model.is_listed(&name) {
                    continue;
                }
                let summary = "`read` cannot be filled in with what no list shows";
                let label = format!("`{name}` does not show in lists");
                let key = &self.model.key;
                let help = format!(
                    "list with a call that shows `{name}`, or read with one that names `{key}` alone"
                );
                self.say_at(call.span, summary, &label, &help);
            }
        }
    }

    /// Checks that the search for a lost create uses only attributes that were sent, and the one-time name.
    fn find(&mut self) {
        let Some(find) = &self.model.find else { return };
        let call = &find.call;
        self.known_all(call.names(), "`find`", call.span);
        for name in sorted(call.names()) {
            let attribute = self.model.attributes.get(&name);
            if attribute.is_some_and(|it| it.schema.presence == Presence::Computed) {
                let summary = "`find` cannot be filled in with what the API says";
                let label = format!("`{name}` of a lost create is not known");
                let help = "search by what a spec gives, or by `${one_time}`";
                self.say_at(call.span, summary, &label, help);
            }
        }
    }

    fn known_all(&mut self, used: Vec<Name>, user: &str, span: Span) {
        for name in sorted(used).iter().filter(|name| &***name != ONE_TIME) {
            self.known(name, user, span);
        }
    }

    fn known(&mut self, name: &Name, user: &str, span: Span) {
        if self.model.attributes.contains_key(name) {
            return;
        }
        let known: Vec<&str> = self.model.attributes.keys().map(|name| &**name).collect();
        self.reader.push(diagnostics::unknown_attribute(span, self.name, user, name, &known));
    }

    fn identity(&mut self) {
        let (Identity::OneTimeName { attribute } | Identity::UniqueName { attribute }) =
            &self.model.identity
        else {
            return self.key();
        };
        self.known(attribute, "its identity", self.span);
        if matches!(self.model.identity, Identity::OneTimeName { .. }) {
            self.one_time_name(attribute);
            let renames = |program: &ProgramModel| program.phases.len() > 1;
            if !self.model.create.iter().all(renames) {
                self.say(
                    "a one-time name is never taken back",
                    "a create has one phase",
                    "add a phase `{ name = \"activate\", … }` that sends the real name",
                );
            }
        }
        self.key();
    }

    /// Checks that a create sends its one-time name in the attribute by which it is looked up.
    fn one_time_name(&mut self, attribute: &Name) {
        let sends_it = |program: &ProgramModel| {
            let Some(phase) = program.phases.first() else { return true };
            let sent = match &phase.sends {
                SendsModel::These(sends) => sends.get(attribute),
                _ => None,
            };
            let sent = phase.with.get(attribute).or(sent);
            sent.is_some_and(|template| names(&template.0).iter().any(|name| &**name == ONE_TIME))
        };
        if !self.model.create.iter().all(sends_it) {
            self.say(
                "a one-time name is never given",
                &format!("the first phase of a create does not send it as `{attribute}`"),
                &format!(
                    "send `{attribute} = \"${{one_time}}\"`, or name another attribute with `name_attribute`"
                ),
            );
        }
    }

    fn key(&mut self) {
        let key = self.model.key.clone();
        self.known(&key, "its key", self.span);
        let changes = self.model.attributes.get(&key).is_some_and(|attribute| {
            let schema = &attribute.schema;
            schema.presence != Presence::Computed && schema.on_change == OnChange::Update
        });
        if self.model.attributes.get(&key).is_some_and(|attribute| attribute.schema.sensitive) {
            self.say(
                "its key is a secret",
                "ids are shown and stored in clear",
                &format!("name another attribute with `key`, or take `sensitive` from `{key}`"),
            );
        }
        self.derived_key(&key);
        if changes {
            self.say(
                "its key can change",
                &format!("an object whose `{key}` changed could not be found any more"),
                &format!("give `{key}` `on_change = \"replace\"`, or `computed = true`"),
            );
        }
    }

    /// Checks that a derived key does not depend on attributes that change in place, because it would change
    /// with them.
    fn derived_key(&mut self, key: &Name) {
        let derived = self.model.attributes.get(key).and_then(|it| it.schema.derived.as_ref());
        for part in derived.map(names).into_iter().flatten() {
            let changes = self.model.attributes.get(&part).is_some_and(|attribute| {
                let schema = &attribute.schema;
                schema.presence != Presence::Computed && schema.on_change == OnChange::Update
            });
            if changes {
                self.say(
                    "its key can change",
                    &format!("an object whose `{part}` changed could not be found any more"),
                    &format!("give `{part}` `on_change = \"replace\"`"),
                );
            }
        }
    }

    fn attributes(&mut self) {
        for (name, attribute) in &self.model.attributes {
            let text = holds_text(&attribute.schema.ty);
            if attribute.schema.constraint.one_of.is_some() && !text {
                self.say(
                    "only texts have lists of allowed values",
                    &format!("`{name}` is of type {}", attribute.schema.ty),
                    "use `min` and `max` for numbers",
                );
            }
            if let Some(followed) = &attribute.schema.follows {
                self.known(followed, "`follows`", self.span);
            }
            let Some(derived) = &attribute.schema.derived else { continue };
            if attribute.schema.presence != Presence::Computed {
                self.say(
                    "what is derived cannot be given",
                    &format!("`{name}` is derived and not computed"),
                    "add `computed = true`",
                );
            }
            for used in names(derived).iter().filter(|used| &***used != "api") {
                self.known(used, "a derivation", self.span);
            }
        }
    }

    fn rules(&mut self) {
        let fields = self.model.attributes.iter().map(|(name, attribute)| {
            (name.clone(), Field { ty: attribute.schema.ty.clone(), optional: true })
        });
        let object = Type::Object(fields.collect());
        for (rule, span) in self.model.rules.iter().zip(&self.model.rule_spans) {
            let types = RuleTypes { object: &object, deletes: rule.on == RuleOn::Delete };
            let mut errors = Vec::new();
            let ty = check::check(&rule.assert, &types, &mut errors);
            if errors.is_empty() && !ty.fits(&Type::Boolean) {
                errors.push(bad_type("assert", &ty));
            }
            for expr in [Some(&rule.message), rule.help.as_ref()].into_iter().flatten() {
                check::check(expr, &types, &mut errors);
            }
            self.report(&errors, *span);
            if let Some(attribute) = &rule.attribute {
                self.known(attribute, "the rule", *span);
            }
        }
        for phase in self.all_programs().flat_map(|program| &program.phases) {
            if let Some(wait) = &phase.wait {
                let scope = OneType { name: SELF, ty: &object };
                self.conditions(&wait.until, wait.failing.as_ref(), &scope, phase.span);
            }
            if let Some(polled) = &phase.polled {
                let scope = OneType { name: ANSWER, ty: &Type::Any };
                self.conditions(&polled.until, polled.failing.as_ref(), &scope, polled.span);
            }
        }
        let whens = self.all_programs().filter_map(|program| program.when.as_ref());
        for when in whens {
            let mut errors = Vec::new();
            let ty = check::check(when, &AttributeTypes(&object), &mut errors);
            if errors.is_empty() && !ty.fits(&Type::Boolean) {
                errors.push(bad_type("when", &ty));
            }
            self.report(&errors, self.span);
        }
    }

    /// Checks the conditions of a wait.
    fn conditions(
        &mut self,
        until: &Expr,
        failing: Option<&Failing>,
        scope: &OneType<'_>,
        span: Span,
    ) {
        let mut errors = Vec::new();
        let conditions = [("until", Some(until)), ("fails_when", failing.map(|it| &it.when))];
        for (key, condition) in conditions {
            let Some(condition) = condition else { continue };
            let ty = check::check(condition, scope, &mut errors);
            if errors.is_empty() && !ty.fits(&Type::Boolean) {
                errors.push(bad_type(key, &ty));
            }
        }
        if let Some(reason) = failing.and_then(|failing| failing.reason.as_ref()) {
            check::check(reason, scope, &mut errors);
        }
        self.report(&errors, span);
    }

    fn report(&mut self, errors: &[ExprError], span: Span) {
        for error in errors {
            let mut diagnostic = diagnostics::bad_expression(span, error);
            diagnostic.summary = format!("type `{}`: an expression does not hold", self.name);
            self.reader.push(diagnostic);
        }
    }
}

fn sorted(mut names: Vec<Name>) -> Vec<Name> {
    names.sort();
    names.dedup();
    names
}

fn bad_type(key: &str, ty: &Type) -> ExprError {
    ExprError {
        range: engine::expression::Range::default(),
        message: format!("`{key}` is of type {ty}, not boolean"),
        help: None,
        meant: None,
    }
}

/// The scope of the expressions of rules.
struct RuleTypes<'a> {
    object: &'a Type,
    deletes: bool,
}

impl check::Types for RuleTypes<'_> {
    fn root(&self, root: &Root) -> Result<Type, check::Unresolved> {
        match root {
            Root::Named(name) => match &**name {
                "old" => Ok(self.object.clone()),
                "new" if !self.deletes => Ok(self.object.clone()),
                "new" => Ok(Type::Null),
                "action" => Ok(Type::String),
                "plan" => Ok(plan_type()),
                _ => Err(unresolved(name, "a rule sees `old`, `new`, `action` and `plan`")),
            },
            _ => Err(unresolved("such a word", "a rule sees `old`, `new`, `action` and `plan`")),
        }
    }
}

/// The scope of the conditions of a wait: one name.
struct OneType<'a> {
    name: &'a str,
    ty: &'a Type,
}

impl check::Types for OneType<'_> {
    fn root(&self, root: &Root) -> Result<Type, check::Unresolved> {
        match root {
            Root::Named(name) if &**name == self.name => Ok(self.ty.clone()),
            other => {
                let name = if let Root::Named(name) = other { name } else { "such a word" };
                Err(unresolved(name, &format!("it sees `{}`", self.name)))
            }
        }
    }
}

/// The name by which a `when` sees the live object.
const OLD: &str = "old";

/// The scope of `when`: the attributes by name, and the live object.
struct AttributeTypes<'a>(&'a Type);

impl check::Types for AttributeTypes<'_> {
    fn root(&self, root: &Root) -> Result<Type, check::Unresolved> {
        let (Root::Named(name), Type::Object(fields)) = (root, self.0) else {
            return Err(unresolved(&format!("{root:?}"), "`when` sees the attributes and `old`"));
        };
        if &**name == OLD {
            return Ok(self.0.clone());
        }
        match fields.get(name) {
            Some(field) => Ok(field.ty.clone()),
            // The unknown name is reported already.
            None => Ok(Type::Any),
        }
    }
}

fn unresolved(name: &str, help: &str) -> check::Unresolved {
    check::Unresolved::advised(format!("there is no `{name}` here"), help)
}

fn holds_text(ty: &Type) -> bool {
    match ty {
        Type::String | Type::Any => true,
        Type::List(item) | Type::Set(item) | Type::Map(item) => holds_text(item),
        _ => false,
    }
}
