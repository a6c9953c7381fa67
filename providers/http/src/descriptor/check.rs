//! What must fit together within a type: names that are used and names that are there.

use engine::address::Name;
use engine::diagnostics::Span;
use engine::expression::{Expr, check};
use engine::expression::{ExprError, Root};
use engine::schema::{Identity, OnChange, Presence, RuleOn};
use engine::types::{Field, Type};

use super::diagnostics;
use super::model::{Argument, CallModel, PhaseModel, ProgramModel, Request, SendsModel, TypeModel};
use super::reader::Reader;
use crate::template::{ONE_TIME, names};

/// One type under scrutiny.
struct Check<'a> {
    reader: &'a mut Reader,
    name: &'a str,
    span: Span,
    model: &'a TypeModel,
}

pub(super) fn type_model(reader: &mut Reader, (name, span): (&str, Span), model: &TypeModel) {
    let mut check = Check { reader, name, span, model };
    check.programs();
    check.calls();
    check.identity();
    check.attributes();
    check.rules();
}

impl<'a> Check<'a> {
    fn say(&mut self, summary: &str, label: &str, help: &str) {
        let summary = format!("type `{}`: {summary}", self.name);
        self.reader.push(diagnostics::misfit(self.span, &summary, label, help));
    }

    fn all_programs(&self) -> impl Iterator<Item = &'a ProgramModel> + use<'a> {
        let model = self.model;
        model.create.iter().chain(&model.update).chain(&model.delete)
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
        if self.all_programs().any(|program| program.phases.is_empty()) {
            self.say("an operation has no phases", "nothing would be called", "add a phase");
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

    /// Every name in a template is an attribute, and every sent name too.
    fn calls(&mut self) {
        let mut used: Vec<Name> = Vec::new();
        let phases: Vec<&PhaseModel> = self.all_programs().flat_map(|p| &p.phases).collect();
        for phase in phases {
            used.extend(phase.with.keys().cloned());
            used.extend(phase.with.values().flat_map(|template| names(&template.0)));
            if let SendsModel::These(sends) = &phase.sends {
                used.extend(sends.keys().cloned());
                used.extend(sends.values().flat_map(|template| names(&template.0)));
            }
            used.extend(phase.call.iter().flat_map(call_names));
        }
        used.extend(self.model.read.iter().flat_map(|read| call_names(&read.call)));
        used.extend(self.all_programs().filter_map(|p| p.when.as_ref()).flat_map(names));
        let lists = self.model.list.iter().flat_map(|list| call_names(&list.call));
        if let Some(name) = lists.into_iter().next() {
            self.say(
                "a list cannot depend on an object",
                &format!("its call names `{name}`"),
                "list with a call that has no parts to fill in",
            );
        }
        used.sort();
        used.dedup();
        for name in used.iter().filter(|name| &***name != ONE_TIME) {
            self.known(name, "a call");
        }
    }

    fn known(&mut self, name: &Name, user: &str) {
        if self.model.attributes.contains_key(name) {
            return;
        }
        let known: Vec<&str> = self.model.attributes.keys().map(|name| &**name).collect();
        self.reader.push(diagnostics::unknown_attribute(self.span, self.name, user, name, &known));
    }

    fn identity(&mut self) {
        let (Identity::OneTimeName { attribute } | Identity::UniqueName { attribute }) =
            &self.model.identity
        else {
            return self.key();
        };
        self.known(attribute, "its identity");
        if matches!(self.model.identity, Identity::OneTimeName { .. }) {
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

    fn key(&mut self) {
        let key = self.model.key.clone();
        self.known(&key, "its key");
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
            let Some(derived) = &attribute.schema.derived else { continue };
            if attribute.schema.presence != Presence::Computed {
                self.say(
                    "what is derived cannot be given",
                    &format!("`{name}` is derived and not computed"),
                    "add `computed = true`",
                );
            }
            for used in names(derived).iter().filter(|used| &***used != "api") {
                self.known(used, "a derivation");
            }
        }
    }

    fn rules(&mut self) {
        let fields = self.model.attributes.iter().map(|(name, attribute)| {
            (name.clone(), Field { ty: attribute.schema.ty.clone(), optional: true })
        });
        let object = Type::Object(fields.collect());
        for rule in &self.model.rules {
            let types = RuleTypes { object: &object, deletes: rule.on == RuleOn::Delete };
            let mut errors = Vec::new();
            let ty = check::check(&rule.assert, &types, &mut errors);
            if errors.is_empty() && !ty.fits(&Type::Boolean) {
                errors.push(bad_type(&ty));
            }
            for expr in [Some(&rule.message), rule.help.as_ref()].into_iter().flatten() {
                check::check(expr, &types, &mut errors);
            }
            self.report(&errors);
            if let Some(attribute) = &rule.attribute {
                self.known(attribute, "a rule");
            }
        }
        let phases: Vec<&PhaseModel> = self.all_programs().flat_map(|p| &p.phases).collect();
        for wait in phases.iter().filter_map(|phase| phase.wait.as_ref()) {
            let mut errors = Vec::new();
            check::check(&wait.until, &SelfType(&object), &mut errors);
            self.report(&errors);
        }
    }

    fn report(&mut self, errors: &[ExprError]) {
        for error in errors {
            let mut diagnostic = diagnostics::bad_expression(self.span, error);
            diagnostic.summary = format!("type `{}`: an expression does not hold", self.name);
            self.reader.push(diagnostic);
        }
    }
}

fn bad_type(ty: &Type) -> ExprError {
    ExprError {
        range: engine::expression::Range::default(),
        message: format!("`assert` is of type {ty}, not boolean"),
        help: None,
    }
}

/// What the expressions of rules see.
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
                _ => Err(unresolved(name, "a rule sees `old`, `new` and `action`")),
            },
            other => Err(unresolved(&format!("{other:?}"), "a rule sees `old`, `new`, `action`")),
        }
    }
}

/// What the expressions of waits see.
struct SelfType<'a>(&'a Type);

impl check::Types for SelfType<'_> {
    fn root(&self, root: &Root) -> Result<Type, check::Unresolved> {
        match root {
            Root::Named(name) if &**name == "self" => Ok(self.0.clone()),
            other => Err(unresolved(&format!("{other:?}"), "`until` sees `self`, the object")),
        }
    }
}

fn unresolved(name: &str, help: &str) -> check::Unresolved {
    check::Unresolved { message: format!("there is no `{name}` here"), help: Some(help.to_owned()) }
}

fn holds_text(ty: &Type) -> bool {
    match ty {
        Type::String | Type::Any => true,
        Type::List(item) | Type::Set(item) | Type::Map(item) => holds_text(item),
        _ => false,
    }
}

fn call_names(call: &CallModel) -> Vec<Name> {
    let of = |expr: &Expr| names(expr);
    match &call.request {
        Request::Rest { path, .. } => {
            let query = path.query.iter().map(|(_, value)| value);
            path.segments.iter().chain(query).flat_map(|template| of(&template.0)).collect()
        }
        Request::Graphql { arguments, .. } => arguments
            .iter()
            .filter_map(|(_, argument)| match argument {
                Argument::Value(template) => Some(of(&template.0)),
                Argument::Sends => None,
            })
            .flatten()
            .collect(),
    }
}
